//! How fast the scratch folder of a workspace is, measured once: a scratch file of [`DISK_BYTES`], written twice and
//! read through the storage. Memory: a chunk of the budget for each of [`TRANSFERS`].

use super::{Workspace, sequential_bytes};
use crate::Result;
use crate::budget::PAGE_BYTES;

/// Bytes of the scratch file.
const DISK_BYTES: u64 = 64 << 20;
/// Transfers on their way at a time.
const TRANSFERS: usize = 4;

impl Workspace {
    /// Bytes a second, read and written.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::File`], [`crate::Error::Io`].
    pub fn disk_rates(&self) -> Result<(f64, f64)> {
        let piece_bytes = sequential_bytes(self.budget.limit_bytes(), PAGE_BYTES);
        let buffer = |_| self.budget.buffer(piece_bytes, "rates");
        self.storage
            .rates(DISK_BYTES, || (0..TRANSFERS).map(buffer).collect())
    }

    /// Seconds in which the disk gives and takes so many bytes; none if its rates cannot be measured.
    pub fn disk_seconds(&self, bytes_read: u64, bytes_written: u64) -> f64 {
        if bytes_read + bytes_written == 0 {
            return 0.0;
        }
        self.disk_rates().map_or(0.0, |(read, written)| {
            bytes_read as f64 / read + bytes_written as f64 / written
        })
    }
}

/// Seconds of two kinds of work that go on side by side as far as they can: the longer counts in full, the shorter
/// one half, which is off by less than a factor of 1.5 if all of it is hidden, or nothing.
pub fn side_by_side(one: f64, other: f64) -> f64 {
    one.max(other) + one.min(other) / 2.0
}
