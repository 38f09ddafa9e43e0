//! A typed tile with its lease inside: `len` elements, fixed, page-aligned (so aligned for any lane width).
//! Peak memory = `len * size_of::<T>()`, rounded up to whole pages.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::Budget;
use super::pages::{LeasedPages, PAGE_BYTES, Pages};
use crate::error::{Invalid, Result};

/// A fixed number of `T`s on leased pages. `T: Copy`, so there is nothing to drop but the pages.
///
/// ```
/// # use spillproof::budget::Budget;
/// let budget = Budget::new(1 << 20);
/// let mut tile = budget.vec(1000, 1u64, "tile")?;
/// tile[3] = 5;
/// assert_eq!(tile.iter().sum::<u64>(), 1004);
/// # Ok::<(), spillproof::Error>(())
/// ```
pub struct LeasedVec<T: Copy> {
    pages: LeasedPages,
    len: usize,
    _elements: PhantomData<T>,
}

impl<T: Copy> LeasedVec<T> {
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
        let pages = LeasedPages::new(budget, bytes, what)?;
        let start = pages.as_ptr().cast::<T>();
        for i in 0..len {
            // SAFETY: `i < len`, and the pages hold `len` elements; their start is aligned to a page, hence to `T`.
            unsafe { start.add(i).write(fill) };
        }
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
