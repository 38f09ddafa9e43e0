//! What is made of several columns, element by element.
//!
//! Memory: a tile of each column, its reader and a writer, in half of what the budget has left, of a mebibyte
//! each at most.

use std::ops::DerefMut;

use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{
    Column, Draft, Element, Placement, SCRATCH_FRAME_BYTES, SEQUENTIAL_BYTES, Writer, ascending,
};
use crate::dry::Work;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Makes one of the elements at each place of several slices of one length: what becomes of them is left in
/// the first.
pub type Combine<E> = dyn Fn(&mut [E], &[&[E]]) + Sync;

/// Elements that one thread combines at a time.
const JOB_ELEMENTS: usize = 1 << 12;
/// Reads of a column that are on their way.
const AHEAD: u64 = 2;

/// Combines tiles in memory.
pub(super) fn combine_tiles<E: Element>(tiles: &mut [impl DerefMut<Target = [E]>], combine: &Combine<E>) {
    let mut tiles = tiles.iter_mut().map(|tile| &mut **tile);
    let Some(first) = tiles.next() else {
        return;
    };
    let others: Vec<&[E]> = tiles.map(|tile| &*tile).collect();
    if others.is_empty() {
        return;
    }
    (first.chunks_mut(JOB_ELEMENTS).enumerate())
        .parallel()
        .for_each(|(job, first)| {
            let start = job * JOB_ELEMENTS;
            let end = start + first.len();
            let others: Vec<&[E]> = others.iter().map(|other| &other[start..end]).collect();
            combine(first, &others);
        });
}

/// Combines columns of one length over the disk.
///
/// # Errors
/// [`crate::Error::OverBudget`]; what reading and writing columns may give.
pub fn combine_columns<F: KernelField + Element>(
    columns: &[Column<F>],
    combine: &Combine<F>,
    placement: Placement,
) -> Result<Column<F>> {
    let [first, ..] = columns else {
        unreachable!("a column at least");
    };
    let (workspace, len) = (first.workspace(), first.len());
    let draft = Draft::scratch(workspace, "combination of transforms", len, placement)?;
    let chunk = chunk_within(columns);
    let mut writer = Writer::in_chunks(draft, chunk);
    if workspace.is_dry() {
        let tile_bytes = (chunk.min(len) * size_of::<F>() as u64).next_multiple_of(PAGE_BYTES as u64);
        let bytes = |column: &Column<F>| tile_bytes + column.reader_bytes(chunk, AHEAD);
        let held_bytes = columns.iter().map(bytes).sum();
        let _held = workspace.hold(held_bytes, "combination of transforms")?;
        columns.iter().for_each(|column| column.count_read());
        workspace.passed(1, Work::products(len as f64));
        return writer.finish();
    }
    let tile = |_: &_| {
        workspace
            .budget
            .vec(chunk.min(len) as usize, F::ZERO, "combination of transforms")
    };
    let mut tiles: Vec<_> = columns.iter().map(tile).collect::<Result<_>>()?;
    let reader = |column: &Column<F>| column.reader(ascending(len, chunk), AHEAD as usize);
    let mut readers: Vec<_> = columns.iter().map(reader).collect::<Result<_>>()?;
    for region in ascending(len, chunk) {
        let here = region.len() as usize;
        let mut parts = Vec::with_capacity(tiles.len());
        for (reader, tile) in readers.iter_mut().zip(&mut tiles) {
            reader.next_into(tile)?;
            parts.push(&mut tile[..here]);
        }
        combine_tiles(&mut parts, combine);
        writer.push(parts[0])?;
    }
    writer.finish()
}

/// Elements at a time.
fn chunk_within<E: Element>(columns: &[Column<E>]) -> u64 {
    let frame_elements = columns.iter().map(Column::frame_elements);
    let least = frame_elements.fold((SCRATCH_FRAME_BYTES / E::BYTES) as u64, u64::max);
    let available_bytes = columns[0].workspace().budget.available_bytes();
    let buffers = columns.len() as u64 * (1 + AHEAD) + 2;
    let share = available_bytes / 2 / buffers / E::BYTES as u64;
    let most = (SEQUENTIAL_BYTES / E::BYTES) as u64;
    1 << share.clamp(least, most.max(least)).ilog2()
}
