//! What stays in memory of the maps of a group: one share of bytes for all of them.
//!
//! Maps are cut into blocks of one size, a quarter of a map's part of the share (4 KiB to 256 KiB), so that
//! maps that are written in lockstep never push out each other's current blocks. Blocks in memory stand in
//! two queues:
//!
//! ```text
//!   touched -> hot (half of the share) -> cooling: its write-out has begun -> out: written, unmapped, out of the page cache
//!               ^                             |
//!               +---- touched meanwhile ------+        (second chance, as the CLOCK algorithm gives it: Corbato 1968)
//! ```
//!
//! The clock is locked when a block comes in, never on the way of an access to one that is in. Pages that
//! come back behind its back (through addresses that were given out) are dropped by a hand that sweeps over
//! all maps, a few runs for every few blocks that go. Dropping is a matter of memory only: content is the
//! file's, at every moment.
//!
//! Memory: the share, leased at once; one byte a block, leased with each map; what the hand has not met yet.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Workspace;
use super::frames::DryFile;
use crate::Error;
use crate::Result;
use crate::budget::{Lease, PAGE_BYTES};
use crate::error::Invalid;
use crate::storage::PagedMap;

/// Bytes that a walk over a map ([`super::Mapped::read`]) has on the way, where the share allows.
pub(super) const READ_BYTES: usize = 1 << 20;

/// Blocks that each map has room for if all are used alike: the current one, its successor, and two on their
/// way out.
const BLOCKS_PER_MAP: u64 = 4;
/// What a walk over one map needs: two stretches on the way, and one in work.
const BLOCKS_TO_READ: u64 = 16;
/// A block that comes back is read whole, so larger ones are for sequential access only.
const BLOCK_BYTES_MAX: u64 = 256 * 1024;
/// What is reserved on disk at a time.
const RESERVED_BYTES: usize = 4 << 20;
/// The hand moves once for so many blocks that go.
const EVICTIONS_PER_SWEEP: u64 = 8;
/// And drops so many runs at a time.
const RUNS_PER_SWEEP: usize = 32;
const STATES: &str = "states of mapped blocks";
/// No block is current.
const NONE: usize = usize::MAX;

/// In memory, and in one of the queues.
const IN: u8 = 1;
/// Touched since it was last looked at.
const TOUCHED: u8 = 2;
/// Perhaps written since it came in.
const CHANGED: u8 = 4;
/// Has its room on disk.
const RESERVED: u8 = 8;
/// Has content on disk.
const STORED: u8 = 16;

/// A share of memory for the resident pages of a group of [`Mapped`](super::Mapped)s. Clones are the same
/// share.
#[derive(Clone)]
pub struct Residency {
    shared: Arc<Shared>,
}

struct Shared {
    workspace: Workspace,
    lease: Mutex<Lease>,
    maps_max: usize,
    block_bytes: usize,
    blocks_max: AtomicUsize,
    clock: Mutex<Clock>,
    /// Of a dry run.
    dry: Mutex<DryGroup>,
}

/// The maps of a dry run.
#[derive(Default)]
struct DryGroup {
    maps: usize,
    /// Of all maps, in whole pages.
    bytes: u64,
    /// Bytes that are read back if all cells are read once.
    read_bytes: u64,
}

/// A map of a dry run: what it would hold, and the room that its file would take once all cells are written.
pub(super) struct DryMap {
    name: String,
    bytes: u64,
    was_read: AtomicBool,
    _states: Lease,
    _file: DryFile,
}

impl DryMap {
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Default)]
struct Clock {
    maps: Vec<Option<Arc<Blocks>>>,
    hot: VecDeque<Entry>,
    cooling: VecDeque<Entry>,
    evictions: u64,
    /// Map and block where the hand goes on.
    hand: (usize, usize),
    /// A write-out that failed is final: its file and errno.
    failed: Option<(String, i32)>,
}

#[derive(Clone, Copy)]
struct Entry {
    slot: usize,
    block: usize,
}

/// One map and the states of its blocks.
pub(super) struct Blocks {
    pub map: PagedMap,
    /// Where its first cell is: maps of a group are shifted against each other, so that those that are
    /// written in lockstep do not all need a new block in the same row.
    pub skew_bytes: usize,
    slot: usize,
    block_bytes: usize,
    states: Box<[AtomicU8]>,
    /// The block that is written without asking.
    current: AtomicUsize,
    _lease: Lease,
}

/// What is about to happen to a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// Written, and probably all of it.
    Append,
}

