//! Arrays of cells in mapped scratch files: where cells with addresses are ([`super::Addressed`]) when the
//! kernel does not let a program fill its own pages.
//!
//! A [`Mapped`] reads as zeros until it is written. The address of a cell is the same for its whole life, so
//! addresses may be given out and read at any later time; what stays in memory is bounded by the
//! [`Residency`] that the map shares with the others of its group. `set` on the block that was written last
//! costs one comparison; another block that is in memory costs a look at its state; one that is not is
//! brought in whole, after the oldest has gone out.
//!
//! Unlike frames, mapped cells have no digests: pages that the kernel reads back on its own cannot be checked
//! before they are read. Results that leave a map for good go to a [`Column`](super::Column), where they are.
//!
//! Shapes: cell i is at byte `i * size_of::<T>()`; cells may straddle blocks. Memory: that of the
//! [`Residency`].
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use ark_ff::{Fp, MontBackend, MontConfig};

use super::residency::{Blocks, DryMap, READ_BYTES, Touch};
use super::{Residency, Workspace};
use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::error::Invalid;

/// What a [`Mapped`] may hold.
///
/// # Safety
/// All-zero bytes are a valid value; a value needs no drop, and stays valid when its bytes are copied to a
/// file and back.
pub unsafe trait Cell: Copy + Send + Sync + 'static {
    /// Whether it has a meaning. Asked of cells that come from a disk without being checked there.
    fn has_meaning(&self) -> bool {
        true
    }
}

// SAFETY: any bytes are a number.
unsafe impl Cell for u8 {}
// SAFETY: any bytes are a number.
unsafe impl Cell for u16 {}
// SAFETY: any bytes are a number.
unsafe impl Cell for u32 {}
// SAFETY: any bytes are a number.
unsafe impl Cell for u64 {}
// SAFETY: cells side by side.
unsafe impl<T: Cell, const N: usize> Cell for [T; N] {}
// SAFETY: four limbs; zero limbs are the number 0.
unsafe impl<C: MontConfig<4>> Cell for Fp<MontBackend<C, 4>, 4> {}

/// An array of cells in a nameless sparse file, mapped for random access.
///
/// ```
/// use spillproof_engine::budget::Budget;
/// use spillproof_engine::column::{Mapped, Residency, Workspace};
/// use spillproof_engine::storage::Storage;
///
/// let storage = Storage::builder().dir(std::env::temp_dir()).build()?;
/// let workspace = Workspace::new(storage, Budget::new(1 << 20));
/// // 256 KiB of memory for two maps of 800 KB each.
/// let share = Residency::new(&workspace, "cells", 256 << 10, 2)?;
/// let mut left = Mapped::<u64>::zeroed_in(&share, "left", 100_000)?;
/// let mut right = Mapped::<u64>::zeroed_in(&share, "right", 100_000)?;
/// for i in 0..100_000 {
///     left.set(i, i)?;
///     right.set(i, i * i)?;
/// }
/// assert_eq!((left.get(5)?, right.get(99_999)?), (5, 99_999 * 99_999));
/// assert!(share.resident_bytes() <= 256 << 10);
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
pub struct Mapped<T: Cell> {
    residency: Residency,
    place: Place,
    /// Cell 0.
    start: *mut T,
    len: u64,
    /// Cells that are wholly in the block that was written last: `hot_first .. hot_first + hot_len`.
    hot_first: u64,
    hot_len: u64,
    cells: PhantomData<T>,
}

enum Place {
    Blocks(Arc<Blocks>),
    /// Nowhere: there are no cells.
    Dry(DryMap),
}

// SAFETY: it owns its cells, as a `Vec<T>` would; addresses that were given out are the business of those who
// read them.
unsafe impl<T: Cell> Send for Mapped<T> {}
// SAFETY: shared access only reads cells; which blocks are in memory is kept in atomics and behind a lock.
unsafe impl<T: Cell> Sync for Mapped<T> {}

