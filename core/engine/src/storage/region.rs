//! Memory whose pages are put in place by the program itself: a page that is not there stops the thread that
//! touches it until another thread has filled it.
//!
//! So the bytes that a thread sees at an address are always those that [`Region::place`] was given, or the
//! thread waits. The kernel tells of faults ([`super::userfault`]), which containers often forbid. Then pages
//! that all stay in memory need no faults, and faults of others are signals ([`super::protected`]). Where
//! that cannot be either, [`Region::new`] gives `None`. The kernel does not wait for pages: a system call on
//! an address whose page is not there fails with EFAULT.
//!
//! Memory: the pages between [`Region::place`] and [`Region::forget`].
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munlock, munmap,
};

use super::FaultPlan;
use super::protected::Protected;
use super::userfault::Userfault;
use crate::budget::PAGE_BYTES;
use crate::error::{Error, Result};

/// Pages without content at first.
pub struct Region {
    name: String,
    start: NonNull<u8>,
    bytes: usize,
    faults: Faults,
    /// Readable once no fault is to be waited for any more.
    end: OwnedFd,
}

/// How a thread that touches a page is stopped.
enum Faults {
    /// All pages are there.
    None,
    Kernel(Userfault),
    Signals(Protected),
}

// SAFETY: the map is plain memory owned by this value; which thread reads and writes which byte when is for
// users of `start`.
unsafe impl Send for Region {}
// SAFETY: methods put pages in place and take them away, atomically as other threads see it.
unsafe impl Sync for Region {}

/// Whether the system lacks something, or forbids it.
fn is_refusal(errno: Errno) -> bool {
    use Errno as E;
    [E::PERM, E::NOSYS, E::INVAL, E::ACCESS, E::OPNOTSUPP].contains(&errno)
}

