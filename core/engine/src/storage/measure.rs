//! How fast the scratch folder is: nothing but transfers.

use std::collections::VecDeque;
use std::time::Instant;

use rand::RngCore;

use super::{Pending, Segment, Storage};
use crate::budget::Buffer;
use crate::error::Result;

impl Storage {
    /// What [`Self::measure`] says, the first time that it is asked.
    ///
    /// # Errors
    /// As [`Self::measure`], and those of `buffers`.
    pub(crate) fn rates(
        &self,
        bytes: u64,
        buffers: impl FnOnce() -> Result<Vec<Buffer>>,
    ) -> Result<(f64, f64)> {
        match self.inner.rates.get() {
            Some(rates) => Ok(*rates),
            None => {
                let rates = self.measure(bytes, buffers()?)?;
                Ok(*self.inner.rates.get_or_init(|| rates))
            }
        }
    }

    /// Bytes a second, read and written: of a scratch file of `bytes`, in order, each of `buffers` a transfer
    /// at a time. Their lengths are multiples of the [alignment](super::File::alignment_bytes).
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File), [`Error::Io`](crate::Error::Io).
    pub(crate) fn measure(&self, bytes: u64, mut buffers: Vec<Buffer>) -> Result<(f64, f64)> {
        let file = self.scratch("rates", bytes)?;
        for buffer in &mut buffers {
            // Zeros may be no bytes at all to what is below.
            rand::thread_rng().fill_bytes(buffer);
        }
        let mut pass = |begin: &dyn Fn(Buffer, Segment) -> Pending| -> Result<f64> {
            let mut flying: VecDeque<Pending> = VecDeque::with_capacity(buffers.len());
            let (started, mut offset) = (Instant::now(), 0);
            while offset < bytes {
                if buffers.is_empty()
                    && let Some(pending) = flying.pop_front()
                {
                    buffers.push(pending.wait()?);
                }
                let Some(buffer) = buffers.pop() else { break };
                let len = (buffer.len() as u64).min(bytes - offset) as usize;
                flying.push_back(begin(buffer, Segment::new(offset, 0, len)));
                offset += len as u64;
            }
            for pending in flying {
                buffers.push(pending.wait()?);
            }
            Ok(offset as f64 / started.elapsed().as_secs_f64().max(1e-6))
        };
        let write = |buffer: Buffer, segment: Segment| file.write(buffer, [segment]);
        // The first time takes longer, and is not what counts: most columns take over the room of an earlier
        // one.
        pass(&write)?;
        let written = pass(&write)?;
        let read = pass(&|buffer, segment| file.read(buffer, [segment]))?;
        Ok((read, written))
    }
}
