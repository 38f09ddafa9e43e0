//! Workers that go on side by side, each at its own pace, on the threads of the pool.
//!
//! A worker's own loops share the pool, too: a thread that has no worker takes part in those of others.
//! Workers take no lock that they wait under, since a thread that waits for a part of one worker's loop may
//! run another worker meanwhile.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_kernels::parallel::Parallel;

/// Whether a worker has failed: the others end early.
pub(in crate::stages) struct Stopped(AtomicBool);

impl Stopped {
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Lets `work` run for each worker.
///
/// # Errors
/// The first error of a worker, when all have ended.
pub(in crate::stages) fn side_by_side<W: Send>(
    workers: Vec<W>,
    work: impl Fn(W, &Stopped) -> Result<()> + Sync,
) -> Result<()> {
    let failure = Mutex::new(None::<Error>);
    let stopped = Stopped(AtomicBool::new(false));
    let run = |worker| {
        if let Err(error) = work(worker, &stopped) {
            stopped.0.store(true, Relaxed);
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
        }
    };
    workers.into_iter().parallel().for_each(run);
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}
