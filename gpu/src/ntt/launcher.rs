//! The state of a device for one kind of transform, and its launches.
//!
//! A whole transform is in place. With radices R_1 R_2 .. R_d = n and `i = ((i_1 R_2 + i_2) R_3 + ..) + i_d`, element i
//! of the input is put at `i_1 + R_1 (i_2 + R_2 (..))`. Pass p then combines R_p transforms that lie one behind
//! the other, as the last pass of a row in Stockham's order does, which reads and writes the same places; and after
//! the last pass the results are in natural order.

use super::field::NttField;
use super::passes::{Layout, RowBatch, Rows, copy_rows, last_pass, transform};
use super::plan::{NttMethod, NttPlan};
use super::tables::{DeviceTables, Powers, RowTables, Scale, Tables};
use super::transform::NttSpec;
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Invalid, Result};
use crate::kernels::{Kernel, Kernels};
use crate::ring::Chunk;
use crate::stream::Stream;
use crate::vram::Vram;

/// Plan, kernel and tables of one kind of transform on one device: queues the launches over its owner's arrays.
#[derive(Debug)]
pub(crate) struct NttLauncher {
    pub plan: NttPlan,
    kernel: Kernel,
    tables: DeviceBuffer,
    /// Tables of the passes of a whole transform, or of columns and then of rows.
    steps: Vec<RowTables>,
    /// The twiddles w^(row column) between the two steps.
    between: Option<Powers>,
    inverse: bool,
    /// The powers of the shift, the powers of its inverse times 1 / n, or 1 / n alone.
    shift: Option<Powers>,
    has_shift: bool,
}

impl NttLauncher {
    /// Leases the tables, and makes them; waits for the stream.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`], [`crate::Error::NoKernel`],
    /// [`crate::Error::Driver`]; [`crate::Error::Invalid`] if the plan is for another length or field.
    pub fn new<F: NttField>(
        (vram, kernels): (&Vram, &Kernels),
        plan: NttPlan,
        transform: NttSpec<F>,
        stream: &Stream,
    ) -> Result<Self> {
        if plan.log_n() != transform.log_n || plan.element_bytes() != F::ELEMENT_BYTES {
            return Err(Invalid::OtherPlan {
                plan: format!("2^{} elements of {} bytes", plan.log_n(), plan.element_bytes()),
                job: format!("2^{} elements of {} bytes", transform.log_n, F::ELEMENT_BYTES),
            }
            .into());
        }
        let kernel = kernels.kernel(&format!("spk_ntt_pass_{}", F::NAME))?;
        let mut content = Tables::new();
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
            NttMethod::InDeviceMemory => (content.in_place(root, log_n, log_tile), None),
            NttMethod::TwoSteps { log_rows } => {
                let log_columns = log_n - log_rows;
                let steps = vec![
                    content.step(root.to_the(1u64 << log_columns), log_rows, log_tile),
                    content.step(root.to_the(1u64 << log_rows), log_columns, log_tile),
                ];
                (steps, Some(content.powers(root, log_n, F::UNIT)))
            }
        };
        let tables = vram.buffer(plan.table_bytes(), "NTT tables")?;
        stream.write((&tables, 0), &content.bytes())?;
        Ok(Self {
            plan,
            kernel,
            tables,
            steps,
            between,
            inverse: transform.inverse,
            shift,
            has_shift: transform.shift.is_some(),
        })
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

