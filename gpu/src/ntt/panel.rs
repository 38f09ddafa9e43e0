//! Halves of transforms on one device: all columns of a panel, which cross to the device and back once.

use ark_bn254::Fr;
use spillproof_engine::accelerator::{Half, Lines, ReadElements, WriteElements};

use super::field::NttField;
use super::passes::{Layout, RowBatch, transform};
use super::plan::{ELEMENT_BYTES, check_length};
use super::radices::LOG_TILE;
use super::slots::NttSlots;
use super::tables::{DeviceTables, Powers, RowTables, Scale, Tables, power_elements, step_elements};
use crate::buffer::{DeviceBuffer, leased_bytes};
use crate::error::{BoxedError, Invalid, Result, Values};
use crate::fit::JobMemory;
use crate::kernels::{Kernel, Kernels};
use crate::ring::{Chunk, Chunking, Ring, RingJob};
use crate::vram::Vram;

/// log2 of the most columns of a chunk: those of a grid.
const LOG_COLUMNS_MAX: u32 = 15;

/// The plan of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelPlan {
    log_rows: u32,
    log_columns: u32,
    log_chunk: u32,
    ring_buffers: usize,
    table_bytes: u64,
}

impl PanelPlan {
    /// The plan for `halves` of 2^`log_columns` columns of 2^`log_rows` elements. Chunks are some whole columns.
    ///
    /// # Errors
    /// [`crate::Error::TooSmall`] with the smallest budget that works; [`crate::Error::Invalid`] for no halves, or one of
    /// a transform that has fewer elements than the panel, or more than 2^28.
    pub fn new(
        [log_rows, log_columns]: [u32; 2],
        halves: &[Half],
        [vram_bytes, slot_bytes]: [u64; 2],
    ) -> Result<Self> {
        let table_bytes = table_bytes([log_rows, log_columns], halves)?;
        let with = |ring_buffers, log_chunk| Self {
            log_rows,
            log_columns,
            log_chunk,
            ring_buffers,
            table_bytes,
        };
        let longest = log_rows + log_columns.min(LOG_COLUMNS_MAX);
        let of_slot = (slot_bytes / ELEMENT_BYTES).checked_ilog2();
        let logs = of_slot.map_or(0..0, |of_slot| log_rows..of_slot.min(longest) + 1);
        let mut plans = [2, 1]
            .into_iter()
            .flat_map(|buffers| logs.clone().rev().map(move |log| with(buffers, log)));
        let smallest = with(1, log_rows);
        let too_small = || {
            let needed = JobMemory {
                slot_bytes: smallest.slot_bytes(),
                vram_bytes: smallest.vram_bytes(),
            };
            let given = JobMemory {
                slot_bytes,
                vram_bytes,
            };
            needed.too_small(format!("columns of 2^{log_rows} elements of a transform"), given)
        };
        plans
            .find(|plan| plan.vram_bytes() <= vram_bytes)
            .ok_or_else(too_small)
    }

    /// Bytes of device memory that the job leases: tables, an array beside the buffers of the ring, and these.
    pub fn vram_bytes(&self) -> u64 {
        leased_bytes(self.table_bytes) + (1 + self.ring_buffers as u64) * leased_bytes(self.slot_bytes())
    }

    /// Bytes that a pinned slot must have, at either end.
    pub fn slot_bytes(&self) -> u64 {
        ELEMENT_BYTES << self.log_chunk
    }

    /// Elements of a chunk.
    pub fn chunk_elements(&self) -> u64 {
        1 << self.log_chunk
    }

    fn column_bytes(&self) -> u64 {
        ELEMENT_BYTES << self.log_rows
    }
}

/// Bytes of the tables for halves over a panel.
///
/// # Errors
/// As [`PanelPlan::new`].
fn table_bytes([log_rows, log_columns]: [u32; 2], halves: &[Half]) -> Result<u64> {
    let what = "a panel of a transform";
    if halves.is_empty() {
        let reason = "it has no halves; one or two are possible".into();
        return Err(Invalid::Size { what, reason }.into());
    }
    let elements = halves.iter().map(|half| -> Result<u64> {
        check_length::<Fr>(half.log_n)?;
        if u64::from(log_rows) + u64::from(log_columns) > u64::from(half.log_n) {
            let reason = format!(
                "2^{log_columns} columns of 2^{log_rows} elements, of a transform of 2^{}: the transform must have as many",
                half.log_n
            );
            return Err(Invalid::Size { what, reason }.into());
        }
        let powers = if half.is_second { 1 } else { 2 };
        Ok(step_elements(log_rows, LOG_TILE) + powers * power_elements(half.log_n))
    });
    Ok(elements.sum::<Result<u64>>()? * ELEMENT_BYTES)
}

/// A half on the device: the tables of its columns, and the factors before and behind it.
#[derive(Debug)]
struct HalfTables {
    step: RowTables,
    factors: [Option<Factor>; 2],
}

/// A power for an element of a column, by the place of both.
#[derive(Debug, Clone, Copy)]
enum Factor {
    /// Of their product.
    Twiddle(Powers),
    /// Of the element's place in the whole transform, whose rows have so many elements.
    Shift(Powers, u64),
}