impl Residency {
    /// A share of `share_bytes` for up to `maps` maps.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] if that is below four pages a map; [`Error::OverBudget`].
    pub fn new(workspace: &Workspace, what: &str, share_bytes: u64, maps: usize) -> Result<Self> {
        let maps_max = maps.max(1);
        let (block_bytes, needed_bytes) = Self::blocks_of(share_bytes, maps_max);
        if share_bytes < needed_bytes {
            return Err(Error::BudgetTooSmall {
                what: format!("the share of {what} ({maps_max} maps)"),
                needed_bytes,
                limit_bytes: share_bytes,
            });
        }
        let block_bytes = block_bytes as usize;
        let lease = workspace.budget.lease_map(share_bytes, what.to_owned())?;
        Ok(Self {
            shared: Arc::new(Shared {
                workspace: workspace.clone(),
                lease: Mutex::new(lease),
                maps_max,
                block_bytes,
                blocks_max: AtomicUsize::new((share_bytes / block_bytes as u64) as usize),
                clock: Mutex::default(),
                dry: Mutex::default(),
            }),
        })
    }

    /// The share that is right for `maps` maps where nothing else is known: a sixteenth of what the budget
    /// has left, at least what [`Self::new`] asks for, and at most 2 MiB a map.
    pub fn default_share_bytes(workspace: &Workspace, maps: usize) -> u64 {
        let maps = maps.max(1) as u64;
        let least = maps * BLOCKS_PER_MAP * PAGE_BYTES as u64;
        (workspace.budget.available_bytes() / 16).clamp(least, (maps << 21).max(least))
    }

    /// Bytes that come and go together in such a share, and what it is refused below.
    pub(crate) fn blocks_of(share_bytes: u64, maps: usize) -> (u64, u64) {
        let blocks = maps.max(1) as u64 * BLOCKS_PER_MAP;
        let block_bytes = (share_bytes / blocks).clamp(1, BLOCK_BYTES_MAX);
        (1 << block_bytes.ilog2(), blocks * PAGE_BYTES as u64)
    }

    /// What all maps together may keep in memory.
    pub fn share_bytes(&self) -> u64 {
        self.lease().bytes()
    }

    /// Gives back all of the share but `share_bytes` (sixteen blocks at least), once the maps are only read
    /// from now on, one at a time; no effect if it is that small already.
    ///
    /// # Errors
    /// [`Error::File`], also from an earlier write-out.
    pub fn keep_for_reading(&self, share_bytes: u64) -> Result<()> {
        let block_bytes = self.shared.block_bytes as u64;
        let share_bytes = share_bytes.max(BLOCKS_TO_READ * block_bytes);
        let blocks_max = (share_bytes / block_bytes) as usize;
        let mut clock = self.clock();
        clock.usable()?;
        if blocks_max < self.shared.blocks_max.load(Relaxed) {
            while clock.resident() > blocks_max {
                clock.evict()?;
            }
            self.shared.blocks_max.store(blocks_max, Relaxed);
            self.lease().shrink_to(share_bytes);
        }
        Ok(())
    }

    /// The bytes that [`Self::keep_for_reading`] leaves of the share.
    fn kept_bytes(&self, wanted_bytes: u64) -> u64 {
        let (block_bytes, share_bytes) = (self.shared.block_bytes as u64, self.share_bytes());
        let wanted_bytes = wanted_bytes.max(BLOCKS_TO_READ * block_bytes);
        // A share shrinks by whole blocks only.
        match wanted_bytes / block_bytes < share_bytes / block_bytes {
            true => wanted_bytes.min(share_bytes),
            false => share_bytes,
        }
    }

    /// Bytes that come and go together.
    pub fn block_bytes(&self) -> usize {
        self.shared.block_bytes
    }

    /// What is in memory now, as far as the clock knows.
    pub fn resident_bytes(&self) -> u64 {
        (self.clock().resident() * self.shared.block_bytes) as u64
    }

