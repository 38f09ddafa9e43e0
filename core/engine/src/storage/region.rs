//! Memory whose pages are put in place by the program itself: a page that is not there stops the thread that
//! touches it until another thread has filled it (`userfaultfd(2)`, faults of user mode only, which needs no
//! privilege).
//!
//! So the bytes that a thread sees at an address are always those that [`Region::place`] was given, or the
//! thread waits. Containers often forbid the system call: [`Region::new`] then gives `None`. The kernel does
//! not wait for pages: a system call on an address whose page is not there fails with EFAULT.
//!
//! Memory: the pages between [`Region::place`] and [`Region::forget`].
#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, UserfaultfdFlags, madvise, mmap_anonymous, mprotect, munlock,
    munmap, userfaultfd,
};

use super::FaultPlan;
use crate::budget::PAGE_BYTES;
use crate::error::{Error, Result};

/// `UFFD_USER_MODE_ONLY`, since Linux 5.11.
const USER_MODE_ONLY: u32 = 1;
const GROUP: u8 = 0xAA;
const API: u64 = 0xAA;
const MODE_MISSING: u64 = 1;
const EVENT_PAGE_FAULT: u8 = 0x12;
/// Bytes of `struct uffd_msg`, and where its address is.
const MESSAGE_BYTES: usize = 32;
const ADDRESS_BYTES: Range<usize> = 16..24;

#[repr(C)]
struct ApiArguments {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct RangeArguments {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct RegisterArguments {
    range: RangeArguments,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct CopyArguments {
    to: u64,
    from: u64,
    bytes: u64,
    mode: u64,
    copied: i64,
}

const IOCTL_API: Opcode = opcode::read_write::<ApiArguments>(GROUP, 0x3F);
const IOCTL_REGISTER: Opcode = opcode::read_write::<RegisterArguments>(GROUP, 0);
const IOCTL_WAKE: Opcode = opcode::read::<RangeArguments>(GROUP, 2);
const IOCTL_COPY: Opcode = opcode::read_write::<CopyArguments>(GROUP, 3);

/// Pages without content at first.
pub struct Region {
    name: String,
    start: NonNull<u8>,
    bytes: usize,
    faults: OwnedFd,
    /// Readable once no fault is to be waited for any more.
    end: OwnedFd,
}

// SAFETY: the map is plain memory owned by this value; which thread reads and writes which byte when is for
// users of `start`.
unsafe impl Send for Region {}
// SAFETY: methods put pages in place and take them away, atomically as other threads see it.
unsafe impl Sync for Region {}

impl Region {
    /// `bytes`, rounded up to whole pages, without a page; `None` where the kernel does not let a program
    /// fill its own pages.
    ///
    /// # Errors
    /// [`Error::Memory`] without address space, [`Error::File`] for faults of a test and a process with too
    /// many open files.
    pub(super) fn new(plan: &FaultPlan, what: &str, bytes: u64) -> Result<Option<Self>> {
        let no_room = |source: Errno| Error::Memory {
            what: format!("pages of {what}"),
            bytes,
            source: source.into(),
        };
        let flags = UserfaultfdFlags::CLOEXEC
            | UserfaultfdFlags::NONBLOCK
            | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
        // SAFETY: the descriptor is used for memory that this value owns alone.
        let faults = match plan.run(|| unsafe { userfaultfd(flags) }) {
            Ok(faults) => faults,
            Err(Errno::PERM | Errno::NOSYS | Errno::INVAL | Errno::ACCESS | Errno::OPNOTSUPP) => {
                return Ok(None);
            }
            Err(errno) => return Err(super::handle::error("watch the pages of", what, errno)),
        };
        let mut arguments = ApiArguments {
            api: API,
            features: 0,
            ioctls: 0,
        };
        // SAFETY: the opcode's argument is `struct uffdio_api`.
        if unsafe { ioctl(&faults, Updater::<IOCTL_API, _>::new(&mut arguments)) }.is_err() {
            return Ok(None);
        }
        let bytes_mapped = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(PAGE_BYTES))
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or_else(|| no_room(Errno::NOMEM))?;
        let map = map_without_pages(bytes_mapped).map_err(no_room)?;
        let start = NonNull::new(map.cast::<u8>()).ok_or_else(|| no_room(Errno::NOMEM))?;
        let region = Self {
            name: what.to_owned(),
            start,
            bytes: bytes_mapped,
            faults,
            end: eventfd(0, EventfdFlags::CLOEXEC).map_err(no_room)?,
        };
        region.register().map_err(no_room)?;
        // A forked process has no thread that fills pages. It gets no page of the region, since it would read
        // zeros there.
        region.advise(0..bytes_mapped, Advice::LinuxDontFork);
        region.advise(0..bytes_mapped, Advice::LinuxDontDump);
        Ok(Some(region))
    }