impl<T: Cell> Mapped<T> {
    /// `len` zero cells, with a share of their own ([`Residency::default_share_bytes`], no more than the
    /// cells need).
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::File`], [`crate::Error::Memory`].
    pub fn zeroed(workspace: &Workspace, what: &str, len: u64) -> Result<Self> {
        let cells_bytes = len.saturating_mul(size_of::<T>() as u64);
        let whole_bytes = cells_bytes
            .next_multiple_of(PAGE_BYTES as u64)
            .max(4 * PAGE_BYTES as u64);
        let share_bytes = Residency::default_share_bytes(workspace, 1).min(whole_bytes);
        Self::zeroed_in(&Residency::new(workspace, what, share_bytes, 1)?, what, len)
    }

    /// `len` zero cells in the share of a group.
    ///
    /// # Errors
    /// [`Invalid::TooLong`] if the group is full; else as [`Self::zeroed`].
    pub fn zeroed_in(residency: &Residency, what: &str, len: u64) -> Result<Self> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE_BYTES) };
        let bytes = len.saturating_mul(size_of::<T>() as u64);
        let (place, start) = match residency.enter_dry(what, bytes)? {
            Some(map) => (Place::Dry(map), std::ptr::null_mut()),
            None => {
                let blocks = residency.enter(what, bytes)?;
                // The skew is in whole pages and inside the map.
                let start = blocks.map.start().as_ptr().wrapping_add(blocks.skew_bytes).cast();
                (Place::Blocks(blocks), start)
            }
        };
        Ok(Self {
            residency: residency.clone(),
            place,
            start,
            len,
            hot_first: 0,
            hot_len: 0,
            cells: PhantomData,
        })
    }

    /// Number of cells.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where cell `index` is: valid, and readable at any time, as long as `self` lives. Nobody may read there
    /// while [`Self::set`] writes the same cell. Null outside of the array.
    pub fn address(&self, index: u64) -> *const T {
        if index < self.len && !self.start.is_null() {
            self.cell(index)
        } else {
            std::ptr::null()
        }
    }

    /// The value of cell `index`.
    ///
    /// # Errors
    /// [`Invalid::OutOfRange`] outside of the array; [`crate::Error::File`], also from an earlier write-out.
    #[inline]
    pub fn get(&self, index: u64) -> Result<T> {
        if index.wrapping_sub(self.hot_first) >= self.hot_len {
            self.touch(index, Touch::Read)?;
        }
        // SAFETY: `touch` (or being hot) says that `index` is inside; cells are valid from birth, as zeros;
        // writes are through `&mut self` only.
        Ok(unsafe { self.cell(index).read() })
    }

    /// Writes cell `index`; gives its address (see [`Self::address`]).
    ///
    /// # Errors
    /// [`Invalid::OutOfRange`] outside of the array; [`crate::Error::File`] (ENOSPC among them), also from an
    /// earlier write-out.
    #[inline]
    pub fn set(&mut self, index: u64, value: T) -> Result<*const T> {
        if index.wrapping_sub(self.hot_first) >= self.hot_len {
            self.warm(index)?;
        }
        let cell = self.cell(index);
        // SAFETY: `warm` (or being hot) says that `index` is inside and has its room on disk; `&mut self`
        // keeps other writers out.
        unsafe { cell.write(value) };
        Ok(cell)
    }

    /// Sets all cells of `range` to `value`.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn fill(&mut self, range: Range<u64>, value: T) -> Result<()> {
        self.check(&range)?;
        let mut index = range.start;
        while index < range.end {
            self.set(index, value)?;
            index += 1;
            let hot_end = (self.hot_first + self.hot_len).min(range.end);
            if index >= self.hot_first && index < hot_end {
                // SAFETY: hot cells are inside, in memory, and ours through `&mut self`.
                let cells =
                    unsafe { std::slice::from_raw_parts_mut(self.cell(index), (hot_end - index) as usize) };
                cells.fill(value);
                index = hot_end;
            }
        }
        Ok(())
    }

    /// Hands all cells of `range` to `each`, in order, a stretch at a time with the index of its first; the
    /// next stretch is on its way meanwhile, and what was read leaves memory.
    ///
    /// # Errors
    /// As [`Self::get`]; the first error of `each`.
    pub fn read(&mut self, range: Range<u64>, mut each: impl FnMut(u64, &[T]) -> Result<()>) -> Result<()> {
        self.check(&range)?;
        let blocks = match &self.place {
            Place::Blocks(blocks) => Arc::clone(blocks),
            Place::Dry(map) => {
                self.residency.count_read(map);
                return Ok(());
            }
        };
        self.cool_down();
        if range.is_empty() {
            return Ok(());
        }
        let block_bytes = blocks.block_bytes();
        // Two windows are on the way at once, in a quarter of the share.
        let share = usize::try_from(self.residency.share_bytes() / 8).unwrap_or(usize::MAX);
        let step = (READ_BYTES.min(share) / block_bytes).max(1);
        let end = self.bytes(&blocks, range.end - 1).end.div_ceil(block_bytes);
        let first = self.bytes(&blocks, range.start).start / block_bytes;
        let window = |start: usize| start..(start + step).min(end);
        self.residency.read_ahead(&blocks, window(first))?;
        let mut index = range.start;
        let mut start = first;
        while start < end {
            let now = window(start);
            self.residency.read_ahead(&blocks, window(now.end))?;
            let bytes = blocks.range(now.start).start..blocks.range(now.end - 1).end;
            let past = (bytes.end - blocks.skew_bytes).div_ceil(size_of::<T>()) as u64;
            let past = past.min(range.end);
            // The last cell may reach into the next window.
            let reached = (bytes.end + size_of::<T>()).next_multiple_of(PAGE_BYTES);
            blocks
                .map
                .populate_read(bytes.start..reached.min(blocks.map.len_bytes()))?;
            if past > index {
                // SAFETY: cells inside the array, valid from birth; no writer, as `each` has no way to
                // `self`.
                let cells = unsafe {
                    std::slice::from_raw_parts(self.cell(index).cast_const(), (past - index) as usize)
                };
                each(index, cells)?;
                index = past;
            }
            self.residency.put_out(&blocks, now.clone())?;
            start = now.end;
        }
        Ok(())
    }

    /// Writes everything out and leaves memory: for a map that is not used for a while. Addresses stay valid.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn release(&mut self) -> Result<()> {
        self.cool_down();
        match &self.place {
            Place::Blocks(blocks) => self.residency.put_out(blocks, 0..blocks.len()),
            Place::Dry(_) => Ok(()),
        }
    }

    fn cell(&self, index: u64) -> *mut T {
        // Inside the map for every `index < len`; a pointer that is not is never read through.
        self.start.wrapping_add(index as usize)
    }

    /// Where a cell is in the map, in bytes.
    fn bytes(&self, blocks: &Blocks, index: u64) -> Range<usize> {
        let start = blocks.skew_bytes + index as usize * size_of::<T>();
        start..start + size_of::<T>()
    }

    fn check(&self, range: &Range<u64>) -> Result<()> {
        if range.start <= range.end && range.end <= self.len {
            return Ok(());
        }
        Err(Invalid::OutOfRange {
            what: self.name().to_owned(),
            start: range.start,
            end: range.end,
            len: self.len,
        }
        .into())
    }

    fn name(&self) -> &str {
        match &self.place {
            Place::Blocks(blocks) => blocks.map.name(),
            Place::Dry(map) => map.name(),
        }
    }

    fn blocks(&self) -> Result<&Blocks> {
        match &self.place {
            Place::Blocks(blocks) => Ok(blocks),
            Place::Dry(map) => Err(Invalid::DryRun {
                column: map.name().to_owned(),
            }
            .into()),
        }
    }

    /// Has the blocks of a cell in memory; gives the last.
    fn touch(&self, index: u64, touch: Touch) -> Result<usize> {
        if index >= self.len {
            self.check(&(index..index.saturating_add(1)))?;
        }
        let blocks = self.blocks()?;
        let bytes = self.bytes(blocks, index);
        let block_bytes = blocks.block_bytes();
        let (first, last) = (bytes.start / block_bytes, (bytes.end - 1) / block_bytes);
        for block in first..=last {
            self.residency.touch(blocks, block, touch)?;
        }
        Ok(last)
    }

    /// Makes the block of a cell the hot one.
    #[cold]
    fn warm(&mut self, index: u64) -> Result<()> {
        let before = self.hot_first + self.hot_len;
        // Just behind the hot cells: probably a sequence. (Also the very first, since nothing is hot yet.)
        let sequence = index >= before && index - before <= 1;
        let block = self.touch(index, if sequence { Touch::Append } else { Touch::Write })?;
        let blocks = self.blocks()?;
        let bytes = blocks.range(block);
        let cell = size_of::<T>();
        let first = bytes.start.saturating_sub(blocks.skew_bytes).div_ceil(cell) as u64;
        let end = (bytes.end.saturating_sub(blocks.skew_bytes) / cell) as u64;
        Residency::set_current(blocks, Some(block));
        self.hot_first = first;
        self.hot_len = end.min(self.len).saturating_sub(first);
        Ok(())
    }

    /// Nothing is hot.
    fn cool_down(&mut self) {
        self.hot_len = 0;
        if let Place::Blocks(blocks) = &self.place {
            Residency::set_current(blocks, None);
        }
    }
}

impl<T: Cell> Drop for Mapped<T> {
    fn drop(&mut self) {
        if let Place::Blocks(blocks) = &self.place {
            self.residency.leave(blocks);
        }
    }
}

impl<T: Cell> std::fmt::Debug for Mapped<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapped")
            .field("name", &self.name())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
