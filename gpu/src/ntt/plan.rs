//! How a transform is cut: whole in device memory, or in two steps over columns and rows.

use ark_bn254::Fr;

use super::field::NttField;
use super::radices::{LOG_TILE, log_radices};
use super::tables::{elements_in_place, power_elements, step_elements};
use crate::buffer::leased_bytes;
use crate::error::{Invalid, Result, Values};
use crate::fit::JobMemory;
use crate::ring::Chunking;

/// Bytes of an element of BN254.
pub const ELEMENT_BYTES: u64 = <Fr as NttField>::ELEMENT_BYTES;
/// The shortest chunk of a transform in device memory, unless the transform is shorter.
const CHUNK_ELEMENTS_MIN: u64 = 256;
/// The longest chunk of a transform in device memory: a copy of 16 MiB reaches the full rate of the bus.
const CHUNK_ELEMENTS_ENOUGH: u64 = 1 << 19;

/// The plan of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NttPlan {
    log_n: u32,
    method: NttMethod,
    chunk_elements: u64,
    ring_buffers: usize,
    log_tile: u32,
    element_bytes: u64,
}

/// In how many steps a transform runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NttMethod {
    /// Whole, in place of one array in device memory.
    InDeviceMemory,
    /// As a matrix of 2^`log_rows` rows in row-major order: its columns, then its rows (Bailey, "FFTs in
    /// external or hierarchical memory", 1990). The data crosses the bus twice each way.
    TwoSteps {
        /// log2 of the length of a column.
        log_rows: u32,
    },
}

impl NttPlan {
    /// The plan for 2^`log_n` elements of BN254: in device memory if it fits `vram_bytes`, else in two steps.
    /// Chunks fit pinned slots of `slot_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::TooSmall`] with the smallest budget that works; [`crate::Error::Invalid`] for more
    /// than 2^28 elements.
    pub fn new(log_n: u32, vram_bytes: u64, slot_bytes: u64) -> Result<Self> {
        Self::of::<Fr>(log_n, vram_bytes, slot_bytes)
    }

    /// The same for any field.
    ///
    /// # Errors
    /// As [`NttPlan::new`]; the longest transform depends on the field.
    pub fn of<F: NttField>(log_n: u32, vram_bytes: u64, slot_bytes: u64) -> Result<Self> {
        check_length::<F>(log_n)?;
        let element_bytes = F::ELEMENT_BYTES;
        let n = 1u64 << log_n;
        let methods = [
            (NttMethod::InDeviceMemory, CHUNK_ELEMENTS_MIN.min(n)),
            (
                NttMethod::TwoSteps { log_rows: log_n / 2 },
                1 << log_n.div_ceil(2),
            ),
        ];
        for (method, unit) in methods {
            for ring_buffers in [2, 1] {
                let with = |chunk_elements| Self {
                    log_n,
                    method,
                    chunk_elements,
                    ring_buffers,
                    log_tile: LOG_TILE,
                    element_bytes,
                };
                let enough = match method {
                    NttMethod::InDeviceMemory => CHUNK_ELEMENTS_ENOUGH.min(n),
                    NttMethod::TwoSteps { .. } => n,
                };
                // Powers of two divide rows and columns evenly.
                let longest = (slot_bytes / element_bytes).min(enough).checked_ilog2();
                let logs = longest.map_or(0..0, |longest| unit.ilog2()..longest + 1);
                let mut plans = logs.rev().map(|log| with(1 << log));
                if let Some(best) = plans.find(|plan| plan.vram_bytes() <= vram_bytes) {
                    return Ok(best);
                }
            }
        }
        let smallest = methods.map(|(method, unit)| Self {
            log_n,
            method,
            chunk_elements: unit,
            ring_buffers: 1,
            log_tile: LOG_TILE,
            element_bytes,
        });
        // Of the methods that the slots allow.
        let allowed = smallest.iter().filter(|plan| plan.slot_bytes() <= slot_bytes);
        let needed = JobMemory {
            slot_bytes: smallest.iter().map(Self::slot_bytes).min().unwrap_or(0),
            vram_bytes: allowed.map(Self::vram_bytes).min().unwrap_or(0),
        };
        let given = JobMemory {
            slot_bytes,
            vram_bytes,
        };
        Err(needed.too_small(format!("a transform of 2^{log_n} elements"), given))
    }

