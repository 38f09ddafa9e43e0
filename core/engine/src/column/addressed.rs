//! Arrays of cells that are assigned in any order, and whose addresses are given out: the advice of a
//! circuit.
//!
//! The address of a cell is the same for the life of its [`Addressed`], and any thread can read the value
//! there at any time. Blocks in use are in memory, under the cache of [`super::cells`], in a [`Region`] of
//! addresses. A block that leaves memory is a frame with a digest. A thread that touches such a block waits
//! until it is read back and checked ([`Pager`]). If the disk fails then, or returns other bytes, there is no
//! call that could return an error: the process prints the error and aborts. (All other calls return errors.)
//!
//! Where the system does not let a program fill its own pages, cells that all fit into the share stay in
//! memory. Others are in mapped files ([`Mapped`]), whose bytes have no digests, and are not encrypted.
//!
//! Shapes: `block_bytes / size_of::<T>()` cells in a block; no cell is in two. Memory: as [`super::Cells`],
//! and a block of zeros.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::cells::cache::{Cache, Cut, Memory};
use super::cells::{CellBytes, DryCells, Layout, share_bytes_within};
use super::mapped::{Cell, Mapped};
use super::{Residency, Workspace};
use crate::Error;
use crate::Result;
use crate::budget::{Buffer, Lease, LeasedVec, PAGE_BYTES};
use crate::error::Invalid;
use crate::storage::Region;

/// Arrays of equal lengths, of zeros at first, whose cells have addresses.
///
/// ```
/// use spillproof_engine::budget::Budget;
/// use spillproof_engine::column::{Addressed, Workspace};
/// use spillproof_engine::storage::Storage;
///
/// let storage = Storage::builder().dir(std::env::temp_dir()).build()?;
/// let workspace = Workspace::new(storage, Budget::new(1 << 20));
/// // 256 KiB of memory for two arrays of 800 KB.
/// let mut cells = Addressed::<u64>::zeroed(&workspace, "cells", 256 << 10, (2, 100_000))?;
/// let first = cells.set(0, 0, 7)?;
/// for i in 1..100_000 {
///     cells.set(0, i, i)?;
///     cells.set(1, i, i * i)?;
/// }
/// // SAFETY: `cells` lives, and does not write the cell now.
/// assert_eq!(unsafe { first.read() }, 7);
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
pub struct Addressed<T: Cell> {
    arrays: usize,
    len: u64,
    place: Place<T>,
}

enum Place<T: Cell> {
    Paged(Paged<T>),
    Mapped { maps: Vec<Mapped<T>>, share: Residency },
    Dry { layout: Layout, cells: DryCells },
}

/// Cells in a region.
struct Paged<T: Cell> {
    layout: Layout,
    pager: Pager,
    /// Of each array.
    hot: Vec<Hot<T>>,
    /// Cells that are handed on.
    tile: LeasedVec<T>,
}

/// Cells that may be written without asking: those of the block of an array that was written last.
struct Hot<T> {
    first: u64,
    len: u64,
    start: *mut T,
}

// SAFETY: the cells of a region that an `Addressed` owns, as a `Vec<T>` would.
unsafe impl<T: Cell> Send for Hot<T> {}
// SAFETY: shared access reads no cell.
unsafe impl<T: Cell> Sync for Hot<T> {}

impl<T> Hot<T> {
    fn none() -> Self {
        Self {
            first: 0,
            len: 0,
            start: std::ptr::null_mut(),
        }
    }
}

/// The pages of a region, under a cache.
struct InPlace {
    region: Arc<Region>,
    /// Of each array.
    first_blocks: Vec<usize>,
    block_bytes: usize,
    share: Lease,
    zeros: Buffer,
}

impl InPlace {
    fn offset(&self, (array, block): (usize, usize)) -> usize {
        (self.first_blocks[array] + block) * self.block_bytes
    }
}

impl Memory for InPlace {
    fn bytes(&self, _: usize, block: (usize, usize)) -> &[u8] {
        let start = self.region.start().as_ptr().wrapping_add(self.offset(block));
        // SAFETY: a block of the region that is in the cache, which only this value takes out; the cache asks
        // for no block that is written without asking, and `Addressed` writes no other.
        unsafe { std::slice::from_raw_parts(start, self.block_bytes) }
    }

