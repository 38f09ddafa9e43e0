//! Arrays of cells that are assigned in any order and have no addresses: copies, fixed cells and selectors of
//! a circuit.
//!
//! A [`Cells`] reads as zeros until it is written. Blocks in use are in memory ([`cache`]). A block that
//! leaves memory is a frame of a scratch file: its digest is taken then, stays in memory, and is compared
//! when the block comes back. So a disk that returns other bytes is an error ([`crate::Error::Damaged`]), and
//! a full one is an error as well.
//!
//! Shapes: cell i of an array is at byte `(i + shift) * E::BYTES` of its file, where the shift of array a of
//! A is a/A of a block: so arrays that are written side by side do not all need a new block in the same row.
//! No cell is in two blocks. Memory: the share, which is leased whole: the cache, two buffers for transfers
//! and one of values, of an eighth of the share each and 1 MiB at most; besides, 36 bytes for each block of 4
//! to 256 KiB.

pub(super) mod cache;

use std::ops::Range;
use std::sync::Arc;

use super::frames::DryFile;
use super::tag::DIGEST_BYTES;
use super::{Element, Workspace};
use crate::Result;
use crate::budget::{Lease, LeasedVec, PAGE_BYTES};
use crate::dry::DryRun;
use crate::error::Invalid;
use cache::{Cache, Cut, Memory, Slots};
use spillproof_kernels::parallel::Parallel;

/// Cells that a thread decodes at a time.
const JOB_CELLS: usize = 1024;

/// Arrays of equal lengths, of zeros at first.
///
/// ```
/// use spillproof_engine::budget::Budget;
/// use spillproof_engine::column::{Cells, Workspace};
/// use spillproof_engine::storage::Storage;
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
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
pub struct Cells<E: Element> {
    layout: Layout,
    place: Place<E>,
}

enum Place<E: Element> {
    Cache {
        cache: Box<Cache<Slots>>,
        /// Cells that are handed on.
        tile: LeasedVec<E>,
    },
    Dry(DryCells),
}

/// Shapes of arrays of cells.
pub(super) struct Layout {
    pub name: String,
    pub workspace: Workspace,
    pub arrays: usize,
    pub len: u64,
    pub cut: Cut,
    cell_bytes: usize,
    /// Cells in a block.
    pub block_cells: u64,
    /// Blocks of all arrays.
    all_blocks: u64,
    /// log2 of that, where it is a power of two.
    log_block: Option<u32>,
}

/// The leases and the files of a dry run.
pub(super) struct DryCells {
    share: Lease,
    /// What of the share is not for blocks.
    beside_bytes: u64,
    _places: Vec<Lease>,
    /// Of each array its digests and its file, until it is removed.
    files: Vec<Option<(Lease, DryFile)>>,
    /// Whether cells count as written.
    is_written: bool,
}

impl<E: Element> Cells<E> {
    /// The share of memory that is right where nothing else is known: a sixteenth of what the budget has
    /// left, at least what [`Self::zeroed`] asks for, and at most 2 MiB an array.
    pub fn default_share_bytes(workspace: &Workspace, arrays: usize) -> u64 {
        share_bytes_within(workspace.budget.available_bytes() / 16, arrays)
    }

    /// `arrays` arrays of `len` cells in `share_bytes` of memory, less if they need less. Takes no room on
    /// disk yet.
    ///
    /// # Errors
    /// [`crate::Error::BudgetTooSmall`] for a share that is too small, [`crate::Error::OverBudget`],
    /// [`crate::Error::File`], [`crate::Error::Memory`].
    pub fn zeroed(
        workspace: &Workspace,
        what: &str,
        share_bytes: u64,
        (arrays, len): (usize, u64),
    ) -> Result<Self> {
        const { assert!(E::BYTES.is_power_of_two() && E::BYTES <= PAGE_BYTES) };
        let layout = Layout::new(workspace, what, share_bytes, (arrays, len, E::BYTES))?;
        let place = match workspace.dry_run() {
            None => {
                let slots = Slots::new(workspace, what, &layout.cut)?;
                Place::Cache {
                    cache: Box::new(layout.cache(slots)?),
                    tile: layout.tile(zero::<E>())?,
                }
            }
            Some(dry_run) => Place::Dry(DryCells::new(&layout, dry_run, 0)?),
        };
        Ok(Self { layout, place })
    }

