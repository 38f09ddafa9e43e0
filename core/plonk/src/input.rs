//! Values of another library, and columns of them.

use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_kernels::field::KernelField;

use crate::curve;

/// Values of another library, converted piece by piece.
pub trait Values<F = curve::Scalar>: Sync {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The values from `start` on, as many as `out` holds.
    fn fill(&self, start: usize, out: &mut [F]);
}

/// Values that are converted at a time.
const TILE: usize = 4096;

impl<F: KernelField> dyn Values<F> + '_ {
    /// Hands all values to `take`, tile by tile.
    pub(crate) fn for_each_tile<E>(&self, mut take: impl FnMut(&[F]) -> Result<(), E>) -> Result<(), E> {
        let mut tile = vec![F::ZERO; self.len().min(TILE)];
        for start in (0..self.len()).step_by(TILE) {
            let len = TILE.min(self.len() - start);
            self.fill(start, &mut tile[..len]);
            take(&tile[..len])?;
        }
        Ok(())
    }
}

/// A column of `rows` rows with `values` in its first ones, `tail` in its last ones, and 0 between.
///
/// # Errors
/// Where the disk or the budget has no room.
pub(crate) fn padded_column<F: KernelField>(
    workspace: &Workspace,
    rows: u64,
    values: &dyn Values<F>,
    tail: &[F],
) -> spillproof_engine::Result<Column<F>> {
    workspace.run(|| {
        let mut writer = Writer::scratch(workspace, "column", rows, Placement::Auto)?;
        if workspace.is_dry() {
            return writer.finish();
        }
        values.for_each_tile(|tile| writer.push(tile))?;
        let mut left = rows.saturating_sub((values.len() + tail.len()) as u64) as usize;
        let zeros = vec![F::ZERO; left.min(TILE)];
        while left > 0 {
            let now = left.min(TILE);
            writer.push(&zeros[..now])?;
            left -= now;
        }
        writer.push(tail)?;
        writer.finish()
    })
}
