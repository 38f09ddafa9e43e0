//! The state of a device for one kind of transform, and its launches.

use super::field::NttField;
use super::passes::{Layout, RowBatch, transform};
use super::plan::{NttMethod, NttPlan};
use super::tables::{DeviceTables, Powers, RowTables, Scale, Tables};
use super::transform::NttSpec;
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::ring::Chunk;
use crate::stream::Stream;

/// The kernel and the buffers of one kind of transform.
#[derive(Debug)]
pub(super) struct NttObjects {
    pub kernel: Kernel,
    pub tables: DeviceBuffer,
    pub array: DeviceBuffer,
    /// The second array of a whole transform. In two steps a buffer of the ring is the second array.
    pub other: Option<DeviceBuffer>,
}

/// Plan, kernel, tables and arrays of one kind of transform on one device: queues the launches.
#[derive(Debug)]
pub(super) struct NttLauncher {
    pub plan: NttPlan,
    device: NttObjects,
    /// Tables of the whole row, or of columns and then of rows.
    steps: Vec<RowTables>,
    /// The twiddles w^(row column) between the two steps.
    between: Option<Powers>,
    inverse: bool,
    /// The powers of the shift, the powers of its inverse times 1 / n, or 1 / n alone.
    shift: Option<Powers>,
    has_shift: bool,
}

impl NttLauncher {
    /// Adds the transform's tables to `content`, which the caller writes to `tables`.
    pub fn new<F: NttField>(
        plan: NttPlan,
        transform: NttSpec<F>,
        device: NttObjects,
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
        let (steps, between) = match plan.method() {
            NttMethod::InDeviceMemory => (vec![content.step(root, log_n, log_tile)], None),
            NttMethod::TwoSteps { log_rows } => {
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
            device,
            steps,
            between,
            inverse: transform.inverse,
            shift,
            has_shift: transform.shift.is_some(),
        }
    }

    /// The factors before and after the whole transform: powers of the shift before a forward one, powers of
    /// its inverse and 1 / n after an inverse one. `before` and `after` give the exponent in terms of an
    /// element's place in its row and of the row's number.
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

    /// Queues the transform of a whole row in device memory.
    pub fn whole(&self, stream: &Stream) -> Result<()> {
        let other = self
            .device
            .other
            .as_ref()
            .ok_or(Error::Unusable { what: "a transform" })?;
        let layout = Layout {
            stride: 1,
            batch: 1 << self.plan.log_n(),
        };
        let batch = RowBatch {
            step: self.step(0)?,
            count: 1,
            layouts: [layout; 2],
            scales: self.outer_scales([1, 0, 0, 0], [1, 0, 0, 0]),
        };
        self.transform(stream, &batch, [&self.device.array, other])
    }

    /// Queues the transform of a chunk of columns: element i of each column is in line i.
    pub fn columns(&self, chunk: &Chunk<'_>, rows: u64, columns: u64) -> Result<()> {
        let count = chunk.piece.bytes / (rows * self.plan.element_bytes());
        let first = chunk.piece.offset / (rows * self.plan.element_bytes());
        let batch = self.column_batch(first, count, columns)?;
        self.transform(chunk.stream, &batch, [chunk.buffer, &self.device.array])
    }

    /// Queues the transform of a chunk of rows; each becomes a column of the result.
    pub fn rows(&self, chunk: &Chunk<'_>, rows: u64, columns: u64) -> Result<()> {
        let count = chunk.piece.bytes / (columns * self.plan.element_bytes());
        let first = chunk.piece.offset / (columns * self.plan.element_bytes());
        let batch = self.row_batch(first, count, rows, columns)?;
        self.transform(chunk.stream, &batch, [chunk.buffer, &self.device.array])
    }

    /// Columns `first .. first + count` of a matrix of `columns` columns, in lines of `count` elements.
    fn column_batch(&self, first: u64, count: u64, columns: u64) -> Result<RowBatch<'_>> {
        let [before, _] = self.outer_scales([columns, 0, first, 1], [0; 4]);
        let between = self.between.map(|powers| Scale {
            powers,
            exponent: [first, 1, 0, 0],
        });
        let layout = Layout {
            stride: count,
            batch: 1,
        };
        Ok(RowBatch {
            step: self.step(0)?,
            count,
            layouts: [layout; 2],
            scales: [before, between],
        })
    }

    /// Rows `first .. first + count` of a matrix of `rows` by `columns`: read along the rows, written across
    /// them.
    fn row_batch(&self, first: u64, count: u64, rows: u64, columns: u64) -> Result<RowBatch<'_>> {
        let [_, after] = self.outer_scales([0; 4], [rows, 0, first, 1]);
        let along = Layout {
            stride: 1,
            batch: columns,
        };
        let across = Layout {
            stride: count,
            batch: 1,
        };
        Ok(RowBatch {
            step: self.step(1)?,
            count,
            layouts: [along, across],
            scales: [None, after],
        })
    }

    /// Queues the transform of a batch of rows, from `arrays[0]` and back to it.
    fn transform(&self, stream: &Stream, batch: &RowBatch<'_>, arrays: [&DeviceBuffer; 2]) -> Result<()> {
        let tables = DeviceTables::new(&self.device.tables, self.plan.element_bytes());
        transform(&self.device.kernel, stream, &tables, batch, arrays)
    }

    /// The buffer of the tables.
    pub fn tables(&self) -> &DeviceBuffer {
        &self.device.tables
    }

    /// The array of the elements.
    pub fn array(&self) -> &DeviceBuffer {
        &self.device.array
    }

    fn step(&self, index: usize) -> Result<&RowTables> {
        self.steps
            .get(index)
            .ok_or(Error::Unusable { what: "a transform" })
    }
}