    /// Cells of each array.
    pub fn len(&self) -> u64 {
        self.layout.len
    }

    /// Whether the arrays have no cells.
    pub fn is_empty(&self) -> bool {
        self.layout.len == 0
    }

    /// Number of arrays.
    pub fn arrays(&self) -> usize {
        self.layout.arrays
    }

    /// The value of a cell.
    ///
    /// # Errors
    /// [`Invalid::Index`] for an array, [`Invalid::OutOfRange`] for a cell that there is not;
    /// [`crate::Error::Damaged`], [`crate::Error::Io`], also from an earlier write.
    #[inline]
    pub fn get(&mut self, array: usize, index: u64) -> Result<E> {
        let (block, offset) = self.layout.find(array, index)?;
        let bytes = self.cache()?.block(array, block)?;
        Ok(E::decode(&bytes[offset..offset + E::BYTES]))
    }

    /// Writes a cell.
    ///
    /// # Errors
    /// As [`Self::get`].
    #[inline]
    pub fn set(&mut self, array: usize, index: u64, value: E) -> Result<()> {
        let (block, offset) = self.layout.find(array, index)?;
        let bytes = self.cache()?.block_mut(array, block)?;
        value.encode(&mut bytes[offset..offset + E::BYTES]);
        Ok(())
    }

    /// Sets all cells of `range` of an array to `value`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn fill(&mut self, array: usize, range: Range<u64>, value: E) -> Result<()> {
        self.layout.check(array, &range)?;
        let mut index = range.start;
        while index < range.end {
            let (block, offset) = self.layout.find(array, index)?;
            let bytes = self.cache()?.block_mut(array, block)?;
            let left = usize::try_from(range.end - index).unwrap_or(usize::MAX);
            let cells = bytes[offset..].chunks_exact_mut(E::BYTES).take(left);
            index += cells.len() as u64;
            cells.for_each(|cell| value.encode(cell));
        }
        Ok(())
    }

    /// Hands all cells of `range` of an array to `each`, in order, a stretch at a time with the index of its
    /// first. What is on disk is read ahead, and does not enter the cache.
    ///
    /// # Errors
    /// As [`Self::get`]; the first error of `each`.
    pub fn read(
        &mut self,
        array: usize,
        range: Range<u64>,
        mut each: impl FnMut(u64, &[E]) -> Result<()>,
    ) -> Result<()> {
        self.layout.check(array, &range)?;
        match &mut self.place {
            Place::Dry(_) => {
                self.layout.count_read(array, range.end - range.start);
                Ok(())
            }
            Place::Cache { cache, tile } => {
                let cells = CellBytes {
                    decode: E::decode,
                    zero: zero::<E>(),
                };
                self.layout
                    .read(cache, cells, tile, (array, None, range), &mut each)
            }
        }
    }

    /// Writes an array out and takes it from the cache.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn release(&mut self, array: usize) -> Result<()> {
        match &mut self.place {
            Place::Cache { cache, .. } => {
                self.layout.check(array, &(0..0))?;
                cache.release(array)
            }
            Place::Dry(_) => Ok(()),
        }
    }

    /// Drops the file of an array that is not used any more.
    pub fn remove(&mut self, array: usize) {
        match &mut self.place {
            Place::Cache { cache, .. } => cache.remove(array),
            Place::Dry(dry) => dry.remove_file(array),
        }
    }

    /// Gives back all of the share but `share_bytes`, once most of the work is done; no effect if it is that
    /// small already.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn shrink_to(&mut self, share_bytes: u64) -> Result<()> {
        match &mut self.place {
            Place::Cache { cache, .. } => match self.layout.shrink_to(share_bytes) {
                Some(slots) => cache.shrink_to(slots),
                None => Ok(()),
            },
            Place::Dry(dry) => {
                dry.shrink_to(&mut self.layout, share_bytes);
                Ok(())
            }
        }
    }

    /// What it may keep in memory.
    pub fn share_bytes(&self) -> u64 {
        self.layout.cut.share_bytes()
    }

    /// Bytes of cells that it may keep in memory.
    pub fn cached_bytes(&self) -> u64 {
        self.layout.cut.cache_bytes() as u64
    }

    /// Bytes of all blocks of an array.
    pub fn array_bytes(&self, array: usize) -> u64 {
        self.layout.blocks(array) * self.block_bytes()
    }

    /// Bytes that come and go together.
    pub fn block_bytes(&self) -> u64 {
        self.layout.cut.block_bytes as u64
    }

    /// In a dry run: all cells of all arrays are written once, side by side. Which bytes a real run moves
    /// depends on which cells a circuit assigns, and in which order. No effect in a real run.
    pub fn assume_written(&mut self) {
        if let Place::Dry(dry) = &mut self.place {
            dry.assume_written(&self.layout);
        }
    }

    #[inline]
    fn cache(&mut self) -> Result<&mut Cache<Slots>> {
        match &mut self.place {
            Place::Cache { cache, .. } => Ok(cache),
            Place::Dry(_) => Err(self.layout.dry_error()),
        }
    }
}