impl Region {
    /// `bytes`, rounded up to whole pages, without a page; if `stay_in_memory` and the kernel tells of no
    /// faults, with all of them. `None` where the system does not let a program fill its own pages.
    ///
    /// # Errors
    /// [`Error::Memory`] without address space, [`Error::File`] for faults of a test and a process with too
    /// many open files.
    pub(super) fn new(
        plan: &FaultPlan,
        what: &str,
        bytes: u64,
        stay_in_memory: bool,
    ) -> Result<Option<Self>> {
        let failed = |errno| super::handle::error("watch the pages of", what, errno);
        match plan.run(Userfault::open) {
            Ok(faults) => return Self::watched(what, bytes, faults).map(Some),
            Err(errno) if !is_refusal(errno) => return Err(failed(errno)),
            Err(_) => {}
        }
        if stay_in_memory {
            return Self::of_memory(what, bytes).map(Some);
        }
        let bytes_mapped = whole_pages(what, bytes)?;
        match plan.run(|| Protected::new(bytes_mapped)) {
            Ok((faults, start)) => Self::over(what, start, bytes_mapped, Faults::Signals(faults)).map(Some),
            Err(errno) if is_refusal(errno) => Ok(None),
            Err(errno @ Errno::NOMEM) => Err(no_room(what, bytes, errno)),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn watched(what: &str, bytes: u64, faults: Userfault) -> Result<Self> {
        let (start, bytes_mapped) = mapped(what, bytes, map_without_pages)?;
        let watched = faults.watch(start.as_ptr().addr() as u64, bytes_mapped);
        let region = Self::over(what, start, bytes_mapped, Faults::Kernel(faults))?;
        watched.map_err(|errno| no_room(what, bytes, errno))?;
        Ok(region)
    }

    /// Pages of zeros, all of which stay.
    fn of_memory(what: &str, bytes: u64) -> Result<Self> {
        let (start, bytes_mapped) = mapped(what, bytes, map_of_memory)?;
        Self::over(what, start, bytes_mapped, Faults::None)
    }

    /// Over a map that is not known elsewhere.
    fn over(what: &str, start: NonNull<u8>, bytes: usize, faults: Faults) -> Result<Self> {
        let end = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| {
            // SAFETY: the map, which goes with the error.
            let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
            super::handle::error("watch the pages of", what, errno)
        })?;
        let region = Self {
            name: what.to_owned(),
            start,
            bytes,
            faults,
            end,
        };
        // A forked process has no thread that fills pages. It gets no page of the region, since it would read
        // zeros there.
        region.advise(0..bytes, Advice::LinuxDontFork);
        region.advise(0..bytes, Advice::LinuxDontDump);
        Ok(region)
    }

    /// Whether the system lets this process fill its own pages; asked once.
    pub fn is_allowed() -> bool {
        static ALLOWED: OnceLock<bool> = OnceLock::new();
        *ALLOWED.get_or_init(|| {
            matches!(
                Self::new(&FaultPlan::none(), "a test", PAGE_BYTES as u64, false),
                Ok(Some(_))
            )
        })
    }

    /// Whether regions whose pages fit into memory keep them there, since the kernel tells of no faults;
    /// asked once.
    pub(crate) fn stays_if_it_can() -> bool {
        static STAYS: OnceLock<bool> = OnceLock::new();
        *STAYS.get_or_init(|| Userfault::open().is_err())
    }

    /// Whether no page leaves memory: [`Self::forget`] is not for this region.
    pub fn stays_in_memory(&self) -> bool {
        matches!(self.faults, Faults::None)
    }

    /// Where it is. Valid for [`Self::len_bytes`], as long as `self` lives.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes, in whole pages.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Gives `bytes.len()` bytes from `offset`, whole pages that are not there, their content, for the
    /// threads that wait for them ([`Self::wake`]).
    ///
    /// # Errors
    /// [`Error::Memory`] if the system has no pages.
    pub fn place(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        debug_assert!(offset.is_multiple_of(PAGE_BYTES) && bytes.len().is_multiple_of(PAGE_BYTES));
        debug_assert!(offset + bytes.len() <= self.bytes);
        let placed = match &self.faults {
            Faults::Kernel(faults) => faults.place(self.address(offset), bytes),
            Faults::Signals(faults) => faults.place(offset, bytes),
            Faults::None => {
                let place = self.start.as_ptr().wrapping_add(offset);
                // SAFETY: inside of the map, at pages that the caller has not given out yet.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
                Ok(())
            }
        };
        placed.map_err(|errno| Error::Memory {
            what: format!("{} that come back from disk", self.name),
            bytes: bytes.len() as u64,
            source: errno.into(),
        })
    }

    /// Takes the pages of a range away, and their content.
    pub fn forget(&self, range: Range<usize>) {
        match &self.faults {
            Faults::Kernel(_) => self.advise(range, Advice::LinuxDontNeed),
            // Pages that the system does not take keep their content, which is right.
            Faults::Signals(faults) => {
                if let Err(errno) = faults.forget(range) {
                    tracing::debug!(%errno, region = self.name, "pages stay in memory");
                }
            }
            Faults::None => debug_assert!(false, "{} stays in memory", self.name),
        }
    }

    /// Wakes the threads that wait for pages of a range, which are there.
    pub fn wake(&self, range: Range<usize>) {
        match &self.faults {
            Faults::Kernel(faults) => faults.wake(self.address(range.start), range.len()),
            Faults::Signals(faults) => faults.answer(),
            Faults::None => {}
        }
    }

    /// Waits until a thread touches a page that is not there; the page's offset. `None` after
    /// [`Self::end_faults`], and where no page leaves memory.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn next_fault(&self) -> Result<Option<usize>> {
        let failed = |errno| super::handle::error("watch the pages of", &self.name, errno);
        loop {
            let asked = match &self.faults {
                Faults::Kernel(faults) => faults.asked(),
                Faults::Signals(faults) => faults.asked(),
                Faults::None => return Ok(None),
            };
            let mut waited = [
                PollFd::from_borrowed_fd(asked, PollFlags::IN),
                PollFd::new(&self.end, PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut waited, None)).map_err(failed)?;
            if !waited[1].revents().is_empty() {
                return Ok(None);
            }
            let offset = match &self.faults {
                Faults::Kernel(faults) => {
                    let address = faults.next().map_err(failed)?;
                    address.map(|address| address.wrapping_sub(self.start.as_ptr().addr()))
                }
                Faults::Signals(faults) => Some(faults.next().map_err(failed)?),
                Faults::None => None,
            };
            if let Some(offset) = offset {
                return Ok(Some(offset / PAGE_BYTES * PAGE_BYTES));
            }
        }
    }

