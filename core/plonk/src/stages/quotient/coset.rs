//! To a coset and back, up to the rows: the passes of a four-step transform that go over columns of the
//! matrix.
//!
//! Shapes: n = n1 * n2, coefficient `j = j1 * n2 + j2` in row j1, column j2; value `k = k1 + n1 * k2`, which
//! is the polynomial at `c * omega^k`, in row k1, column k2 (Bailey, *FFTs in external or hierarchical
//! memory*, 1990). Between the passes a column holds, in row k1, what an n2-point transform of that row turns
//! into values. The shift is shared: `c^(j1 * n2)` is a row's before its columns are transformed, and `c^j2`
//! goes with the twist. Memory: [`super::plan`].

use super::lanes::Way;
use super::matrix::Matrix;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Draft, Element, Placement, Reader, Region};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::NttElement;

impl<'a, F: KernelField + NttElement<F> + Element> Matrix<'a, F> {
    /// Columns of coefficients to rows on the coset of each of `shifts`: a list of columns for each. They are
    /// read once.
    pub fn coset_rows(&self, inputs: &[&Column<F>], shifts: &[F]) -> Result<Vec<Vec<Column<F>>>> {
        let way = Way {
            twiddles: &self.tables.down[0],
            legs: shifts.iter().map(|shift| self.tables.to_coset(shift)).collect(),
            what: "columns on a coset",
            placement: &|column| self.plan.placement_on_coset(column),
        };
        way.take(self, inputs)
    }

    /// Twisted rows to one column of coefficients (times what the twist did not divide by).
    pub fn coefficients(
        &self,
        rows: &Column<F>,
        shift_inverse: F,
        placement: Placement,
    ) -> Result<Vec<Column<F>>> {
        let way = Way {
            twiddles: &self.tables.down[1],
            legs: vec![self.tables.to_coefficients(shift_inverse)],
            what: "quotient of a coset",
            placement: &|_| placement,
        };
        Ok(way.take(self, &[rows])?.into_iter().flatten().collect())
    }

    /// A reader of the panel that begins at `first_column`.
    pub fn panel(&self, column: &Column<F>, first_column: u64) -> Result<Reader<F>> {
        let (n1, n2, width) = (self.plan.rows(), self.plan.row_len(), self.plan.panel_width());
        let per_read = self.plan.rows_per_read(column.frame_elements());
        let regions = (0..n1)
            .step_by(per_read as usize)
            .map(move |first_row| Region::Panel {
                row_len: n2,
                first_row,
                rows: per_read.min(n1 - first_row),
                first_column,
                columns: width,
            });
        column.reader(regions, 1)
    }

    /// The next panel.
    pub fn read_panel(&self, reader: &mut Reader<F>, column: &Column<F>, tile: &mut [F]) -> Result<()> {
        let per_read = self.plan.rows_per_read(column.frame_elements()) * self.plan.panel_width();
        for part in tile.chunks_mut(per_read as usize) {
            reader.next_into(part)?;
        }
        Ok(())
    }

    /// Writes a panel in bands.
    pub fn write_panel(&self, draft: &mut Draft<F>, tile: &[F], first_column: u64) -> Result<()> {
        let (width, band_rows) = (self.plan.panel_width(), self.plan.band_rows());
        let bands = tile.chunks((band_rows * width) as usize);
        for (first_row, band) in (0..).step_by(band_rows as usize).zip(bands) {
            let region = Region::Panel {
                row_len: self.plan.row_len(),
                first_row,
                rows: band.len() as u64 / width,
                first_column,
                columns: width,
            };
            draft.write(region, band)?;
        }
        Ok(())
    }
}