/// A share for so many arrays: `wanted_bytes`, at least what they need, and at most 2 MiB each.
pub(super) fn share_bytes_within(wanted_bytes: u64, arrays: usize) -> u64 {
    let least = Cut::share_bytes_min(arrays);
    wanted_bytes.clamp(least, ((arrays as u64) << 21).max(least))
}

/// How bytes become cells.
pub(super) struct CellBytes<T> {
    pub decode: fn(&[u8]) -> T,
    /// The value of zero bytes.
    pub zero: T,
}

impl Layout {
    pub fn new(
        workspace: &Workspace,
        what: &str,
        share_bytes: u64,
        (arrays, len, cell_bytes): (usize, u64, usize),
    ) -> Result<Self> {
        let cut = Cut::of(what, share_bytes, arrays, (len, cell_bytes))?;
        let block_cells = (cut.block_bytes / cell_bytes) as u64;
        let mut layout = Self {
            name: what.to_owned(),
            workspace: workspace.clone(),
            arrays,
            len,
            cut,
            cell_bytes,
            block_cells,
            all_blocks: 0,
            log_block: block_cells.is_power_of_two().then(|| block_cells.ilog2()),
        };
        layout.all_blocks = (0..arrays).map(|array| layout.blocks(array)).sum();
        Ok(layout)
    }

    /// An empty cache.
    pub fn cache<M: Memory>(&self, memory: M) -> Result<Cache<M>> {
        let blocks = (0..self.arrays).map(|array| self.blocks(array));
        Cache::new(&self.workspace, &self.name, (self.cut, memory), blocks)
    }

    /// Room for the cells of a stretch.
    pub fn tile<T: Copy + Send + Sync>(&self, fill: T) -> Result<LeasedVec<T>> {
        let cells = self.cut.stretch_bytes / self.cut.block_bytes * self.block_cells as usize;
        (self.workspace.budget).vec(cells, fill, self.name.clone())
    }

    /// Cells before the first of an array.
    #[inline]
    fn shift(&self, array: usize) -> u64 {
        self.block_cells * array as u64 / self.arrays as u64
    }

    /// Blocks of an array.
    pub fn blocks(&self, array: usize) -> u64 {
        (self.shift(array).saturating_add(self.len)).div_ceil(self.block_cells)
    }

