//! The quotient of a rank-1 constraint system on a device ([`spillproof_engine::accelerator::Constraints`]): the values
//! of its matrices' rows are made there and do not leave.
//!
//! ```text
//! ring up -> distinct values, witness -> coefficients: rows of A and B -> c = a b
//!         -> each of the three: to coefficients, to the coset -> a b - c -> ring back
//! ```
//!
//! Values, witness and coefficients come as one job of the ring, each from a multiple of [`SECTION_BYTES`] on, so that
//! frames of columns land in slots; a witness that is on the device does not come. Each chunk of coefficients is added
//! to the rows by the kernels of `gpu/kernels/sparse.cuh`. Transforms are in place of one array, between which and that
//! of a column elements go to and fro.
//!
//! Device memory: four arrays of n elements, the witness, the distinct values, two chunks, a quarter of a chunk, tables.

mod launch;

use std::ops::Range;

use ark_bn254::Fr;
use spillproof_engine::accelerator::{COEFFICIENT_BYTES, WriteElements};
use spillproof_engine::column::SCRATCH_FRAME_BYTES;

use crate::buffer::{DeviceBuffer, leased_bytes};
use crate::error::{BoxedError, Result};
use crate::fit::JobMemory;
use crate::kernels::{Kernel, Kernels};
use crate::ntt::{ELEMENT_BYTES, NttLauncher, NttPlan, NttSlots, NttSpec};
use crate::ring::{Chunk, Chunking, Piece, Ring, RingJob, Source};
use crate::vram::Vram;

/// What comes to the device begins at a multiple of this.
const SECTION_BYTES: u64 = SCRATCH_FRAME_BYTES as u64;
/// The shortest chunk, and the longest: a copy of 16 MiB reaches the full rate of the bus.
const LOG_CHUNK_BYTES: Range<u32> = 12..25;
/// Bytes of coefficients that a thread adds up: `SPARSE_RUN` of sparse.cuh.
const RUN_BYTES: u64 = 16 * COEFFICIENT_BYTES;
const STATE_BYTES: u64 = 8;

/// The lengths of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConstraintsShape {
    /// log2 of the rows.
    pub log_n: u32,
    pub values: u64,
    pub signals: u64,
    pub coefficients: u64,
}

/// How a system is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintsPlan {
    shape: ConstraintsShape,
    ntt: NttPlan,
    chunk_bytes: u64,
    ring_buffers: usize,
}

impl ConstraintsShape {
    /// Bytes of a column of rows.
    pub fn column_bytes(&self) -> u64 {
        ELEMENT_BYTES << self.log_n
    }

    pub fn witness_bytes(&self) -> u64 {
        self.signals * ELEMENT_BYTES
    }

    /// Where the distinct values, the witness if it comes, and the coefficients are in what comes to the device.
    pub fn sections(&self, with_witness: bool) -> [Range<u64>; 3] {
        let witness_bytes = if with_witness { self.witness_bytes() } else { 0 };
        let mut start = 0;
        [
            self.values * ELEMENT_BYTES,
            witness_bytes,
            self.coefficients * COEFFICIENT_BYTES,
        ]
        .map(|bytes| {
            let section = start..start + bytes;
            start = section.end.next_multiple_of(SECTION_BYTES);
            section
        })
    }
}

impl ConstraintsPlan {
    /// The plan within device memory and slots of these lengths.
    ///
    /// # Errors
    /// [`crate::Error::TooSmall`] with the smallest budget that works; [`crate::Error::Invalid`] for more than 2^28
    /// rows.
    pub fn new(shape: ConstraintsShape, vram_bytes: u64, slot_bytes: u64) -> Result<Self> {
        let ntt = NttPlan::new(shape.log_n, u64::MAX, u64::MAX)?;
        let with = |log_chunk: u32, ring_buffers| Self {
            shape,
            ntt,
            chunk_bytes: 1 << log_chunk,
            ring_buffers,
        };
        let fits = |plan: &Self| plan.chunk_bytes <= slot_bytes && plan.vram_bytes() <= vram_bytes;
        let longest_first = [2, 1].into_iter().flat_map(|buffers| {
            LOG_CHUNK_BYTES
                .rev()
                .map(move |log_chunk| with(log_chunk, buffers))
        });
        longest_first.clone().find(fits).ok_or_else(|| {
            let smallest = with(LOG_CHUNK_BYTES.start, 1);
            let needed = JobMemory {
                slot_bytes: smallest.chunk_bytes,
                vram_bytes: smallest.vram_bytes(),
            };
            let given = JobMemory {
                slot_bytes,
                vram_bytes,
            };
            needed.too_small(format!("the constraints of 2^{} rows", shape.log_n), given)
        })
    }