impl Factor {
    /// For columns from `first` on.
    fn from(self, first: u64) -> Scale {
        match self {
            Self::Twiddle(powers) => Scale {
                powers,
                exponent: [first, 1, 0, 0],
            },
            Self::Shift(powers, row_len) => Scale {
                powers,
                exponent: [row_len, 0, first, 1],
            },
        }
    }
}

/// A device's memory and kernels for panels of one plan and some halves.
#[derive(Debug)]
pub struct PanelNtt {
    // The first field: its drop waits for the kernels, and only then may buffers be freed.
    ring: Ring,
    plan: PanelPlan,
    made_for: Vec<Half>,
    halves: Vec<HalfTables>,
    kernel: Kernel,
    tables: DeviceBuffer,
    array: DeviceBuffer,
}

impl PanelNtt {
    /// Leases the device memory of the plan, and makes the tables.
    ///
    /// # Errors
    /// As [`super::Ntt::new`]; [`crate::Error::Invalid`] for halves that the plan is not for.
    pub fn new(vram: &Vram, kernels: &Kernels, plan: PanelPlan, halves: &[Half]) -> Result<Self> {
        let given_bytes = table_bytes([plan.log_rows, plan.log_columns], halves)?;
        if given_bytes != plan.table_bytes {
            return Err(Invalid::OtherPlan {
                plan: format!("tables of {} bytes", plan.table_bytes),
                job: format!("tables of {given_bytes} bytes"),
            }
            .into());
        }
        let mut content = Tables::<Fr>::new();
        let made_for = halves.to_vec();
        let halves = halves.iter().map(|half| {
            let row_len = 1u64 << (half.log_n - plan.log_rows);
            let mut shift = |base: Fr| {
                let is_one = base == Fr::UNIT;
                (!is_one).then(|| Factor::Shift(content.powers(base, half.log_n, Fr::UNIT), row_len))
            };
            let factors = match half.is_second {
                true => [None, shift(half.after)],
                false => [
                    shift(half.before),
                    Some(Factor::Twiddle(
                        content.powers(half.omega, half.log_n, half.scale),
                    )),
                ],
            };
            HalfTables {
                step: content.step(half.omega.to_the(row_len), plan.log_rows, LOG_TILE),
                factors,
            }
        });
        let halves = halves.collect();
        let kernel = kernels.kernel(&format!("spk_ntt_pass_{}", Fr::NAME))?;
        let tables = vram.buffer(plan.table_bytes, "NTT tables")?;
        let array = vram.buffer(plan.slot_bytes(), "NTT array")?;
        let chunking = Chunking::new(plan.slot_bytes(), plan.column_bytes())?;
        let mut ring = Ring::new(vram, chunking, plan.ring_buffers)?;
        ring.stream().write((&tables, 0), &content.bytes())?;
        ring.finish()?;
        Ok(Self {
            ring,
            plan,
            made_for,
            halves,
            kernel,
            tables,
            array,
        })
    }

    /// Whether it makes these halves by this plan.
    pub fn is_for(&self, plan: &PanelPlan, halves: &[Half]) -> bool {
        self.plan == *plan && self.made_for == halves
    }

    /// Transforms the columns of a panel, of which `first_column` is the first.
    ///
    /// # Errors
    /// As [`super::Ntt::transform`]; [`crate::Error::Invalid`] for columns that the matrix of a half does not have.
    pub fn run(
        &mut self,
        slots: NttSlots<'_>,
        first_column: u64,
        from: &mut dyn ReadElements,
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        let Self {
            ring,
            plan,
            made_for,
            halves,
            kernel,
            tables,
            array,
        } = self;
        let end = first_column.saturating_add(1 << plan.log_columns);
        let all_columns = made_for.iter().map(|half| 1 << (half.log_n - plan.log_rows));
        if let Some(len) = all_columns.min().filter(|len| end > *len) {
            return Err(Values::OutOfRange {
                what: "the columns of a panel".into(),
                start: first_column,
                end,
                len,
            }
            .into());
        }
        let column_bytes = plan.column_bytes();
        let lines = |offset: u64| Lines {
            first: offset / column_bytes,
            step: 1 << plan.log_columns,
            count: 1 << plan.log_rows,
        };
        let mut source = |offset: u64, into: &mut [u8]| -> Result<(), BoxedError> {
            Ok(from.read_lines(lines(offset), into)?)
        };
        let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
            Ok(to.write_lines(lines(offset), bytes)?)
        };
        let job = RingJob {
            total_bytes: column_bytes << plan.log_columns,
            upload: Some((slots.upload, &mut source)),
            arrays: &[],
            download: Some((slots.download, &mut sink)),
        };
        let tables = DeviceTables::new(tables, ELEMENT_BYTES);
        ring.run_job(job, &mut |chunk: Chunk<'_>| {
            let first = first_column + chunk.piece.offset / column_bytes;
            let count = chunk.piece.bytes / column_bytes;
            let layout = Layout {
                stride: count,
                batch: 1,
            };
            halves.iter().try_for_each(|half| {
                let batch = RowBatch {
                    step: &half.step,
                    count,
                    layouts: [layout; 2],
                    scales: half.factors.map(|factor| factor.map(|factor| factor.from(first))),
                };
                let arrays = [chunk.buffer, &*array];
                transform(kernel, chunk.stream, &tables, &batch, arrays)
            })
        })?;
        ring.finish()
    }
}
