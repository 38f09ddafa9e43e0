//! Merging sorted runs of one column, on all cores.
//!
//! Algorithm: every run keeps one to two chunks of its values in memory. The smallest of the runs' last
//! values in memory is the *bound*: no value still on disk is below it, so whatever is in memory up to the
//! bound can go out. That part is cut at a few of its values into slices that are merged at the same time,
//! each by a heap of run heads, into their places of one tile (as in parallel multiway merges: Varman et al.,
//! *Merging multiple lists on hierarchical-memory multiprocessors*, 1991, with splitters in place of exact
//! ranks). Equal values are the same value, so ties do not matter.
//!
//! Shapes: `k` runs in chunks of `c` elements. Peak memory: `32 * c * k * MERGE_CHUNKS` bytes, leased; the
//! heap holds `O(k * threads)` heads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::integer::Integer;
use super::product::READER_BUFFERS;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Reader, Region, ascending};
use spillproof_engine::error::Invalid;
use spillproof_kernels::parallel::Parallel;

/// Chunks that a merge holds for each run: the reader's, two in memory, and two of the merged tile.
pub(super) const MERGE_CHUNKS: u64 = READER_BUFFERS + 4;

/// Below this many values for each, waking another core takes longer than merging.
const PART_ELEMENTS_MIN: usize = 4096;

/// One run on its way in.
struct Run<'a> {
    reader: Reader<Integer>,
    tile: &'a mut [Integer],
    /// What is in memory and not merged yet: `tile[start .. end]`.
    start: usize,
    end: usize,
    on_disk: u64,
}

impl Run<'_> {
    /// Reads a chunk if less than one is left.
    fn refill(&mut self, chunk: usize) -> Result<()> {
        if self.on_disk > 0 && self.end - self.start < chunk {
            self.tile.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if let Some(region) = self.reader.next_into(&mut self.tile[self.end..])? {
                self.end += region.len() as usize;
                self.on_disk -= region.len();
            }
        }
        Ok(())
    }

    fn in_memory(&self) -> &[Integer] {
        &self.tile[self.start..self.end]
    }
}

/// Merges the values of `together`, a span of `column` that consists of sorted runs of `run` values (the last
/// may be shorter), and gives them to `out` in ascending order, tile by tile. Runs are read in chunks of
/// `chunk`.
pub(super) fn merge(
    column: &Column<Integer>,
    together: Region,
    run: u64,
    chunk: u64,
    mut out: impl FnMut(&mut [Integer]) -> Result<()>,
) -> Result<()> {
    let Region::Span { start: first, .. } = together else {
        return Ok(());
    };
    let budget = &column.workspace().budget;
    let chunk_len = chunk.min(run) as usize;
    let count = together.len().div_ceil(run.max(1)) as usize;
    let mut tiles = budget.vec(2 * chunk_len * count, Integer::ZERO, "runs to be merged")?;
    let mut merged = budget.vec(2 * chunk_len * count, Integer::ZERO, "merged runs")?;
    let mut runs = Vec::with_capacity(count);
    for (span, tile) in ascending(together.len(), run).zip(tiles.chunks_mut(2 * chunk_len)) {
        runs.push(open(column, first, span, chunk_len as u64, tile)?);
    }
    loop {
        runs.iter_mut().try_for_each(|run| run.refill(chunk_len))?;
        let bound = runs
            .iter()
            .filter(|run| run.on_disk > 0)
            .filter_map(|run| run.in_memory().last())
            .min();
        let ready: Vec<&[Integer]> = runs.iter().map(|run| up_to(run.in_memory(), bound)).collect();
        let lengths: Vec<usize> = ready.iter().map(|slice| slice.len()).collect();
        let total = lengths.iter().sum();
        if total == 0 {
            return Ok(());
        }
        merge_slices(&ready, &mut merged[..total]);
        for (run, len) in runs.iter_mut().zip(lengths) {
            run.start += len;
        }
        out(&mut merged[..total])?;
    }
}

