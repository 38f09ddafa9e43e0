//! The host's side of a job: pinned slots, leased from the session's budget.
//!
//! Locking pages takes longer than copying them, so the [`SlotCache`] keeps slots from job to job, as
//! [`Spares`] of the session's budget. A stage of the engine plans with all bytes that the budget has left.
//! Spare slots count as free, and are given back when their bytes are needed. All slots together, in use and
//! kept, are within the accelerator's own budget of page-locked memory ([`Staging`]); where that is short,
//! the slots that were kept longest are freed.
//!
//! Slots have lengths of a power of two, so that jobs with slightly different cuts share them. The slots of a
//! job that failed are given back.

use std::ops::RangeInclusive;

use spillproof_engine::budget::{Budget, ByteSize, Lease, Spares};

use super::rates::{Reads, Worth};
use super::stop::Stop;
use crate::budget::PINNED_MEMORY;
use crate::error::A_PINNED_SLOT;
use crate::ntt::NttSlots;
use crate::ring::{Download, Upload};
use crate::{Caching, Error, Gpu, Pinned, Result};

/// Slots of an upload: one is filled, one is copied, one is ready.
pub const UPLOAD_SLOTS: usize = 3;
/// Slots of a download: one is emptied while another is filled.
pub const DOWNLOAD_SLOTS: usize = 2;
/// The most bytes of a slot: a copy of this many reaches the full rate of the bus.
const SLOT_BYTES_MAX: u64 = 16 << 20;
/// A slot takes at most this part of the free bytes of the budget: the buffers of columns need some, too.
const SLOT_PART: u64 = 8;
const BACK_SLOT_PART: u64 = 16;
/// Slots of a job with upload and download.
const SLOTS: u64 = (UPLOAD_SLOTS + DOWNLOAD_SLOTS) as u64;
/// The most bytes of the slots of a job.
const PINNED_BYTES: u64 = SLOTS * SLOT_BYTES_MAX;

/// The shortest slot that any job can use: a page.
const SLOT_BYTES_MIN: u64 = 4096;

/// How an accelerator stages data in page-locked memory.
#[derive(Debug, Clone)]
pub struct Staging {
    /// The budget of page-locked memory. Several accelerators of one device each may share one; several
    /// devices of one accelerator have equal parts. The default is 80 MiB, the most that one job takes.
    pub pinned: Pinned,
    /// How the host caches the slots of uploads. Whole frames of columns are read from disk straight into
    /// cached slots, the default, and checked there. Write-combined slots are a little faster for the bus,
    /// and the host must not read them, so their data is read and checked elsewhere, and copied.
    pub upload: Caching,
}

impl Default for Staging {
    fn default() -> Self {
        Self {
            pinned: Pinned::new(PINNED_BYTES),
            upload: Caching::Cached,
        }
    }
}

impl Staging {
    /// Staging for `devices` devices, with a budget of page-locked memory ([`ByteSize::Auto`]: the default
    /// for each device).
    ///
    /// # Errors
    /// [`Error::TooSmall`], with the smallest budget, if a slot would be shorter than a page. Longer
    /// transforms and wider circuits need longer slots: the accelerator declines them, and the reason gives
    /// the budget.
    pub fn of(pinned: ByteSize, upload: Caching, devices: usize) -> Result<Self> {
        let devices = devices.max(1) as u64;
        let bytes = match pinned {
            ByteSize::Bytes(bytes) => bytes,
            ByteSize::Auto => devices * PINNED_BYTES,
        };
        let smallest_bytes = devices * SLOTS * SLOT_BYTES_MIN;
        if bytes < smallest_bytes {
            return Err(Error::TooSmall {
                what: format!("{SLOTS} slots of {SLOT_BYTES_MIN} bytes for each of {devices} devices"),
                memory: PINNED_MEMORY.name,
                budget_bytes: bytes,
                smallest_bytes,
            });
        }
        Ok(Self {
            pinned: Pinned::new(bytes),
            upload,
        })
    }

    /// The part of one of `devices` devices. No device waits for slots that another one keeps.
    pub(super) fn part(&self, devices: usize) -> Self {
        let pinned = match devices {
            0 | 1 => self.pinned.clone(),
            _ => Pinned::new(self.pinned.budget().limit_bytes() / devices as u64),
        };
        Self {
            pinned,
            upload: self.upload,
        }
    }
}

