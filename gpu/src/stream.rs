//! A queue of work on a device.

use std::sync::Arc;

use crate::buffer::DeviceBuffer;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::raw::{Context, RawStream};
use crate::trace::{SpanKind, Trace};

/// A queue of work on a device; the work runs in order, asynchronously.
#[derive(Debug)]
pub struct Stream {
    raw: RawStream,
    trace: Trace,
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>, trace: &Trace) -> Result<Self> {
        Ok(Self {
            raw: RawStream::new(context)?,
            trace: trace.clone(),
        })
    }

    /// Blocks until all queued work is done; a hard synchronisation.
    ///
    /// # Errors
    /// [`Error::Driver`], also of earlier asynchronous work.
    pub fn synchronize(&self) -> Result<()> {
        self.trace
            .host(SpanKind::HardSync, 0, || self.raw.synchronize())?;
        self.trace.read_events()
    }

    /// Fills a buffer with one byte.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn fill(&self, buffer: &DeviceBuffer, value: u8) -> Result<()> {
        let bytes = buffer.bytes();
        self.trace.device(SpanKind::OnDevice, bytes, &self.raw, || {
            self.raw.fill(buffer.memory(), 0, bytes, value)
        })
    }

    /// Copies `bytes` between buffers of this device.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside a buffer or a buffer of another device, [`Error::Driver`].
    pub fn copy(&self, to: (&DeviceBuffer, u64), from: (&DeviceBuffer, u64), bytes: u64) -> Result<()> {
        self.trace.device(SpanKind::OnDevice, bytes, &self.raw, || {
            self.raw
                .copy((to.0.memory(), to.1), (from.0.memory(), from.1), bytes)
        })
    }

    /// Writes to a buffer, at an offset, from pageable memory, and waits: for tables and small results, not
    /// for data in bulk.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside the buffer, [`Error::Driver`].
    pub fn write(&self, (to, offset): (&DeviceBuffer, u64), bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as u64;
        self.trace
            .device(SpanKind::ToDevicePageable, length, &self.raw, || {
                self.raw.write_now(to.memory(), offset, bytes)
            })?;
        self.synchronize()
    }

    /// Reads from a buffer, at an offset, into pageable memory, after all work that is queued here, and
    /// waits.
    ///
    /// # Errors
    /// As [`Stream::write`].
    pub fn read(&self, (from, offset): (&DeviceBuffer, u64), into: &mut [u8]) -> Result<()> {
        let length = into.len() as u64;
        self.trace
            .device(SpanKind::FromDevicePageable, length, &self.raw, || {
                self.raw.read_now(from.memory(), offset, into)
            })?;
        self.synchronize()
    }

    pub(crate) fn raw(&self) -> &RawStream {
        &self.raw
    }
}
