//! Number-theoretic transforms over BN254's scalar field and over Goldilocks, on a device, of any length: in device memory what fits the budget, in two
//! steps what does not.
//!
//! ```text
//! in device memory:  ring up -> array <-> array (passes) -> ring back
//! in two steps:      from -> columns: passes, times w^(row column) -> between -> rows: passes -> to
//! ```
//!
//! The passes are those of `gpu/kernels/ntt.cuh`, from natural order to natural order: one for a row that fits a tile of 2^10 elements in
//! shared memory, two (rows by columns) up to 2^20, three up to 2^28, of radices as even as can be. In two steps a chunk is some whole columns, then
//! some whole rows, of a matrix of sqrt(n) by sqrt(n); the host gathers columns with reads of a chunk's width, and the last pass
//! writes rows across, so that they leave with writes of a chunk's height. One hard synchronisation a transform, and one for the tables.
//!
//! Device memory is leased as [`NttPlan::vram_bytes`] says; the smallest budget for n elements is some rows of sqrt(n).

mod devices;
mod failover;
mod field;
mod goldilocks;
mod passes;
mod plan;
mod tables;

use ark_bn254::Fr;

pub use devices::{DevicesPlan, NttDevices};
pub use failover::{Dealt, Member, over_devices};
pub use field::NttField;
pub use goldilocks::{GoldilocksElements, GoldilocksTransform, HOST_LOG_N_MAX};
pub(crate) use passes::{Layout, Rows, Ways, copy_scaled, transform_to};
pub use plan::{ELEMENT_BYTES, NttPlan, NttWay};
pub(crate) use plan::{LOG_TILE, log_radices};
pub(crate) use tables::{OnDevice, Powers, Scale, Step, Tables, power_elements, step_elements};

use crate::error::{BoxedError, Error, Result};
use crate::kernels::{Kernel, Kernels};
use crate::ring::{Chunk, Download, Job, Ring, Source, Upload};
use crate::vram::{DeviceBuffer, Vram};
use passes::transform;

/// Which transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transform<F = Fr> {
    root: F,
    log_n: u32,
    inverse: bool,
    shift: Option<F>,
}

impl Transform<Fr> {
    /// From coefficients to values at the powers of arkworks' root of order 2^`log_n`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root.
    pub fn forward(log_n: u32) -> Result<Self> {
        Self::of_field(log_n)
    }
}

impl<F: NttField> Transform<F> {
    /// From coefficients to values at the powers of the field's root of order 2^`log_n`, in arkworks or Plonky3.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such root.
    pub fn of_field(log_n: u32) -> Result<Self> {
        plan::check_length::<F>(log_n)?;
        Self::by_root(F::root(log_n), log_n)
    }

    /// The same by another root of that order: libraries do not agree on one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it has another order.
    pub fn by_root(root: F, log_n: u32) -> Result<Self> {
        plan::check_length::<F>(log_n)?;
        if !root.has_order(log_n) {
            return Err(Error::Invalid {
                what: "transform",
                details: format!("{root} has not the order 2^{log_n}"),
            });
        }
        Ok(Self {
            root,
            log_n,
            inverse: false,
            shift: None,
        })
    }

    /// From values to coefficients.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self {
            inverse: true,
            ..self
        }
    }

    /// Values are at `shift` times the powers of the root.
    ///
    /// # Errors
    /// [`Error::Invalid`] for 0.
    pub fn on_coset(self, shift: F) -> Result<Self> {
        if shift == F::NONE {
            return Err(Error::Invalid {
                what: "transform",
                details: "a coset's shift is 0".into(),
            });
        }
        Ok(Self {
            shift: Some(shift),
            ..self
        })
    }

    /// log2 of the number of elements.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }
}

/// Where elements are had, 32 bytes each in Montgomery form, by their index, in any order.
pub trait ReadElements {
    /// Writes the whole of `into`: elements from `first` on.
    ///
    /// # Errors
    /// Whatever went wrong; the job ends with [`Error::Source`].
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError>;
}

/// Where elements go.
pub trait WriteElements {
    /// Takes elements from `first` on.
    ///
    /// # Errors
    /// Whatever went wrong; the job ends with [`Error::Sink`].
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError>;
}

