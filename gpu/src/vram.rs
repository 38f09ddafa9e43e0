//! A budget of device memory.
//!
//! The user gives the budget in bytes; it is not the size of the card. A job that fits a few KiB fits any
//! card, and tests use such budgets. Peak device memory of a job = the sum of its buffers, each rounded up to
//! [`GRANULE_BYTES`].

use std::borrow::Cow;

use spillproof_engine::budget::Budget;

use crate::budget::{DEVICE_MEMORY, MemoryBudget};
use crate::buffer::{DeviceBuffer, GRANULE_BYTES};
use crate::device::Gpu;
use crate::error::{Invalid, Result};
use crate::raw::DeviceMemory;

/// `auto` leaves this part of the free memory to other uses: the display, the stacks of the kernels.
const AUTO_LEAVES: u64 = 16;

/// The budget of one device's memory. Clones share it.
#[derive(Debug, Clone)]
pub struct Vram {
    gpu: Gpu,
    memory: MemoryBudget,
}

impl Vram {
    /// A budget of `bytes` of this device's memory. If it is larger than the memory, the driver refuses
    /// first.
    pub fn new(gpu: &Gpu, bytes: u64) -> Self {
        Self {
            gpu: gpu.clone(),
            memory: MemoryBudget::new(DEVICE_MEMORY, bytes),
        }
    }

    /// A budget of the memory that is free now, less a sixteenth.
    ///
    /// # Errors
    /// [`crate::Error::Driver`].
    pub fn auto(gpu: &Gpu) -> Result<Self> {
        let (free, _) = gpu.memory_bytes()?;
        Ok(Self::new(gpu, free - free / AUTO_LEAVES))
    }

    /// A buffer; its initial content is undefined.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`] if the driver has less than the budget
    /// says, [`crate::Error::Invalid`] for 0 bytes.
    pub fn buffer(&self, bytes: u64, what: impl Into<Cow<'static, str>>) -> Result<DeviceBuffer> {
        let rounded_bytes = bytes
            .checked_next_multiple_of(GRANULE_BYTES)
            .filter(|_| bytes > 0)
            .ok_or_else(|| Invalid::memory_size("buffer of device memory", bytes))?;
        let lease = self.memory.lease(rounded_bytes, what)?;
        let memory = DeviceMemory::new(self.gpu.context(), bytes)
            .map_err(|error| self.memory.with_figures(error, &lease))?;
        Ok(DeviceBuffer::new(memory, lease))
    }

    /// The figures: limit, held, peak.
    pub fn budget(&self) -> &Budget {
        self.memory.budget()
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}
