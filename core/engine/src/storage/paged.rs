//! A scratch file mapped whole for random access, whose pages come and go by the caller's hand.
//!
//! The address of a byte is its address for the map's whole life, in memory or not: what is not is read back
//! when it is touched. In: ranges of bytes, in whole pages. The caller decides what stays; each step of a
//! range's life is a method:
//!
//! ```text
//!   reserve -> populate_write -> (written through `start`) -> begin_write_out -> finish_write_out -> forget
//!              read_ahead -> populate_read  <---------------- later, if it is touched again --------------+
//! ```
//!
//! Kernel read-ahead is off for these maps (MADV_RANDOM): a page that is touched behind the caller's back
//! brings no others along. Memory: the pages between the first touch and `forget`.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::file::File;
use super::handle;
use super::{Storage, direct, scratch};
use crate::budget::PAGE_BYTES;
use crate::error::{Error, Result};

/// A nameless file of zeros, sparse at first, mapped for reading and writing.
pub struct PagedMap {
    file: File,
    start: NonNull<u8>,
    bytes: usize,
    reserved_bytes: AtomicU64,
}

// SAFETY: the map is plain memory owned by this value; who may read and write which byte when is for callers
// of `start`.
unsafe impl Send for PagedMap {}
// SAFETY: all methods only tell the kernel what to keep in memory, which changes no content.
unsafe impl Sync for PagedMap {}