    /// Queues the copy of a chunk of a whole transform to where its passes want it in an array.
    pub fn place(&self, chunk: &Chunk<'_>, array: &DeviceBuffer) -> Result<()> {
        let (log_n, bytes) = (self.plan.log_n(), self.plan.element_bytes());
        let (first, count) = (chunk.piece.offset / bytes, chunk.piece.bytes / bytes);
        let last = self.steps.last().ok_or(Error::Unusable { what: "a transform" })?;
        let mut digits = last.log_radices.iter().rev();
        // Runs of the last digit, and as many of them as the digit before it has values.
        let (log_digit, log_before) = (digits.next().copied(), digits.next().copied());
        let (log_digit, log_before) = (log_digit.unwrap_or(0), log_before.unwrap_or(0));
        let log_run = count.ilog2().min(log_digit);
        let log_runs = (count.ilog2() - log_run).min(log_before);
        let log_step = log_n - log_digit;
        let layouts = [
            Layout {
                stride: 1,
                batch: 1 << log_run,
            },
            Layout {
                stride: 1 << log_step,
                batch: 1 << (log_step - log_before),
            },
        ];
        for at in (0..count).step_by(1 << (log_run + log_runs)) {
            let [before, _] = self.outer_scales([1, 0, first + at, 1 << log_run], [0; 4]);
            let to = place_of(first + at, log_n, &last.log_radices);
            let rows = |buffer: &DeviceBuffer, first: u64, layout| {
                let address = buffer.memory().at(first * bytes, bytes)?;
                Ok::<_, Error>(Rows { address, layout })
            };
            let both = [rows(chunk.buffer, at, layouts[0])?, rows(array, to, layouts[1])?];
            let (tables, size) = (self.tables_on_device(), (log_run, 1 << log_runs));
            copy_rows(&self.kernel, chunk.stream, &tables, size, both, before)?;
        }
        Ok(())
    }

    /// Queues the passes of a whole transform in an array.
    pub fn whole(&self, stream: &Stream, array: &DeviceBuffer) -> Result<()> {
        let [_, after] = self.outer_scales([0; 4], [1, 0, 0, 0]);
        for step in &self.steps {
            let rows = 1 << (self.plan.log_n() - step.log_n);
            let after = after.filter(|_| rows == 1);
            let tables = self.tables_on_device();
            last_pass(&self.kernel, stream, &tables, (step, rows), after, array)?;
        }
        Ok(())
    }

    /// Queues the transform of a chunk of columns, through an array: element i of each column is in line i.
    pub fn columns(&self, chunk: &Chunk<'_>, array: &DeviceBuffer, [rows, columns]: [u64; 2]) -> Result<()> {
        let count = chunk.piece.bytes / (rows * self.plan.element_bytes());
        let first = chunk.piece.offset / (rows * self.plan.element_bytes());
        let batch = self.column_batch(first, count, columns)?;
        self.transform(chunk.stream, &batch, [chunk.buffer, array])
    }

    /// Queues the transform of a chunk of rows, through an array; each becomes a column of the result.
    pub fn rows(&self, chunk: &Chunk<'_>, array: &DeviceBuffer, [rows, columns]: [u64; 2]) -> Result<()> {
        let count = chunk.piece.bytes / (columns * self.plan.element_bytes());
        let first = chunk.piece.offset / (columns * self.plan.element_bytes());
        let batch = self.row_batch(first, count, rows, columns)?;
        self.transform(chunk.stream, &batch, [chunk.buffer, array])
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
        transform(&self.kernel, stream, &self.tables_on_device(), batch, arrays)
    }

    fn tables_on_device(&self) -> DeviceTables<'_> {
        DeviceTables::new(&self.tables, self.plan.element_bytes())
    }

    fn step(&self, index: usize) -> Result<&RowTables> {
        self.steps
            .get(index)
            .ok_or(Error::Unusable { what: "a transform" })
    }
}

/// Where the passes in place want an element: the digits of its index in these radices, the last of which has the
/// smallest weight, in reversed order.
fn place_of(mut index: u64, log_n: u32, log_radices: &[u32]) -> u64 {
    let mut log_weight = log_n;
    let mut place = 0;
    for log_radix in log_radices.iter().rev() {
        log_weight -= log_radix;
        place += (index & ((1 << log_radix) - 1)) << log_weight;
        index >>= log_radix;
    }
    place
}