/// The session's budget, and the bytes of it that a job may use on the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostRoom<'a> {
    pub budget: &'a Budget,
    pub given_bytes: u64,
}

impl<'a> HostRoom<'a> {
    /// All free bytes of the budget.
    pub fn all_of(budget: &'a Budget) -> Self {
        Self {
            budget,
            given_bytes: budget.available_bytes(),
        }
    }
}

/// The slots of one device between jobs.
#[derive(Debug)]
pub(super) struct SlotCache {
    gpu: Gpu,
    staging: Staging,
    /// The devices that the budget of page-locked memory is divided among.
    devices: usize,
    spares: Spares<SlotSet>,
}

/// Slots of one direction.
#[derive(Debug)]
enum SlotSet {
    Up(Upload),
    Back(Download),
}

/// The direction of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Back,
}

/// The slots of a job, with their leases.
#[derive(Debug)]
pub(super) struct JobSlots {
    // Before the leases, so memory is freed first.
    pub upload: Upload,
    pub download: Option<Download>,
    upload_lease: Lease,
    download_lease: Option<Lease>,
}

impl JobSlots {
    /// Both ends of a job that writes, too.
    pub fn both_ways(&mut self) -> Result<NttSlots<'_>> {
        Ok(NttSlots {
            upload: &mut self.upload,
            download: self.download.as_mut().ok_or(Error::Unusable {
                what: "a job without slots for its download",
            })?,
        })
    }
}

impl SlotCache {
    /// A cache without slots, for one of `devices` devices.
    pub fn new(gpu: &Gpu, staging: &Staging, devices: usize) -> Self {
        Self {
            gpu: gpu.clone(),
            staging: staging.part(devices),
            devices: devices.max(1),
            spares: Spares::default(),
        }
    }

    /// The most bytes of each slot of a job now; a power of two, so that plans of similar jobs are equal.
    pub fn slot_bytes_max(&self, budget: &Budget, both_ways: bool) -> u64 {
        self.slot_bytes_of(budget.available_bytes(), both_ways)
    }

    /// The same, for a job that may use `room_bytes` of the budget.
    pub fn slot_bytes_of(&self, given_bytes: u64, both_ways: bool) -> u64 {
        let part = if both_ways { BACK_SLOT_PART } else { SLOT_PART };
        self.slot_bytes_within(given_bytes / part, both_ways)
    }

    /// The same, with at most `bytes` a slot.
    pub fn slot_bytes_within(&self, bytes: u64, both_ways: bool) -> u64 {
        let of_pinned = self.staging.pinned.budget().limit_bytes() / slots(both_ways);
        let bytes = bytes.min(of_pinned).min(SLOT_BYTES_MAX);
        bytes.checked_ilog2().map_or(0, |log| 1 << log)
    }

    /// The text of an error, with its remedy if there is one.
    pub fn with_remedy(&self, error: &Error) -> String {
        match self.remedy(error) {
            Some(remedy) => format!("{error}; {remedy}"),
            None => error.to_string(),
        }
    }

    /// The remedy of an error, if the budget of page-locked memory made the slots of a job too short.
    fn remedy(&self, error: &Error) -> Option<String> {
        let Error::TooSmall {
            memory: A_PINNED_SLOT,
            smallest_bytes,
            ..
        } = *error
        else {
            return None;
        };
        let slot_bytes = smallest_bytes.checked_next_power_of_two()?;
        let needed_bytes = SLOTS * slot_bytes;
        let is_short = self.staging.pinned.budget().limit_bytes() < needed_bytes;
        let all_bytes = self.devices as u64 * needed_bytes;
        (is_short && slot_bytes <= SLOT_BYTES_MAX)
            .then(|| format!("{all_bytes} bytes of {} are enough for it", PINNED_MEMORY.name))
    }

