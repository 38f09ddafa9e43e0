//! Polynomials on disk: evaluation and combination. One pass each.
//!
//! Shapes: a column of n scalars, lowest degree first. Evaluation runs from the top down, since Horner's rule
//! carries from the highest coefficient. Memory: one tile of [`Column::sequential_chunk`] scalars for each
//! column that is read, its read-ahead and write-behind buffers; nothing that grows with n.

use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{Column, Draft, Element, Placement, Reader, SCRATCH_FRAME_BYTES, Writer, ascending};
use crate::dry::Work;
use crate::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly;

/// The value at `point` of the polynomial with these coefficients.
///
/// # Errors
/// [`crate::Error::OverBudget`], [`crate::Error::Io`], [`crate::Error::Damaged`].
pub fn evaluate<F: KernelField + Element>(coefficients: &Column<F>, point: F) -> Result<F> {
    coefficients
        .workspace()
        .run(|| evaluate_in_turn(coefficients, point))
}

fn evaluate_in_turn<F: KernelField + Element>(coefficients: &Column<F>, point: F) -> Result<F> {
    let chunk = coefficients.sequential_chunk();
    let mut reader = coefficients.read_descending(chunk)?;
    let mut tile = coefficients
        .workspace()
        .budget
        .vec(chunk as usize, F::ZERO, "evaluation")?;
    let mut carry = [F::ZERO];
    while let Some(region) = reader.next_into(&mut tile)? {
        poly::evaluate_chunk_many(&tile[..region.len() as usize], &[point], &mut carry);
    }
    Ok(carry[0])
}

/// `sum of factor * column`, as long as the longest column; shorter ones count as padded with zeros. Every
/// column is read once, all at the same pace.
///
/// # Errors
/// [`Invalid::Empty`] without any column; else as [`evaluate`].
pub fn linear_combination<F: KernelField + Element>(
    terms: &[(F, &Column<F>)],
    placement: Placement,
) -> Result<Column<F>> {
    let Some(longest) = terms
        .iter()
        .map(|(_, column)| *column)
        .max_by_key(|column| column.len())
    else {
        return Err(Invalid::Empty {
            what: "columns of a linear combination",
        }
        .into());
    };
    longest
        .workspace()
        .run(|| combine_in_turn(terms, longest, placement))
}

fn combine_in_turn<F: KernelField + Element>(
    terms: &[(F, &Column<F>)],
    longest: &Column<F>,
    placement: Placement,
) -> Result<Column<F>> {
    let workspace = longest.workspace();
    // The columns share what one reader would take, so that many of them need no more.
    let frame = terms
        .iter()
        .map(|(_, column)| column.frame_elements())
        .max()
        .unwrap_or(1);
    let chunk = (longest.sequential_chunk() / (terms.len() as u64).next_power_of_two()).max(frame);
    if workspace.is_dry() {
        return rehearse_combination(terms, longest, placement, chunk);
    }
    let mut readers: Vec<Reader<F>> = terms
        .iter()
        .map(|(_, column)| column.read_ascending(chunk))
        .collect::<Result<_>>()?;
    let mut sum = workspace
        .budget
        .vec(chunk as usize, F::ZERO, "linear combination")?;
    let mut tile = workspace
        .budget
        .vec(chunk as usize, F::ZERO, "linear combination")?;
    let mut writer = Writer::scratch(workspace, "linear combination", longest.len(), placement)?;
    for region in ascending(longest.len(), chunk) {
        let sum = &mut sum[..region.len() as usize];
        sum.fill(F::ZERO);
        for ((factor, _), reader) in terms.iter().zip(&mut readers) {
            if let Some(read) = reader.next_into(&mut tile)? {
                poly::add_scaled(sum, factor, &tile[..read.len() as usize]);
            }
        }
        writer.push(sum)?;
    }
    writer.finish()
}

/// The dry run of [`linear_combination`].
fn rehearse_combination<F: KernelField + Element>(
    terms: &[(F, &Column<F>)],
    longest: &Column<F>,
    placement: Placement,
    chunk: u64,
) -> Result<Column<F>> {
    let workspace = longest.workspace();
    let readers: u64 = terms
        .iter()
        .map(|(_, column)| column.reader_bytes(chunk, 2))
        .sum();
    let tile = (chunk * F::BYTES as u64).next_multiple_of(PAGE_BYTES as u64);
    let _held = workspace.hold(readers + 2 * tile, "linear combination")?;
    terms.iter().for_each(|(_, column)| column.count_read());
    workspace.passed(1, Work::products(terms.len() as f64 * longest.len() as f64));
    Writer::scratch(workspace, "linear combination", longest.len(), placement)?.finish()
}

