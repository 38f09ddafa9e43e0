//! Helpers of the plans: how large a part of a job may be.

use crate::error::{A_PINNED_SLOT, Error};

/// The memory that limits how a job is cut: what a plan needs of each kind, or what it is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobMemory {
    /// Bytes of each pinned slot.
    pub slot_bytes: u64,
    /// Bytes of device memory.
    pub vram_bytes: u64,
}

impl JobMemory {
    /// The refusal for a job whose smallest plan needs `self`: it names the slot if that is too short, else
    /// the device memory.
    pub fn too_small(self, what: String, given: JobMemory) -> Error {
        let (memory, smallest_bytes, budget_bytes) = match self.slot_bytes > given.slot_bytes {
            true => (A_PINNED_SLOT, self.slot_bytes, given.slot_bytes),
            false => ("device memory", self.vram_bytes, given.vram_bytes),
        };
        Error::TooSmall {
            what,
            memory,
            budget_bytes,
            smallest_bytes,
        }
    }
}

/// The largest number below `beyond` that fits, where all numbers below one that fits do so too. `fitting` is
/// taken to fit.
pub(crate) fn largest(fitting: u64, beyond: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut fitting, mut beyond) = (fitting, beyond);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(middle) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    fitting
}