    /// Takes in a map of `bytes`.
    pub(super) fn enter(&self, what: &str, bytes: u64) -> Result<Arc<Blocks>> {
        let Shared {
            workspace,
            maps_max,
            block_bytes,
            ..
        } = &*self.shared;
        let mut clock = self.clock();
        let slot = clock
            .maps
            .iter()
            .position(Option::is_none)
            .unwrap_or(clock.maps.len());
        Invalid::unless_at_most(
            format!("maps in one share of memory, with {what}"),
            slot as u64 + 1,
            *maps_max as u64,
        )?;
        let skew_bytes = self.skew_bytes(slot);
        let mapped_bytes = bytes.saturating_add(skew_bytes as u64);
        let blocks = usize::try_from(mapped_bytes.div_ceil(*block_bytes as u64)).unwrap_or(usize::MAX);
        let lease = workspace.budget.lease(blocks as u64, STATES)?;
        let map = PagedMap::scratch(&workspace.storage, what, mapped_bytes)?;
        let blocks = Arc::new(Blocks {
            map,
            skew_bytes,
            slot,
            block_bytes: *block_bytes,
            states: (0..blocks).map(|_| AtomicU8::new(0)).collect(),
            current: AtomicUsize::new(NONE),
            _lease: lease,
        });
        if slot == clock.maps.len() {
            clock.maps.push(None);
        }
        clock.maps[slot] = Some(blocks.clone());
        Ok(blocks)
    }

    /// Takes in a map of `bytes` of a dry run; `None` in a real one.
    pub(super) fn enter_dry(&self, what: &str, bytes: u64) -> Result<Option<DryMap>> {
        let Shared {
            workspace,
            maps_max,
            block_bytes,
            ..
        } = &*self.shared;
        let Some(dry_run) = workspace.dry_run() else {
            return Ok(None);
        };
        let mut group = self.dry_group();
        let skew_bytes = self.skew_bytes(group.maps) as u64;
        debug_assert!(group.maps < *maps_max);
        let states = (bytes + skew_bytes).div_ceil(*block_bytes as u64);
        let map = DryMap {
            name: what.to_owned(),
            bytes: match bytes {
                0 => 0,
                _ => (bytes + skew_bytes).next_multiple_of(PAGE_BYTES as u64),
            },
            was_read: AtomicBool::new(false),
            _states: workspace.budget.lease(states, STATES)?,
            _file: DryFile::new(dry_run, bytes),
        };
        group.maps += 1;
        group.bytes += map.bytes;
        Ok(Some(map))
    }

    /// In a dry run: all cells of all maps are written once, in order, and then read once, in order, when
    /// [`Self::keep_for_reading`] has left `reading_bytes` of the share. Which bytes a real run moves depends
    /// on which cells a circuit assigns, and in which order. No effect in a real run.
    pub fn assume_written(&self, reading_bytes: u64) {
        let Some(dry_run) = self.shared.workspace.dry_run() else {
            return;
        };
        let block_bytes = self.shared.block_bytes as u64;
        let kept_bytes = self.kept_bytes(reading_bytes);
        let mut group = self.dry_group();
        let resident = kept_bytes / block_bytes * block_bytes;
        let mut written_bytes = group.bytes;
        group.read_bytes = 0;
        if group.bytes > resident {
            // The cells that find no room in memory go out, and two windows of reading push out as much
            // again.
            let window = ((READ_BYTES as u64).min(kept_bytes / 8) / block_bytes).max(1) * block_bytes;
            group.read_bytes = (group.bytes - resident + 2 * window + block_bytes).min(group.bytes);
            written_bytes += 2 * block_bytes;
        }
        dry_run.moved(0, written_bytes);
    }

    /// In a dry run: all cells of a map are read; the first time counts.
    pub(super) fn count_read(&self, map: &DryMap) {
        let group = self.dry_group();
        if let Some(dry_run) = self.shared.workspace.dry_run()
            && !map.was_read.swap(true, Relaxed)
            && group.bytes > 0
        {
            let part = u128::from(group.read_bytes) * u128::from(map.bytes) / u128::from(group.bytes);
            dry_run.moved(part as u64, 0);
        }
    }

    fn dry_group(&self) -> MutexGuard<'_, DryGroup> {
        self.shared.dry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps of a group are shifted against each other.
    fn skew_bytes(&self, slot: usize) -> usize {
        (self.shared.block_bytes * slot / self.shared.maps_max) & !(PAGE_BYTES - 1)
    }

    /// Forgets a map that is about to go.
    pub(super) fn leave(&self, blocks: &Blocks) {
        let mut clock = self.clock();
        clock.hot.retain(|entry| entry.slot != blocks.slot);
        clock.cooling.retain(|entry| entry.slot != blocks.slot);
        clock.maps[blocks.slot] = None;
    }

    /// Makes `block` the one that its map may write without asking.
    pub(super) fn set_current(blocks: &Blocks, block: Option<usize>) {
        blocks.current.store(block.unwrap_or(NONE), Relaxed);
    }