    /// Slots of at least `slot_bytes` for a job: kept ones, if they are no longer than a slot of the job may
    /// be.
    pub fn take(&self, budget: &Budget, slot_bytes: u64, both_ways: bool) -> Result<JobSlots, Stop> {
        let rounded = Self::rounded(slot_bytes);
        let lengths = slot_bytes..=rounded.max(self.slot_bytes_max(budget, both_ways));
        let set = |direction| self.set(budget, direction, rounded, &lengths);
        let (download, download_lease) = match both_ways {
            true => match set(Direction::Back)? {
                (SlotSet::Back(download), lease) => (Some(download), Some(lease)),
                (SlotSet::Up(_), _) => return Err(wrong_direction()),
            },
            false => (None, None),
        };
        let (SlotSet::Up(upload), upload_lease) = set(Direction::Up)? else {
            return Err(wrong_direction());
        };
        Ok(JobSlots {
            upload,
            download,
            upload_lease,
            download_lease,
        })
    }

    /// Bytes of all slots that [`Self::take`] allocates.
    pub fn bytes_of(slot_bytes: u64, both_ways: bool) -> u64 {
        slots(both_ways) * Self::rounded(slot_bytes)
    }

    /// A power of two: slots of few lengths serve more jobs.
    fn rounded(slot_bytes: u64) -> u64 {
        slot_bytes.checked_next_power_of_two().unwrap_or(slot_bytes)
    }

    /// Keeps the slots of a job that succeeded.
    pub fn keep(&self, slots: JobSlots) {
        if let (Some(download), Some(lease)) = (slots.download, slots.download_lease) {
            self.spares.keep(SlotSet::Back(download), lease);
        }
        self.spares.keep(SlotSet::Up(slots.upload), slots.upload_lease);
    }

    /// The slots of a job whose first ones are filled, if its data comes fast enough; else they are kept.
    pub fn worth_its_reads(
        &self,
        mut slots: JobSlots,
        reads: Reads,
        worth: &mut Worth,
        what: &str,
    ) -> Result<JobSlots, Stop> {
        if worth.with_reads(reads) {
            return Ok(slots);
        }
        slots.upload.unstage();
        self.keep(slots);
        Err(Stop::slow_reads(what))
    }

    /// Gives back the slots that are kept.
    pub fn clear(&self) {
        self.spares.give_back_all();
    }

    fn set(
        &self,
        budget: &Budget,
        direction: Direction,
        slot_bytes: u64,
        lengths: &RangeInclusive<u64>,
    ) -> Result<(SlotSet, Lease), Stop> {
        let fits = |set: &SlotSet| set.direction() == direction && lengths.contains(&set.slot_bytes());
        if let Some(kept) = self.spares.take(budget, fits) {
            return Ok(kept);
        }
        let (count, caching, what) = match direction {
            Direction::Up => (UPLOAD_SLOTS, self.staging.upload, "chunks to the device"),
            Direction::Back => (DOWNLOAD_SLOTS, Caching::Cached, "chunks from the device"),
        };
        let lease = budget.lease_map(slot_bytes * count as u64, "pinned slots")?;
        let pool = loop {
            let made = self
                .staging
                .pinned
                .pool(&self.gpu, count, slot_bytes as usize, caching, what);
            match made {
                Err(error) if error.is_memory_short() && self.spares.give_back_oldest() => {}
                made => break made?,
            }
        };
        let slots = pool.take(count)?;
        let set = match direction {
            Direction::Up => SlotSet::Up(Upload::new(slots, self.gpu.trace())?),
            Direction::Back => SlotSet::Back(Download::new(slots, self.gpu.trace())?),
        };
        Ok((set, lease))
    }
}

impl SlotSet {
    fn direction(&self) -> Direction {
        match self {
            Self::Up(_) => Direction::Up,
            Self::Back(_) => Direction::Back,
        }
    }

    fn slot_bytes(&self) -> u64 {
        match self {
            Self::Up(upload) => upload.slot_bytes(),
            Self::Back(download) => download.slot_bytes(),
        }
    }
}

/// The number of slots of a job.
fn slots(both_ways: bool) -> u64 {
    match both_ways {
        true => SLOTS,
        false => UPLOAD_SLOTS as u64,
    }
}

fn wrong_direction() -> Stop {
    Stop::Device(Error::Unusable {
        what: "a job's pinned slots",
    })
}
