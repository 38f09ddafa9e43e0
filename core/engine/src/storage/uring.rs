//! The backend for io_uring: rings, each owned by one thread, for the direct transfers of all files and
//! callers.
//!
//! One thread that submits all transfers is a serial stretch: of a proof that moves 1.7 GiB (chain, 2^18
//! rows) it takes 0.45 s, since the kernel holds the pages and builds the request before it returns. So one
//! ring serves a few threads; with more, batches go to several rings in turn.
//!
//! Callers put batches into an inbox and ring a bell (an eventfd that the ring polls) if the driver sleeps.
//! The driver takes segments from two queues, reads and writes, each with a limit on what is in flight, so
//! that neither starves the other and the completion queue (twice the sum) cannot overflow; what is over the
//! limit waits in the queue. All that can be submitted goes in with the system call that waits, and the
//! driver wakes only when enough is done to be of use to a waiting thread: when a batch can be finished, or a
//! good part of the depth can be filled again.
//!
//! A [`Transfer`] stays in its slot until the kernel reports it, and the ring is not left before all slots
//! are empty, unless the system call fails for good: then all transfers fail, and buffers that the kernel may
//! still have are never freed.
//!
//! Source: "Efficient IO with io_uring" (J. Axboe), io_uring_setup(2) for DEFER_TASKRUN. Peak memory: about
//! 100 KiB.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::bell::Desk;
use super::transfer::{AbortOnPanic, Batch, Direction, Step, Transfer};
use super::{Engine, handle};
use crate::error::{Error, Result};

/// How many segments of one direction are in flight at most.
const LANE_DEPTH: usize = 64;
const DEPTH: usize = 2 * LANE_DEPTH;
/// The ring's submission entries: every slot and the bell fit at once. Completions have twice as many.
const RING_ENTRIES: u32 = 256;
/// The driver sleeps over no more transferred bytes than this when others could be served: a quarter
/// millisecond of a disk.
const NAP_BYTES: usize = 256 << 10;
/// A ring whose system call fails for so long is given up: at once refused, or out of memory.
const REFUSED_MAX: Duration = Duration::from_secs(1);
const BUSY_MAX: Duration = Duration::from_secs(60);
/// How often a ring that was given up looks for batches to refuse.
const GIVEN_UP_NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Marks the bell's completions.
const BELL: u64 = u64::MAX;

/// Threads that one ring serves.
const THREADS_PER_RING: usize = 4;
const RINGS_MAX: usize = 8;

/// All rings.
pub(super) struct Uring {
    rings: Vec<Ring>,
    /// Batches so far.
    batches: AtomicUsize,
}

impl Uring {
    /// Starts rings for so many threads that ask for transfers, and sees that the first one works. Where the
    /// kernel refuses the others (each takes a little memory that counts as locked, on old kernels), there
    /// are fewer.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the kernel has none, or does not allow it (containers often do not).
    pub(super) fn start(threads: usize) -> Result<Self> {
        let mut rings = vec![Ring::start()?];
        let more = (threads / THREADS_PER_RING).min(RINGS_MAX).saturating_sub(1);
        rings.extend((0..more).map_while(|_| Ring::start().ok()));
        Ok(Self {
            rings,
            batches: AtomicUsize::new(0),
        })
    }
}

impl Engine for Uring {
    fn submit(&self, batch: Arc<Batch>) {
        let turn = self.batches.fetch_add(1, Relaxed) % self.rings.len();
        self.rings[turn].submit(batch);
    }

    fn is_ring(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "uring"
    }
}

/// A ring's front desk; dropped, it waits for all that was submitted.
struct Ring {
    front: Arc<Front>,
    driver: Option<JoinHandle<()>>,
    /// The one that started the thread.
    process: u32,
}

struct Front {
    desk: Desk<Arc<Batch>>,
    bell: OwnedFd,
}

impl Ring {
    /// Starts a ring, and sees that it works.
    fn start() -> Result<Self> {
        let unavailable = |source| Error::Unavailable {
            what: "io_uring",
            source,
            remedy: "use the pread backend, or allow io_uring (kernel.io_uring_disabled, the container's seccomp profile)",
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| handle::error("create", "an eventfd", errno))?;
        let front = Arc::new(Front {
            desk: Desk::new(),
            bell,
        });
        let (tell, told) = mpsc::channel();
        let driver = std::thread::Builder::new()
            .name("spillproof-uring".into())
            .spawn({
                let front = front.clone();
                // The ring belongs to the thread that made it.
                move || match working_ring() {
                    Ok(ring) => {
                        let _ = tell.send(Ok(()));
                        Driver::new(ring, front).run();
                    }
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                }
            })
            .map_err(|source| Error::Threads { source })?;
        let engine = Self {
            front,
            driver: Some(driver),
            process: std::process::id(),
        };
        match told.recv() {
            Ok(Ok(())) => Ok(engine),
            Ok(Err(source)) => Err(unavailable(source)),
            Err(_) => Err(unavailable(std::io::Error::other("its thread ended"))),
        }
    }

