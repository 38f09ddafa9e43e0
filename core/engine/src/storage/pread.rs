//! The backend that works everywhere: threads that call pread and pwrite, and preadv2 and pwritev2 where there are
//! flags to give. Reads and writes have threads and queues of their own, so neither waits for the other.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::io::{Errno, pread, preadv2, pwrite, pwritev2};

use super::Engine;
use super::transfer::{AbortOnPanic, Attempt, Batch, Direction, Step, Transfer};
use crate::error::{Error, Result};

/// Enough for a disk's bandwidth with transfers of 64 KiB and more.
const READ_THREADS: usize = 4;
const WRITE_THREADS: usize = 2;
/// How many segments a thread takes from the queue at once.
const SEGMENTS_PER_CLAIM_MAX: usize = 16;

/// The threads; they end when this is dropped, after what was queued is done.
pub(super) struct Threads {
    reads: Arc<Lane>,
    writes: Arc<Lane>,
    threads: Vec<JoinHandle<()>>,
    /// The one that started them.
    process: u32,
}

#[derive(Default)]
struct Lane {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Batches with the first of their segments that no thread has claimed.
    batches: VecDeque<(Arc<Batch>, usize)>,
    closing: bool,
}

impl Threads {
    pub(super) fn start() -> Result<Self> {
        let mut engine = Self {
            reads: Arc::default(),
            writes: Arc::default(),
            threads: Vec::new(),
            process: std::process::id(),
        };
        for (lane, count, name) in [
            (engine.reads.clone(), READ_THREADS, "spillproof-read"),
            (engine.writes.clone(), WRITE_THREADS, "spillproof-write"),
        ] {
            for _ in 0..count {
                let lane = lane.clone();
                let thread = std::thread::Builder::new()
                    .name(name.into())
                    .spawn(move || lane.work(count))
                    .map_err(|source| Error::Threads { source })?;
                engine.threads.push(thread);
            }
        }
        Ok(engine)
    }
}

impl Engine for Threads {
    fn submit(&self, batch: Arc<Batch>) {
        let lane = match batch.direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        };
        let one_segment = batch.segments() == 1;
        lane.lock().batches.push_back((batch, 0));
        if one_segment {
            lane.changed.notify_one();
        } else {
            lane.changed.notify_all();
        }
    }

    fn name(&self) -> &'static str {
        "pread"
    }
}

/// Carries each batch out on the caller's thread.
pub(super) struct Inline;

impl Engine for Inline {
    fn submit(&self, batch: Arc<Batch>) {
        (0..batch.segments()).for_each(|index| run(batch.transfer(index)));
    }

    fn name(&self) -> &'static str {
        "inline"
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The threads are the parent's: there are none to wait for, and one may hold a lock.
            return;
        }
        for lane in [&self.reads, &self.writes] {
            lane.lock().closing = true;
            lane.changed.notify_all();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

impl Lane {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, threads: usize) {
        let _guard = AbortOnPanic;
        while let Some((batch, segments)) = self.claim(threads) {
            for index in segments {
                run(batch.transfer(index));
            }
        }
    }

    /// The next segments to do: a fair share of the oldest batch. `None` when the storage is closed and all
    /// is done.
    fn claim(&self, threads: usize) -> Option<(Arc<Batch>, std::ops::Range<usize>)> {
        let mut queue = self.lock();
        loop {
            if let Some((batch, claimed)) = queue.batches.front_mut() {
                let first = *claimed;
                let left = batch.segments() - first;
                let share = left.div_ceil(threads).clamp(1, SEGMENTS_PER_CLAIM_MAX);
                *claimed += share;
                let claim = (batch.clone(), first..first + share);
                if share == left {
                    queue.batches.pop_front();
                }
                return Some(claim);
            }
            if queue.closing {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

pub(super) fn run(mut transfer: Transfer) {
    while let Some(attempt) = transfer.next() {
        let result = perform(&transfer, &attempt);
        if transfer.report(result) == Step::Done {
            return;
        }
    }
}

fn perform(transfer: &Transfer, attempt: &Attempt) -> Result<usize, Errno> {
    let batch = transfer.batch();
    let (fd, cache) = (batch.handle.fd(), &batch.handle.cache);
    loop {
        let flags = cache.flags();
        let result = match batch.direction {
            Direction::Read => {
                // SAFETY: the attempt's bytes are inside the buffer that the transfer keeps alive,
                // initialised, and no other reference to them exists: the buffer's owner gave it away, and
                // other segments have transfers of their own.
                let bytes = unsafe { std::slice::from_raw_parts_mut(attempt.start, attempt.bytes) };
                match flags.is_empty() {
                    true => pread(fd, bytes, attempt.file_offset),
                    false => preadv2(fd, &mut [IoSliceMut::new(bytes)], attempt.file_offset, flags),
                }
            }
            Direction::Write => {
                // SAFETY: as above; no code writes to the bytes of a batch that is being written to a file.
                let bytes = unsafe { std::slice::from_raw_parts(attempt.start, attempt.bytes) };
                match flags.is_empty() {
                    true => pwrite(fd, bytes, attempt.file_offset),
                    false => pwritev2(fd, &[IoSlice::new(bytes)], attempt.file_offset, flags),
                }
            }
        };
        match result {
            Err(errno) if cache.was_flag_refused(errno, flags) => {}
            result => return result,
        }
    }
}
