//! The faults of a region where the kernel gives no `userfaultfd`: pages that are not there are forbidden to
//! the process, and the signal of a thread that touches one (SIGSEGV) becomes a question to the thread that
//! fills pages.
//!
//! ```text
//!   a thread touches a page -> SIGSEGV -> handler: writes the offset to a pipe, waits for the next answer
//!   the pager reads the pipe, fills the page's memory, allows it, counts an answer
//!   the handler returns, and the thread touches the page again
//! ```
//!
//! Content is in a nameless file in memory (`memfd_create(2)`), which no disk has but swap, and is mapped
//! once. A page is allowed when its content is complete, so a thread reads that or waits.
//!
//! The price: one handler of SIGSEGV for the process, which hands on every signal that is none of a region;
//! a system call for each block that comes or goes; and a library that takes SIGSEGV for itself later has to
//! hand it on as well.
//!
//! Memory: as that of the region; a pipe.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;

/// Regions that there can be at one time: proofs that are made side by side.
const REGIONS_MAX: usize = 256;

/// The regions whose faults the handler answers.
static REGIONS: [Slot; REGIONS_MAX] = [const { Slot::empty() }; REGIONS_MAX];

/// Where a region is. `end` is set last and taken away first.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    desk: AtomicPtr<Desk>,
}

/// Where threads ask for pages.
struct Desk {
    ask: OwnedFd,
    /// Counts answers.
    answers: AtomicU32,
    /// A process that was forked from it has no thread that answers.
    process: u32,
}

/// Memory of a region, and what threads ask of it.
pub(super) struct Protected {
    memory: OwnedFd,
    asked: OwnedFd,
    desk: Box<Desk>,
    slot: &'static Slot,
    start: NonNull<u8>,
}

// SAFETY: which thread changes which page when is for users of the region; the rest is owned.
unsafe impl Send for Protected {}
// SAFETY: as above.
unsafe impl Sync for Protected {}

impl Slot {
    const fn empty() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            desk: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Takes a free one for a region.
    fn take(start: usize, bytes: usize, desk: &Desk) -> Option<&'static Self> {
        let is_taken = |slot: &&Slot| {
            slot.start
                .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let slot = REGIONS.iter().find(is_taken)?;
        slot.desk.store(ptr::from_ref(desk).cast_mut(), Ordering::Release);
        slot.end.store(start + bytes, Ordering::Release);
        Some(slot)
    }

    fn leave(&self) {
        self.end.store(0, Ordering::Release);
        self.start.store(0, Ordering::Release);
    }

    /// The desk of the region that has this address, and the offset there.
    fn of(address: usize) -> Option<(*const Desk, usize)> {
        REGIONS.iter().find_map(|slot| {
            let start = slot.start.load(Ordering::Acquire);
            let end = slot.end.load(Ordering::Acquire);
            let desk = slot.desk.load(Ordering::Acquire);
            // The slot may have changed hands in between.
            let is_same = slot.start.load(Ordering::Acquire) == start;
            (start != 0 && is_same && (start..end).contains(&address))
                .then(|| (desk.cast_const(), address - start))
        })
    }
}

