//! Resources of the process so far: bytes, time blocked on the disk, processor time. A phase is the
//! difference of two.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spillproof_engine::storage::IoStats;

/// Sums since the start of the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Of the session's storage.
    pub io: IoStats,
    /// Time of processors, all threads together, in the program and in the kernel on its behalf.
    pub processor: Duration,
}

impl Spent {
    /// With these sums of the storage.
    pub fn now(io: IoStats) -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            io,
            processor: Duration::try_from(time).unwrap_or_default(),
        }
    }
}
