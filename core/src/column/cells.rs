//! Arrays of cells that are assigned in any order and have no addresses: copies, fixed cells and selectors of a circuit.
//!
//! A [`Cells`] reads as zeros until it is written. Blocks in use are in memory ([`cache`]). A block that leaves memory is a frame of a scratch
//! file: its digest is taken then, stays in memory, and is compared when the block comes back. So a disk that returns other bytes is an
//! error ([`crate::Error::Damaged`]), and a full one is an error as well.
//!
//! Shapes: cell i of an array is at byte `(i + shift) * E::BYTES` of its file, where the shift of array a of A is a/A of a block: so arrays
//! that are written side by side do not all need a new block in the same row. No cell is in two blocks. Memory: the share, which is leased
//! whole: the cache, two buffers for transfers and one of values, of an eighth of the share each and 1 MiB at most; besides, 36 bytes for each
//! block of 4 to 256 KiB.

mod cache;

use std::marker::PhantomData;
use std::ops::Range;

use super::frames::{DIGEST_BYTES, DryFile};
use super::{Element, Workspace};
use crate::Result;
use crate::budget::{Lease, LeasedVec, PAGE_BYTES};
use crate::error::Invalid;
use cache::{Cache, Cut};

/// Arrays of equal lengths, of zeros at first.
///
/// ```
/// use spillproof::budget::Budget;
/// use spillproof::column::{Cells, Workspace};
/// use spillproof::storage::Storage;
///
/// let storage = Storage::builder().dir(std::env::temp_dir()).build()?;
/// let workspace = Workspace::new(storage, Budget::new(1 << 20));
/// // 256 KiB of memory for two arrays of 800 KB.
/// let mut cells = Cells::<u64>::zeroed(&workspace, "cells", 256 << 10, (2, 100_000))?;
/// for i in 0..100_000 {
///     cells.set(0, i, i)?;
///     cells.set(1, i, i * i)?;
/// }
/// assert_eq!((cells.get(0, 5)?, cells.get(1, 99_999)?), (5, 99_999 * 99_999));
/// # Ok::<(), spillproof::Error>(())
/// ```
pub struct Cells<E: Element> {
    name: String,
    workspace: Workspace,
    arrays: usize,
    len: u64,
    cut: Cut,
    place: Place<E>,
}

enum Place<E: Element> {
    Cache {
        cache: Box<Cache>,
        /// Cells that are handed on.
        tile: LeasedVec<E>,
    },
    /// Nowhere: the leases of a cache, and its files.
    Dry {
        share: Lease,
        _places: Vec<Lease>,
        /// Of each array its digests and its file, until it is removed.
        files: Vec<Option<(Lease, DryFile)>>,
        element: PhantomData<E>,
    },
}

impl<E: Element> Cells<E> {
    /// Cells in a block, as a power of two.
    fn log_block(&self) -> u32 {
        (self.cut.block_bytes / E::BYTES).ilog2()
    }

    /// The share of memory that is right where nothing else is known: a sixteenth of what the budget has left, at least what
    /// [`Self::zeroed`] asks for, and at most 2 MiB an array.
    pub fn default_share_bytes(workspace: &Workspace, arrays: usize) -> u64 {
        let least = Cut::share_bytes_min(arrays);
        let most = ((arrays as u64) << 21).max(least);
        (workspace.budget.available_bytes() / 16).clamp(least, most)
    }