    /// Bytes of device memory that the job leases, the witness among them.
    pub fn vram_bytes(&self) -> u64 {
        let shape = &self.shape;
        leased_bytes(shape.values * ELEMENT_BYTES)
            + leased_bytes(shape.witness_bytes())
            + 4 * leased_bytes(shape.column_bytes())
            + 2 * leased_bytes(self.ntt.table_bytes())
            + self.ring_buffers as u64 * leased_bytes(self.chunk_bytes)
            + leased_bytes(self.parts_bytes())
            + leased_bytes(STATE_BYTES)
    }

    /// Bytes that a pinned slot must have, at either end.
    pub fn slot_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    pub fn chunking(&self) -> Result<Chunking> {
        Chunking::new(self.chunk_bytes, COEFFICIENT_BYTES)
    }

    /// Two elements for each run of a chunk's coefficients.
    fn parts_bytes(&self) -> u64 {
        self.chunk_bytes / RUN_BYTES * 2 * ELEMENT_BYTES
    }
}

/// A device's memory and kernels for one system.
#[derive(Debug)]
pub(crate) struct DeviceConstraints {
    // The first field: its drop waits for the kernels, and only then may buffers be freed.
    ring: Ring,
    plan: ConstraintsPlan,
    /// To coefficients, and to the coset.
    transforms: [NttLauncher; 2],
    kernels: ConstraintKernels,
    values: DeviceBuffer,
    /// The rows of A, of B, and their products; then what the transforms make of them.
    columns: [DeviceBuffer; 3],
    /// The array of the transforms.
    array: DeviceBuffer,
    parts: DeviceBuffer,
    state: DeviceBuffer,
}

#[derive(Debug)]
struct ConstraintKernels {
    runs: Kernel,
    join: Kernel,
    mul: Kernel,
    elementwise: Kernel,
}

impl DeviceConstraints {
    /// Leases the device memory of the plan but for the witness, and makes the tables.
    pub fn new(
        (vram, kernels): (&Vram, &Kernels),
        plan: ConstraintsPlan,
        transforms: [NttSpec<Fr>; 2],
    ) -> Result<Self> {
        let column = || vram.buffer(plan.shape.column_bytes(), "rows of constraints");
        let ring = Ring::new(vram, plan.chunking()?, plan.ring_buffers)?;
        let transform = |spec| NttLauncher::new((vram, kernels), plan.ntt, spec, ring.stream());
        let [inverse, forward] = transforms;
        Ok(Self {
            transforms: [transform(inverse)?, transform(forward)?],
            kernels: ConstraintKernels {
                runs: kernels.kernel("spk_sparse_runs_bn254_fr")?,
                join: kernels.kernel("spk_sparse_join_bn254_fr")?,
                mul: kernels.kernel("spk_mul_bn254_fr")?,
                elementwise: kernels.kernel("spk_elementwise_bn254_fr")?,
            },
            values: vram.buffer(
                (plan.shape.values * ELEMENT_BYTES).max(1),
                "values of coefficients",
            )?,
            columns: [column()?, column()?, column()?],
            array: column()?,
            parts: vram.buffer(plan.parts_bytes(), "parts of rows")?,
            state: vram.buffer(STATE_BYTES, "state of constraints")?,
            ring,
            plan,
        })
    }

    /// Makes the quotient of what `source` gives, in the order of [`ConstraintsShape::sections`]: with the witness
    /// unless `witness` has it. `false` if a coefficient is outside of the matrices, or out of order.
    ///
    /// # Errors
    /// [`crate::Error::Source`], [`crate::Error::Sink`], [`crate::Error::Driver`]. After an error nothing is in flight.
    pub fn run(
        &mut self,
        slots: NttSlots<'_>,
        source: &mut dyn Source,
        (witness, is_there): (&DeviceBuffer, bool),
        to: &mut dyn WriteElements,
    ) -> Result<bool> {
        let done = self.queue(slots, source, (witness, is_there), to);
        if done.is_err() {
            self.ring.wait_for_all();
        }
        done
    }

    /// The quotient of the last run.
    pub fn into_quotient(self) -> DeviceBuffer {
        let [quotient, ..] = self.columns;
        quotient
    }

