//! A queue of work on a device.
#![allow(unsafe_code)]

use std::sync::Arc;

use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys::{CUevent_wait_flags, CUstream};

use super::{Context, DeviceMemory, Event, failed};
use crate::error::{Invalid, Result};

#[derive(Debug)]
pub(crate) struct RawStream {
    raw: CUstream,
    context: Arc<Context>,
}

// SAFETY: a stream is a handle; the driver's functions may be called with it from any thread.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// A stream that does not wait for the legacy default stream.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        context.bind()?;
        let raw = result::stream::create(StreamKind::NonBlocking).map_err(failed("make a stream"))?;
        Ok(Self {
            raw,
            context: context.clone(),
        })
    }

    /// Moves the event to the end of the work that is queued now. Waits for its earlier place are not
    /// affected.
    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both handles live as long as their owners.
        unsafe { result::event::record(event.raw(), self.raw) }.map_err(failed("record an event"))
    }

    /// Makes later work wait, on the device, for the event as it is recorded now.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both handles live as long as their owners.
        unsafe {
            result::stream::wait_event(self.raw, event.raw(), CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)
        }
        .map_err(failed("make a stream wait"))
    }

    /// Blocks until all queued work is done.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle lives as long as its owner.
        unsafe { result::stream::synchronize(self.raw) }.map_err(failed("synchronise a stream"))
    }

    /// Waits for all queued work, a copy from or to `memory` among it. A failed wait is tried once more; if
    /// that fails too, the copy may still be under way, and `memory` is never freed.
    fn settle(&self, memory: Vec<u8>) -> Result<Vec<u8>> {
        match self.synchronize() {
            Ok(()) => Ok(memory),
            Err(error) => {
                if self.synchronize().is_err() {
                    std::mem::forget(memory);
                }
                Err(error)
            }
        }
    }

    /// Fills a range of device memory with one byte.
    pub(crate) fn fill(&self, memory: &DeviceMemory, offset: u64, bytes: u64, value: u8) -> Result<()> {
        let start = memory.at(offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.context.bind()?;
        // SAFETY: the range is inside the allocation; a buffer that is released too early is the device's
        // matter, not the host's.
        unsafe { result::memset_d8_async(start, value, bytes as usize, self.raw) }
            .map_err(failed("fill device memory"))
    }

    /// Copies within the stream's device.
    pub(crate) fn copy(
        &self,
        to: (&DeviceMemory, u64),
        from: (&DeviceMemory, u64),
        bytes: u64,
    ) -> Result<()> {
        let (to_start, from_start) = (to.0.at(to.1, bytes)?, from.0.at(from.1, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.context.ordinal();
        for memory in [to.0, from.0].map(|memory| memory.context().ordinal()) {
            if memory != stream {
                let reason = format!(
                    "the stream of a copy is of device {stream}, its memory of device {memory}: use a stream of that device"
                );
                return Err(Invalid::call(reason).into());
            }
        }
        self.context.bind()?;
        // SAFETY: both ranges are inside their allocations.
        unsafe { result::memcpy_dtod_async(to_start, from_start, bytes as usize, self.raw) }
            .map_err(failed("copy device memory"))
    }

    /// Copies from pageable memory, through a copy of it. The device is done with that when this returns.
    pub(crate) fn write_now(&self, to: &DeviceMemory, offset: u64, from: &[u8]) -> Result<()> {
        let start = to.at(offset, from.len() as u64)?;
        if from.is_empty() {
            return Ok(());
        }
        self.context.bind()?;
        let memory = from.to_vec();
        // SAFETY: the range is inside the allocation; `settle` keeps `memory` until the copy is over.
        let queued = unsafe { result::memcpy_htod_async(start, &memory, self.raw) };
        queued.map_err(failed("copy to the device"))?;
        self.settle(memory).map(drop)
    }

    /// Copies to pageable memory, through memory of its own, after all queued work. After an error `into` is
    /// as it was.
    pub(crate) fn read_now(&self, from: &DeviceMemory, offset: u64, into: &mut [u8]) -> Result<()> {
        let start = from.at(offset, into.len() as u64)?;
        if into.is_empty() {
            return Ok(());
        }
        self.context.bind()?;
        let mut memory = vec![0; into.len()];
        // SAFETY: as in `write_now`.
        let queued = unsafe { result::memcpy_dtoh_async(&mut memory, start, self.raw) };
        queued.map_err(failed("copy from the device"))?;
        into.copy_from_slice(&self.settle(memory)?);
        Ok(())
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.raw
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        let bound = self.context.bind();
        // SAFETY: made once, destroyed once; the driver lets queued work end first.
        let destroyed = unsafe { result::stream::destroy(self.raw) };
        self.context.note(bound);
        self.context.note(destroyed.map_err(failed("destroy a stream")));
    }
}
