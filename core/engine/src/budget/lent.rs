//! Memory that is lent to transfers that end later.
//!
//! A [`Lender`] owns the memory, and gives no access to it while a part is lent. A [`Lent`] is the only way to
//! its part, may go to another thread, and keeps the memory: so a transfer that outlives the lender is sound.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory that may be lent.
///
/// # Safety
/// The `bytes` bytes from `start` on are initialised, and valid for reads and writes until the value is dropped.
/// Moving the value does not move them. `start` and `bytes` give the same whenever they are called. Nothing
/// accesses the bytes without a reference to the value.
pub unsafe trait Lendable: Send + Sync + 'static {
    /// The first byte.
    fn start(&self) -> *mut u8;
    /// The length.
    fn bytes(&self) -> usize;
    /// Whether the host reads it as fast as other memory.
    fn is_readable(&self) -> bool {
        true
    }
}

/// The owner of memory that is lent.
#[derive(Debug)]
pub struct Lender<M> {
    memory: Arc<M>,
}

impl<M: Lendable> Lender<M> {
    /// Of this memory.
    pub fn new(memory: M) -> Self {
        Self {
            memory: Arc::new(memory),
        }
    }

    /// The memory; `None` while a part of it is lent.
    pub fn memory(&mut self) -> Option<&mut M> {
        Arc::get_mut(&mut self.memory)
    }

    /// Lends the first `bytes`; `None` if a part is lent already, or there are not as many.
    pub fn lend(&mut self, bytes: usize) -> Option<Lent> {
        let memory = self.memory()?;
        let fits = bytes <= memory.bytes();
        let (start, is_readable) = (NonNull::new(memory.start())?, memory.is_readable());
        fits.then(|| Lent {
            start,
            bytes,
            is_readable,
            owner: Arc::clone(&self.memory) as Arc<dyn Lendable>,
        })
    }
}

/// A part of memory that is lent. It is given back when this is dropped.
pub struct Lent {
    start: NonNull<u8>,
    bytes: usize,
    is_readable: bool,
    owner: Arc<dyn Lendable>,
}

// SAFETY: only this value gives access to its bytes, and their owner is `Send` and `Sync`.
unsafe impl Send for Lent {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Lent {}

impl Lent {
    /// Takes the first `bytes` off, or all if there are less.
    #[must_use]
    pub fn take_first(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        let first = Self {
            start: self.start,
            bytes,
            is_readable: self.is_readable,
            owner: Arc::clone(&self.owner),
        };
        // SAFETY: at most the end of this part, which is inside of the owner's memory or at its end.
        self.start = unsafe { self.start.add(bytes) };
        self.bytes -= bytes;
        first
    }

    /// Whether the host reads it as fast as other memory.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: [`Lendable`]; parts do not overlap, the lender gives no access while they live, and this
        // one is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this part is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Budget;
    use super::*;

    #[test]
    fn parts_come_back_before_the_memory_is_seen() {
        let budget = Budget::new(1 << 20);
        let mut lender = Lender::new(budget.buffer(8192, "lent").unwrap());
        assert!(lender.lend(8193).is_none());
        let mut rest = lender.lend(6000).unwrap();
        assert!(lender.lend(1).is_none() && lender.memory().is_none());
        let mut first = rest.take_first(4096);
        let mut last = rest.take_first(1 << 20);
        assert_eq!((first.len(), last.len(), rest.len()), (4096, 1904, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| first.fill(1));
            scope.spawn(|| last.fill(2));
        });
        drop((first, rest));
        assert!(lender.memory().is_none());
        drop(last);
        let bytes = lender.memory().unwrap();
        assert!(bytes[..4096] == [1; 4096] && bytes[4096..6000] == [2; 1904] && bytes[6000..] == [0; 2192]);
        // What is lent keeps the memory.
        let lent = lender.lend(10).unwrap();
        drop(lender);
        assert_eq!((lent[9], budget.held_bytes()), (1, 8192));
        drop(lent);
        assert_eq!(budget.held_bytes(), 0);
    }
}