    /// `arrays` arrays of `len` cells in `share_bytes` of memory, less if they need less. Takes no room on disk yet.
    ///
    /// # Errors
    /// [`crate::Error::BudgetTooSmall`] for a share that is too small, [`crate::Error::OverBudget`], [`crate::Error::File`],
    /// [`crate::Error::Memory`].
    pub fn zeroed(
        workspace: &Workspace,
        what: &str,
        share_bytes: u64,
        (arrays, len): (usize, u64),
    ) -> Result<Self> {
        const { assert!(E::BYTES.is_power_of_two() && E::BYTES <= PAGE_BYTES) };
        let bytes = len.saturating_mul(E::BYTES as u64);
        let cut = Cut::of(what, share_bytes, arrays, bytes)?;
        let block_cells = (cut.block_bytes / E::BYTES) as u64;
        let shift = |array: usize| block_cells * array as u64 / arrays as u64;
        let blocks = |array: usize| shift(array).saturating_add(len).div_ceil(block_cells);
        let place = match workspace.dry_run() {
            None => Place::Cache {
                cache: Box::new(Cache::new(workspace, what, cut, (0..arrays).map(blocks))?),
                tile: (workspace.budget).vec(cut.stretch_bytes / E::BYTES, zero::<E>(), what.to_owned())?,
            },
            Some(dry_run) => Place::Dry {
                share: workspace.budget.lease_map(cut.share_bytes(), what.to_owned())?,
                _places: (0..arrays)
                    .map(|array| workspace.hold(blocks(array) * size_of::<u32>() as u64, cache::PLACES))
                    .collect::<Result<_>>()?,
                files: (0..arrays)
                    .map(|array| {
                        let digests = workspace.hold(blocks(array) * DIGEST_BYTES as u64, "frame digests")?;
                        let file = DryFile::new(dry_run, blocks(array) * cut.block_bytes as u64);
                        Ok(Some((digests, file)))
                    })
                    .collect::<Result<_>>()?,
                element: PhantomData,
            },
        };
        Ok(Self {
            name: what.to_owned(),
            workspace: workspace.clone(),
            arrays,
            len,
            cut,
            place,
        })
    }

    /// Cells of each array.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the arrays have no cells.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of arrays.
    pub fn arrays(&self) -> usize {
        self.arrays
    }

    /// The value of a cell.
    ///
    /// # Errors
    /// [`Invalid::Index`] for an array, [`Invalid::OutOfRange`] for a cell that there is not; [`crate::Error::Damaged`],
    /// [`crate::Error::Io`], also from an earlier write.
    #[inline]
    pub fn get(&mut self, array: usize, index: u64) -> Result<E> {
        let (block, offset) = self.find(array, index)?;
        let bytes = self.cache()?.block(array, block)?;
        Ok(E::decode(&bytes[offset..offset + E::BYTES]))
    }

    /// Writes a cell.
    ///
    /// # Errors
    /// As [`Self::get`].
    #[inline]
    pub fn set(&mut self, array: usize, index: u64, value: E) -> Result<()> {
        let (block, offset) = self.find(array, index)?;
        let bytes = self.cache()?.block_mut(array, block)?;
        value.encode(&mut bytes[offset..offset + E::BYTES]);
        Ok(())
    }