impl PagedMap {
    /// `bytes` of zeros (rounded up to whole pages); takes no room on disk yet.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Memory`] without address space.
    pub fn scratch(storage: &Storage, what: &str, bytes: u64) -> Result<Self> {
        let no_room = |source: Errno| Error::Memory {
            what: format!("map of {what}"),
            bytes,
            source: source.into(),
        };
        let bytes = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(PAGE_BYTES))
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| no_room(Errno::NOMEM))?;
        let file = storage.scratch(what, 0)?;
        file.set_len(bytes as u64)?;
        // SAFETY: a new map at an address of the kernel's choice touches no existing memory; the file is
        // nameless, so no process else can cut it off.
        let map = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.fd(),
                0,
            )
        }
        .map_err(no_room)?;
        let start = NonNull::new(map.cast::<u8>()).ok_or_else(|| no_room(Errno::NOMEM))?;
        let map = Self {
            file,
            start,
            bytes,
            reserved_bytes: AtomicU64::new(0),
        };
        map.advise(0..bytes, Advice::Random);
        Ok(map)
    }

    /// Where it is mapped. Valid for [`Self::len_bytes`], as long as `self` lives.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes, in whole pages.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// What it is called in errors.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Reserves room on disk, so that a write through the map cannot find the disk full (which would be a
    /// SIGBUS); once for each range, before anything is written there. Where the file system cannot reserve,
    /// zeros are written.
    ///
    /// # Errors
    /// [`Error::File`], ENOSPC among them.
    pub fn reserve(&self, range: Range<usize>) -> Result<()> {
        let (offset, bytes) = (range.start as u64, range.len() as u64);
        let recycler = self.file.recycler();
        recycler.charge(bytes);
        self.reserved_bytes.fetch_add(bytes, Relaxed);
        let reserve = || fallocate(self.file.fd(), FallocateFlags::KEEP_SIZE, offset, bytes);
        let reserved = self.file.faults().run(|| match reserve() {
            Err(Errno::NOSPC | Errno::DQUOT) if recycler.forget() => reserve(),
            result => result,
        });
        let reserved = match reserved {
            Err(errno) if scratch::is_unsupported(errno) => self.write_zeros(offset, bytes),
            reserved => reserved,
        };
        reserved.map_err(|errno| {
            let what = format!("{}, {bytes} bytes at offset {offset}", self.name());
            handle::error("reserve room for", what, errno)
        })
    }

    /// Gives a range that was never written its blocks where the file system cannot reserve them.
    fn write_zeros(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        /// As direct writes need it.
        #[repr(align(4096))]
        struct Aligned([u8; 16 * PAGE_BYTES]);
        static ZEROS: Aligned = Aligned([0; 16 * PAGE_BYTES]);
        let mut done = 0;
        while done < bytes {
            let piece = &ZEROS.0[..ZEROS.0.len().min((bytes - done) as usize)];
            match rustix::io::pwrite(self.file.fd(), piece, offset + done) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => done += written as u64,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Brings all pages of a range that was never written in, ready to be written: quicker than a fault for
    /// each.
    ///
    /// # Errors
    /// [`Error::File`] if the kernel has no pages for it.
    pub fn populate_write(&self, range: Range<usize>) -> Result<()> {
        self.populate(range, Advice::LinuxPopulateWrite)
    }

    /// Starts reading a range back.
    pub fn read_ahead(&self, range: Range<usize>) {
        self.file.count_map_read(range.len() as u64);
        self.advise(range, Advice::WillNeed);
    }

    /// Waits for a range to be in memory. A read that fails is found here, as an error, and not by a SIGBUS
    /// later.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn populate_read(&self, range: Range<usize>) -> Result<()> {
        self.populate(range, Advice::LinuxPopulateRead)
    }

    /// Starts writing a range's changed pages out. They stay in memory. Errors show in
    /// [`Self::finish_write_out`].
    pub fn begin_write_out(&self, range: Range<usize>) {
        let _ = self.sync(&range, libc::SYNC_FILE_RANGE_WRITE);
    }

    /// Writes a range's changed pages out, and waits until it is done.
    ///
    /// # Errors
    /// [`Error::File`]; what is on the disk is then unknown, and the map must be given up.
    pub fn finish_write_out(&self, range: Range<usize>) -> Result<()> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        self.file
            .faults()
            .run(|| self.sync(&range, flags))
            .map_err(|errno| handle::error("write out the map of", self.name(), errno))?;
        self.file.count_map_write(range.len() as u64);
        Ok(())
    }

    /// Lets all pages of a range that are written out go, from the map and from the page cache. Those that
    /// are not stay.
    pub fn forget(&self, range: Range<usize>) {
        self.advise(range.clone(), Advice::LinuxDontNeed);
        direct::drop_range(self.file.fd(), range.start as u64, range.len() as u64);
    }

    fn populate(&self, range: Range<usize>, advice: Advice) -> Result<()> {
        debug_assert!(range.end <= self.bytes);
        let done = loop {
            // SAFETY: populating pages of our own map changes no content.
            match unsafe { madvise(self.at(range.start).cast(), range.len(), advice) } {
                Err(Errno::INTR | Errno::AGAIN) => {}
                done => break done,
            }
        };
        match done {
            // EINVAL: before Linux 5.14. Pages then come in when they are touched.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            // EFAULT stands for the SIGBUS that touching would have been: the read failed.
            Err(Errno::FAULT) => Err(handle::error("bring in the map of", self.name(), Errno::IO)),
            Err(errno) => Err(handle::error("bring in the map of", self.name(), errno)),
        }
    }

    /// Advice only: a refusal costs time or memory, not correctness.
    fn advise(&self, range: Range<usize>, advice: Advice) {
        debug_assert!(range.end <= self.bytes);
        // SAFETY: of a shared map of a file, none of the kinds of advice used here changes content: DONTNEED
        // drops page table entries, and what was written stays in the page cache or the file.
        let _ = unsafe { madvise(self.at(range.start).cast(), range.len(), advice) };
    }

    fn sync(&self, range: &Range<usize>, flags: libc::c_uint) -> Result<(), Errno> {
        use std::os::fd::AsRawFd;
        let fd = self.file.fd().as_raw_fd();
        // SAFETY: plain numbers, and a descriptor that is open as long as `self.file` is.
        let result = unsafe { libc::sync_file_range(fd, range.start as i64, range.len() as i64, flags) };
        if result == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    fn at(&self, offset: usize) -> *mut u8 {
        // Every caller stays inside the map, which `wrapping_add` needs not know.
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for PagedMap {
    fn drop(&mut self) {
        // SAFETY: the map made in `scratch`, unmapped once; pointers into it are documented to end with
        // `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
        self.file.recycler().discharge(*self.reserved_bytes.get_mut());
    }
}
