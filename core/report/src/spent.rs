//! Resources of the process so far: bytes, time blocked on the disk, time on processors and in the queue for
//! them. A phase is the difference of two.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spillproof_engine::storage::IoStats;

use crate::device::{self, OnDevices};

/// Sums since the start of the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Of the session's storage.
    pub io: IoStats,
    /// Time of processors, all threads together, in the program and in the kernel on its behalf.
    pub processor: Duration,
    /// How long threads that could run waited for a processor, those that live, all together; zero where the
    /// kernel does not count it.
    pub queued: Duration,
    /// On devices, where there are some.
    pub device: Option<OnDevices>,
}

impl Spent {
    /// With these sums of the storage.
    pub fn now(io: IoStats) -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            io,
            processor: Duration::try_from(time).unwrap_or_default(),
            queued: Duration::ZERO,
            device: device::so_far(),
        }
    }

    /// The same with the time in the queue, which takes a file of the kernel for each thread.
    pub fn with_queue(io: IoStats) -> Self {
        Self {
            queued: queued(),
            ..Self::now(io)
        }
    }
}

/// The second number of `/proc/self/task/*/schedstat`, in nanoseconds.
fn queued() -> Duration {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Duration::ZERO;
    };
    let of_thread = |thread: fs::DirEntry| -> Option<u64> {
        // A thread may end meanwhile.
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let nanoseconds = threads.flatten().filter_map(of_thread).sum();
    Duration::from_nanos(nanoseconds)
}
