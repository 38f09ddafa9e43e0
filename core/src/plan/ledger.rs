//! A budget and a disk without bytes: what a dry run holds, and what it moves.
//!
//! Leases are counted as [`crate::budget`] counts them, in whole pages; columns are what [`crate::column`] makes of them:
//! digests, and a buffer where [`Placement::Auto`] finds one small enough for what is left at that moment.

use super::jobs::enter;
use super::{Job, Offer, Phase, Rates, Step};
use crate::budget::PAGE_BYTES;
use crate::column::{Placement, SCRATCH_FRAME_BYTES, digests_bytes, sequential_bytes, writer_bytes};
use crate::{Error, Result};

/// Bytes of a scalar.
pub(super) const SCALAR_BYTES: u64 = 32;
/// Bytes of a point.
pub(super) const POINT_BYTES: u64 = 64;

/// Bytes in whole pages.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE_BYTES as u64)
}

/// A column without values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sheet {
    pub len: u64,
    pub element_bytes: u64,
    pub frame_bytes: u64,
    pub in_memory: bool,
}

impl Sheet {
    pub fn frame_elements(&self) -> u64 {
        self.frame_bytes / self.element_bytes
    }

    /// Bytes of the frames of `len` elements from a frame's start on.
    pub fn bytes_of(&self, len: u64) -> u64 {
        len.div_ceil(self.frame_elements()) * self.frame_bytes
    }

    pub fn file_bytes(&self) -> u64 {
        self.bytes_of(self.len)
    }

    /// What it holds of the budget.
    pub fn held_bytes(&self) -> u64 {
        let in_memory = if self.in_memory {
            pages(self.file_bytes())
        } else {
            0
        };
        digests_bytes(self.file_bytes(), self.frame_bytes) + in_memory
    }

    pub fn prefix(&self, len: u64) -> Self {
        Self { len, ..*self }
    }

    /// What a reader of `chunk` elements leases, with `depth` of them on their way.
    pub fn reader_bytes(&self, chunk: u64, depth: u64) -> u64 {
        let chunks = self.len.div_ceil(chunk.max(1));
        let buffer = self.bytes_of(chunk.min(self.len)).max(PAGE_BYTES as u64);
        depth.min(chunks) * pages(buffer)
    }

    /// Bytes that a reader of `chunk` elements moves at a time.
    pub fn transfer_bytes(&self, chunk: u64) -> u64 {
        (chunk * self.element_bytes).max(self.frame_bytes)
    }

    /// What a writer in buffers of `chunk` elements leases.
    pub fn writer_bytes(&self, chunk: u64) -> u64 {
        writer_bytes(
            self.len * self.element_bytes,
            chunk.saturating_mul(self.element_bytes),
            self.frame_bytes,
        )
    }
}

/// What a step computes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Batched additions of points.
    pub additions: f64,
    /// Butterflies of transforms.
    pub butterflies: f64,
    /// Products of scalars.
    pub products: f64,
}

struct Entry {
    phase: Phase,
    name: &'static str,
    peak_bytes: u64,
    passes: u64,
    bytes_read: u64,
    bytes_written: u64,
    work: Work,
    offers: Vec<Offer>,
}

/// The state of a dry run.
pub(super) struct Ledger {
    limit_bytes: u64,
    held_bytes: u64,
    disk_bytes: u64,
    disk_peak_bytes: u64,
    phase: Phase,
    entries: Vec<Entry>,
}