    /// Sets all cells of `range` of an array to `value`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn fill(&mut self, array: usize, range: Range<u64>, value: E) -> Result<()> {
        self.check(array, &range)?;
        let mut index = range.start;
        while index < range.end {
            let (block, offset) = self.find(array, index)?;
            let bytes = self.cache()?.block_mut(array, block)?;
            let left = usize::try_from(range.end - index).unwrap_or(usize::MAX);
            let cells = bytes[offset..].chunks_exact_mut(E::BYTES).take(left);
            index += cells.len() as u64;
            cells.for_each(|cell| value.encode(cell));
        }
        Ok(())
    }

    /// Hands all cells of `range` of an array to `each`, in order, a stretch at a time with the index of its first. What is on disk is read
    /// ahead, and does not enter the cache.
    ///
    /// # Errors
    /// As [`Self::get`]; the first error of `each`.
    pub fn read(
        &mut self,
        array: usize,
        range: Range<u64>,
        mut each: impl FnMut(u64, &[E]) -> Result<()>,
    ) -> Result<()> {
        self.check(array, &range)?;
        let (shift, log_block) = (self.shift(array), self.log_block());
        let cells = range.start + shift..range.end + shift;
        let zero = zero::<E>();
        match &mut self.place {
            _ if range.is_empty() => Ok(()),
            Place::Dry { .. } => {
                self.count_read(range.end - range.start);
                Ok(())
            }
            Place::Cache { cache, tile } => {
                let first = (cells.start >> log_block) as usize;
                let end = cells.end.div_ceil(1 << log_block) as usize;
                cache.read(array, first..end, |now, blocks| {
                    for (bytes, tile) in blocks.zip(tile.chunks_mut(1 << log_block)) {
                        match bytes {
                            None => tile.fill(zero),
                            Some(bytes) => (tile.iter_mut().zip(bytes.chunks_exact(E::BYTES)))
                                .for_each(|(cell, bytes)| *cell = E::decode(bytes)),
                        }
                    }
                    let start = (now.start as u64) << log_block;
                    let first = start.max(cells.start);
                    let end = ((now.end as u64) << log_block).min(cells.end);
                    each(
                        first - shift,
                        &tile[(first - start) as usize..(end - start) as usize],
                    )
                })
            }
        }
    }

    /// Writes an array out and takes it from the cache.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn release(&mut self, array: usize) -> Result<()> {
        match &mut self.place {
            Place::Cache { cache, .. } => cache.release(array),
            Place::Dry { .. } => Ok(()),
        }
    }

    /// Drops the file of an array that is not used any more.
    pub fn remove(&mut self, array: usize) {
        match &mut self.place {
            Place::Cache { cache, .. } => cache.remove(array),
            Place::Dry { files, .. } => {
                if let Some(file) = files.get_mut(array) {
                    *file = None;
                }
            }
        }
    }

    /// Gives back all of the share but `share_bytes`, once most of the work is done; no effect if it is that small already.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn shrink_to(&mut self, share_bytes: u64) -> Result<()> {
        if !self.cut.shrink_to(share_bytes, self.arrays) {
            return Ok(());
        }
        match &mut self.place {
            Place::Cache { cache, .. } => cache.shrink_to(self.cut.slots),
            Place::Dry { share, .. } => {
                share.shrink_to(self.cut.share_bytes());
                Ok(())
            }
        }
    }

    /// What it may keep in memory.
    pub fn share_bytes(&self) -> u64 {
        self.cut.share_bytes()
    }

    /// Bytes of cells that it may keep in memory.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cut.cache_bytes() as u64
    }

    /// Bytes that come and go together.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.cut.block_bytes as u64
    }

    /// In a dry run: all cells of all arrays are written once, side by side. Which bytes a real run moves depends on which cells a circuit
    /// assigns, and in which order. No effect in a real run.
    pub(crate) fn assume_written(&self) {
        if let Some(dry_run) = self.workspace.dry_run() {
            // Blocks go out together with their neighbours, of which some stay in the cache.
            let written_bytes = self
                .stored_bytes(self.len)
                .next_multiple_of(self.cut.stretch_bytes as u64);
            let array_bytes = self.len.saturating_mul(E::BYTES as u64);
            dry_run.moved(0, written_bytes.min(array_bytes) * self.arrays as u64);
        }
    }

    /// Of `cells` cells of an array, the bytes that are on disk only once all arrays were written side by side.
    fn stored_bytes(&self, cells: u64) -> u64 {
        let array_bytes = self.len.saturating_mul(E::BYTES as u64).max(1);
        let cached_bytes = (self.cut.cache_bytes() / self.arrays.max(1)) as u64;
        let stored_bytes = u128::from(array_bytes.saturating_sub(cached_bytes));
        (stored_bytes * u128::from(cells * E::BYTES as u64) / u128::from(array_bytes)) as u64
    }

    /// In a dry run: so many cells of an array are read.
    fn count_read(&self, cells: u64) {
        if let Some(dry_run) = self.workspace.dry_run() {
            dry_run.moved(self.stored_bytes(cells), 0);
        }
    }

    /// Cells before the first of an array.
    #[inline]
    fn shift(&self, array: usize) -> u64 {
        ((array as u64) << self.log_block()) / self.arrays as u64
    }

    /// The block of a cell, and where it begins there.
    #[inline]
    fn find(&self, array: usize, index: u64) -> Result<(usize, usize)> {
        if array >= self.arrays || index >= self.len {
            self.check(array, &(index..index.saturating_add(1)))?;
        }
        let (at, log_block) = (index + self.shift(array), self.log_block());
        let within = at & ((1 << log_block) - 1);
        Ok(((at >> log_block) as usize, within as usize * E::BYTES))
    }

    fn check(&self, array: usize, range: &Range<u64>) -> Result<()> {
        Invalid::unless_below("array of cells", array as u64, self.arrays as u64)?;
        if range.start <= range.end && range.end <= self.len {
            return Ok(());
        }
        Err(Invalid::OutOfRange {
            what: self.name.clone(),
            start: range.start,
            end: range.end,
            len: self.len,
        }
        .into())
    }

    #[inline]
    fn cache(&mut self) -> Result<&mut Cache> {
        match &mut self.place {
            Place::Cache { cache, .. } => Ok(cache),
            Place::Dry { .. } => Err(Invalid::DryRun {
                column: self.name.clone(),
            }
            .into()),
        }
    }
}

/// The value of zero bytes.
fn zero<E: Element>() -> E {
    E::decode(&vec![0; E::BYTES])
}

impl<E: Element> std::fmt::Debug for Cells<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cells")
            .field("name", &self.name)
            .field("arrays", &self.arrays)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
