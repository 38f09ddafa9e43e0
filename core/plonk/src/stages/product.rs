//! A running product of fractions, the grand product of every argument: `z[0] = first`,
//! `z[i + 1] = z[i] * numerator[i] / denominator[i]`, and random values in the last rows.
//!
//! Algorithm: one ascending pass. Of each chunk, the columns are read side by side; then threads make
//! numerators and denominators of its pieces ([`Factors`]), and the exclusive prefix product of the fractions
//! goes on from the chunk before ([`fraction_product_chunk`]; a fraction over zero is zero, as halo2's
//! `batch_invert` leaves a zero as it is). What stands in the rows of the tail is never computed.
//!
//! Shapes: `rows` values, of which the last `tail.len()` are given. Values in Montgomery form. Peak memory:
//! [`chunk_elements`] chooses a chunk of `c` elements with `32 * c * (2 * readers + tiles + 3)` bytes within
//! a quarter of what the budget has left (more only where one frame each is more).

use super::short::{Items, Short};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::{LeasedVec, PAGE_BYTES};
use spillproof_engine::column::{
    Column, Draft, Element, Placement, Reader, SCRATCH_FRAME_BYTES, SEQUENTIAL_BYTES, Workspace, Writer,
    ascending,
};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::{PIECE, fraction_product_chunk};

/// Buffers that a writer holds: two on their way, one being filled.
pub(super) const WRITER_BUFFERS: u64 = 3;
/// Buffers that a reader holds.
pub(super) const READER_BUFFERS: u64 = 2;
/// Pieces of a chunk for each thread, where the budget has room: threads meet at the end of a chunk.
const PIECES_PER_THREAD: u64 = 4;
/// Tiles that [`running_product`] holds itself, beside one for each column.
const PRODUCT_TILES: u64 = 2;

/// What the fractions of a running product are made of.
pub(super) trait Factors<F>: Sync {
    /// Makes the numerators and denominators of the rows from `row` on, a piece at most, from those rows of
    /// each column.
    fn make(&self, row: u64, columns: &[&[F]], numerators: &mut [F], denominators: &mut [F]);
}

/// The dry run of a running product in `tiles` tiles.
fn rehearse_product<F: KernelField + Element>(
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
    held.push(workspace.hold(tiles * tile, what)?);
    let draft = Draft::scratch(workspace, what, rows, Placement::Passing)?;
    workspace.passed(
        1,
        Work::products((2 * columns.len() as u64 + 8) as f64 * rows as f64),
    );
    Writer::in_chunks(draft, chunk).finish()
}

/// A column of a running product, and the chunk that was read last.
struct Source<F: Copy> {
    reader: Reader<F>,
    tile: LeasedVec<F>,
}

/// The running product of `factors` over `rows` rows of `columns`. Also gives the last value before the tail;
/// of a dry run, zero.
///
/// # Errors
/// [`Error::Invalid`] if the tail leaves no row, or a column is shorter; [`Error::BudgetTooSmall`],
/// [`Error::OverBudget`], [`Error::Io`], [`Error::Damaged`].
pub(super) fn running_product<F: KernelField + Element>(
    workspace: &Workspace,
    what: &'static str,
    columns: &[&Column<F>],
    rows: u64,
    (first, tail): (F, &[F]),
    factors: &impl Factors<F>,
) -> Result<(Column<F>, F)> {
    let computed = computed_rows(what, rows, tail.len())?;
    let tiles = PRODUCT_TILES + columns.len() as u64;
    let chunk = chunk_elements(workspace, what, columns, tiles)?;
    if workspace.is_dry() {
        let product = rehearse_product(workspace, what, columns, (rows, computed, chunk), tiles)?;
        return Ok((product, F::ZERO));
    }
    let tile_len = chunk.min(computed) as usize;
    let tile = || workspace.budget.vec(tile_len, F::ZERO, what);
    let source = |column: &&Column<F>| {
        Ok(Source {
            reader: column.prefix(computed)?.read_ascending(chunk)?,
            tile: tile()?,
        })
    };
    let mut sources: Vec<Source<F>> = columns.iter().map(source).collect::<Result<_>>()?;
    let (mut numerators, mut denominators) = (tile()?, tile()?);
    let draft = Draft::scratch(workspace, what, rows, Placement::Passing)?;
    let mut writer = Writer::in_chunks(draft, chunk);
    let (mut carry, mut last) = (first, first);
    let mut start = 0;
    for region in ascending(computed, chunk) {
        let read = |source: &mut Source<F>| source.reader.next_into(&mut source.tile).map(drop);
        sources.iter_mut().parallel().try_for_each(read)?;
        let tiles: Vec<&[F]> = sources.iter().map(|source| &source.tile[..]).collect();
        let make = |piece: usize, numerators: &mut [F], denominators: &mut [F]| {
            let from = piece * PIECE;
            let columns: Vec<&[F]> = (tiles.iter())
                .map(|tile| &tile[from..from + numerators.len()])
                .collect();
            factors.make(start + from as u64, &columns, numerators, denominators);
        };
        let len = region.len() as usize;
        let (products, denominators) = (&mut numerators[..len], &mut denominators[..len]);
        carry = fraction_product_chunk(products, denominators, carry, make);
        last = products[len - 1];
        writer.push(products)?;
        start += region.len();
    }
    writer.push(tail)?;
    Ok((writer.finish()?, last))
}

