//! The host's part of a job: pinned slots, leased from the session's budget while it runs.
//!
//! They are made for each job and given back after it, since a stage of the engine plans with all that the budget has left.

use spillproof::budget::{Budget, Lease};

use super::stop::Stop;
use crate::ring::{Download, Upload};
use crate::{Caching, Gpu, Pinned};

/// Slots on the way to the device: one is being filled, one is on its way, one is ready.
pub const UPLOAD_SLOTS: usize = 3;
/// Slots on the way back: one is being emptied while another is filled.
pub const DOWNLOAD_SLOTS: usize = 2;
/// The most of a slot: a copy of so much has long reached the bus's full rate, and locking pages, for each job anew, takes longer than
/// copying them.
pub(super) const SLOT_BYTES_MAX: u64 = 16 << 20;
/// A slot takes at most this part of what the budget has left: the columns' buffers want some, too.
const SLOT_PART: u64 = 8;
const BACK_SLOT_PART: u64 = 16;

/// The most that each slot of a job may have now; a power of two, so that plans of like jobs are alike.
pub(super) fn slot_bytes_max(budget: &Budget, both_ways: bool) -> u64 {
    let part = if both_ways { BACK_SLOT_PART } else { SLOT_PART };
    let bytes = (budget.available_bytes() / part).min(SLOT_BYTES_MAX);
    bytes.checked_ilog2().map_or(0, |log| 1 << log)
}

/// A job's slots, with their lease.
pub(super) struct Host {
    // Before the lease: memory is given back first.
    pub upload: Upload,
    pub download: Option<Download>,
    _lease: Lease,
}

impl Host {
    /// Slots of `slot_bytes`.
    pub fn new(gpu: &Gpu, budget: &Budget, slot_bytes: u64, both_ways: bool) -> Result<Self, Stop> {
        let count = UPLOAD_SLOTS + if both_ways { DOWNLOAD_SLOTS } else { 0 };
        let total_bytes = slot_bytes * count as u64;
        let lease = budget.lease(total_bytes, "pinned slots")?;
        let pinned = Pinned::new(total_bytes);
        let slots = |count, caching, what: &'static str| {
            pinned
                .pool(gpu, count, slot_bytes as usize, caching, what)?
                .take(count)
        };
        let download = if both_ways {
            let slots = slots(DOWNLOAD_SLOTS, Caching::Cached, "chunks from the device")?;
            Some(Download::new(slots, gpu.trace())?)
        } else {
            None
        };
        let slots = slots(UPLOAD_SLOTS, Caching::WriteCombined, "chunks to the device")?;
        Ok(Self {
            upload: Upload::new(slots, gpu.trace())?,
            download,
            _lease: lease,
        })
    }
}