    /// Whether the kernel lets this process fill its own pages; asked once.
    pub fn is_allowed() -> bool {
        static ALLOWED: OnceLock<bool> = OnceLock::new();
        *ALLOWED.get_or_init(|| {
            matches!(
                Self::new(&FaultPlan::none(), "a test", PAGE_BYTES as u64),
                Ok(Some(_))
            )
        })
    }

    /// Where it is. Valid for [`Self::len_bytes`], as long as `self` lives.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes, in whole pages.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Gives `bytes.len()` bytes from `offset`, whole pages that are not there, their content, and wakes the
    /// threads that wait for them.
    ///
    /// # Errors
    /// [`Error::Memory`] if the system has no pages.
    pub fn place(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        debug_assert!(offset.is_multiple_of(PAGE_BYTES) && bytes.len().is_multiple_of(PAGE_BYTES));
        debug_assert!(offset + bytes.len() <= self.bytes);
        let mut done = 0;
        while done < bytes.len() {
            let mut arguments = CopyArguments {
                to: self.address(offset + done),
                from: bytes[done..].as_ptr().addr() as u64,
                bytes: (bytes.len() - done) as u64,
                mode: 0,
                copied: 0,
            };
            // SAFETY: the opcode's argument is `struct uffdio_copy`; it writes to pages of our own map only,
            // those that are not there.
            let copied = unsafe { ioctl(&self.faults, Updater::<IOCTL_COPY, _>::new(&mut arguments)) };
            match copied {
                Ok(()) => return Ok(()),
                // Interrupted: the rest once more.
                Err(Errno::AGAIN | Errno::INTR) => done += usize::try_from(arguments.copied).unwrap_or(0),
                Err(errno) => {
                    return Err(Error::Memory {
                        what: format!("{} that come back from disk", self.name),
                        bytes: bytes.len() as u64,
                        source: errno.into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Takes the pages of a range away, and their content.
    pub fn forget(&self, range: Range<usize>) {
        self.advise(range, Advice::LinuxDontNeed);
    }

    /// Wakes the threads that wait for pages of a range, which are there.
    pub fn wake(&self, range: Range<usize>) {
        let mut arguments = RangeArguments {
            start: self.address(range.start),
            bytes: range.len() as u64,
        };
        // SAFETY: the opcode's argument is `struct uffdio_range`.
        let woken = unsafe { ioctl(&self.faults, Updater::<IOCTL_WAKE, _>::new(&mut arguments)) };
        debug_assert!(woken.is_ok());
    }

    /// Waits until a thread touches a page that is not there; the page's offset. `None` after
    /// [`Self::end_faults`].
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn next_fault(&self) -> Result<Option<usize>> {
        let failed = |errno| super::handle::error("watch the pages of", &self.name, errno);
        loop {
            let mut waited = [
                PollFd::new(&self.faults, PollFlags::IN),
                PollFd::new(&self.end, PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut waited, None)).map_err(failed)?;
            if !waited[1].revents().is_empty() {
                return Ok(None);
            }
            let mut message = [0u8; MESSAGE_BYTES];
            match rustix::io::read(&self.faults, &mut message) {
                Ok(_) if message[0] == EVENT_PAGE_FAULT => {
                    let mut address = [0; 8];
                    address.copy_from_slice(&message[ADDRESS_BYTES]);
                    let offset =
                        (u64::from_ne_bytes(address) as usize).wrapping_sub(self.start.as_ptr().addr());
                    return Ok(Some(offset / PAGE_BYTES * PAGE_BYTES));
                }
                // Another event, or a fault that was answered meanwhile.
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// Ends [`Self::next_fault`], now and later.
    pub fn end_faults(&self) {
        let written = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        debug_assert!(written.is_ok());
    }

    fn register(&self) -> Result<(), Errno> {
        let mut arguments = RegisterArguments {
            range: RangeArguments {
                start: self.address(0),
                bytes: self.bytes as u64,
            },
            mode: MODE_MISSING,
            ioctls: 0,
        };
        // SAFETY: the opcode's argument is `struct uffdio_register`; the range is a map of our own.
        unsafe { ioctl(&self.faults, Updater::<IOCTL_REGISTER, _>::new(&mut arguments)) }
    }

    fn advise(&self, range: Range<usize>, advice: Advice) {
        debug_assert!(range.end <= self.bytes);
        // SAFETY: pages of our own map; DONTNEED drops their content, as `forget` says, and the others change
        // none.
        let advised = unsafe {
            madvise(
                self.start.as_ptr().wrapping_add(range.start).cast(),
                range.len(),
                advice,
            )
        };
        debug_assert!(advised.is_ok());
    }

    fn address(&self, offset: usize) -> u64 {
        (self.start.as_ptr().addr() + offset) as u64
    }
}

/// A new private map, readable and writable, without a page: also in a process that has locked all its memory
/// and all that it will have (`mlockall`), where the kernel gives new maps their pages at once. It gives none
/// to a map without access, and none to one that is not locked.
fn map_without_pages(bytes: usize) -> Result<*mut std::ffi::c_void, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new map at an address of the kernel's choice touches no existing memory.
    let map = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags) }?;
    // SAFETY: the map made above, of which nothing is used yet. A kernel that refuses has locked nothing.
    let _may_be_refused = unsafe { munlock(map, bytes) };
    // SAFETY: as above.
    let opened = unsafe { mprotect(map, bytes, MprotectFlags::READ | MprotectFlags::WRITE) };
    opened.map(|()| map).inspect_err(|_| {
        // SAFETY: as above; it is given up.
        let _unmapped = unsafe { munmap(map, bytes) };
    })
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the map made in `new`, unmapped once; pointers into it are documented to end with `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_thread_that_touches_a_page_waits_for_its_content() {
        let Some(region) = Region::new(&FaultPlan::none(), "test", 64 * PAGE_BYTES as u64).unwrap() else {
            spillproof_testing::skipped("this kernel, or a container's filter, does not allow userfaultfd");
            return;
        };
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(offset) = region.next_fault().unwrap() {
                    answered.fetch_add(1, Ordering::Relaxed);
                    region
                        .place(offset, &vec![(offset / PAGE_BYTES) as u8; PAGE_BYTES])
                        .unwrap();
                }
            });
            let read = |page: usize| {
                let at = region.start().as_ptr().wrapping_add(page * PAGE_BYTES + 17);
                // SAFETY: inside of the region; the thread above only places whole pages that were not there.
                unsafe { at.read_volatile() }
            };
            for round in 1..4 {
                for page in 0..64 {
                    assert_eq!((read(page), read(page)), (page as u8, page as u8));
                }
                assert_eq!(answered.load(Ordering::Relaxed), 64 * round);
                region.forget(0..region.len_bytes());
            }
            // Pages that are placed before they are touched stop no thread.
            region.place(0, &vec![7; 64 * PAGE_BYTES]).unwrap();
            assert!((0..64).all(|page| read(page) == 7));
            region.wake(0..PAGE_BYTES);
            region.end_faults();
        });
        assert_eq!(answered.into_inner(), 64 * 3);
    }

    #[test]
    fn a_kernel_that_refuses_is_no_error() {
        let plan = FaultPlan::at(0, super::super::Fault::Unsupported);
        assert!(Region::new(&plan, "test", 4096).unwrap().is_none());
        let plan = FaultPlan::at(0, super::super::Fault::Io);
        assert!(Region::new(&plan, "test", 4096).is_err());
    }
}