fn open<'a>(
    column: &Column<Integer>,
    first: u64,
    span: Region,
    chunk: u64,
    tile: &'a mut [Integer],
) -> Result<Run<'a>> {
    let Region::Span { start, len } = span else {
        return Err(Invalid::NotASpan {
            region: format!("{span:?}"),
        }
        .into());
    };
    let regions = ascending(len, chunk).map(move |region| match region {
        Region::Span { start: at, len } => Region::Span {
            start: first + start + at,
            len,
        },
        other => other,
    });
    Ok(Run {
        reader: column.reader(regions, READER_BUFFERS as usize)?,
        tile,
        start: 0,
        end: 0,
        on_disk: len,
    })
}

/// The values of a sorted slice that are at most `bound`; all, if there is none.
fn up_to<'a>(values: &'a [Integer], bound: Option<&Integer>) -> &'a [Integer] {
    match bound {
        Some(bound) => &values[..values.partition_point(|value| value <= bound)],
        None => values,
    }
}

/// Merges sorted slices into `out`, which is as long as all of them.
fn merge_slices(slices: &[&[Integer]], out: &mut [Integer]) {
    let parts = (out.len() / PART_ELEMENTS_MIN).clamp(1, 4 * rayon::current_num_threads());
    // The longest slice is a sample of all; a bad one costs time only.
    let sample = slices
        .iter()
        .copied()
        .max_by_key(|slice| slice.len())
        .unwrap_or(&[]);
    let mut rest: Vec<&[Integer]> = slices.to_vec();
    let mut rest_out = out;
    let mut jobs = Vec::with_capacity(parts);
    for part in 1..=parts {
        let splitter = sample.get(sample.len() * part / parts).filter(|_| part < parts);
        let mut pieces = Vec::with_capacity(rest.len());
        for slice in &mut rest {
            let piece = up_to(slice, splitter);
            *slice = &slice[piece.len()..];
            if !piece.is_empty() {
                pieces.push(piece);
            }
        }
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let (now, later) = rest_out.split_at_mut(len);
        rest_out = later;
        jobs.push((pieces, now));
    }
    jobs.into_iter()
        .parallel()
        .for_each(|(pieces, out)| merge_pieces(&pieces, out));
}

fn merge_pieces(pieces: &[&[Integer]], out: &mut [Integer]) {
    match pieces {
        [] => (),
        [piece] => out.copy_from_slice(piece),
        [left, right] => merge_two(left, right, out),
        _ => merge_many(pieces, out),
    }
}

fn merge_two(left: &[Integer], right: &[Integer], out: &mut [Integer]) {
    let (mut l, mut r) = (0, 0);
    for value in out {
        let take_left = r == right.len() || (l < left.len() && left[l] <= right[r]);
        *value = if take_left { left[l] } else { right[r] };
        l += usize::from(take_left);
        r += usize::from(!take_left);
    }
}

fn merge_many(pieces: &[&[Integer]], out: &mut [Integer]) {
    let mut heads: BinaryHeap<Reverse<(Integer, usize)>> = pieces
        .iter()
        .enumerate()
        .filter_map(|(i, piece)| piece.first().map(|head| Reverse((*head, i))))
        .collect();
    let mut next = vec![1; pieces.len()];
    for value in out {
        // There are as many heads to come as there are places: the loop ends before the heap is empty.
        let Some(mut head) = heads.peek_mut() else { return };
        let Reverse((smallest, from)) = *head;
        *value = smallest;
        match pieces[from].get(next[from]) {
            Some(following) => {
                *head = Reverse((*following, from));
                next[from] += 1;
            }
            None => {
                PeekMut::pop(head);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_merge_to_the_sorted_whole(runs in prop::collection::vec(prop::collection::vec(0..50u64, 0..6000), 1..6)) {
            let runs: Vec<Vec<Integer>> = runs.into_iter().map(|mut run| {
                run.sort_unstable();
                run.into_iter().map(|value| Integer([value % 2, 0, 0, value])).collect::<Vec<_>>()
            }).map(|mut run| { run.sort_unstable(); run }).collect();
            let mut wanted: Vec<Integer> = runs.concat();
            let mut out = vec![Integer::ZERO; wanted.len()];
            let slices: Vec<&[Integer]> = runs.iter().map(Vec::as_slice).collect();
            merge_slices(&slices, &mut out);
            wanted.sort_unstable();
            prop_assert_eq!(out, wanted);
        }
    }
}