impl Ledger {
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            held_bytes: 0,
            disk_bytes: 0,
            disk_peak_bytes: 0,
            phase: Phase::VerifyingKey,
            entries: Vec::new(),
        }
    }

    pub fn begin(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// The next step begins. Steps of one name in one phase are one.
    pub fn step(&mut self, name: &'static str) {
        let phase = self.phase;
        let known = self
            .entries
            .iter()
            .position(|entry| (entry.phase, entry.name) == (phase, name));
        let entry = match known {
            Some(at) => self.entries.remove(at),
            None => Entry {
                phase,
                name,
                peak_bytes: 0,
                passes: 0,
                bytes_read: 0,
                bytes_written: 0,
                work: Work::default(),
                offers: Vec::new(),
            },
        };
        self.entries.push(entry);
        self.note_peak();
    }

    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.held_bytes)
    }

    pub fn disk_peak_bytes(&self) -> u64 {
        self.disk_peak_bytes
    }

    /// Takes a lease.
    pub fn hold(&mut self, bytes: u64) -> Result<()> {
        self.held_bytes += bytes;
        if self.held_bytes > self.limit_bytes {
            return Err(self.refused(0));
        }
        self.note_peak();
        Ok(())
    }

    /// Gives leases back, down to what was held before.
    pub fn release_to(&mut self, held_bytes: u64) {
        self.held_bytes = held_bytes;
    }

    pub fn release(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    /// The refusal of a stage that needs `needed_bytes` besides what is held.
    pub fn refused(&self, needed_bytes: u64) -> Error {
        Error::BudgetTooSmall {
            what: format!(
                "the step \"{}\" of the {}",
                self.entries.last().map_or("start", |entry| entry.name),
                self.phase.name()
            ),
            needed_bytes: self.held_bytes.saturating_add(needed_bytes),
            limit_bytes: self.limit_bytes,
        }
    }

    /// A column that is being written: its digests, and its buffer.
    pub fn draft(
        &mut self,
        len: u64,
        element_bytes: u64,
        placement: Placement,
        frame_bytes: u64,
    ) -> Result<Sheet> {
        let mut sheet = Sheet {
            len,
            element_bytes,
            frame_bytes,
            in_memory: false,
        };
        self.hold(sheet.held_bytes())?;
        let bytes = sheet.file_bytes();
        sheet.in_memory = match placement {
            Placement::Disk => false,
            Placement::Memory => true,
            Placement::Auto => {
                let available = self.available_bytes();
                bytes <= available / 32 && pages(bytes) <= available
            }
        };
        if sheet.in_memory {
            self.hold(pages(bytes))?;
        } else {
            self.disk(bytes);
        }
        Ok(sheet)
    }

    /// A scratch column of scalars.
    pub fn scalars(&mut self, len: u64, placement: Placement) -> Result<Sheet> {
        self.draft(len, SCALAR_BYTES, placement, SCRATCH_FRAME_BYTES as u64)
    }

    /// A column goes.
    pub fn free(&mut self, sheet: Sheet) {
        self.release(sheet.held_bytes());
        if !sheet.in_memory {
            self.disk_bytes = self.disk_bytes.saturating_sub(sheet.file_bytes());
        }
    }

    /// A file grows.
    pub fn disk(&mut self, bytes: u64) {
        self.disk_bytes += bytes;
        self.disk_peak_bytes = self.disk_peak_bytes.max(self.disk_bytes);
    }

    /// A file goes.
    pub fn undisk(&mut self, bytes: u64) {
        self.disk_bytes = self.disk_bytes.saturating_sub(bytes);
    }

    /// Elements that a sequential pass over the column moves at a time.
    pub fn sequential_chunk(&self, sheet: &Sheet) -> u64 {
        sequential_bytes(self.limit_bytes, sheet.frame_bytes as usize) as u64 / sheet.element_bytes
    }

    /// The first `len` elements are read.
    pub fn read(&mut self, sheet: &Sheet, len: u64) {
        self.read_bytes(sheet, sheet.bytes_of(len));
    }

    /// So many bytes of a column are read.
    pub fn read_bytes(&mut self, sheet: &Sheet, bytes: u64) {
        if !sheet.in_memory {
            self.moved(bytes, 0);
        }
    }

    /// All of the column is written.
    pub fn written(&mut self, sheet: &Sheet) {
        if !sheet.in_memory {
            self.moved(0, sheet.file_bytes());
        }
    }

    pub fn moved(&mut self, read: u64, written: u64) {
        if let Some(entry) = self.entries.last_mut() {
            entry.bytes_read += read;
            entry.bytes_written += written;
        }
    }

    pub fn passed(&mut self, passes: u64) {
        if let Some(entry) = self.entries.last_mut() {
            entry.passes += passes;
        }
    }

    pub fn computed(&mut self, work: Work) {
        if let Some(entry) = self.entries.last_mut() {
            entry.work.additions += work.additions;
            entry.work.butterflies += work.butterflies;
            entry.work.products += work.products;
        }
    }

    /// A second compute tier is asked, with what is left now less `held_bytes`.
    pub fn offered(&mut self, job: Job, held_bytes: u64) {
        let offer = Offer {
            job,
            count: 1,
            available_bytes: self.available_bytes().saturating_sub(held_bytes),
        };
        if let Some(entry) = self.entries.last_mut() {
            enter(&mut entry.offers, offer);
        }
    }

    /// The steps, in order, with the seconds that these rates give them.
    pub fn steps(&self, rates: &Rates) -> Vec<Step> {
        let step = |entry: &Entry| Step {
            phase: entry.phase,
            name: entry.name,
            peak_bytes: entry.peak_bytes,
            passes: entry.passes,
            bytes_read: entry.bytes_read,
            bytes_written: entry.bytes_written,
            seconds: rates.seconds(entry.bytes_read, entry.bytes_written, &entry.work),
            offers: entry.offers.clone(),
        };
        self.entries.iter().map(step).collect()
    }

    fn note_peak(&mut self) {
        if let Some(entry) = self.entries.last_mut() {
            entry.peak_bytes = entry.peak_bytes.max(self.held_bytes);
        }
    }
}