/// Elements of BN254.
impl ReadElements for Vec<u8> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        let start = (first * ELEMENT_BYTES) as usize;
        let from = self.get(start..start + into.len()).ok_or("too few elements")?;
        into.copy_from_slice(from);
        Ok(())
    }
}

/// Elements of BN254.
impl WriteElements for Vec<u8> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        let start = (first * ELEMENT_BYTES) as usize;
        let to = self
            .get_mut(start..start + bytes.len())
            .ok_or("too few elements")?;
        to.copy_from_slice(bytes);
        Ok(())
    }
}

/// Slots at both ends.
#[derive(Debug)]
pub struct Ends<'a> {
    /// On the way to the device.
    pub upload: &'a mut Upload,
    /// On the way back.
    pub download: &'a mut Download,
}

/// Fills the slots with the start of a transform by this plan, before the device is needed; the next run of [`Ntt`] with these slots goes on
/// from there. Returns the bytes staged.
///
/// # Errors
/// Those of [`Upload::stage`].
pub fn stage(plan: &NttPlan, upload: &mut Upload, from: &mut dyn ReadElements) -> Result<u64> {
    upload.stage(&plan.chunking()?, plan.total_bytes(), &mut input(*plan, from))
}

/// The chunks that go to the device first: of the whole, or of columns, row after row of them.
fn input<'a>(plan: NttPlan, from: &'a mut dyn ReadElements) -> impl Source + 'a {
    move |offset: u64, into: &mut [u8]| match plan.way() {
        NttWay::InDeviceMemory => from.read(offset / plan.element_bytes(), into),
        NttWay::TwoSteps { log_rows } => {
            let (rows, columns) = (1u64 << log_rows, 1u64 << (plan.log_n() - log_rows));
            let first = offset / (rows * plan.element_bytes());
            let width = into.len() / rows as usize;
            let mut lines = (0..rows).zip(into.chunks_exact_mut(width));
            lines.try_for_each(|(row, line)| from.read(row * columns + first, line))
        }
    }
}

/// Everything that transforms of one kind need on a device. One transform after the other.
#[derive(Debug)]
pub struct Ntt {
    // First: when it is dropped it waits for its kernels, and only then may buffers go.
    ring: Ring,
    work: Work,
}

#[derive(Debug)]
struct Work {
    plan: NttPlan,
    kernel: Kernel,
    tables: DeviceBuffer,
    array: DeviceBuffer,
    /// In device memory; in two steps the other one is the ring's.
    other: Option<DeviceBuffer>,
    /// The whole, or columns and rows.
    steps: Vec<Step>,
    /// w^(row column).
    between: Option<Powers>,
    inverse: bool,
    /// Powers of the shift, of its inverse over n, or 1 / n.
    shift: Option<Powers>,
    has_shift: bool,
}

impl Ntt {
    /// Leases what the plan says, and makes the tables.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`], [`Error::NoKernel`], [`Error::Driver`]; [`Error::Invalid`] if the plan is for
    /// another length.
    pub fn new<F: NttField>(
        vram: &Vram,
        kernels: &Kernels,
        plan: NttPlan,
        transform: Transform<F>,
    ) -> Result<Self> {
        if plan.log_n() != transform.log_n || plan.element_bytes() != F::ELEMENT_BYTES {
            return Err(Error::Invalid {
                what: "plan of a transform",
                details: format!(
                    "for 2^{} elements of {} bytes, not 2^{} of {}",
                    plan.log_n(),
                    plan.element_bytes(),
                    transform.log_n,
                    F::ELEMENT_BYTES
                ),
            });
        }
        let kernel = kernels.kernel(&format!("spk_ntt_pass_{}", F::NAME))?;
        let tables = vram.buffer(plan.table_bytes(), "NTT tables")?;
        let array = || vram.buffer(plan.data_bytes(), "NTT arrays");
        let arrays = (
            array()?,
            match plan.way() {
                NttWay::InDeviceMemory => Some(array()?),
                NttWay::TwoSteps { .. } => None,
            },
        );
        let mut ring = Ring::new(vram, plan.chunking()?, plan.ring_buffers())?;
        let mut content = Tables::new();
        let work = Work::new(plan, transform, (kernel, tables, arrays), &mut content);
        work.tables.write(ring.stream(), 0, &content.bytes())?;
        ring.finish()?;
        Ok(Self { ring, work })
    }

    /// The plan.
    pub fn plan(&self) -> &NttPlan {
        &self.work.plan
    }