    /// Has `block` in memory; quick if it is.
    #[inline]
    pub(super) fn touch(&self, blocks: &Blocks, block: usize, touch: Touch) -> Result<()> {
        let wanted = if touch == Touch::Read {
            IN
        } else {
            IN | CHANGED | RESERVED
        };
        let state = blocks.states[block].load(Relaxed);
        if state & wanted == wanted {
            if state & TOUCHED == 0 && blocks.current.load(Relaxed) != block {
                blocks.states[block].fetch_or(TOUCHED, Relaxed);
            }
            return Ok(());
        }
        self.bring_in(blocks, block, touch)
    }

    #[cold]
    fn bring_in(&self, blocks: &Blocks, block: usize, touch: Touch) -> Result<()> {
        let before = {
            let mut clock = self.clock();
            clock.usable()?;
            if touch != Touch::Read {
                blocks.reserve(block)?;
            }
            let before = blocks.states[block].load(Relaxed);
            self.admit(&mut clock, blocks, block)?;
            if touch != Touch::Read {
                blocks.states[block].fetch_or(CHANGED, Relaxed);
            }
            before
        };
        let range = blocks.range(block);
        match touch {
            _ if before & IN != 0 => Ok(()),
            _ if before & STORED != 0 => {
                blocks.map.read_ahead(range.clone());
                blocks.map.populate_read(range)
            }
            Touch::Append => blocks.map.populate_write(range),
            _ => Ok(()),
        }
    }

    /// Starts reading `range` of blocks, all of them in the queues from now on.
    pub(super) fn read_ahead(&self, blocks: &Blocks, range: Range<usize>) -> Result<()> {
        let mut clock = self.clock();
        clock.usable()?;
        let mut wanted: Range<usize> = 0..0;
        for block in range {
            let before = blocks.states[block].load(Relaxed);
            self.admit(&mut clock, blocks, block)?;
            if before & IN == 0 && before & STORED != 0 {
                if wanted.end != block {
                    blocks.read_run(&wanted);
                    wanted.start = block;
                }
                wanted.end = block + 1;
            }
        }
        blocks.read_run(&wanted);
        Ok(())
    }

    /// Writes `range` of blocks out and drops it.
    pub(super) fn put_out(&self, blocks: &Blocks, range: Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut clock = self.clock();
        clock.usable()?;
        let bytes = blocks.range(range.start).start..blocks.range(range.end - 1).end;
        let states = &blocks.states[range.clone()];
        if states.iter().any(|state| state.load(Relaxed) & CHANGED != 0) {
            clock.latch(blocks.map.finish_write_out(bytes.clone()), blocks)?;
        }
        blocks.map.forget(bytes);
        let stays = |entry: &Entry| entry.slot != blocks.slot || !range.contains(&entry.block);
        clock.hot.retain(stays);
        clock.cooling.retain(stays);
        for state in states {
            gone(state);
        }
        Ok(())
    }

    /// Enters a block into the queues, once others have made room.
    fn admit(&self, clock: &mut Clock, blocks: &Blocks, block: usize) -> Result<()> {
        let state = &blocks.states[block];
        if state.load(Relaxed) & IN != 0 {
            state.fetch_or(TOUCHED, Relaxed);
            return Ok(());
        }
        let blocks_max = self.shared.blocks_max.load(Relaxed);
        while clock.resident() >= blocks_max {
            clock.evict()?;
        }
        state.fetch_or(IN, Relaxed);
        clock.hot.push_back(Entry {
            slot: blocks.slot,
            block,
        });
        clock.cool(blocks_max / 2);
        Ok(())
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.shared.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.shared.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    fn resident(&self) -> usize {
        self.hot.len() + self.cooling.len()
    }

    fn usable(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some((file, errno)) => Err(Error::File {
                operation: "go on after a failed write-out of the map of",
                file: file.clone(),
                source: std::io::Error::from_raw_os_error(*errno),
            }),
        }
    }

    /// Remembers a failure.
    fn latch(&mut self, result: Result<()>, blocks: &Blocks) -> Result<()> {
        if let Err(Error::File { source, .. }) = &result {
            self.failed = Some((
                blocks.map.name().to_owned(),
                source.raw_os_error().unwrap_or_default(),
            ));
        }
        result
    }