/// Several linear combinations of the same columns with one pass over them: output i is the sum of
/// `factors[i][j] * columns[j]`, as long as the longest column; shorter ones count as padded with zeros.
///
/// # Errors
/// As [`linear_combination`]; [`Invalid::Length`] for a row of factors of another length.
pub fn linear_combinations<F: KernelField + Element>(
    columns: &[&Column<F>],
    factors: &[Vec<F>],
    placement: Placement,
) -> Result<Vec<Column<F>>> {
    let combine = || {
        let chunk = columns.iter().map(|column| column.sequential_chunk()).max();
        // All that is held at a time shares what a few readers would take.
        let shares = (2 * columns.len() + 4 * factors.len()) as u64 / 8;
        let chunk = chunk.unwrap_or(1) / shares.max(1).next_power_of_two();
        linear_combinations_in_chunks(columns, factors, placement, chunk)
    };
    match columns.first() {
        Some(column) => column.workspace().run(combine),
        None => combine(),
    }
}

/// Bytes leased by [`linear_combinations_in_chunks`] of columns of `len` scalars in frames of `frame_bytes`,
/// without what the results keep.
pub fn linear_combinations_bytes(columns: u64, outputs: u64, len: u64, frame_bytes: u64, chunk: u64) -> u64 {
    const SCALAR_BYTES: u64 = 32;
    let held_bytes = chunk.min(len) * SCALAR_BYTES;
    let tile = held_bytes.next_multiple_of(PAGE_BYTES as u64);
    let read = held_bytes.next_multiple_of(frame_bytes);
    let written = held_bytes.next_multiple_of(SCRATCH_FRAME_BYTES as u64);
    // A draft has up to two buffers behind. Readers give theirs back with the last chunk, before it is
    // written.
    let chunks = len.div_ceil(chunk.max(1));
    let while_reading = columns * read + outputs * chunks.saturating_sub(1).min(2) * written;
    let at_the_end = outputs * chunks.min(2) * written;
    (columns + outputs) * tile + while_reading.max(at_the_end)
}

/// As [`linear_combinations`], `chunk` scalars at a time, or a frame if that is more.
pub fn linear_combinations_in_chunks<F: KernelField + Element>(
    columns: &[&Column<F>],
    factors: &[Vec<F>],
    placement: Placement,
    chunk: u64,
) -> Result<Vec<Column<F>>> {
    let Some(longest) = columns.iter().max_by_key(|column| column.len()) else {
        return Err(Invalid::Empty {
            what: "columns of linear combinations",
        }
        .into());
    };
    if let Some(row) = factors.iter().find(|row| row.len() != columns.len()) {
        return Err(Invalid::Length {
            what: "factors of a linear combination".into(),
            given: row.len() as u64,
            expected: columns.len() as u64,
        }
        .into());
    }
    let (workspace, len) = (longest.workspace(), longest.len());
    let mut drafts: Vec<Draft<F>> = Vec::with_capacity(factors.len());
    for _ in factors {
        drafts.push(Draft::scratch(workspace, "linear combination", len, placement)?);
    }
    // Chunks start at frames of every column; all sizes are powers of two.
    let frames = columns.iter().map(|column| column.frame_elements());
    let frame = frames.chain(drafts.iter().map(Draft::frame_elements)).max();
    let chunk = chunk.max(frame.unwrap_or(1)).next_power_of_two();
    let held = chunk.min(len) as usize;
    let mut readers = Vec::with_capacity(columns.len());
    let mut tiles = Vec::with_capacity(columns.len());
    for column in columns {
        readers.push(column.reader(ascending(column.len(), chunk), 1)?);
        tiles.push(workspace.budget.vec(held, F::ZERO, "linear combination")?);
    }
    let mut sums = Vec::with_capacity(factors.len());
    for _ in factors {
        sums.push(workspace.budget.vec(held, F::ZERO, "linear combination")?);
    }
    for region in ascending(len, chunk) {
        let here = region.len() as usize;
        let mut present = vec![0usize; columns.len()];
        for ((reader, tile), present) in readers.iter_mut().zip(&mut tiles).zip(&mut present) {
            *present = reader.next_into(tile)?.map_or(0, |read| read.len() as usize);
        }
        for ((row, sum), draft) in factors.iter().zip(&mut sums).zip(&mut drafts) {
            let parts = tiles.iter().zip(&present);
            let terms: Vec<(F, &[F])> = row
                .iter()
                .zip(parts)
                .map(|(factor, (tile, present))| (*factor, &tile[..*present]))
                .collect();
            poly::linear_combination(&mut sum[..here], &terms);
            draft.write(region, &sum[..here])?;
        }
    }
    drafts.into_iter().map(Draft::finish).collect()
}
