//! Past the page cache: O_DIRECT where the file system says that it takes it (statx STATX_DIOALIGN, Linux
//! 6.1), or lets it be set (before 6.1); otherwise through the cache, leaving nothing in it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags, fadvise, fcntl_getfl, fcntl_setfl, fdatasync, statx};
use rustix::io::{Errno, ReadWriteFlags};

use crate::budget::PAGE_BYTES;

/// `STATX_DIOALIGN`, `linux/stat.h`.
const STATX_DIOALIGN: u32 = 0x2000;
/// `RWF_DONTCACHE`, `linux/fs.h`, Linux 6.14.
const RWF_DONTCACHE: u32 = 0x80;
/// How much written data of a file may wait in the page cache before it is written out and dropped.
/// RWF_DONTCACHE drops by itself, but has no bound of its own.
const CACHED_BYTES_MAX: u64 = 8 << 20;

/// Sets O_DIRECT on an open file; whether it is on now, with buffers and offsets in multiples of
/// [`PAGE_BYTES`].
pub(super) fn engage(fd: BorrowedFd<'_>) -> bool {
    let told = statx(
        fd,
        "",
        AtFlags::EMPTY_PATH,
        StatxFlags::from_bits_retain(STATX_DIOALIGN),
    );
    if let Ok(told) = told
        && told.stx_mask & STATX_DIOALIGN != 0
    {
        let fits = |alignment: u32| alignment != 0 && PAGE_BYTES.is_multiple_of(alignment as usize);
        if !fits(told.stx_dio_mem_align) || !fits(told.stx_dio_offset_align) {
            return false;
        }
    }
    fcntl_getfl(fd)
        .and_then(|flags| fcntl_setfl(fd, flags | OFlags::DIRECT))
        .is_ok()
}

/// How transfers of one file treat the page cache.
#[derive(Debug)]
pub(super) enum CachePolicy {
    /// O_DIRECT: there is nothing to do.
    Bypass,
    /// Buffered: drop behind.
    DropBehind {
        /// Whether the kernel has not refused RWF_DONTCACHE yet.
        flag_works: AtomicBool,
        /// Written, and not dropped yet.
        cached_bytes: AtomicU64,
    },
}

impl CachePolicy {
    pub(super) fn new(direct: bool) -> Self {
        if direct {
            return Self::Bypass;
        }
        Self::DropBehind {
            flag_works: AtomicBool::new(true),
            cached_bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn is_direct(&self) -> bool {
        matches!(self, Self::Bypass)
    }

    /// Flags for the next attempt.
    pub(super) fn flags(&self) -> ReadWriteFlags {
        match self {
            Self::DropBehind { flag_works, .. } if flag_works.load(Relaxed) => {
                ReadWriteFlags::from_bits_retain(RWF_DONTCACHE)
            }
            _ => ReadWriteFlags::empty(),
        }
    }

    /// Whether `errno` only says that the flag is unknown here, or the system call that takes flags (emulators,
    /// and filters of system calls, know pread alone); it is then not used again, and the attempt can be repeated.
    pub(super) fn was_flag_refused(&self, errno: Errno, flags: ReadWriteFlags) -> bool {
        let Self::DropBehind { flag_works, .. } = self else {
            return false;
        };
        let unknown = [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS, Errno::PERM];
        let refused = !flags.is_empty() && unknown.contains(&errno);
        if refused {
            flag_works.store(false, Relaxed);
        }
        refused
    }

    /// Whether what was read must be dropped by hand: not where the kernel does it by itself.
    fn drops_by_hand(&self) -> bool {
        matches!(self, Self::DropBehind { flag_works, .. } if !flag_works.load(Relaxed))
    }

    /// After a read of these bytes: drops them from the page cache.
    pub(super) fn after_read(&self, fd: BorrowedFd<'_>, offset: u64, bytes: u64) {
        if self.drops_by_hand() {
            drop_range(fd, offset, bytes);
        }
    }

    /// After a write of these bytes: writes out and drops the file's pages once there are many.
    pub(super) fn after_write(&self, fd: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
        let Self::DropBehind { cached_bytes, .. } = self else {
            return Ok(());
        };
        if cached_bytes.fetch_add(bytes, Relaxed) + bytes < CACHED_BYTES_MAX {
            return Ok(());
        }
        cached_bytes.store(0, Relaxed);
        fdatasync(fd)?;
        drop_range(fd, 0, 0);
        Ok(())
    }

    /// After a sync: what is in the cache is clean, so it can go.
    pub(super) fn after_sync(&self, fd: BorrowedFd<'_>) {
        if let Self::DropBehind { cached_bytes, .. } = self {
            cached_bytes.store(0, Relaxed);
            drop_range(fd, 0, 0);
        }
    }
}

/// Drops clean pages; `bytes` of 0 means up to the end. Only advice, so a refusal is no error.
pub(super) fn drop_range(fd: BorrowedFd<'_>, offset: u64, bytes: u64) {
    let _ = fadvise(
        fd.as_fd(),
        offset,
        std::num::NonZeroU64::new(bytes),
        Advice::DontNeed,
    );
}