    fn enter(&mut self, _: usize, block: (usize, usize), bytes: Option<&[u8]>) -> Result<()> {
        self.region
            .place(self.offset(block), bytes.unwrap_or(&self.zeros))
    }

    fn leave(&mut self, block: (usize, usize)) {
        let start = self.offset(block);
        self.region.forget(start..start + self.block_bytes);
    }

    fn change_slot(&mut self, _: usize, _: usize) {}

    fn shrink_to(&mut self, slots: usize) {
        self.share.shrink_to((slots * self.block_bytes) as u64);
    }
}

/// The thread that brings blocks in when other threads touch them.
struct Pager {
    region: Arc<Region>,
    cache: Arc<Mutex<Cache<InPlace>>>,
    thread: Option<JoinHandle<()>>,
    /// The process whose thread it is.
    process: u32,
}

impl Pager {
    fn start(region: Arc<Region>, cache: Cache<InPlace>, layout: &Layout) -> Result<Self> {
        let cache = Arc::new(Mutex::new(cache));
        let (faults, of_faults) = (region.clone(), cache.clone());
        let (block_bytes, first_blocks) = (layout.cut.block_bytes, first_blocks(layout));
        let bring_in = move || -> Result<()> {
            while let Some(offset) = faults.next_fault()? {
                let block = offset / block_bytes;
                let array = first_blocks.partition_point(|first| *first <= block) - 1;
                locked(&of_faults).touch(array, block - first_blocks[array])?;
                // It may have come in between.
                faults.wake(block * block_bytes..(block + 1) * block_bytes);
            }
            Ok(())
        };
        let name = layout.name.clone();
        let thread = std::thread::Builder::new().name("spillproof-pager".into());
        let thread = thread
            .spawn(move || {
                if let Err(error) = bring_in() {
                    abort(&name, &error);
                }
            })
            .map_err(|source| Error::Threads { source })?;
        Ok(Self {
            region,
            cache,
            thread: Some(thread),
            process: std::process::id(),
        })
    }

    fn cache(&self) -> MutexGuard<'_, Cache<InPlace>> {
        locked(&self.cache)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        self.region.end_faults();
        if let Some(thread) = self.thread.take() {
            // It aborts the process or returns.
            let _ = thread.join();
        }
    }
}

/// A panic of another thread leaves the cache as it was between two steps.
fn locked(cache: &Mutex<Cache<InPlace>>) -> MutexGuard<'_, Cache<InPlace>> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the first block of each array in the region.
fn first_blocks(layout: &Layout) -> Vec<usize> {
    let mut next = 0;
    let first = |array| {
        let first = next;
        next += layout.blocks(array) as usize;
        first
    };
    (0..layout.arrays).map(first).collect()
}

fn map_of<T: Cell>(maps: &mut [Mapped<T>], array: usize) -> Result<&mut Mapped<T>> {
    Invalid::unless_below("array of cells", array as u64, maps.len() as u64)?;
    Ok(&mut maps[array])
}

/// Ends the process: a thread waits for a cell that cannot be had, and every other value would be wrong.
#[allow(clippy::print_stderr)]
fn abort(name: &str, error: &Error) -> ! {
    eprintln!(
        "spillproof: a circuit reads one of its {name}, which is on disk and cannot be read back: {error}. The process aborts, since the \
         circuit cannot be told, and a proof from other values would be wrong."
    );
    std::process::abort()
}

impl<T: Cell> Addressed<T> {
    /// The share of memory for arrays of `len` cells that are written side by side while circuits are
    /// synthesised, and only then read, one after the other: all of them, if columns that are read once may
    /// take as much ([`Placement::Passing`](super::Placement::Passing)); what a column may take
    /// ([`Placement::Auto`](super::Placement::Auto)), if arrays are removed as they are read
    /// ([`Self::remove`]), since they make room for the columns that are made of them. Else a quarter of what
    /// the budget has left, since larger blocks take fewer transfers, and at most 2 MiB an array.
    pub fn writing_share_bytes(workspace: &Workspace, shape: (usize, u64), are_removed: bool) -> u64 {
        Self::share_bytes_of(workspace, shape, are_removed, 4)
    }