impl Protected {
    /// Addresses for `bytes`, whole pages, none of which is there.
    ///
    /// # Errors
    /// The kernel's; `MFILE` where there are too many regions.
    pub fn new(bytes: usize) -> Result<(Self, NonNull<u8>), Errno> {
        answer_signals()?;
        let memory = memfd_create("spillproof cells", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, bytes as u64)?;
        let (asked, ask) = pipe_with(PipeFlags::CLOEXEC)?;
        let desk = Box::new(Desk {
            ask,
            answers: AtomicU32::new(0),
            process: std::process::id(),
        });
        let (protection, flags) = (ProtFlags::empty(), MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: a new map at an address of the kernel's choice touches no existing memory.
        let map = unsafe { mmap(ptr::null_mut(), bytes, protection, flags, &memory, 0) }?;
        let start = NonNull::new(map.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let Some(slot) = Slot::take(start.as_ptr().addr(), bytes, &desk) else {
            // SAFETY: the map of above, which no other code knows.
            let _ = unsafe { rustix::mm::munmap(map, bytes) };
            return Err(Errno::MFILE);
        };
        let protected = Self {
            memory,
            asked,
            desk,
            slot,
            start,
        };
        Ok((protected, start))
    }

    /// Readable when a thread has asked for a page.
    pub fn asked(&self) -> BorrowedFd<'_> {
        self.asked.as_fd()
    }

    /// The offset of the next byte that a thread has asked for.
    ///
    /// # Errors
    /// The kernel's.
    pub fn next(&self) -> Result<usize, Errno> {
        let mut offset = [0; size_of::<usize>()];
        let read = retry_on_intr(|| rustix::io::read(&self.asked, &mut offset))?;
        // Writes of so few bytes are whole.
        match read == offset.len() {
            true => Ok(usize::from_ne_bytes(offset)),
            false => Err(Errno::IO),
        }
    }

    /// Gives pages their content, and lets threads see it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn place(&self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let at = (offset + done) as u64;
            match retry_on_intr(|| rustix::io::pwrite(&self.memory, &bytes[done..], at))? {
                0 => return Err(Errno::NOSPC),
                written => done += written,
            }
        }
        self.allow(
            offset..offset + bytes.len(),
            MprotectFlags::READ | MprotectFlags::WRITE,
        )
    }

    /// Takes pages away, and their content.
    ///
    /// # Errors
    /// The kernel's: some may be left.
    pub fn forget(&self, range: Range<usize>) -> Result<(), Errno> {
        self.allow(range.clone(), MprotectFlags::empty())?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&self.memory, flags, range.start as u64, range.len() as u64))
    }

    /// Lets all threads that wait touch their pages again.
    pub fn answer(&self) {
        self.desk.answers.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&self.desk.answers, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    fn allow(&self, range: Range<usize>, what: MprotectFlags) -> Result<(), Errno> {
        let start = self.start.as_ptr().wrapping_add(range.start).cast::<c_void>();
        // SAFETY: pages of the region's own map; threads that touch those that are not allowed wait.
        unsafe { mprotect(start, range.len(), what) }
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        self.slot.leave();
    }
}

/// What SIGSEGV did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once.
fn answer_signals() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    let failed = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOSYS);
    *INSTALLED.get_or_init(|| {
        // SAFETY: all-zero bytes are an action: the default one, with no flag.
        let [mut before, mut action]: [libc::sigaction; 2] = unsafe { std::mem::zeroed() };
        // SAFETY: asks for the action, into a place of its own.
        if unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), &mut before) } != 0 {
            return Err(failed());
        }
        // Known before the first signal comes.
        BEFORE.get_or_init(|| before);
        let handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
        action.sa_sigaction = handler as *const () as usize;
        // On the stack for signals, where a thread has one: those that overflow their own are handed on.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler calls only what a handler may call.
        match unsafe { libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(failed()),
        }
    })
}

/// The handler. It allocates nothing, takes no lock, and calls nothing but system calls.
///
/// # Safety
/// For the kernel alone to call.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the place of this thread's error number.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above, and the kernel's description of the signal.
    let (number, address) = unsafe { (*errno, (*info).si_addr().addr()) };
    if !waits_for_page(address) {
        // SAFETY: what the kernel gave.
        unsafe { hand_on(signal, info, context) };
    }
    // SAFETY: as above.
    unsafe { *errno = number };
}

/// Asks for the page of an address, and waits; `false` if no region answers for it.
fn waits_for_page(address: usize) -> bool {
    let Some((desk, offset)) = Slot::of(address) else {
        return false;
    };
    // SAFETY: the region lives: a thread touches it now.
    let desk = unsafe { &*desk };
    if desk.process != std::process::id() {
        return false;
    }
    let seen = desk.answers.load(Ordering::Acquire);
    if retry_on_intr(|| rustix::io::write(&desk.ask, &offset.to_ne_bytes())).is_err() {
        return false;
    }
    // The answer may be another thread's: then this one asks again.
    while desk.answers.load(Ordering::Acquire) == seen {
        let _ = futex::wait(&desk.answers, futex::Flags::PRIVATE, seen, None);
    }
    true
}

/// Does what was done before with a signal of no region.
///
/// # Safety
/// As [`on_fault`].
unsafe fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE
        .get()
        .filter(|before| before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN);
    let Some(before) = before else {
        // SAFETY: all-zero bytes are the default action, which ends the process when the instruction that
        // failed is tried again.
        unsafe {
            let action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &action, ptr::null_mut());
        }
        return;
    };
    let handler = before.sa_sigaction as *const ();
    match before.sa_flags & libc::SA_SIGINFO {
        0 => {
            // SAFETY: a handler that was installed without the flag takes a number.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
        _ => {
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: a handler that was installed with the flag takes these.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
    }
}
