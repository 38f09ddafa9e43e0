//! Aligned bytes for I/O that carry their lease: alone ([`Buffer`]), or as a fixed set that comes back ([`Pool`]).
//!
//! A transfer takes a buffer by value and gives it back from [`Pending::wait`](crate::storage::Pending::wait): while the
//! kernel has it, nobody else can.

use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::pages::Pages;
use super::{Backing, Budget, Lease};
use crate::error::{Invalid, Result};

/// Owned bytes, aligned to [`PAGE_BYTES`](super::PAGE_BYTES) and a multiple of it long, always initialised.
/// Dropping it gives memory and lease back, or returns it to its [`Pool`].
///
/// ```
/// # use spillproof::budget::Budget;
/// let budget = Budget::new(1 << 20);
/// let mut buffer = budget.buffer(10_000, "frame")?;
/// assert_eq!(buffer.len(), 12_288);
/// buffer[0] = 7;
/// # Ok::<(), spillproof::Error>(())
/// ```
pub struct Buffer {
    /// `None` only inside `drop`.
    pages: Option<Pages>,
    home: Home,
}

enum Home {
    Alone { _lease: Lease },
    Pool(Arc<Shelf>),
}

impl Buffer {
    pub(super) fn new(budget: &Budget, bytes: usize, what: Cow<'static, str>) -> Result<Self> {
        let bytes = rounded(bytes, "buffer")?;
        let lease = budget.take(bytes as u64, what.clone(), Backing::Map)?;
        Ok(Self {
            pages: Some(Pages::new(bytes, &what)?),
            home: Home::Alone { _lease: lease },
        })
    }

    /// The first byte, for a transfer that owns the buffer. Never null; valid for `len` bytes until the buffer is dropped.
    pub(crate) fn start(&self) -> *mut u8 {
        self.pages.as_ref().map_or(std::ptr::null_mut(), Pages::as_ptr)
    }
}

fn rounded(bytes: usize, what: &'static str) -> Result<usize> {
    Pages::round_up(bytes).ok_or_else(|| {
        Invalid::AddressSpace {
            what: what.into(),
            elements: bytes,
            element_bytes: 1,
        }
        .into()
    })
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pages.as_ref().map_or(&[], Pages::as_slice)
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pages.as_mut().map_or(&mut [], Pages::as_mut_slice)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let (Home::Pool(shelf), Some(pages)) = (&self.home, self.pages.take()) {
            shelf.lock().push(pages);
            shelf.returned.notify_one();
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}

/// A fixed number of equal buffers, leased and touched once. Clones share them. The memory is given back when the pool
/// and the last buffer out of it are gone.
#[derive(Clone)]
pub struct Pool {
    shelf: Arc<Shelf>,
}

struct Shelf {
    idle: Mutex<Vec<Pages>>,
    returned: Condvar,
    count: usize,
    buffer_bytes: usize,
    _lease: Lease,
}

impl Pool {
    pub(super) fn new(budget: &Budget, count: usize, bytes: usize, what: Cow<'static, str>) -> Result<Self> {
        let buffer_bytes = rounded(bytes, "pool")?;
        let total_bytes = (buffer_bytes as u64).saturating_mul(count as u64);
        let lease = budget.take(total_bytes, what.clone(), Backing::Map)?;
        let idle = (0..count)
            .map(|_| Pages::new(buffer_bytes, &what))
            .collect::<Result<Vec<_>>>()?;
        let shelf = Shelf {
            idle: Mutex::new(idle),
            returned: Condvar::new(),
            count,
            buffer_bytes,
            _lease: lease,
        };
        Ok(Self {
            shelf: Arc::new(shelf),
        })
    }

    /// A buffer, with whatever bytes its last holder left; blocks until one is there. With all buffers held by the
    /// calling thread it would block for ever: size the pool for what one thread holds at once.
    pub fn take(&self) -> Buffer {
        let mut idle = self.shelf.lock();
        loop {
            if let Some(pages) = idle.pop() {
                return self.lend(pages);
            }
            idle = self
                .shelf
                .returned
                .wait(idle)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A buffer if one is idle.
    pub fn try_take(&self) -> Option<Buffer> {
        let pages = self.shelf.lock().pop()?;
        Some(self.lend(pages))
    }

    /// How many buffers there are, idle or not.
    pub fn count(&self) -> usize {
        self.shelf.count
    }

    /// How many are idle.
    pub fn idle(&self) -> usize {
        self.shelf.lock().len()
    }

    /// The size of each.
    pub fn buffer_bytes(&self) -> usize {
        self.shelf.buffer_bytes
    }

    fn lend(&self, pages: Pages) -> Buffer {
        debug_assert_eq!(pages.bytes(), self.shelf.buffer_bytes);
        Buffer {
            pages: Some(pages),
            home: Home::Pool(self.shelf.clone()),
        }
    }
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Vec<Pages>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        // The pages go before the lease on them.
        drop(mem::take(
            self.idle.get_mut().unwrap_or_else(PoisonError::into_inner),
        ));
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("count", &self.count())
            .field("idle", &self.idle())
            .field("buffer_bytes", &self.buffer_bytes())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_counted() {
        let budget = Budget::new(16 << 20);
        for bytes in [0, 1, 4096, 4097, 3 << 20] {
            let mut buffer = budget.buffer(bytes, "b").unwrap();
            assert_eq!(buffer.as_ptr() as usize % 4096, 0);
            assert_eq!(buffer.len(), bytes.next_multiple_of(4096));
            assert_eq!(budget.held_bytes(), buffer.len() as u64);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(0xff);
        }
        assert_eq!(budget.held_bytes(), 0);
        assert!(budget.buffer(17 << 20, "b").is_err());
        assert!(budget.buffer(usize::MAX, "b").is_err());
    }

    #[test]
    fn pool_lends_blocks_and_outlives_its_handle() {
        let budget = Budget::new(1 << 20);
        let pool = budget.pool(2, 5000, "frames").unwrap();
        assert_eq!(
            (pool.count(), pool.buffer_bytes(), budget.held_bytes()),
            (2, 8192, 16384)
        );
        let first = pool.take();
        let second = pool.try_take().unwrap();
        assert!(pool.try_take().is_none());
        let waiter = std::thread::spawn({
            let pool = pool.clone();
            move || pool.take().len()
        });
        drop(second);
        assert_eq!(waiter.join().unwrap(), 8192);
        drop(pool);
        assert_eq!(budget.held_bytes(), 16384, "a buffer is still out");
        drop(first);
        assert_eq!(budget.held_bytes(), 0);
    }
}
