//! Many columns, read at one pace from the top down, and linear combinations of them, chunk by chunk.
//!
//! Every column is read once. Columns are taken in batches: the batch's chunks are decoded side by side into
//! tiles, then added to all sums that want them; meanwhile the next chunk of every column is on its way. So
//! with many columns the disk is always busy, and one chunk of read-ahead a column is enough.
//!
//! Shapes: columns may differ in length; shorter ones count as padded with zeros. Memory:
//! [`Combinations::bytes_of`] = `columns * depth * chunk + tiles * chunk` scalars, whatever n; the sums
//! themselves are the caller's.

use std::collections::HashMap;

use crate::Result;
use crate::budget::{Lease, LeasedVec};
use crate::column::{Column, Element, Reader, Region, Workspace, descending};
use crate::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::add_linear_combination;

/// From so many columns on, one chunk of each on its way keeps the disk busy.
const COLUMNS_OF_DEPTH_1: usize = 4;
/// Columns that are decoded side by side, for each thread.
const TILES_PER_THREAD: usize = 2;

/// A running pass over several columns.
pub struct Combinations<'a, F: Copy> {
    columns: Vec<Source<'a, F>>,
    /// For each sum, its factors: (column, factor).
    sums: Vec<Vec<(usize, F)>>,
    tiles: LeasedVec<F>,
    chunk: usize,
    regions: Box<dyn Iterator<Item = Region> + Send>,
}

struct Source<'a, F> {
    column: &'a Column<F>,
    reader: Reader<F>,
    /// Elements of the current chunk.
    filled: usize,
}

/// Columns that differ, and where each of the given ones is among them.
pub fn distinct<'a, F: Element>(
    columns: impl IntoIterator<Item = &'a Column<F>>,
) -> (Vec<&'a Column<F>>, Vec<usize>) {
    let (mut found, mut place_of): (Vec<&'a Column<F>>, _) = (Vec::new(), HashMap::new());
    let mut places = Vec::new();
    for column in columns {
        let place = *place_of.entry(column.identity()).or_insert(found.len());
        if place == found.len() {
            found.push(column);
        }
        places.push(place);
    }
    (found, places)
}

fn tiles(columns: usize) -> usize {
    columns
        .min(TILES_PER_THREAD * rayon::current_num_threads())
        .max(1)
}

fn depth(columns: usize) -> usize {
    if columns < COLUMNS_OF_DEPTH_1 { 2 } else { 1 }
}

impl<'a, F: KernelField + Element> Combinations<'a, F> {
    /// Bytes that [`Self::new`] leases for columns with frames of so many bytes each.
    pub fn bytes_of(frame_bytes: impl ExactSizeIterator<Item = u64>, chunk: u64) -> u64 {
        let (columns, chunk_bytes) = (frame_bytes.len(), chunk * F::BYTES as u64);
        let readers: u64 = frame_bytes.map(|frame_bytes| chunk_bytes.max(frame_bytes)).sum();
        let page = 4096;
        readers * depth(columns) as u64 + (tiles(columns) as u64 * chunk_bytes).next_multiple_of(page)
    }

    /// What a dry run holds of a pass over distinct `columns`, all of which count as read.
    pub fn rehearse(workspace: &Workspace, columns: &[&Column<F>], chunk: u64) -> Result<Lease> {
        let depth = depth(columns.len()) as u64;
        let readers: u64 = columns
            .iter()
            .map(|column| column.reader_bytes(chunk, depth))
            .sum();
        columns.iter().for_each(|column| column.count_read());
        let tiles = tiles(columns.len()) as u64 * chunk * F::BYTES as u64;
        workspace.hold(readers + tiles, "tiles of many columns")
    }

    /// A pass, from the top down, over chunks of `chunk` (a power of two) of `len` elements; `columns` are
    /// distinct.
    pub fn new(
        workspace: &Workspace,
        columns: &[&'a Column<F>],
        sums: Vec<Vec<(usize, F)>>,
        len: u64,
        chunk: u64,
    ) -> Result<Self> {
        let depth = depth(columns.len());
        let columns: Vec<Source<'a, F>> = columns
            .iter()
            .map(|&column| {
                let reader = column.reader(descending(column.len(), chunk), depth)?;
                Ok(Source {
                    column,
                    reader,
                    filled: 0,
                })
            })
            .collect::<Result<_>>()?;
        let tiles = tiles(columns.len()) * chunk as usize;
        Ok(Self {
            tiles: workspace.budget.vec(tiles, F::ZERO, "tiles of many columns")?,
            columns,
            sums,
            chunk: chunk as usize,
            regions: Box::new(descending(len, chunk)),
        })
    }

    /// Ends the pass, wherever it is: when this returns, its leases are given back.
    pub fn abandon(self) {
        for source in self.columns {
            source.reader.abandon();
        }
    }

    /// Puts the next chunk of sum i at `i * chunk` of `out`; gives its region, `None` after the last.
    pub fn next_into(&mut self, out: &mut [F]) -> Result<Option<Region>> {
        let Some(region) = self.regions.next() else {
            return Ok(None);
        };
        let Region::Span { start, len } = region else {
            return Err(Invalid::NotASpan {
                region: format!("{region:?}"),
            }
            .into());
        };
        let (chunk, len) = (self.chunk, len as usize);
        for sum in out.chunks_mut(chunk).take(self.sums.len()) {
            sum[..len].fill(F::ZERO);
        }
        let tiles_at_once = self.tiles.len() / chunk;
        for (batch, sources) in self.columns.chunks_mut(tiles_at_once).enumerate() {
            sources
                .iter_mut()
                .zip(self.tiles.chunks_mut(chunk))
                .parallel()
                .try_for_each(|(source, tile)| source.fill(start, tile))?;
            let filled: Vec<usize> = sources.iter().map(|source| source.filled).collect();
            let (first, tiles) = (batch * tiles_at_once, &*self.tiles);
            out.chunks_mut(chunk)
                .zip(&self.sums)
                .parallel()
                .for_each(|(sum, factors)| {
                    let terms: Vec<(F, &[F])> = factors
                        .iter()
                        .filter_map(|&(column, factor)| {
                            let tile = column.checked_sub(first)?;
                            let filled = *filled.get(tile)?;
                            Some((factor, &tiles[tile * chunk..tile * chunk + filled]))
                        })
                        .collect();
                    add_linear_combination(&mut sum[..len], &terms);
                });
        }
        Ok(Some(region))
    }
}

impl<F: KernelField + Element> Source<'_, F> {
    /// Reads the chunk at `start`, as far as the column reaches.
    fn fill(&mut self, start: u64, tile: &mut [F]) -> Result<()> {
        self.filled = 0;
        if self.column.len() > start
            && let Some(read) = self.reader.next_into(tile)?
        {
            debug_assert!(matches!(read, Region::Span { start: at, .. } if at == start));
            self.filled = read.len() as usize;
        }
        Ok(())
    }
}