    /// The same plan with smaller tiles in shared memory, of 2^`log_tile` elements: a longer row is split in
    /// two passes, beyond the square in three, and so on. The tables are no larger.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a tile of 1 element, or of more than 2^10.
    pub fn with_tile(self, log_tile: u32) -> Result<Self> {
        if log_tile == 0 || log_tile > LOG_TILE {
            return Err(Invalid::Size {
                what: "a tile of a transform",
                reason: format!("2^{log_tile} elements: the size must be from 2^1 to 2^{LOG_TILE}"),
            }
            .into());
        }
        Ok(Self { log_tile, ..self })
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> u64 {
        self.element_bytes
    }

    /// log2 of the elements of a tile in shared memory.
    pub(super) fn log_tile(&self) -> u32 {
        self.log_tile
    }

    /// The passes of a row, or of a column, through shared memory.
    pub fn passes(&self) -> u32 {
        let of_steps = match self.method {
            NttMethod::InDeviceMemory => [self.log_n; 2],
            NttMethod::TwoSteps { log_rows } => [log_rows, self.log_n - log_rows],
        };
        let passes = of_steps.map(|log_n| log_radices(log_n, self.log_tile).len() as u32);
        passes[0].max(passes[1])
    }

    /// log2 of the number of elements.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// In how many steps a transform runs.
    pub fn method(&self) -> NttMethod {
        self.method
    }

    /// Elements of a chunk: a power of two.
    pub fn chunk_elements(&self) -> u64 {
        self.chunk_elements
    }

    /// Bytes of device memory that the job leases.
    pub fn vram_bytes(&self) -> u64 {
        leased_bytes(self.table_bytes())
            + leased_bytes(self.array_bytes())
            + self.ring_buffers as u64 * leased_bytes(self.slot_bytes())
    }

    /// Bytes that a pinned slot must have, at either end.
    pub fn slot_bytes(&self) -> u64 {
        self.chunk_elements * self.element_bytes
    }

    pub(super) fn ring_buffers(&self) -> usize {
        self.ring_buffers
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.element_bytes << self.log_n
    }

    /// Bytes of the array beside the buffers of the ring: all elements, or those of a chunk, whose passes go from a
    /// buffer of the ring to the array and back.
    pub(super) fn array_bytes(&self) -> u64 {
        match self.method {
            NttMethod::InDeviceMemory => self.total_bytes(),
            NttMethod::TwoSteps { .. } => self.slot_bytes(),
        }
    }

    /// The chunks: whole elements, or whole rows and columns.
    pub(super) fn chunking(&self) -> Result<Chunking> {
        let element_bytes = match self.method {
            NttMethod::InDeviceMemory => self.element_bytes,
            NttMethod::TwoSteps { log_rows } => self.element_bytes << (self.log_n - log_rows),
        };
        Chunking::new(self.slot_bytes(), element_bytes)
    }

    /// Elements of all tables that [`super::tables`] makes for a transform on a coset.
    fn table_elements(&self) -> u64 {
        let shift = power_elements(self.log_n);
        let of_steps = match self.method {
            NttMethod::InDeviceMemory => elements_in_place(self.log_n, self.log_tile),
            NttMethod::TwoSteps { log_rows } => {
                step_elements(log_rows, self.log_tile)
                    + step_elements(self.log_n - log_rows, self.log_tile)
                    + power_elements(self.log_n)
            }
        };
        shift + of_steps
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        self.table_elements() * self.element_bytes
    }
}

pub(super) fn check_length<F: NttField>(log_n: u32) -> Result<()> {
    if log_n > F::LOG_N_MAX {
        return Err(Values::DomainSize {
            log_n,
            log_limit: F::LOG_N_MAX,
        }
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_to_its_budgets() {
        for log_n in [0, 1, 5, 10, 11, 20, 28] {
            let mut was_in_memory = false;
            for log in 8..36 {
                for slot_bytes in [1u64 << 40, 1 << 20] {
                    match NttPlan::new(log_n, 1 << log, slot_bytes) {
                        Ok(plan) => {
                            assert!(
                                plan.vram_bytes() <= 1 << log && plan.slot_bytes() <= slot_bytes,
                                "{plan:?}"
                            );
                            plan.chunking().unwrap().pieces(plan.total_bytes()).unwrap();
                            let in_memory = plan.method == NttMethod::InDeviceMemory;
                            assert!(in_memory || !was_in_memory, "{plan:?}");
                            was_in_memory |= in_memory;
                        }
                        Err(crate::Error::TooSmall { smallest_bytes, .. }) => {
                            assert!(smallest_bytes > 1 << log);
                            NttPlan::new(log_n, smallest_bytes, slot_bytes).unwrap();
                            assert!(NttPlan::new(log_n, smallest_bytes - 1, slot_bytes).is_err());
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            assert!(was_in_memory);
        }
        assert!(NttPlan::new(29, 1 << 40, 1 << 40).is_err());
        let refusal = NttPlan::new(20, 1 << 40, 100).unwrap_err().to_string();
        assert!(
            refusal.contains("100 bytes of a pinned slot: it needs 8192"),
            "{refusal}"
        );
    }

    #[test]
    fn a_plan_counts_its_passes() {
        let passes = |log_n| NttPlan::new(log_n, 1 << 40, 1 << 40).unwrap().passes();
        assert_eq!([0, 10, 11, 20, 21, 28].map(passes), [1, 1, 2, 2, 3, 3]);
    }
}
