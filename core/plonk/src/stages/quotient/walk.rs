//! The step on a coset: walks along stretches of the matrix's rows, several at a time, tile by tile.
//!
//! A walk has windows, registers and buffers of its own, and waits for no other one: threads meet at the end
//! of a stretch, and not at the end of each tile. The rows around a stretch that rotations reach are read and
//! transformed by it, too. All that the walks hold is there before the first one starts.

use super::matrix::Matrix;
use super::tile::{Coset, Window, slide_all};
use crate::stages::evaluate::register_scalars;
use crate::stages::program::Program;
use crate::stages::side_by_side::{Stopped, side_by_side};
use spillproof_engine::Result;
use spillproof_engine::accelerator::RowSource;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Behind, Column, Element, Region, SharedDraft};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, twist};
use spillproof_kernels::parallel::Parallel;

/// A column that the program reads.
pub(super) struct Input<'a, F> {
    /// The program's name for it.
    pub index: usize,
    pub source: RowSource,
    /// Its rows, where they are read.
    pub column: Option<&'a Column<F>>,
    /// The smallest and the largest.
    pub rotations: (i32, i32),
}

/// All walks over one coset.
pub(super) struct Walks<'a, F> {
    pub matrix: &'a Matrix<'a, F>,
    pub numerator: &'a Program<F>,
    pub inputs: Vec<Input<'a, F>>,
    pub coset: Coset<'a, F>,
    pub shift_inverse: F,
    /// A factor of each value.
    pub scale: F,
}

/// A stretch of rows, and the memory that one tile of it after the other passes.
struct Walk<F: Copy> {
    rows: std::ops::Range<u64>,
    windows: Vec<Window<F>>,
    values: LeasedVec<F>,
    registers: LeasedVec<F>,
    /// Scalars of one thread's registers.
    part: usize,
    /// Tiles that are being written.
    behind: Behind,
}

impl<F: KernelField + NttElement<F> + Element> Walks<'_, F> {
    /// The quotient's rows, twisted for the way back.
    pub fn take(self) -> Result<Column<F>> {
        let plan = self.matrix.plan;
        let output = self.matrix.draft("quotient on a coset", plan.scratch)?.share();
        // Side by side, too: fresh memory is slow.
        let walks = (0..plan.walks() as usize).parallel();
        let walks = walks.try_map(|index| self.walk(index as u64))?;
        side_by_side(walks, |walk, stopped| self.run(walk, &output, stopped))?;
        Ok(output.finish())
    }

    fn walk(&self, index: u64) -> Result<Walk<F>> {
        let (matrix, plan) = (self.matrix, self.matrix.plan);
        let rows = index * plan.walk_rows()..(index + 1) * plan.walk_rows();
        let window = |input: &Input<'_, F>| {
            let read = (input.source, input.column);
            Window::new(matrix, input.index, read, input.rotations, rows.clone())
        };
        let (scalars, part) = register_scalars(self.numerator.registers(), plan.threads_of_walk());
        let buffer = |_| {
            let bytes = plan.raw_tile_bytes() as usize;
            matrix.workspace.budget.buffer_to_fill(bytes, "column writer")
        };
        let writes = plan.tiles_behind();
        Ok(Walk {
            windows: self.inputs.iter().map(window).collect::<Result<_>>()?,
            values: matrix.vec(plan.tile_rows * plan.row_len(), "quotient rows")?,
            registers: matrix.vec(scalars as u64, "program registers")?,
            part,
            behind: Behind::with_buffers((0..writes).map(buffer).collect::<Result<_>>()?, writes as usize),
            rows,
        })
    }

    /// Evaluates the program tile by tile.
    fn run(&self, walk: Walk<F>, output: &SharedDraft<F>, stopped: &Stopped) -> Result<()> {
        let (matrix, plan) = (self.matrix, self.matrix.plan);
        let row_len = plan.row_len();
        let Walk {
            rows,
            mut windows,
            mut values,
            mut registers,
            part,
            behind,
        } = walk;
        let mut output = output.part(behind);
        for first_row in rows.clone().step_by(plan.tile_rows as usize) {
            if stopped.is_set() {
                break;
            }
            let tile_rows = plan.tile_rows.min(rows.end - first_row);
            slide_all(&mut windows, plan.tile_rows, tile_rows, &self.coset)?;

            let inputs: Vec<&[F]> = (self.numerator.queries().iter())
                .filter_map(|&(column, rotation)| {
                    let window = windows.iter().find(|window| window.column == column)?;
                    Some(window.rotated(rotation, tile_rows))
                })
                .collect();
            let values = &mut values[..(tile_rows * row_len) as usize];
            self.numerator
                .evaluate_parallel(&inputs, &mut [&mut *values], &mut registers, part);
            matrix.tables.along_back.transform(values);
            let factors = matrix
                .tables
                .twist_back(self.shift_inverse, first_row, self.scale);
            twist(values, row_len as usize, &factors);
            let region = Region::Span {
                start: first_row * row_len,
                len: tile_rows * row_len,
            };
            output.write(region, values)?;
        }
        output.into_behind().landed()
    }
}