    /// Whether all blocks fit into the share.
    pub fn is_whole(&self) -> bool {
        self.cut.slots as u64 >= self.all_blocks
    }

    /// The block of a cell, and where it begins there.
    #[inline]
    pub fn find(&self, array: usize, index: u64) -> Result<(usize, usize)> {
        if array >= self.arrays || index >= self.len {
            self.check(array, &(index..index.saturating_add(1)))?;
        }
        let at = index + self.shift(array);
        let (block, within) = match self.log_block {
            Some(log_block) => (at >> log_block, at & ((1 << log_block) - 1)),
            None => (at / self.block_cells, at % self.block_cells),
        };
        Ok((block as usize, within as usize * self.cell_bytes))
    }

    /// The cells of a block.
    pub fn cells_of(&self, array: usize, block: usize) -> Range<u64> {
        let cell = |block: usize| {
            (block as u64 * self.block_cells)
                .saturating_sub(self.shift(array))
                .min(self.len)
        };
        cell(block)..cell(block + 1)
    }

    /// The blocks of cells.
    fn blocks_of(&self, array: usize, cells: &Range<u64>) -> Range<usize> {
        let at = |cell: u64| cell + self.shift(array);
        (at(cells.start) / self.block_cells) as usize..at(cells.end).div_ceil(self.block_cells) as usize
    }

    pub fn check(&self, array: usize, range: &Range<u64>) -> Result<()> {
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

    /// Hands cells of an array to `each`, a tile at a time; `then` is the array that is read next, if that is known.
    pub fn read<T: Copy + Send + Sync, M: Memory>(
        &self,
        cache: &mut Cache<M>,
        CellBytes { decode, zero }: CellBytes<T>,
        tile: &mut [T],
        (array, then, range): (usize, Option<usize>, Range<u64>),
        each: &mut dyn FnMut(u64, &[T]) -> Result<()>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (block_cells, shift) = (self.block_cells, self.shift(array));
        let cells = range.start + shift..range.end + shift;
        let then = then.map(|then| (then, self.blocks_of(then, &range)));
        cache.read((array, self.blocks_of(array, &range)), then, |now, blocks| {
            let mut jobs = Vec::new();
            for (bytes, tile) in blocks.zip(tile.chunks_mut(block_cells as usize)) {
                let bytes = bytes.unwrap_or_default().chunks(JOB_CELLS * self.cell_bytes);
                // A block that was never written has no bytes.
                let bytes = bytes.map(Some).chain(std::iter::repeat(None));
                jobs.extend(tile.chunks_mut(JOB_CELLS).zip(bytes));
            }
            jobs.into_iter().parallel().for_each(|(tile, bytes)| match bytes {
                None => tile.fill(zero),
                Some(bytes) => (tile.iter_mut().zip(bytes.chunks_exact(self.cell_bytes)))
                    .for_each(|(cell, bytes)| *cell = decode(bytes)),
            });
            let start = now.start as u64 * block_cells;
            let first = start.max(cells.start);
            let end = (now.end as u64 * block_cells).min(cells.end);
            let tile = &tile[(first - start) as usize..(end - start) as usize];
            each(first - shift, tile)
        })
    }

    /// Cuts a smaller share; the number of slots, if there are fewer.
    pub fn shrink_to(&mut self, share_bytes: u64) -> Option<usize> {
        self.cut.shrink_to(share_bytes, self.arrays)
    }

    /// Of an array, the blocks that are on disk only once all arrays were written side by side: blocks leave
    /// in the order in which they came.
    fn stored_blocks(&self, array: usize) -> u64 {
        let stored = self.all_blocks.saturating_sub(self.cut.slots as u64);
        let arrays = self.arrays as u64;
        ((stored + arrays - 1 - array as u64) / arrays).min(self.blocks(array))
    }

    /// The blocks of an array that are in memory then.
    pub fn cached_blocks(&self, array: usize) -> u64 {
        self.blocks(array) - self.stored_blocks(array)
    }

    /// The bytes that were written then.
    fn written_bytes(&self) -> u64 {
        let blocks = (0..self.arrays).map(|array| self.stored_blocks(array));
        blocks.sum::<u64>() * self.cut.block_bytes as u64
    }

    /// In a dry run: so many cells of an array are read.
    pub fn count_read(&self, array: usize, cells: u64) {
        if let Some(dry_run) = self.workspace.dry_run() {
            let stored_bytes = u128::from(self.stored_blocks(array) * self.cut.block_bytes as u64);
            let read_bytes = stored_bytes * u128::from(cells) / u128::from(self.len.max(1));
            dry_run.moved(read_bytes as u64, 0);
        }
    }

    pub fn dry_error(&self) -> crate::Error {
        Invalid::DryRun {
            column: self.name.clone(),
        }
        .into()
    }
}

impl DryCells {
    /// With `more_bytes` beside the share.
    pub fn new(layout: &Layout, dry_run: &Arc<DryRun>, more_bytes: u64) -> Result<Self> {
        let workspace = &layout.workspace;
        let share_bytes = layout.cut.share_bytes() + more_bytes;
        let beside_bytes = share_bytes - layout.cut.cache_bytes() as u64;
        let blocks = || (0..layout.arrays).map(|array| layout.blocks(array));
        Ok(Self {
            share: (workspace.budget).lease_map(share_bytes, layout.name.clone())?,
            beside_bytes,
            _places: blocks()
                .map(|blocks| workspace.hold(blocks * size_of::<u32>() as u64, cache::PLACES))
                .collect::<Result<_>>()?,
            files: blocks()
                .map(|blocks| {
                    let digests = workspace.hold(blocks * DIGEST_BYTES as u64, "frame digests")?;
                    Ok(Some((digests, DryFile::new(dry_run, 0))))
                })
                .collect::<Result<_>>()?,
            is_written: false,
        })
    }