    /// Ends [`Self::next_fault`], now and later.
    pub fn end_faults(&self) {
        let written = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        debug_assert!(written.is_ok());
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

fn no_room(what: &str, bytes: u64, source: Errno) -> Error {
    Error::Memory {
        what: format!("pages of {what}"),
        bytes,
        source: source.into(),
    }
}

fn whole_pages(what: &str, bytes: u64) -> Result<usize> {
    let pages_bytes = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.max(1).checked_next_multiple_of(PAGE_BYTES))
        .filter(|bytes| isize::try_from(*bytes).is_ok());
    pages_bytes.ok_or_else(|| no_room(what, bytes, Errno::NOMEM))
}

/// A map of whole pages, and its length.
fn mapped(
    what: &str,
    bytes: u64,
    map: fn(usize) -> Result<*mut c_void, Errno>,
) -> Result<(NonNull<u8>, usize)> {
    let bytes_mapped = whole_pages(what, bytes)?;
    let start = map(bytes_mapped).map_err(|errno| no_room(what, bytes, errno))?;
    let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| no_room(what, bytes, Errno::NOMEM))?;
    Ok((start, bytes_mapped))
}

fn map_with(bytes: usize, protection: ProtFlags) -> Result<*mut c_void, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new map at an address of the kernel's choice touches no existing memory.
    unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) }
}

/// A new private map, readable and writable.
fn map_of_memory(bytes: usize) -> Result<*mut c_void, Errno> {
    map_with(bytes, ProtFlags::READ | ProtFlags::WRITE)
}

/// The same without a page: also in a process that has locked all its memory and all that it will have
/// (`mlockall`), where the kernel gives new maps their pages at once. It gives none to a map without access,
/// and none to one that is not locked.
fn map_without_pages(bytes: usize) -> Result<*mut c_void, Errno> {
    let map = map_with(bytes, ProtFlags::empty())?;
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
        // The handler of signals forgets the addresses before others can have them.
        self.faults = Faults::None;
        // SAFETY: the map that the region was made over, unmapped once; pointers into it are documented to
        // end with `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::Fault;
    use super::super::userfault::DEVICE;
    use super::*;

    const BYTES: u64 = 64 * PAGE_BYTES as u64;

    #[test]
    fn a_thread_that_touches_a_page_waits_for_its_content() {
        let Ok(faults) = Userfault::open() else {
            spillproof_testing::skipped("this kernel, or a container's filter, does not allow userfaultfd");
            return;
        };
        pages_come_when_they_are_touched(&Region::watched("test", BYTES, faults).unwrap());
    }

    /// As a process does to which the system call is forbidden, and the device is not.
    #[test]
    fn the_device_gives_what_the_system_call_gives() {
        match Userfault::of_device() {
            Ok(faults) => {
                pages_come_when_they_are_touched(&Region::watched("test", BYTES, faults).unwrap());
            }
            Err(errno) => spillproof_testing::skipped(format_args!("{DEVICE} cannot be used: {errno}")),
        }
    }

    /// As in a container that forbids both.
    #[test]
    fn signals_do_for_faults() {
        let refusing = FaultPlan::at(0, Fault::Unsupported);
        let region = Region::new(&refusing, "test", BYTES, false).unwrap().unwrap();
        assert!(matches!(region.faults, Faults::Signals(_)));
        pages_come_when_they_are_touched(&region);
    }

    #[test]
    fn pages_that_stay_in_memory_need_no_faults() {
        let refusing = FaultPlan::at(0, Fault::Unsupported);
        let bytes = 3 * PAGE_BYTES as u64 - 1;
        let region = Region::new(&refusing, "test", bytes, true).unwrap().unwrap();
        assert!(region.stays_in_memory());
        region.place(PAGE_BYTES, &[7; PAGE_BYTES]).unwrap();
        // SAFETY: the region, which no other thread writes.
        let bytes = unsafe { std::slice::from_raw_parts(region.start().as_ptr(), region.len_bytes()) };
        let expected = [[0; PAGE_BYTES], [7; PAGE_BYTES], [0; PAGE_BYTES]];
        assert!(bytes == expected.as_flattened());
        assert_eq!(region.next_fault().unwrap(), None);
    }

    fn pages_come_when_they_are_touched(region: &Region) {
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(offset) = region.next_fault().unwrap() {
                    answered.fetch_add(1, Ordering::Relaxed);
                    region
                        .place(offset, &vec![(offset / PAGE_BYTES) as u8; PAGE_BYTES])
                        .unwrap();
                    region.wake(offset..offset + PAGE_BYTES);
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
    fn a_system_that_refuses_is_no_error() {
        let plan = FaultPlan::at(0, Fault::Unsupported).and(1, Fault::Unsupported);
        assert!(Region::new(&plan, "test", 4096, false).unwrap().is_none());
        for index in 0..2 {
            let plan = FaultPlan::at(0, Fault::Unsupported).and(index, Fault::Io);
            assert!(Region::new(&plan, "test", 4096, false).is_err());
        }
    }
}