    fn submit(&self, batch: Arc<Batch>) {
        self.front.desk.send(batch, || self.front.ring());
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The thread is the parent's: there is none to wait for, and it may hold the lock.
            return;
        }
        self.front.desk.close(|| self.front.ring());
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
    }
}

impl Front {
    fn ring(&self) {
        // Fails only if the counter is full: then the bell rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

/// A ring that has done something: probing the setup alone is not enough where seccomp is at work.
fn working_ring() -> std::io::Result<IoUring> {
    let deferred: std::io::Result<IoUring> = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_submit_all()
        .dontfork()
        .build(RING_ENTRIES);
    let mut ring = match deferred {
        // Before Linux 6.1.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            IoUring::builder().dontfork().build(RING_ENTRIES)?
        }
        ring => ring?,
    };
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    for code in [opcode::Read::CODE, opcode::Write::CODE, opcode::PollAdd::CODE] {
        if !probe.is_supported(code) {
            return Err(Errno::OPNOTSUPP.into());
        }
    }
    // SAFETY: a no-op has no memory to keep valid.
    unsafe { ring.submission().push(&opcode::Nop::new().build()) }
        .map_err(|_| std::io::Error::other("a new ring is full"))?;
    while let Err(error) = ring.submit_and_wait(1) {
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let completion = ring.completion().next();
    if completion.is_some_and(|completion| completion.result() == 0) {
        return Ok(ring);
    }
    Err(std::io::Error::other("a no-op did not complete"))
}

/// The thread that owns the ring.
struct Driver {
    ring: IoUring,
    front: Arc<Front>,
    closing: bool,
    bell_armed: bool,
    reads: Lane,
    writes: Lane,
    slots: Vec<Option<Active>>,
    free: Vec<usize>,
    /// Since when the system call fails.
    failing_since: Option<Instant>,
}

/// What the kernel has.
struct Active {
    transfer: Transfer,
    bytes: usize,
}

#[derive(Default)]
struct Lane {
    /// Batches with the first of their segments that is not in a slot yet.
    waiting: VecDeque<(Arc<Batch>, usize)>,
    in_flight: usize,
}

impl Lane {
    /// The next segment, if the limit lets it.
    fn next(&mut self) -> Option<Transfer> {
        if self.in_flight == LANE_DEPTH {
            return None;
        }
        let (batch, next) = self.waiting.front_mut()?;
        let transfer = batch.transfer(*next);
        *next += 1;
        if *next == batch.segments() {
            self.waiting.pop_front();
        }
        Some(transfer)
    }
}

impl Driver {
    fn new(ring: IoUring, front: Arc<Front>) -> Self {
        Self {
            ring,
            front,
            closing: false,
            bell_armed: false,
            reads: Lane::default(),
            writes: Lane::default(),
            slots: (0..DEPTH).map(|_| None).collect(),
            free: (0..DEPTH).rev().collect(),
            failing_since: None,
        }
    }

    fn run(mut self) {
        let _guard = AbortOnPanic;
        loop {
            self.collect();
            self.fill();
            let idle = self.in_flight() == 0;
            if idle && self.closing {
                return;
            }
            self.arm_bell();
            if !self.front.desk.may_sleep(self.closing) {
                continue;
            }
            let slept = self.submit_and_sleep();
            self.front.desk.is_awake();
            self.harvest();
            if let Err(errno) = slept {
                return self.give_up(errno);
            }
        }
    }

    /// Refuses all transfers from now on. The kernel may still have those in slots: their buffers are never
    /// freed.
    fn give_up(mut self, errno: Errno) {
        tracing::error!(%errno, "io_uring_enter fails for good: every transfer fails from now on; the pread backend may work");
        for active in self.slots.iter_mut().filter_map(Option::take) {
            active.transfer.abandon(errno);
        }
        let refuse = |lane: &mut Lane| {
            lane.in_flight = 0;
            while let Some(transfer) = lane.next() {
                transfer.refuse(errno);
            }
        };
        loop {
            self.collect();
            refuse(&mut self.reads);
            refuse(&mut self.writes);
            if self.closing {
                return;
            }
            if self.front.desk.may_sleep(self.closing) {
                // The bell, or a look from time to time.
                let mut bell = [PollFd::new(&self.front.bell, PollFlags::IN)];
                let _ = poll(&mut bell, Some(&GIVEN_UP_NAP));
                let _ = rustix::io::read(&self.front.bell, &mut [0u8; 8]);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.reads.in_flight + self.writes.in_flight
    }

    fn collect(&mut self) {
        let (batches, closing) = self.front.desk.take();
        self.closing = closing;
        for batch in batches {
            match batch.direction {
                Direction::Read => self.reads.waiting.push_back((batch, 0)),
                Direction::Write => self.writes.waiting.push_back((batch, 0)),
            }
        }
    }

    /// Takes waiting segments into free slots.
    fn fill(&mut self) {
        loop {
            let read = self.reads.next();
            let write = self.writes.next();
            if read.is_none() && write.is_none() {
                return;
            }
            for transfer in [read, write].into_iter().flatten() {
                // Two lanes of LANE_DEPTH have DEPTH slots, so there is one.
                if let Some(slot) = self.free.pop() {
                    self.lane(&transfer).in_flight += 1;
                    self.attempt(slot, transfer);
                }
            }
        }
    }

    fn lane(&mut self, transfer: &Transfer) -> &mut Lane {
        match transfer.batch().direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// Queues the next attempt of a transfer, which sits in `slot` until it is reported.
    fn attempt(&mut self, slot: usize, mut transfer: Transfer) {
        let Some(attempt) = transfer.next() else {
            self.release(slot, &transfer);
            return;
        };
        let batch = transfer.batch();
        let fd = types::Fd(batch.handle.fd().as_raw_fd());
        // An attempt has at most 2^30 bytes.
        let bytes = attempt.bytes as u32;
        let entry = match batch.direction {
            Direction::Read => opcode::Read::new(fd, attempt.start, bytes)
                .offset(attempt.file_offset)
                .build(),
            Direction::Write => opcode::Write::new(fd, attempt.start, bytes)
                .offset(attempt.file_offset)
                .build(),
        };
        self.slots[slot] = Some(Active {
            transfer,
            bytes: attempt.bytes,
        });
        self.push(&entry.user_data(slot as u64));
    }

    fn release(&mut self, slot: usize, transfer: &Transfer) {
        self.lane(transfer).in_flight -= 1;
        self.free.push(slot);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: memory and file of a transfer are kept by its slot until its completion was seen; the bell
        // has no memory, and its descriptor is kept by `self.front`.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // Cannot be: there are more entries than slots. If it is, the kernel takes some now.
            let _ = self.ring.submit();
        }
    }

    fn arm_bell(&mut self) {
        if !self.bell_armed {
            self.bell_armed = true;
            // POLLIN
            let poll = opcode::PollAdd::new(types::Fd(self.front.bell.as_raw_fd()), 1);
            self.push(&poll.build().user_data(BELL));
        }
    }

    /// How many completions are worth waking up for.
    fn worthwhile(&self) -> usize {
        let active = || self.slots.iter().flatten();
        let largest_bytes = active().map(|active| active.bytes).max().unwrap_or(NAP_BYTES);
        // Nobody is served before its batch is finished ...
        let first_batch = active()
            .map(|active| active.transfer.batch().unfinished())
            .min()
            .unwrap_or(1);
        // ... except that others may come, or wait for a slot.
        first_batch
            .min(NAP_BYTES / largest_bytes)
            .min(self.in_flight() / 4)
            .max(1)
    }

    /// An error if the system call failed for so long that it will not work again.
    fn submit_and_sleep(&mut self) -> Result<(), Errno> {
        let Err(error) = self.ring.submit_and_wait(self.worthwhile()) else {
            self.failing_since = None;
            return Ok(());
        };
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let (nap, most) = match errno {
            Errno::INTR => return Ok(()),
            // Short of memory or of room for completions: what is done is harvested, then it is tried again.
            Errno::AGAIN | Errno::BUSY | Errno::NOMEM => (Duration::from_micros(50), BUSY_MAX),
            _ => (Duration::from_millis(20), REFUSED_MAX),
        };
        if self.failing_since.get_or_insert_with(Instant::now).elapsed() > most {
            return Err(errno);
        }
        std::thread::sleep(nap);
        Ok(())
    }

    fn harvest(&mut self) {
        loop {
            let Some(entry) = self.ring.completion().next() else {
                return;
            };
            if entry.user_data() == BELL {
                self.bell_armed = false;
                let _ = rustix::io::read(&self.front.bell, &mut [0u8; 8]);
                continue;
            }
            let slot = entry.user_data() as usize;
            let Some(mut active) = self.slots.get_mut(slot).and_then(Option::take) else {
                tracing::error!(slot, "io_uring completed what was not submitted");
                continue;
            };
            let result = match entry.result() {
                bytes @ 0.. => Ok(bytes as usize),
                errno => Err(Errno::from_raw_os_error(-errno)),
            };
            if active.transfer.report(result) == Step::Again {
                self.attempt(slot, active.transfer);
            } else {
                self.release(slot, &active.transfer);
            }
        }
    }
}