    pub fn assume_written(&mut self, layout: &Layout) {
        self.is_written = true;
        self.count_written(layout, 0);
    }

    /// All cells were written, `before_bytes` of them to the disk before.
    fn count_written(&mut self, layout: &Layout, before_bytes: u64) {
        if let Some(dry_run) = layout.workspace.dry_run() {
            dry_run.moved(0, layout.written_bytes().saturating_sub(before_bytes));
            for (array, file) in self.files.iter_mut().enumerate() {
                if let Some((_, file)) = file {
                    file.grow_to(layout.stored_blocks(array) * layout.cut.block_bytes as u64);
                }
            }
        }
    }

    fn remove_file(&mut self, array: usize) {
        if let Some(file) = self.files.get_mut(array) {
            *file = None;
        }
    }

    /// Drops an array, and gives back what the blocks of the others do not take.
    pub fn remove(&mut self, layout: &Layout, array: usize) {
        self.remove_file(array);
        let others = (self.files.iter().enumerate()).filter(|(_, file)| file.is_some());
        let blocks: u64 = others.map(|(array, _)| layout.cached_blocks(array)).sum();
        let kept_bytes = self.beside_bytes + blocks * layout.cut.block_bytes as u64;
        self.share.shrink_to(kept_bytes.min(self.share.bytes()));
    }

    pub fn shrink_to(&mut self, layout: &mut Layout, share_bytes: u64) {
        let (before_bytes, cached_bytes) = (layout.written_bytes(), layout.cut.cache_bytes());
        if layout.shrink_to(share_bytes).is_some() {
            let freed_bytes = (cached_bytes - layout.cut.cache_bytes()) as u64;
            self.share.shrink_to(self.share.bytes() - freed_bytes);
            if self.is_written {
                self.count_written(layout, before_bytes);
            }
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
            .field("name", &self.layout.name)
            .field("arrays", &self.layout.arrays)
            .field("len", &self.layout.len)
            .finish_non_exhaustive()
    }
}