    fn queue(
        &mut self,
        slots: NttSlots<'_>,
        source: &mut dyn Source,
        (witness, is_there): (&DeviceBuffer, bool),
        to: &mut dyn WriteElements,
    ) -> Result<bool> {
        let stream = self.ring.busy_stream();
        for buffer in [&self.columns[0], &self.columns[1], &self.state] {
            stream.fill(buffer, 0)?;
        }
        let sections = self.plan.shape.sections(!is_there);
        let of_system = launch::System {
            kernels: &self.kernels,
            shape: self.plan.shape,
            values: &self.values,
            witness,
            columns: &self.columns,
            parts: &self.parts,
            state: &self.state,
        };
        let job = RingJob {
            total_bytes: sections[2].end,
            upload: Some((slots.upload, source)),
            arrays: &[],
            download: None,
        };
        self.ring.run_job(job, &mut |chunk| {
            let chunk_end = chunk.piece.offset + chunk.piece.bytes;
            for (number, section) in sections.iter().enumerate() {
                let (start, end) = (section.start.max(chunk.piece.offset), section.end.min(chunk_end));
                let Some(bytes) = end.checked_sub(start).filter(|bytes| *bytes > 0) else {
                    continue;
                };
                let from = (chunk.buffer, start - chunk.piece.offset);
                let at = start - section.start;
                match number {
                    0 => chunk.stream.copy((&self.values, at), from, bytes)?,
                    1 => chunk.stream.copy((witness, at), from, bytes)?,
                    _ => of_system.add(chunk.stream, from, bytes / COEFFICIENT_BYTES)?,
                }
            }
            Ok(())
        })?;
        let mut state = [0; STATE_BYTES as usize];
        self.ring.stream().read((&self.state, 0), &mut state)?;
        if state[..4] != [0; 4] {
            self.ring.finish()?;
            return Ok(false);
        }
        self.to_coset(&of_system)?;
        let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
            Ok(to.write(offset / ELEMENT_BYTES, bytes)?)
        };
        let total_bytes = self.plan.shape.column_bytes();
        self.ring
            .drain_buffer((&self.columns[0], 0), total_bytes, slots.download, &mut sink)?;
        self.ring.finish()?;
        Ok(true)
    }

    /// Queues the products of the rows, the transforms, and what is left of the three.
    fn to_coset(&self, of_system: &launch::System<'_>) -> Result<()> {
        let stream = self.ring.stream();
        let [a, b, c] = &self.columns;
        of_system.product(stream, c)?;
        for column in [a, b, c] {
            let [inverse, forward] = &self.transforms;
            for (transform, [from, to]) in
                [(inverse, [column, &self.array]), (forward, [&self.array, column])]
            {
                let all = Chunk {
                    piece: Piece {
                        index: 0,
                        offset: 0,
                        bytes: self.plan.shape.column_bytes(),
                    },
                    buffer: from,
                    stream,
                };
                transform.place(&all, to)?;
                transform.whole(stream, to)?;
            }
        }
        of_system.product(stream, a)?;
        of_system.less(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_to_its_budgets() {
        for (log_n, signals, coefficients) in [(0, 1, 1), (9, 700, 3000), (20, 1 << 20, 4 << 20)] {
            let shape = ConstraintsShape {
                log_n,
                values: 20,
                signals,
                coefficients,
            };
            for (log_vram, slot_bytes) in (12..34).flat_map(|log| [(log, 1 << 40), (log, 5000)]) {
                match ConstraintsPlan::new(shape, 1 << log_vram, slot_bytes) {
                    Ok(plan) => {
                        assert!(plan.vram_bytes() <= 1 << log_vram && plan.slot_bytes() <= slot_bytes);
                        plan.chunking().unwrap();
                    }
                    Err(crate::Error::TooSmall { smallest_bytes, .. }) => {
                        assert!(smallest_bytes > 1 << log_vram);
                        ConstraintsPlan::new(shape, smallest_bytes, slot_bytes).unwrap();
                        assert!(ConstraintsPlan::new(shape, smallest_bytes - 1, slot_bytes).is_err());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            let refusal = ConstraintsPlan::new(shape, 1 << 40, 100).unwrap_err().to_string();
            assert!(
                refusal.contains("100 bytes of a pinned slot: it needs 4096"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn sections_begin_at_frames() {
        let shape = ConstraintsShape {
            log_n: 9,
            values: 600,
            signals: 7,
            coefficients: 100,
        };
        assert_eq!(shape.sections(true), [0..19200, 32768..32992, 49152..50752]);
        assert_eq!(shape.sections(false), [0..19200, 32768..32768, 32768..34368]);
    }
}