    /// Whether a block at the end of its queue stays: it is some map's current one, or was touched meanwhile.
    fn stays(&self, entry: Entry, chances: &mut usize) -> bool {
        let Some(Some(blocks)) = self.maps.get(entry.slot) else {
            return false;
        };
        let touched = blocks.states[entry.block].fetch_and(!TOUCHED, Relaxed) & TOUCHED != 0;
        let chance = *chances > 0;
        *chances = chances.saturating_sub(1);
        blocks.current.load(Relaxed) == entry.block || (touched && chance)
    }

    /// Starts the write-out of the oldest hot blocks, down to `hot_max`.
    fn cool(&mut self, hot_max: usize) {
        let mut chances = self.hot.len();
        let mut rounds = 2 * self.hot.len();
        while self.hot.len() > hot_max && rounds > 0 {
            rounds -= 1;
            let Some(entry) = self.hot.pop_front() else { return };
            if self.stays(entry, &mut chances) {
                self.hot.push_back(entry);
                continue;
            }
            if let Some(Some(blocks)) = self.maps.get(entry.slot)
                && blocks.states[entry.block].load(Relaxed) & CHANGED != 0
            {
                blocks.map.begin_write_out(blocks.range(entry.block));
            }
            self.cooling.push_back(entry);
        }
    }

    /// Drops the oldest block.
    fn evict(&mut self) -> Result<()> {
        let mut chances = self.resident();
        let mut rounds = 3 * self.resident();
        while let Some(entry) = self.cooling.pop_front().or_else(|| self.hot.pop_front()) {
            rounds = rounds.saturating_sub(1);
            if rounds > 0 && self.stays(entry, &mut chances) {
                self.hot.push_back(entry);
                continue;
            }
            if let Some(Some(blocks)) = self.maps.get(entry.slot).cloned() {
                let range = blocks.range(entry.block);
                let state = &blocks.states[entry.block];
                if state.load(Relaxed) & CHANGED != 0 {
                    self.latch(blocks.map.finish_write_out(range.clone()), &blocks)?;
                }
                blocks.map.forget(range);
                gone(state);
            }
            self.evictions += 1;
            if self.evictions.is_multiple_of(EVICTIONS_PER_SWEEP) {
                self.sweep();
            }
            return Ok(());
        }
        Ok(())
    }

    /// Moves the hand: drops what is in memory of blocks that are not in the queues.
    fn sweep(&mut self) {
        let (slot, mut block) = self.hand;
        self.hand = (slot + 1, 0);
        let Some(blocks) = self.maps.get(slot) else {
            self.hand = (0, 0);
            return;
        };
        let Some(blocks) = blocks else { return };
        let state = |block: usize| blocks.states.get(block).map(|state| state.load(Relaxed));
        for _ in 0..RUNS_PER_SWEEP {
            while state(block).is_some_and(|state| state & IN != 0) {
                block += 1;
            }
            let first = block;
            while state(block).is_some_and(|state| state & IN == 0) {
                block += 1;
            }
            if first == block {
                return;
            }
            blocks
                .map
                .forget(blocks.range(first).start..blocks.range(block - 1).end);
        }
        self.hand = (slot, block);
    }
}

/// A block has left memory.
fn gone(state: &AtomicU8) {
    let before = state.fetch_and(!(IN | TOUCHED | CHANGED), Relaxed);
    if before & CHANGED != 0 {
        state.fetch_or(STORED, Relaxed);
    }
}

impl Blocks {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Bytes of the map that a block covers.
    pub fn range(&self, block: usize) -> Range<usize> {
        let start = block * self.block_bytes;
        start..(start + self.block_bytes).min(self.map.len_bytes())
    }

    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Gives `block` and its neighbours room on disk.
    fn reserve(&self, block: usize) -> Result<()> {
        if self.states[block].load(Relaxed) & RESERVED != 0 {
            return Ok(());
        }
        let step = RESERVED_BYTES / self.block_bytes;
        let first = block / step * step;
        let end = (first + step).min(self.states.len());
        self.map
            .reserve(self.range(first).start..self.range(end - 1).end)?;
        for state in &self.states[first..end] {
            state.fetch_or(RESERVED, Relaxed);
        }
        Ok(())
    }

    fn read_run(&self, run: &Range<usize>) {
        if !run.is_empty() {
            self.map
                .read_ahead(self.range(run.start).start..self.range(run.end - 1).end);
        }
    }
}

impl std::fmt::Debug for Residency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Residency")
            .field("share_bytes", &self.share_bytes())
            .field("block_bytes", &self.block_bytes())
            .field("resident_bytes", &self.resident_bytes())
            .finish_non_exhaustive()
    }
}
