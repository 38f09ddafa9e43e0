//! A queue of work on a device.

use std::sync::Arc;

use crate::buffer::DeviceBuffer;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::raw::{Context, Event, RawStream};
use crate::trace::{Kind, Trace};

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
        self.trace.host(Kind::HardSync, 0, || self.raw.synchronize())?;
        self.trace.read_events()
    }

    /// Fills a buffer with one byte.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn fill(&self, buffer: &DeviceBuffer, value: u8) -> Result<()> {
        let bytes = buffer.bytes();
        self.trace.device(Kind::OnDevice, bytes, &self.raw, || {
            self.raw.fill(buffer.memory(), 0, bytes, value)
        })
    }

    /// Copies `bytes` to a buffer of this device, from a buffer of this device or of another one. The caller
    /// makes this stream wait for the other device's work on `from` first ([`Stream::wait_for`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside a buffer, [`Error::Driver`].
    pub fn copy(&self, to: (&DeviceBuffer, u64), from: (&DeviceBuffer, u64), bytes: u64) -> Result<()> {
        let kind = if Arc::ptr_eq(to.0.memory().context(), from.0.memory().context()) {
            Kind::OnDevice
        } else {
            Kind::Peer
        };
        self.trace.device(kind, bytes, &self.raw, || {
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
        self.trace.device(Kind::ToDevicePageable, length, &self.raw, || {
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
            .device(Kind::FromDevicePageable, length, &self.raw, || {
                self.raw.read_now(from.memory(), offset, into)
            })?;
        self.synchronize()
    }

    /// Makes later work of this stream wait, on the device, for the work that is queued on `other` now; the
    /// streams may be of two devices.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        self.wait_for_mark(&other.mark()?)
    }

    /// An event at the end of this stream's queue.
    pub(crate) fn mark(&self) -> Result<Event> {
        let event = Event::between_streams(self.raw.context())?;
        self.raw.record(&event)?;
        Ok(event)
    }

    /// Makes later work of this stream wait for the event.
    pub(crate) fn wait_for_mark(&self, mark: &Event) -> Result<()> {
        self.raw.wait_for(mark)
    }

    pub(crate) fn raw(&self) -> &RawStream {
        &self.raw
    }
}
