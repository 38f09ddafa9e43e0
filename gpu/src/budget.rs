//! Leases of device memory and of page-locked memory: each kind has a [`Budget`] of its own, whose refusals
//! name the kind and a remedy.

use std::borrow::Cow;

use cudarc::driver::sys::CUresult;
use spillproof_engine::budget::{Budget, Lease};

use crate::error::{self, Error, Result};

/// The budget of one kind of memory. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget {
    kind: MemoryKind,
    budget: Budget,
}

/// A kind of memory outside the session's budget, in the words of errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryKind {
    pub name: &'static str,
    /// The end of every refusal.
    pub remedy: &'static str,
}

/// Memory of a device.
pub(crate) const DEVICE_MEMORY: MemoryKind = MemoryKind {
    name: error::DEVICE_MEMORY,
    remedy: "raise the budget of device memory, or let the job take smaller chunks",
};

/// Page-locked memory of the host.
pub(crate) const PINNED_MEMORY: MemoryKind = MemoryKind {
    name: "pinned memory",
    remedy: "raise the budget of pinned memory, or use fewer or smaller slots",
};

impl MemoryBudget {
    /// A budget of `bytes`.
    pub fn new(kind: MemoryKind, bytes: u64) -> Self {
        Self {
            kind,
            budget: Budget::new(bytes),
        }
    }

    /// Takes `bytes` until the lease is dropped.
    ///
    /// # Errors
    /// [`Error::OverBudget`] if the leases would exceed the limit.
    pub fn lease(&self, bytes: u64, what: impl Into<Cow<'static, str>>) -> Result<Lease> {
        self.budget.lease_map(bytes, what).map_err(|error| match error {
            spillproof_engine::Error::OverBudget {
                what,
                asked_bytes,
                held_bytes,
                limit_bytes,
                holders,
            } => Error::OverBudget {
                memory: self.kind.name,
                what,
                requested_bytes: asked_bytes,
                free_bytes: limit_bytes - held_bytes,
                budget_bytes: limit_bytes,
                holders,
                remedy: self.kind.remedy,
            },
            other => Error::Host(other),
        })
    }

    /// Adds the figures of a lease to an error of the driver that says it is out of memory; other errors stay
    /// as they are.
    pub fn with_figures(&self, error: Error, lease: &Lease) -> Error {
        let Error::Driver {
            code: CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            ..
        } = error
        else {
            return error;
        };
        Error::OutOfMemory {
            memory: self.kind.name,
            what: lease.what().to_owned(),
            requested_bytes: lease.bytes(),
            free_bytes: self.budget.available_bytes() + lease.bytes(),
            budget_bytes: self.budget.limit_bytes(),
            remedy: self.kind.remedy,
        }
    }

    /// The figures: limit, held, peak.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_memory_the_figures_and_the_holders() {
        let memory = MemoryBudget::new(DEVICE_MEMORY, 4096);
        let _buckets = memory.lease(3000, "buckets").unwrap();
        let _scalars = memory.lease(1000, "scalars").unwrap();
        for bytes in [97, u64::MAX] {
            let refusal = memory.lease(bytes, "tile").unwrap_err();
            assert!(refusal.is_memory_short() && !refusal.is_device_lost());
            assert_eq!(
                refusal.to_string(),
                format!(
                    "device memory: {bytes} bytes requested for tile, 96 free of a budget of 4096 (held: buckets: 3000B, \
                     scalars: 1000B); raise the budget of device memory, or let the job take smaller chunks"
                )
            );
        }
    }
}
