//! A typed tile with its lease inside: `len` elements, fixed, page-aligned (so aligned for any lane width).
//! Peak memory = `len * size_of::<T>()`, rounded up to whole pages.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use super::Budget;
use super::pages::{LeasedPages, PAGE_BYTES, Pages};
use crate::error::{Invalid, Result};
use spillproof_kernels::parallel::Parallel;

/// A fixed number of `T`s on leased pages. `T: Copy`, so there is nothing to drop but the pages.
///
/// ```
/// # use spillproof_engine::budget::Budget;
/// let budget = Budget::new(1 << 20);
/// let mut tile = budget.vec(1000, 1u64, "tile")?;
/// tile[3] = 5;
/// assert_eq!(tile.iter().sum::<u64>(), 1004);
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
pub struct LeasedVec<T: Copy> {
    pages: LeasedPages,
    len: usize,
    _elements: PhantomData<T>,
}

/// Bytes from where on all threads of the caller's pool fill a vector, and bytes that one of them fills at a
/// time.
const SHARED_BYTES_MIN: usize = 1 << 20;
const SHARE_BYTES: usize = 256 << 10;

fn fill_with<T: Copy + Send + Sync>(elements: &mut [MaybeUninit<T>], value: T) {
    let share = SHARE_BYTES / size_of::<T>().max(1);
    let fill = |elements: &mut [MaybeUninit<T>]| elements.fill(MaybeUninit::new(value));
    match size_of_val(elements) >= SHARED_BYTES_MIN && rayon::current_thread_index().is_some() {
        true => elements.chunks_mut(share.max(1)).parallel().for_each(fill),
        false => fill(elements),
    }
}

impl<T: Copy + Send + Sync> LeasedVec<T> {
    pub(super) fn new(budget: &Budget, len: usize, fill: T, what: Cow<'static, str>) -> Result<Self> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .and_then(Pages::round_up)
            .filter(|_| align_of::<T>() <= PAGE_BYTES)
            .ok_or_else(|| Invalid::AddressSpace {
                what: what.to_string(),
                elements: len,
                element_bytes: size_of::<T>(),
            })?;
        let mut pages = LeasedPages::new(budget, bytes, what)?;
        // SAFETY: the pages hold `len` elements, are borrowed uniquely, and begin at an address that is
        // aligned to a page, hence to `T`.
        let elements =
            unsafe { std::slice::from_raw_parts_mut(pages.as_mut_slice().as_mut_ptr().cast(), len) };
        fill_with(elements, fill);
        Ok(Self {
            pages,
            len,
            _elements: PhantomData,
        })
    }
}

impl<T: Copy> Deref for LeasedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote `len` elements at this aligned start, and they live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast::<T>(), self.len) }
    }
}

impl<T: Copy> DerefMut for LeasedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_ptr().cast::<T>(), self.len) }
    }
}

// SAFETY: `LeasedVec` owns its elements as a `Vec<T>` would.
unsafe impl<T: Copy + Send> Send for LeasedVec<T> {}
// SAFETY: as for `Vec<T>`.
unsafe impl<T: Copy + Sync> Sync for LeasedVec<T> {}

impl<T: Copy + fmt::Debug> fmt::Debug for LeasedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_and_leased() {
        let budget = Budget::new(1 << 20);
        let mut tile = budget.vec(1000, [3u64; 4], "tile").unwrap();
        assert_eq!(budget.held_bytes(), 32768);
        assert!(tile.iter().all(|&element| element == [3; 4]));
        tile[999] = [9; 4];
        assert_eq!(tile[999], [9; 4]);
        drop(tile);
        assert_eq!(budget.held_bytes(), 0);
        assert!(budget.vec(0, 1u8, "none").unwrap().is_empty());
        assert_eq!(budget.vec(7, (), "units").unwrap().len(), 7);
        assert!(budget.vec(usize::MAX, 1u64, "many").is_err());
    }
}