    /// The share for such arrays when they are read: as for being written, but for the quarter, which is a
    /// sixteenth.
    pub fn reading_share_bytes(workspace: &Workspace, shape: (usize, u64), are_removed: bool) -> u64 {
        Self::share_bytes_of(workspace, shape, are_removed, 16)
    }

    fn share_bytes_of(
        workspace: &Workspace,
        (arrays, len): (usize, u64),
        are_removed: bool,
        part: u64,
    ) -> u64 {
        let budget = &workspace.budget;
        let whole_bytes = Cut::share_bytes_whole(arrays, (len, size_of::<T>()));
        if budget.keeps_passing(whole_bytes) {
            return whole_bytes;
        }
        let share_bytes = share_bytes_within(budget.available_bytes() / part, arrays);
        match are_removed && Region::is_allowed() {
            true => share_bytes.max(budget.column_room_bytes()),
            false => share_bytes,
        }
    }

    /// `arrays` arrays of `len` cells in `share_bytes` of memory, less if they need less. Takes no room on
    /// disk yet.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] for a share that is too small, [`Error::OverBudget`], [`Error::File`],
    /// [`Error::Memory`], [`Error::Threads`].
    pub fn zeroed(
        workspace: &Workspace,
        what: &str,
        share_bytes: u64,
        (arrays, len): (usize, u64),
    ) -> Result<Self> {
        const { assert!(size_of::<T>() > 0 && size_of::<T>() <= PAGE_BYTES && align_of::<T>() <= size_of::<T>()) };
        let layout = Layout::new(workspace, what, share_bytes, (arrays, len, size_of::<T>()))?;
        let may_be_paged = Region::is_allowed() || layout.is_whole();
        let place = match workspace.dry_run() {
            Some(dry_run) if may_be_paged => {
                let cells = DryCells::new(&layout, dry_run, layout.cut.block_bytes as u64)?;
                Place::Dry { layout, cells }
            }
            None if may_be_paged => match Paged::new(layout)? {
                Some(paged) => Place::Paged(paged),
                None => Self::mapped(workspace, what, share_bytes, (arrays, len))?,
            },
            _ => Self::mapped(workspace, what, share_bytes, (arrays, len))?,
        };
        Ok(Self { arrays, len, place })
    }

