//! A budget of device memory, and buffers that carry their lease.
//!
//! The budget is a number of bytes that the user gives, not the card's size: a job that fits a few KiB of it fits any card, and is tested
//! that way. Peak device memory of a job = the sum of its buffers, each rounded up to [`GRANULE_BYTES`].

use std::borrow::Cow;

use cudarc::driver::sys::CUresult;

use crate::device::{Gpu, Stream};
use crate::error::{Error, Result};
use crate::ledger::{Lease, Ledger};
use crate::raw::DeviceMemory;
use crate::trace::Kind;

/// What a buffer's bytes are rounded up to in the ledger: the driver's alignment.
pub const GRANULE_BYTES: u64 = 256;
/// Of the memory that is free when a job starts, `auto` leaves this part to others: the display, the kernels' own stacks.
const AUTO_LEAVES: u64 = 16;
const REMEDY: &str = "raise the budget of device memory, or let the job take smaller chunks";

/// The budget of one device's memory. Clones share it.
#[derive(Debug, Clone)]
pub struct Vram {
    gpu: Gpu,
    ledger: Ledger,
}

impl Vram {
    /// A budget of `bytes` of this device's memory. It may be more than there is: then the driver refuses first.
    pub fn new(gpu: &Gpu, bytes: u64) -> Self {
        Self {
            gpu: gpu.clone(),
            ledger: Ledger::new("device memory", REMEDY, bytes),
        }
    }

    /// A budget of what is free now, less a sixteenth.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn auto(gpu: &Gpu) -> Result<Self> {
        let (free, _) = gpu.memory_bytes()?;
        Ok(Self::new(gpu, free - free / AUTO_LEAVES))
    }

    /// A buffer; what it holds at first is undefined.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`] if the driver has less than the budget says, [`Error::Invalid`] for 0 bytes.
    pub fn buffer(&self, bytes: u64, what: impl Into<Cow<'static, str>>) -> Result<DeviceBuffer> {
        let rounded_bytes = bytes
            .checked_next_multiple_of(GRANULE_BYTES)
            .filter(|_| bytes > 0)
            .ok_or_else(|| Error::Invalid {
                what: "buffer of device memory",
                details: format!("{bytes} bytes"),
            })?;
        let lease = self.ledger.lease(rounded_bytes, what)?;
        let memory = DeviceMemory::new(self.gpu.context(), bytes).map_err(|error| match error {
            Error::Driver {
                code: CUresult::CUDA_ERROR_OUT_OF_MEMORY,
                ..
            } => self.ledger.refused_by_driver(&lease),
            other => other,
        })?;
        Ok(DeviceBuffer {
            memory,
            _lease: lease,
        })
    }

    /// The ledger: limit, held, peak.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

/// Bytes on a device, with their lease. Work that uses them must be done before it is dropped; whoever drops one waits for its stream.
#[derive(Debug)]
pub struct DeviceBuffer {
    // Before the lease: memory is given back first.
    memory: DeviceMemory,
    _lease: Lease,
}

impl DeviceBuffer {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Writes from pageable memory and waits: for tables and small results, not for streams of data.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside the buffer, [`Error::Driver`].
    pub fn write(&self, stream: &Stream, offset: u64, bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as u64;
        stream
            .trace()
            .device(Kind::ToDevicePageable, length, stream.raw(), || {
                stream.raw().write_now(&self.memory, offset, bytes)
            })?;
        stream.synchronize()
    }

    /// Reads into pageable memory, after what is queued on `stream`, and waits.
    ///
    /// # Errors
    /// As [`DeviceBuffer::write`].
    pub fn read(&self, stream: &Stream, offset: u64, into: &mut [u8]) -> Result<()> {
        let length = into.len() as u64;
        stream
            .trace()
            .device(Kind::FromDevicePageable, length, stream.raw(), || {
                stream.raw().read_now(&self.memory, offset, into)
            })?;
        stream.synchronize()
    }

    /// Where it begins on the device: for structures and tables of a kernel that hold addresses. It is good for as long as the buffer is.
    pub fn address(&self) -> u64 {
        self.memory.start()
    }

    pub(crate) fn memory(&self) -> &DeviceMemory {
        &self.memory
    }
}
