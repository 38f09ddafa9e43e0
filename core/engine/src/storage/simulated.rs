//! The backend of simulations: one thread carries out the transfers of all files and callers, in an order
//! that a seed draws, some of them late. What a seed draws is the same again; which transfers are there to
//! draw from depends on the threads that ask.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::transfer::{AbortOnPanic, Batch};
use super::{Engine, handle, pread};
use crate::error::Result;

/// One of so many transfers is late.
const LATE_ONE_OF: u32 = 8;
const LATE_MICROSECONDS_MAX: u64 = 300;

pub(super) struct Simulated {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
    /// The one that started the thread.
    process: u32,
}

#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Batches and their segments, in any order.
    segments: Vec<(Arc<Batch>, usize)>,
    closing: bool,
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, mut rng: StdRng) {
        let _guard = AbortOnPanic;
        loop {
            if rng.gen_ratio(1, LATE_ONE_OF) {
                std::thread::sleep(Duration::from_micros(rng.gen_range(0..LATE_MICROSECONDS_MAX)));
            }
            let mut waiting = self.waiting();
            while waiting.segments.is_empty() {
                if waiting.closing {
                    return;
                }
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let drawn = rng.gen_range(0..waiting.segments.len());
            let (batch, index) = waiting.segments.swap_remove(drawn);
            drop(waiting);
            pread::run(batch.transfer(index));
        }
    }
}

impl Simulated {
    pub(super) fn start(seed: u64) -> Result<Self> {
        let desk = Arc::<Desk>::default();
        let of_thread = desk.clone();
        let thread = std::thread::Builder::new()
            .name("spillproof-simulated".into())
            .spawn(move || of_thread.work(StdRng::seed_from_u64(seed)))
            .map_err(|source| handle::error("start a thread for", "simulated transfers", source))?;
        Ok(Self {
            desk,
            thread: Some(thread),
            process: std::process::id(),
        })
    }
}

impl Engine for Simulated {
    fn submit(&self, batch: Arc<Batch>) {
        let segments = (0..batch.segments()).map(|index| (batch.clone(), index));
        self.desk.waiting().segments.extend(segments);
        self.desk.changed.notify_one();
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The thread is the parent's, and may hold the lock.
            return;
        }
        self.desk.waiting().closing = true;
        self.desk.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked ended the process.
            let _ = thread.join();
        }
    }
}
