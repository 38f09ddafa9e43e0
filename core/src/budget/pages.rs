//! Whole pages straight from the system: zeroed, touched once, and given back on drop. The only memory that large buffers
//! come from. Peak memory = what was asked for, rounded up to [`PAGE_BYTES`].
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::error::{Error, Result};

/// The unit that buffers are aligned to and rounded up to: pages, and the alignment that direct I/O asks for at most.
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
            return Ok(Self {
                start: Self::dangling(),
                bytes,
            });
        }
        let failed = |source: rustix::io::Errno| Error::Memory {
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
            .ok_or_else(|| failed(rustix::io::Errno::NOMEM))?;
        // SAFETY: a fresh anonymous private map at an address of the kernel's choice touches no existing memory.
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
            // SAFETY: head and tail are disjoint parts of the map made above, both outside `start..start + bytes`, which
            // is all that is used from here on. Both are multiples of the page size.
            unsafe {
                let used = start.add(head_bytes);
                if head_bytes > 0 {
                    munmap(start.cast(), head_bytes).map_err(failed)?;
                }
                if tail_bytes > 0 {
                    munmap(used.add(bytes).cast(), tail_bytes).map_err(failed)?;
                }
                start = used;
            }
            // Refused where huge pages are off: then small ones do.
            // SAFETY: advice on pages that we own; their content stays.
            let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxHugepage) };
        }
        let Some(start) = NonNull::new(start) else {
            return Err(failed(rustix::io::Errno::NOMEM));
        };
        let pages = Self { start, bytes };
        // SAFETY: populating pages that we own; their content stays.
        if unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) }.is_err() {
            // Before Linux 5.14: touch each page by hand.
            for offset in (0..bytes).step_by(PAGE_BYTES) {
                // SAFETY: `offset < bytes`, so this is inside the map, which is writable and ours.
                unsafe { start.as_ptr().add(offset).write_volatile(0) };
            }
        }
        Ok(pages)
    }

    fn dangling() -> NonNull<u8> {
        // An address that satisfies every alignment up to a page, never read through.
        NonNull::new(ptr::without_provenance_mut(PAGE_BYTES)).unwrap_or(NonNull::dangling())
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes that live as long as `self`; nobody writes through a shared borrow.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` initialised bytes that live as long as `self`, borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the map made in `new`, unmapped once; no borrow outlives `self`.
            let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}
