//! A running product of fractions, the grand product of every argument: `z[0] = first`, `z[i + 1] = z[i] * numerator[i] /
//! denominator[i]`, and random values in the last rows.
//!
//! Algorithm: one ascending pass. For each chunk the caller fills numerators and denominators, and the exclusive prefix product
//! of the fractions goes on from the chunk before ([`fraction_product_chunk`]; a fraction over zero is zero, as halo2's
//! `batch_invert` leaves a zero as it is). What stands in the rows of the tail is never computed.
//!
//! Shapes: `rows` values, of which the last `tail.len()` are given. Values in Montgomery form. Peak memory:
//! [`chunk_elements`] chooses a chunk of `c` elements with `32 * c * (2 * readers + tiles + 3)` bytes within a quarter of what
//! the budget has left (more only where one frame each is more).

use crate::budget::PAGE_BYTES;
use crate::column::{
    Column, Draft, Element, Placement, Region, SCRATCH_FRAME_BYTES, SEQUENTIAL_BYTES, Workspace, Writer,
    ascending,
};
use crate::dry::Work;
use crate::error::Invalid;
use crate::kernels::field::KernelField;
use crate::kernels::poly::fraction_product_chunk;
use crate::{Error, Result};

/// Buffers that a writer holds: two on their way, one being filled.
pub(super) const WRITER_BUFFERS: u64 = 3;
/// Buffers that a reader holds.
pub(super) const READER_BUFFERS: u64 = 2;
/// Tiles that [`running_product`] holds itself.
pub(super) const PRODUCT_TILES: u64 = 2;

/// The dry run of a running product: `tiles` tiles of the caller's, and readers of the computed rows of `columns`.
pub(super) fn rehearse_product<F: KernelField + Element>(
    workspace: &Workspace,
    what: &'static str,
    columns: &[&Column<F>],
    (rows, computed, chunk): (u64, u64, u64),
    tiles: u64,
) -> Result<Column<F>> {
    let mut held = Vec::with_capacity(columns.len() + 1);
    for column in columns {
        let column = column.prefix(computed)?;
        held.push(workspace.hold(column.reader_bytes(chunk, READER_BUFFERS), what)?);
        column.count_read();
    }
    let tile = (chunk.min(computed) * F::BYTES as u64).next_multiple_of(PAGE_BYTES as u64);
    held.push(workspace.hold((PRODUCT_TILES + tiles) * tile, what)?);
    let draft = Draft::scratch(workspace, what, rows, Placement::Passing)?;
    workspace.passed(
        1,
        Work::products((2 * columns.len() as u64 + 8) as f64 * rows as f64),
    );
    Writer::in_chunks(draft, chunk).finish()
}

/// The running product over `rows` rows in chunks of `chunk` elements; `fill` gives numerators and denominators of each
/// region, which come in ascending order. Also gives the last value before the tail.
///
/// # Errors
/// [`Error::Invalid`] if the tail leaves no row; [`Error::OverBudget`], [`Error::Io`], and what `fill` gives.
pub(super) fn running_product<F: KernelField + Element>(
    workspace: &Workspace,
    what: &'static str,
    (rows, chunk): (u64, u64),
    first: F,
    tail: &[F],
    mut fill: impl FnMut(Region, &mut [F], &mut [F]) -> Result<()>,
) -> Result<(Column<F>, F)> {
    let computed = computed_rows(what, rows, tail.len())?;
    let draft = Draft::scratch(workspace, what, rows, Placement::Passing)?;
    let mut writer = Writer::in_chunks(draft, chunk);
    let tile_len = chunk.min(computed) as usize;
    let mut numerators = workspace.budget.vec(tile_len, F::ZERO, what)?;
    let mut denominators = workspace.budget.vec(tile_len, F::ZERO, what)?;
    let (mut carry, mut last) = (first, first);
    for region in ascending(computed, chunk) {
        let len = region.len() as usize;
        let (products, denominators) = (&mut numerators[..len], &mut denominators[..len]);
        fill(region, products, denominators)?;
        carry = fraction_product_chunk(products, denominators, carry);
        last = products[len - 1];
        writer.push(products)?;
    }
    writer.push(tail)?;
    Ok((writer.finish()?, last))
}

/// Rows before the tail: at least one.
pub(super) fn computed_rows(what: &'static str, rows: u64, tail: usize) -> Result<u64> {
    rows.checked_sub(tail as u64)
        .filter(|&computed| computed > 0)
        .ok_or_else(|| {
            Invalid::Tail {
                what,
                tail: tail as u64,
                rows,
            }
            .into()
        })
}

/// Elements in a chunk for a pass that reads `columns` at one pace, holds `tiles` chunks besides, and writes a column:
/// a power of two of at least one frame of each, and at most a mebibyte.
///
/// # Errors
/// [`Error::BudgetTooSmall`] if not even one frame each fits.
pub(super) fn chunk_elements<F: Element>(
    workspace: &Workspace,
    what: &str,
    columns: &[&Column<F>],
    tiles: u64,
) -> Result<u64> {
    let element_bytes = F::BYTES as u64;
    let frame_bytes = columns
        .iter()
        .map(|column| column.frame_elements() * element_bytes);
    let frame_bytes = frame_bytes.fold(0, u64::max);
    let available_bytes = workspace.budget.available_bytes();
    chunk_bytes_within(available_bytes, columns.len() as u64, frame_bytes, tiles)
        .map(|bytes| bytes / element_bytes)
        .map_err(|needed_bytes| too_small(workspace, what, needed_bytes))
}

/// Bytes of such a chunk, for columns in frames of at most `frame_bytes`.
///
/// # Errors
/// As `Err`, the number of bytes that would do.
fn chunk_bytes_within(available_bytes: u64, columns: u64, frame_bytes: u64, tiles: u64) -> Result<u64, u64> {
    let frame_bytes = frame_bytes.max(SCRATCH_FRAME_BYTES as u64);
    let chunks = READER_BUFFERS * columns + tiles + WRITER_BUFFERS;
    let needed_bytes = chunks * frame_bytes;
    if needed_bytes > available_bytes {
        return Err(needed_bytes);
    }
    let share = (available_bytes / 4 / chunks).clamp(frame_bytes, frame_bytes.max(SEQUENTIAL_BYTES as u64));
    Ok(1 << share.ilog2())
}

/// The refusal of a plan that needs `needed_bytes` besides what is held.
pub(super) fn too_small(workspace: &Workspace, what: &str, needed_bytes: u64) -> Error {
    Error::BudgetTooSmall {
        what: what.to_string(),
        needed_bytes: needed_bytes.saturating_add(workspace.budget.held_bytes()),
        limit_bytes: workspace.budget.limit_bytes(),
    }
}