    /// In mapped files.
    fn mapped(
        workspace: &Workspace,
        what: &str,
        share_bytes: u64,
        (arrays, len): (usize, u64),
    ) -> Result<Place<T>> {
        let share = Residency::new(workspace, what, share_bytes, arrays)?;
        let maps = (0..arrays).map(|_| Mapped::zeroed_in(&share, what, len));
        Ok(Place::Mapped {
            maps: maps.collect::<Result<_>>()?,
            share,
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

    /// Whether cells that leave memory are encrypted as other scratch files are, and checked when they come
    /// back: not in mapped files.
    pub fn is_checked(&self) -> bool {
        !matches!(self.place, Place::Mapped { .. })
    }

    /// Writes a cell; gives its address, valid as long as `self` lives. No thread may read there while the
    /// same cell is written.
    ///
    /// # Errors
    /// [`Invalid::Index`] for an array, [`Invalid::OutOfRange`] for a cell that there is not; [`Error::Io`],
    /// also from an earlier write; [`Error::Damaged`], where a block that is partly written comes back.
    #[inline]
    pub fn set(&mut self, array: usize, index: u64, value: T) -> Result<*const T> {
        match &mut self.place {
            Place::Paged(paged) => {
                let cell = match paged.hot.get(array) {
                    Some(hot) if index.wrapping_sub(hot.first) < hot.len => {
                        hot.start.wrapping_add((index - hot.first) as usize)
                    }
                    _ => paged.warm(array, index)?,
                };
                // SAFETY: a cell of the block of its array that was written last, which stays in memory until
                // another one is. `&mut self` keeps other writers out.
                unsafe { cell.write(value) };
                Ok(cell)
            }
            Place::Mapped { maps, .. } => map_of(maps, array)?.set(index, value),
            Place::Dry { layout, .. } => Err(layout.dry_error()),
        }
    }

    /// Hands all cells of `range` of an array to `each`, in order, a stretch at a time with the index of its
    /// first. What is on disk is read ahead, and does not enter the cache.
    ///
    /// # Errors
    /// As [`Self::set`]; the first error of `each`.
    pub fn read(
        &mut self,
        array: usize,
        range: Range<u64>,
        each: impl FnMut(u64, &[T]) -> Result<()>,
    ) -> Result<()> {
        self.read_before((array, None), range, each)
    }

    /// The same; cells of the array that is read next, if that is known, are on their way meanwhile.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_before(
        &mut self,
        (array, then): (usize, Option<usize>),
        range: Range<u64>,
        mut each: impl FnMut(u64, &[T]) -> Result<()>,
    ) -> Result<()> {
        match &mut self.place {
            Place::Paged(paged) => paged.read((array, then), range, &mut each),
            Place::Mapped { maps, .. } => map_of(maps, array)?.read(range, |first, cells| {
                match cells.iter().position(|cell| !cell.has_meaning()) {
                    None => each(first, cells),
                    Some(at) => Err(Error::Damaged {
                        file: "mapped cells".into(),
                        frame: first + at as u64,
                        offset: (first + at as u64) * size_of::<T>() as u64,
                    }),
                }
            }),
            Place::Dry { layout, .. } => {
                layout.check(array, &range)?;
                layout.count_read(array, range.end - range.start);
                Ok(())
            }
        }
    }

    /// Gives back all of the share but `share_bytes`, or what reading takes, once no cell is written any
    /// more; no effect if it is that small already.
    ///
    /// # Errors
    /// [`Error::Io`], also from an earlier write.
    pub fn keep_for_reading(&mut self, share_bytes: u64) -> Result<()> {
        match &mut self.place {
            Place::Paged(paged) => {
                paged.cool_down();
                if paged.pager.region.stays_in_memory() {
                    return Ok(());
                }
                let slots = paged.layout.shrink_to(share_bytes);
                paged.keep_slots(slots)
            }
            Place::Mapped { share, .. } => share.keep_for_reading(share_bytes),
            Place::Dry { layout, cells } => {
                if !(Region::stays_if_it_can() && layout.is_whole()) {
                    cells.shrink_to(layout, share_bytes);
                }
                Ok(())
            }
        }
    }

    /// Drops an array that no thread reads any more, once no cell is written any more, and gives back its part of
    /// the share; no effect where all cells stay in memory, or are in mapped files.
    ///
    /// # Errors
    /// [`Error::Io`], also from an earlier write.
    pub fn remove(&mut self, array: usize) -> Result<()> {
        match &mut self.place {
            Place::Paged(paged) => {
                paged.cool_down();
                if paged.pager.region.stays_in_memory() {
                    return Ok(());
                }
                let layout = &paged.layout;
                let mut cache = paged.pager.cache();
                cache.remove(array);
                cache.shrink_to_arrays(|array| layout.cached_blocks(array))
            }
            Place::Mapped { .. } => Ok(()),
            Place::Dry { layout, cells } => {
                if !(Region::stays_if_it_can() && layout.is_whole()) {
                    cells.remove(layout, array);
                }
                Ok(())
            }
        }
    }

    /// The cells of an array that are on the disk only, and come from there when they are read; as far as that is known.
    pub fn stored_cells(&mut self, array: usize) -> u64 {
        match &mut self.place {
            Place::Paged(paged) => {
                let blocks = paged.pager.cache().stored_blocks(array);
                blocks as u64 * paged.layout.block_cells
            }
            Place::Mapped { .. } | Place::Dry { .. } => 0,
        }
    }

    /// In a dry run: all cells are written once, side by side, and read when [`Self::keep_for_reading`] has
    /// left `reading_bytes`. No effect in a real run.
    pub fn assume_written(&mut self, reading_bytes: u64) {
        match &mut self.place {
            Place::Dry { layout, cells } => cells.assume_written(layout),
            Place::Mapped { share, .. } => share.assume_written(reading_bytes),
            Place::Paged(_) => {}
        }
    }
}

impl<T: Cell> Paged<T> {
    /// `None` where the kernel refuses after all, and not all cells fit into memory.
    fn new(layout: Layout) -> Result<Option<Self>> {
        let budget = &layout.workspace.budget;
        let block_bytes = layout.cut.block_bytes;
        let blocks: u64 = (0..layout.arrays).map(|array| layout.blocks(array)).sum();
        let storage = &layout.workspace.storage;
        let bytes = blocks.saturating_mul(block_bytes as u64);
        let region = storage.region(&layout.name, bytes, layout.is_whole())?;
        let Some(region) = region.map(Arc::new) else {
            return Ok(None);
        };
        let in_place = InPlace {
            region: region.clone(),
            first_blocks: first_blocks(&layout),
            block_bytes,
            share: budget.lease_map(layout.cut.cache_bytes() as u64, layout.name.clone())?,
            zeros: budget.buffer(block_bytes, layout.name.clone())?,
        };
        let cache = layout.cache(in_place)?;
        Ok(Some(Self {
            tile: layout.tile(zero())?,
            hot: (0..layout.arrays).map(|_| Hot::none()).collect(),
            pager: Pager::start(region, cache, &layout)?,
            layout,
        }))
    }

    /// Makes the block of a cell the hot one of its array; where the cell is.
    #[cold]
    fn warm(&mut self, array: usize, index: u64) -> Result<*mut T> {
        let (block, offset) = self.layout.find(array, index)?;
        let mut cache = self.pager.cache();
        cache.forget_ahead()?;
        cache.change(array, block)?;
        let start = cache.memory().offset((array, block));
        drop(cache);
        let start = self.pager.region.start().as_ptr().wrapping_add(start);
        let cells = self.layout.cells_of(array, block);
        let cell = start.wrapping_add(offset).cast::<T>();
        self.hot[array] = Hot {
            first: cells.start,
            len: cells.end - cells.start,
            // The first cell of a block may be one of the shift.
            start: cell.wrapping_sub((index - cells.start) as usize),
        };
        Ok(cell)
    }

    /// Has as many slots as the cut, if it became smaller.
    fn keep_slots(&self, slots: Option<usize>) -> Result<()> {
        slots.map_or(Ok(()), |slots| self.pager.cache().shrink_to(slots))
    }

    /// No block is written without asking any more.
    fn cool_down(&mut self) {
        self.hot.fill_with(Hot::none);
        self.pager.cache().cool_down();
    }

    fn read(
        &mut self,
        (array, then): (usize, Option<usize>),
        range: Range<u64>,
        each: &mut dyn FnMut(u64, &[T]) -> Result<()>,
    ) -> Result<()> {
        for array in [Some(array), then].into_iter().flatten() {
            self.layout.check(array, &range)?;
        }
        self.cool_down();
        let cells = CellBytes {
            decode: from_bytes::<T>,
            zero: zero(),
        };
        let mut cache = self.pager.cache();
        self.layout
            .read(&mut cache, cells, &mut self.tile, (array, then, range), each)
    }
}

/// The cell of zero bytes.
fn zero<T: Cell>() -> T {
    // SAFETY: `Cell` says that zero bytes are a value.
    unsafe { std::mem::zeroed() }
}

/// The cell of bytes that were a cell's.
fn from_bytes<T: Cell>(bytes: &[u8]) -> T {
    debug_assert_eq!(bytes.len(), size_of::<T>());
    // SAFETY: as many bytes as a cell has, which were written as one or are zeros; `Cell` says that they are
    // a value.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

impl<T: Cell> std::fmt::Debug for Addressed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addressed")
            .field("arrays", &self.arrays)
            .field("len", &self.len)
            .field("is_checked", &self.is_checked())
            .finish_non_exhaustive()
    }
}
