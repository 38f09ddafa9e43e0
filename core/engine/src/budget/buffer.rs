//! Aligned bytes for I/O that carry their lease.
//!
//! A transfer takes a buffer by value and gives it back from
//! [`Pending::wait`](crate::storage::Pending::wait): while the kernel has it, no other code can.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::pages::{LeasedPages, PAGE_BYTES, Pages};
use super::{Budget, Lendable, Lent};
use crate::error::{Invalid, Result};

/// Owned bytes, aligned to [`PAGE_BYTES`](super::PAGE_BYTES) and a multiple of it long, always initialised.
/// Dropping it gives memory and lease back.
///
/// ```
/// # use spillproof_engine::budget::Budget;
/// let budget = Budget::new(1 << 20);
/// let mut buffer = budget.buffer(10_000, "frame")?;
/// assert_eq!(buffer.len(), 12_288);
/// buffer[0] = 7;
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
pub struct Buffer {
    memory: Memory,
}

enum Memory {
    Own(LeasedPages),
    /// For one transfer. As long as it is, and the caller has seen that it begins at a page where it must.
    Lent(Lent),
}

impl Buffer {
    /// Zeroed, or of any content.
    pub(super) fn new(
        budget: &Budget,
        bytes: usize,
        what: Cow<'static, str>,
        is_zeroed: bool,
    ) -> Result<Self> {
        let bytes = Pages::round_up(bytes).ok_or_else(|| Invalid::AddressSpace {
            what: "buffer".into(),
            elements: bytes,
            element_bytes: 1,
        })?;
        let mut pages = LeasedPages::new(budget, bytes, what)?;
        if is_zeroed {
            pages.clear();
        }
        Ok(Self {
            memory: Memory::Own(pages),
        })
    }

    /// Of memory that is lent, for a transfer.
    pub(crate) fn lent(memory: Lent) -> Self {
        Self {
            memory: Memory::Lent(memory),
        }
    }

    /// Whether it is lent memory.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self.memory, Memory::Lent(_))
    }

    /// The memory that was lent, if it was.
    pub(crate) fn into_lent(self) -> Option<Lent> {
        match self.memory {
            Memory::Own(_) => None,
            Memory::Lent(memory) => Some(memory),
        }
    }

    /// Gives back all but the first `bytes`, rounded up to whole pages.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Memory::Own(pages) = &mut self.memory {
            pages.shrink_to(bytes.next_multiple_of(PAGE_BYTES));
        }
    }

    /// The first byte, for a transfer that owns the buffer. Never null; valid for `len` bytes until the
    /// buffer is dropped.
    pub(crate) fn start(&self) -> *mut u8 {
        match &self.memory {
            Memory::Own(pages) => pages.as_ptr(),
            Memory::Lent(memory) => memory.start(),
        }
    }
}

// SAFETY: a buffer owns its pages, or a part of lent memory, which stay where they are until it is dropped.
unsafe impl Lendable for Buffer {
    fn start(&self) -> *mut u8 {
        Self::start(self)
    }

    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Own(pages) => pages.as_slice(),
            Memory::Lent(memory) => memory,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Own(pages) => pages.as_mut_slice(),
            Memory::Lent(memory) => memory,
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
            assert!(buffer[..] == vec![0; buffer.len()]);
            buffer.fill(0xff);
        }
        assert_eq!(budget.held_bytes(), 0);
        let mut buffer = budget.buffer(3 << 20, "b").unwrap();
        buffer[8191] = 7;
        buffer.shrink_to(4 << 20);
        assert_eq!(buffer.len(), 3 << 20);
        buffer.shrink_to(4097);
        assert_eq!((buffer.len(), buffer[8191], budget.held_bytes()), (8192, 7, 8192));
        drop(buffer);
        assert!(budget.buffer(17 << 20, "b").is_err());
        assert!(budget.buffer(usize::MAX, "b").is_err());
    }
}
