//! Whole pages straight from the system: zeroed, touched once, and given back on drop. The only memory that
//! large buffers come from ([`super::idle`] keeps them between two buffers). Peak memory = what was asked
//! for, rounded up to [`PAGE_BYTES`].
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::{Backing, Budget, Lease};
use crate::error::{Error, Result};
use spillproof_kernels::parallel::Parallel;

/// The unit that buffers are aligned to and rounded up to: pages, and the alignment that direct I/O asks for
/// at most.
pub const PAGE_BYTES: usize = 4096;

/// From this size on, huge pages are asked for: first touch is then several times faster.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// An anonymous private map. Bytes are initialised (zero) from birth.
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: `Pages` owns its map alone, as a `Box<[u8]>` would.
unsafe impl Send for Pages {}
// SAFETY: shared access only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// `bytes` rounded up to whole pages, if that is a size.
    pub(super) fn round_up(bytes: usize) -> Option<usize> {
        bytes
            .checked_next_multiple_of(PAGE_BYTES)
            .filter(|&bytes| bytes <= isize::MAX as usize)
    }

    /// `bytes` (a multiple of [`PAGE_BYTES`]) of zeros, every page touched.
    pub(super) fn new(bytes: usize, what: &str) -> Result<Self> {
        debug_assert!(bytes.is_multiple_of(PAGE_BYTES));
        if bytes == 0 {
            return Ok(Self::none());
        }
        let failed = |source: Errno| Error::Memory {
            what: what.to_owned(),
            bytes: bytes as u64,
            source: source.into(),
        };
        // Room to start at a huge page's boundary; the surplus is unmapped below.
        let slack_bytes = if bytes >= HUGE_PAGE_BYTES {
            HUGE_PAGE_BYTES
        } else {
            0
        };
        let mapped_bytes = bytes
            .checked_add(slack_bytes)
            .ok_or_else(|| failed(Errno::NOMEM))?;
        // SAFETY: a fresh anonymous private map at an address of the kernel's choice touches no existing
        // memory.
        let map = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(failed)?;
        let mut start = map.cast::<u8>();
        if slack_bytes > 0 {
            let head_bytes = start.align_offset(HUGE_PAGE_BYTES).min(slack_bytes);
            let tail_bytes = slack_bytes - head_bytes;
            // SAFETY: head and tail are disjoint parts of the map made above, both outside
            // `start..start + bytes`, which is all that is used from here on. Both are multiples of the page
            // size.
            unsafe {
                let used = start.add(head_bytes);
                if head_bytes > 0 {
                    unmap(start, head_bytes).map_err(failed)?;
                }
                if tail_bytes > 0 {
                    unmap(used.add(bytes), tail_bytes).map_err(failed)?;
                }
                start = used;
            }
            // Refused where huge pages are off: then small ones do.
            // SAFETY: advice on pages that we own; their content stays.
            let _ = unsafe { advise(start, bytes, Advice::LinuxHugepage) };
        }
        // Values of a witness are no part of a core dump. Refused by kernels that know no such advice.
        // SAFETY: advice on pages that we own; their content stays.
        let _ = unsafe { advise(start, bytes, Advice::LinuxDontDump) };
        // Exposed, since maps that touch may be joined.
        let start = ptr::with_exposed_provenance_mut(start.expose_provenance());
        let Some(start) = NonNull::new(start) else {
            return Err(failed(Errno::NOMEM));
        };
        let mut pages = Self { start, bytes };
        pages.populate();
        Ok(pages)
    }

    /// Touches every page: large maps on all threads of the caller's pool, since the system clears a page on
    /// the core that asks for it, and on a virtual machine may have to get it from its host (0.5 to 2 GB/s a
    /// core). New threads would not help: their stacks are maps, and those wait until the pages here are
    /// touched.
    fn populate(&mut self) {
        let bytes = self.as_mut_slice();
        match bytes.len() >= 2 * HUGE_PAGE_BYTES && rayon::current_thread_index().is_some() {
            true => bytes.chunks_mut(HUGE_PAGE_BYTES).parallel().for_each(populate),
            false => populate(bytes),
        }
    }

    /// No page.
    fn none() -> Self {
        Self {
            // An address that satisfies every alignment up to a page, never read through.
            start: NonNull::new(ptr::without_provenance_mut(PAGE_BYTES)).unwrap_or(NonNull::dangling()),
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of the first byte.
    pub(super) fn start(&self) -> usize {
        self.start.as_ptr().addr()
    }

    /// The address behind the last byte.
    pub(super) fn end(&self) -> usize {
        self.start() + self.bytes
    }

    /// At most `bytes`, such that a cut there leaves pages whole, and in long maps huge pages.
    pub(super) fn round_down(&self, bytes: usize) -> usize {
        let unit = match self.bytes < HUGE_PAGE_BYTES {
            true => PAGE_BYTES,
            false => HUGE_PAGE_BYTES,
        };
        let cut = self.start().saturating_add(bytes) / unit * unit;
        cut.saturating_sub(self.start())
    }

    /// Joins the pages that begin where these end. Pages that do not stay by themselves (which is a mistake)
    /// are given back.
    pub(super) fn append(&mut self, behind: Self) {
        debug_assert_eq!(self.end(), behind.start());
        if self.end() == behind.start() {
            self.bytes += behind.bytes;
            // Its pages are unmapped with the whole.
            std::mem::forget(behind);
        }
    }

    /// Cuts off what is behind the first `bytes` (a multiple of [`PAGE_BYTES`]), if there is any.
    pub(super) fn split_off(&mut self, bytes: usize) -> Option<Self> {
        debug_assert!(bytes.is_multiple_of(PAGE_BYTES));
        let rest_bytes = self
            .bytes
            .checked_sub(bytes)
            .filter(|&rest_bytes| rest_bytes > 0)?;
        // SAFETY: `bytes` is inside of the map, whose pages each part unmaps by itself.
        let start = unsafe { self.start.add(bytes) };
        self.bytes = bytes;
        Some(Self {
            start,
            bytes: rest_bytes,
        })
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes that live as long as `self`; no code writes through a shared
        // borrow.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` initialised bytes that live as long as `self`, borrowed uniquely. Joined maps are
        // one range of exposed addresses.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

/// Advice on pages, which Miri does not know.
///
/// # Safety
/// As [`madvise`].
pub(super) unsafe fn advise(start: *mut u8, bytes: usize, advice: Advice) -> Result<(), Errno> {
    if cfg!(miri) {
        return Err(Errno::NOSYS);
    }
    // SAFETY: the caller's.
    unsafe { madvise(start.cast(), bytes, advice) }
}

/// Unmaps pages. Miri can only unmap whole maps, so nothing is unmapped there.
///
/// # Safety
/// As [`munmap`].
unsafe fn unmap(start: *mut u8, bytes: usize) -> Result<(), Errno> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the caller's.
    unsafe { munmap(start.cast(), bytes) }
}

/// Touches the pages of `share`, which begins at a page's boundary.
fn populate(share: &mut [u8]) {
    // SAFETY: populating pages that are borrowed uniquely; their content stays.
    if unsafe { advise(share.as_mut_ptr(), share.len(), Advice::LinuxPopulateWrite) }.is_err() {
        // Before Linux 5.14: touch each page by hand.
        share.iter_mut().step_by(PAGE_BYTES).for_each(|byte| {
            // SAFETY: a byte that is borrowed uniquely. Volatile, or writing what is there already would be
            // left out.
            unsafe { ptr::from_mut(byte).write_volatile(0) }
        });
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the map made in `new`, unmapped once; no borrow outlives `self`.
            let unmapped = unsafe { unmap(self.start.as_ptr(), self.bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}

/// Pages and the lease on them. Dropped, the pages stay for the next ones, as far as the ledger has room for
/// that.
pub(super) struct LeasedPages {
    pages: Pages,
    /// They are zeros.
    are_fresh: bool,
    lease: Lease,
}

impl LeasedPages {
    /// `bytes` (a multiple of [`PAGE_BYTES`]) of any content, leased as `what`.
    pub(super) fn new(budget: &Budget, bytes: usize, what: Cow<'static, str>) -> Result<Self> {
        let (lease, idle) = budget.take_with_idle(bytes as u64, what, Backing::Pages)?;
        let are_fresh = idle.is_none();
        let pages = match idle {
            Some(pages) => pages,
            None => Pages::new(bytes, lease.what())?,
        };
        Ok(Self {
            pages,
            are_fresh,
            lease,
        })
    }

    /// Gives back all but the first `bytes` (a multiple of [`PAGE_BYTES`]).
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        drop(self.pages.split_off(bytes));
        self.lease.shrink_to(bytes as u64);
    }

    /// Makes them zeros.
    pub(super) fn clear(&mut self) {
        if !std::mem::replace(&mut self.are_fresh, true) {
            self.pages.as_mut_slice().fill(0);
        }
    }
}

impl Deref for LeasedPages {
    type Target = Pages;

    fn deref(&self) -> &Pages {
        &self.pages
    }
}

impl DerefMut for LeasedPages {
    fn deref_mut(&mut self) -> &mut Pages {
        &mut self.pages
    }
}

impl Drop for LeasedPages {
    fn drop(&mut self) {
        let pages = std::mem::replace(&mut self.pages, Pages::none());
        self.lease.ledger.leave(pages, &self.lease);
    }
}