    /// Transforms what is in `from` into `to`, by way of `between` if it takes two steps. All three have the whole length.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Sink`], [`Error::Driver`], [`Error::Invalid`] for slots that are too short. Nothing is in flight
    /// afterwards; what `to` then holds is void.
    pub fn run(
        &mut self,
        ends: Ends<'_>,
        from: &mut dyn ReadElements,
        between: &mut (impl ReadElements + WriteElements),
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        match self.work.plan.way() {
            NttWay::InDeviceMemory => self.run_in_memory(ends, from, to)?,
            NttWay::TwoSteps { log_rows } => self.run_in_steps(ends, log_rows, from, between, to)?,
        }
        self.ring.finish()
    }

    fn run_in_memory(
        &mut self,
        ends: Ends<'_>,
        from: &mut dyn ReadElements,
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        let work = &self.work;
        let total_bytes = work.plan.total_bytes();
        let array = &work.array;
        let other = work
            .other
            .as_ref()
            .ok_or(Error::Unusable { what: "a transform" })?;
        let mut source = input(work.plan, from);
        let job = Job {
            total_bytes,
            upload: Some((ends.upload, &mut source)),
            download: None,
        };
        self.ring.run(job, &mut |chunk| {
            let piece = chunk.piece;
            chunk
                .stream
                .copy((array, piece.offset), (chunk.buffer, 0), piece.bytes)
        })?;
        let layout = Layout {
            stride: 1,
            batch: 1 << work.plan.log_n(),
        };
        let rows = Rows {
            step: work.step(0)?,
            count: 1,
            layouts: [layout; 2],
            scales: work.outer_scales([1, 0, 0, 0], [1, 0, 0, 0]),
        };
        transform(
            &work.kernel,
            self.ring.stream(),
            &OnDevice(&work.tables, work.plan.element_bytes()),
            &rows,
            [array, other],
        )?;
        let mut sink = |offset: u64, bytes: &[u8]| to.write(offset / work.plan.element_bytes(), bytes);
        let job = Job {
            total_bytes,
            upload: None,
            download: Some((ends.download, &mut sink)),
        };
        self.ring.run(job, &mut |chunk| {
            let piece = chunk.piece;
            chunk
                .stream
                .copy((chunk.buffer, 0), (array, piece.offset), piece.bytes)
        })
    }

    fn run_in_steps(
        &mut self,
        ends: Ends<'_>,
        log_rows: u32,
        from: &mut dyn ReadElements,
        between: &mut (impl ReadElements + WriteElements),
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        let work = &self.work;
        let (rows, columns) = (1u64 << log_rows, 1u64 << (work.plan.log_n() - log_rows));
        let total_bytes = work.plan.total_bytes();
        let column_bytes = rows * work.plan.element_bytes();
        let mut source = input(work.plan, from);
        let mut sink = |offset: u64, bytes: &[u8]| {
            let first = offset / column_bytes;
            let width = bytes.len() / rows as usize;
            let mut lines = (0..rows).zip(bytes.chunks_exact(width));
            lines.try_for_each(|(row, line)| between.write(row * columns + first, line))
        };
        let job = Job {
            total_bytes,
            upload: Some((&mut *ends.upload, &mut source)),
            download: Some((&mut *ends.download, &mut sink)),
        };
        self.ring
            .run(job, &mut |chunk| work.columns(&chunk, rows, columns))?;

        // Rows come one after the other, and leave as a chunk of columns.
        let row_bytes = columns * work.plan.element_bytes();
        let mut source =
            |offset: u64, into: &mut [u8]| between.read(offset / work.plan.element_bytes(), into);
        let mut sink = |offset: u64, bytes: &[u8]| {
            let first = offset / row_bytes;
            let width = bytes.len() / columns as usize;
            let mut lines = (0..columns).zip(bytes.chunks_exact(width));
            lines.try_for_each(|(column, line)| to.write(column * rows + first, line))
        };
        let job = Job {
            total_bytes,
            upload: Some((ends.upload, &mut source)),
            download: Some((ends.download, &mut sink)),
        };
        self.ring.run(job, &mut |chunk| work.rows(&chunk, rows, columns))
    }
}

