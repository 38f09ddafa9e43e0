//! The cells of fixed columns while a circuit is synthesised: any order, any number of times, fractions too.
//!
//! Shapes: `columns` times `rows` cells of 32 bytes (Montgomery form), in [`Cells`]; a block that is never
//! assigned is 0 and takes no space. Fractions are inverted in batches of [`WAITING`]: once one waits, every
//! later assignment waits behind it, so that the last one to a cell is the one that stays. Memory: the share
//! of the cells, and a batch.

use std::ops::Range;

use spillproof_engine::Result;
use spillproof_engine::column::{Cells, Column, Element, Placement, Workspace, Writer};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly;

/// Assignments that wait for a batch inversion.
const WAITING: usize = 512;

/// Fixed columns that are being assigned.
pub struct FixedCells<F: Element> {
    workspace: Workspace,
    cells: Cells<F>,
    waiting: Vec<Assignment<F>>,
}

struct Assignment<F> {
    column: usize,
    row: u64,
    numerator: F,
    denominator: Option<F>,
}

impl<F: KernelField + Element> FixedCells<F> {
    /// `columns` columns of `rows` cells, all 0, in [`Cells::default_share_bytes`].
    ///
    /// # Errors
    /// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::OverBudget`].
    pub fn new(workspace: &Workspace, columns: usize, rows: u64) -> Result<Self> {
        let share_bytes = Cells::<F>::default_share_bytes(workspace, columns);
        let mut cells = Cells::zeroed(workspace, "fixed cells", share_bytes, (columns, rows))?;
        cells.assume_written();
        Ok(Self {
            workspace: workspace.clone(),
            cells,
            waiting: Vec::new(),
        })
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.cells.arrays()
    }

    /// Assigns `numerator / denominator` to a cell (the numerator without a denominator, 0 over a denominator
    /// of 0).
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Invalid`] for a cell that is not there;
    /// [`spillproof_engine::Error::File`].
    pub fn assign(&mut self, column: usize, row: u64, numerator: F, denominator: Option<F>) -> Result<()> {
        if self.waiting.is_empty() && denominator.is_none() {
            return self.cells.set(column, row, numerator);
        }
        self.waiting.push(Assignment {
            column,
            row,
            numerator,
            denominator,
        });
        if self.waiting.len() == WAITING {
            self.flush()?;
        }
        Ok(())
    }

    /// Assigns one value to many rows of a column.
    ///
    /// # Errors
    /// As [`Self::assign`].
    pub fn fill(
        &mut self,
        column: usize,
        rows: Range<u64>,
        numerator: F,
        denominator: Option<F>,
    ) -> Result<()> {
        self.flush()?;
        let mut value = [F::ZERO];
        let quotient = || poly::quotients(&[(numerator, denominator)], |cell| *cell, &mut value);
        self.workspace.spread(quotient)?;
        self.cells.fill(column, rows, value[0])
    }

    /// Every column, in order; the cells' files go as the columns come.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::OverBudget`].
    pub fn into_columns(self) -> Result<Vec<Column<F>>> {
        let workspace = self.workspace.clone();
        workspace.run(|| self.into_columns_in_turn())
    }

    fn into_columns_in_turn(mut self) -> Result<Vec<Column<F>>> {
        self.flush()?;
        let Self {
            workspace, mut cells, ..
        } = self;
        let (columns, rows) = (cells.arrays(), cells.len());
        let to_column = |column: usize| {
            let mut writer = Writer::scratch(&workspace, "fixed column", rows, Placement::Auto)?;
            cells.read(column, 0..rows, |_, cells| writer.push(cells))?;
            let made = writer.finish()?;
            cells.remove(column);
            Ok(made)
        };
        (0..columns).map(to_column).collect()
    }

    /// Inverts the denominators of the cells that wait, and writes the cells.
    fn flush(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut values = vec![F::ZERO; waiting.len()];
        let quotients = || poly::quotients(&waiting, |cell| (cell.numerator, cell.denominator), &mut values);
        self.workspace.spread(quotients)?;
        for (cell, value) in waiting.into_iter().zip(values) {
            self.cells.set(cell.column, cell.row, value)?;
        }
        Ok(())
    }
}