/// The running products of `factors` over all rows of each item's columns, all of which are as long, from 1 on; `None` where the columns
/// are not for lanes ([`Short`]).
///
/// # Errors
/// As [`running_product`].
pub(super) fn running_products_of_short<F: KernelField + Element>(
    workspace: &Workspace,
    what: &'static str,
    items: &Items<'_, F>,
    tails: &[&[F]],
    factors: &impl Factors<F>,
) -> Result<Option<Vec<Column<F>>>> {
    let Some(rows) = items.first().and_then(|columns| Some(columns.first()?.len())) else {
        return Ok(None);
    };
    if items.iter().flatten().any(|column| column.len() != rows) {
        return Ok(None);
    }
    let columns = items[0].len() as u64;
    let short = Short {
        workspace,
        what,
        outputs: 1,
        rows,
        placement: Placement::Passing,
        spare: 1,
        work: Work::products((2 * columns + 8) as f64 * rows as f64),
    };
    let made = short.take(items, F::ZERO, |item, tiles| {
        let ([product], [denominators]) = (&mut tiles.outputs[..], &mut tiles.spare[..]) else {
            unreachable!("one of each")
        };
        let tail = tails[item];
        let computed = computed_rows(what, rows, tail.len())? as usize;
        let columns: Vec<&[F]> = tiles.inputs.iter().map(|column| &column[..]).collect();
        let make = |piece: usize, numerators: &mut [F], denominators: &mut [F]| {
            let from = piece * PIECE;
            let columns: Vec<&[F]> = (columns.iter())
                .map(|column| &column[from..from + numerators.len()])
                .collect();
            factors.make(from as u64, &columns, numerators, denominators);
        };
        let (values, last) = product.split_at_mut(computed);
        fraction_product_chunk(values, &mut denominators[..computed], F::ONE, make);
        last.copy_from_slice(tail);
        Ok(())
    })?;
    Ok(made.map(|made| made.into_iter().flatten().collect()))
}

/// Rows before the tail: at least one.
fn computed_rows(what: &'static str, rows: u64, tail: usize) -> Result<u64> {
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

/// Elements in a chunk for a pass that reads `columns` at one pace, holds `tiles` chunks besides, and writes
/// a column: a power of two of at least one frame of each, and at most a mebibyte, or [`PIECES_PER_THREAD`]
/// for each thread.
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
    let pieces = PIECES_PER_THREAD * rayon::current_num_threads() as u64;
    let bytes_max = (pieces * PIECE as u64 * element_bytes).max(SEQUENTIAL_BYTES as u64);
    let buffers = READER_BUFFERS * columns.len() as u64 + tiles + WRITER_BUFFERS;
    chunk_bytes_within(available_bytes, buffers, frame_bytes, bytes_max)
        .map(|bytes| bytes / element_bytes)
        .map_err(|needed_bytes| too_small(workspace, what, needed_bytes))
}

/// Bytes of such a chunk, for `buffers` of it, of columns in frames of at most `frame_bytes`.
///
/// # Errors
/// As `Err`, the number of bytes that would do.
fn chunk_bytes_within(
    available_bytes: u64,
    buffers: u64,
    frame_bytes: u64,
    bytes_max: u64,
) -> Result<u64, u64> {
    let frame_bytes = frame_bytes.max(SCRATCH_FRAME_BYTES as u64);
    let needed_bytes = buffers * frame_bytes;
    if needed_bytes > available_bytes {
        return Err(needed_bytes);
    }
    let share = (available_bytes / 4 / buffers).clamp(frame_bytes, frame_bytes.max(bytes_max));
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