impl Work {
    fn new<F: NttField>(
        plan: NttPlan,
        transform: Transform<F>,
        (kernel, tables, (array, other)): (Kernel, DeviceBuffer, (DeviceBuffer, Option<DeviceBuffer>)),
        content: &mut Tables<F>,
    ) -> Self {
        let (log_n, log_tile) = (plan.log_n(), plan.log_tile());
        let root = if transform.inverse {
            transform.root.inverted()
        } else {
            transform.root
        };
        let one_over_n = F::two_to(log_n).inverted();
        let shift = match (transform.inverse, transform.shift) {
            (false, None) => None,
            (true, None) => Some(content.constant(one_over_n)),
            (false, Some(shift)) => Some(content.powers(shift, log_n, F::UNIT)),
            (true, Some(shift)) => Some(content.powers(shift.inverted(), log_n, one_over_n)),
        };
        let (steps, between) = match plan.way() {
            NttWay::InDeviceMemory => (vec![content.step(root, log_n, log_tile)], None),
            NttWay::TwoSteps { log_rows } => {
                let log_columns = log_n - log_rows;
                let steps = vec![
                    content.step(root.to_the(1u64 << log_columns), log_rows, log_tile),
                    content.step(root.to_the(1u64 << log_rows), log_columns, log_tile),
                ];
                (steps, Some(content.powers(root, log_n, F::UNIT)))
            }
        };
        Self {
            plan,
            kernel,
            tables,
            array,
            other,
            steps,
            between,
            inverse: transform.inverse,
            shift,
            has_shift: transform.shift.is_some(),
        }
    }

    /// Factors of the whole transform: a shift before a forward one, a shift and 1 / n after an inverse one, by the element's index
    /// there, in terms of its index in a row and the row's.
    fn outer_scales(&self, before: [u64; 4], after: [u64; 4]) -> [Option<Scale>; 2] {
        let of = |exponent: [u64; 4]| {
            self.shift.map(|powers| Scale {
                powers,
                exponent: if self.has_shift { exponent } else { [0; 4] },
            })
        };
        if self.inverse {
            [None, of(after)]
        } else {
            [of(before), None]
        }
    }

    /// Some columns: element i of column y is in line i.
    fn columns(&self, chunk: &Chunk<'_>, rows: u64, columns: u64) -> Result<()> {
        let count = chunk.piece.bytes / (rows * self.plan.element_bytes());
        let first = chunk.piece.offset / (rows * self.plan.element_bytes());
        let layout = Layout {
            stride: count,
            batch: 1,
        };
        self.transform_chunk(chunk, &self.some_columns((first, count), columns, layout)?)
    }

    fn some_columns(&self, (first, count): (u64, u64), columns: u64, layout: Layout) -> Result<Rows<'_>> {
        let [before, _] = self.outer_scales([columns, 0, first, 1], [0; 4]);
        let between = self.between.map(|powers| Scale {
            powers,
            exponent: [first, 1, 0, 0],
        });
        Ok(Rows {
            step: self.step(0)?,
            count,
            layouts: [layout; 2],
            scales: [before, between],
        })
    }

    /// Some rows, each of which becomes a column.
    fn rows(&self, chunk: &Chunk<'_>, rows: u64, columns: u64) -> Result<()> {
        let count = chunk.piece.bytes / (columns * self.plan.element_bytes());
        let first = chunk.piece.offset / (columns * self.plan.element_bytes());
        let along = Layout {
            stride: 1,
            batch: columns,
        };
        let across = Layout {
            stride: count,
            batch: 1,
        };
        self.transform_chunk(chunk, &self.some_rows((first, count), rows, [along, across])?)
    }

    fn some_rows(&self, (first, count): (u64, u64), rows: u64, layouts: [Layout; 2]) -> Result<Rows<'_>> {
        let [_, after] = self.outer_scales([0; 4], [rows, 0, first, 1]);
        Ok(Rows {
            step: self.step(1)?,
            count,
            layouts,
            scales: [None, after],
        })
    }

    fn transform_chunk(&self, chunk: &Chunk<'_>, rows: &Rows<'_>) -> Result<()> {
        transform(
            &self.kernel,
            chunk.stream,
            &OnDevice(&self.tables, self.plan.element_bytes()),
            rows,
            [chunk.buffer, &self.array],
        )
    }

    fn step(&self, index: usize) -> Result<&Step> {
        self.steps
            .get(index)
            .ok_or(Error::Unusable { what: "a transform" })
    }
}
