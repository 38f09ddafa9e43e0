//! A new file that is written from its start to its end, in pieces of any length.

use super::{Publish, Segment};
use crate::Result;
use crate::budget::{Budget, Buffer, PAGE_BYTES};
use crate::error::Invalid;

/// A file that gets its name when it is whole. Memory: one buffer.
#[derive(Debug)]
pub struct Append {
    publish: Publish,
    /// Elsewhere only after a write that failed.
    buffer: Option<Buffer>,
    filled: usize,
    written_bytes: u64,
}

impl Append {
    /// Through a buffer of `buffer_bytes`, rounded up to pages.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::Memory`].
    pub fn new(publish: Publish, budget: &Budget, buffer_bytes: usize) -> Result<Self> {
        let buffer_bytes = buffer_bytes.next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        Ok(Self {
            publish,
            buffer: Some(budget.buffer(buffer_bytes, "output")?),
            filled: 0,
            written_bytes: 0,
        })
    }

    /// Bytes that were pushed.
    pub fn len_bytes(&self) -> u64 {
        self.written_bytes + self.filled as u64
    }

    /// Appends.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; the file is then of no more use.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let buffer = self.buffer.as_mut().ok_or(Invalid::BufferTaken)?;
            let (now, later) = bytes.split_at(bytes.len().min(buffer.len() - self.filled));
            buffer[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == buffer.len() {
                self.put()?;
            }
        }
        Ok(())
    }

    /// Writes the rest, and leaves only the name to [`Self::finish`]. Nothing can be appended then.
    ///
    /// # Errors
    /// As [`Publish::prepare`].
    pub fn prepare(&mut self) -> Result<()> {
        self.put()?;
        self.publish.file().set_len(self.written_bytes)?;
        self.publish.prepare()
    }

    /// Writes the rest, and gives the file its name.
    ///
    /// # Errors
    /// As [`Publish::commit`].
    pub fn finish(mut self) -> Result<()> {
        self.put()?;
        self.publish.file().set_len(self.written_bytes)?;
        self.publish.commit()?;
        Ok(())
    }

    /// Writes the buffer: a full one, unless it is the last.
    fn put(&mut self) -> Result<()> {
        let buffer = self.buffer.take().ok_or(Invalid::BufferTaken)?;
        if self.filled == 0 {
            self.buffer = Some(buffer);
            return Ok(());
        }
        let whole_bytes = self.filled.next_multiple_of(PAGE_BYTES);
        let piece = Segment::new(self.written_bytes, 0, whole_bytes);
        self.buffer = Some(self.publish.file().write(buffer, [piece]).wait()?);
        self.written_bytes += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}
