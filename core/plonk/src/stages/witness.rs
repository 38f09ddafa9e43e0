//! A column of a witness, from the cells that a circuit assigned.
//!
//! Shapes: `rows` cells with addresses, each a fraction in whatever form the caller keeps; the last
//! `tail.len()` rows come from `tail` (random values for blinding, by then drawn). One pass up: cells are
//! inverted in batches and written. Memory: a tile, a writer's buffers, and the share of the cells.

use spillproof_engine::Result;
use spillproof_engine::column::{Addressed, Cell, Column, Element, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly;

const WHAT: &str = "witness column";
/// Cells that are inverted at a time.
const TILE_CELLS: usize = 32 * poly::PIECE;

/// The column whose row i is `fraction(cells[i])` of an array of cells, numerator and denominator (see
/// [`poly::quotients`]), but for the tail. With the array that is read next, if that is known.
///
/// # Errors
/// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::OverBudget`];
/// [`spillproof_engine::Error::Invalid`] for a tail that is longer than the column.
pub fn witness_column<T: Cell, F: KernelField + Element>(
    workspace: &Workspace,
    (cells, array, then): (&mut Addressed<T>, usize, Option<usize>),
    fraction: impl Fn(&T) -> (F, Option<F>) + Sync,
    tail: &[F],
) -> Result<Column<F>> {
    workspace.run(|| column_in_turn(workspace, (cells, array, then), &fraction, tail))
}

fn column_in_turn<T: Cell, F: KernelField + Element>(
    workspace: &Workspace,
    (cells, array, then): (&mut Addressed<T>, usize, Option<usize>),
    fraction: &(impl Fn(&T) -> (F, Option<F>) + Sync),
    tail: &[F],
) -> Result<Column<F>> {
    let rows = cells.len();
    let assigned = rows_before(rows, tail)?;
    let tile_len = TILE_CELLS.min(rows as usize);
    if workspace.is_dry() {
        let _tile = workspace.hold((tile_len * F::BYTES) as u64, WHAT)?;
        let column = Writer::scratch(workspace, WHAT, rows, Placement::Auto)?;
        cells.read(array, 0..assigned, |_, _| Ok(()))?;
        return column.finish();
    }
    let mut tile = workspace.budget.vec(tile_len, F::ZERO, WHAT)?;
    let mut writer = Writer::scratch(workspace, WHAT, rows, Placement::Auto)?;
    cells.read_before((array, then), 0..assigned, |_, cells| {
        cells.chunks(tile_len).try_for_each(|cells| {
            let tile = &mut tile[..cells.len()];
            poly::quotients(cells, fraction, tile);
            writer.push(tile)
        })
    })?;
    writer.push(tail)?;
    writer.finish()
}

/// The column with the rows of `values`, but for the tail: a witness column whose values were stored.
///
/// # Errors
/// As [`witness_column`]; [`spillproof_engine::Error::Damaged`], [`spillproof_engine::Error::Io`].
pub fn stored_witness_column<F: KernelField + Element>(
    workspace: &Workspace,
    values: &Column<F>,
    tail: &[F],
) -> Result<Column<F>> {
    workspace.run(|| {
        let assigned = values.prefix(rows_before(values.len(), tail)?)?;
        let mut writer = Writer::scratch(workspace, WHAT, values.len(), Placement::Auto)?;
        if workspace.is_dry() {
            let chunk = assigned.sequential_chunk();
            let _copied = workspace.hold(chunk * F::BYTES as u64 + assigned.reader_bytes(chunk, 2), WHAT)?;
            assigned.count_read();
            return writer.finish();
        }
        writer.push_column(&assigned)?;
        writer.push(tail)?;
        writer.finish()
    })
}

/// The rows before the tail.
fn rows_before<F>(rows: u64, tail: &[F]) -> Result<u64> {
    rows.checked_sub(tail.len() as u64).ok_or_else(|| {
        Invalid::TooLong {
            what: "values for the last rows of a witness column".into(),
            given: tail.len() as u64,
            limit: rows,
        }
        .into()
    })
}
