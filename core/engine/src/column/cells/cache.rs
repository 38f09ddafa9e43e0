//! A cache of the blocks of several files.
//!
//! ```text
//!   zeros -> in a slot -> chosen by the clock -> written, behind the caller -> on disk
//!               ^                                                                |
//!               +------- read while the caller waits, checked, copied to a slot -+
//! ```
//!
//! The clock is Corbato's (1968): a block that was used since the hand passed it stays once more. The block
//! of each array that was written last always stays. A transfer that failed is final: after it, no block
//! leaves memory or comes back.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::super::Workspace;
use super::super::frames::{Frames, PendingFrames, Run};
use crate::Error;
use crate::Result;
use crate::budget::{Buffer, LeasedVec, PAGE_BYTES};
use crate::error::Invalid;

pub(super) const PLACES: &str = "places of blocks";

/// Blocks that each array has at least, and blocks besides.
const BLOCKS_PER_ARRAY: u64 = 4;
const BLOCKS_BESIDES: u64 = 8;
/// A block that comes back is read whole, so larger ones are for sequential access only.
const BLOCK_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of a transfer, at most.
const STRETCH_BYTES_MAX: u64 = 1024 * 1024;
/// Buffers for transfers.
const TRANSFERS: usize = 2;

/// A block that was never written.
const ZEROS: u32 = 0;
/// A block that is on disk only.
const STORED: u32 = 1;
/// A block in slot 0.
const FIRST_SLOT: u32 = 2;

/// How a share of memory is cut: slots, buffers for transfers, and a tile as long as one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Cut {
    pub block_bytes: usize,
    /// Bytes of a transfer, in whole blocks.
    pub stretch_bytes: usize,
    /// Blocks in memory.
    pub slots: usize,
}

impl Cut {
    /// The smallest share for so many arrays.
    pub fn share_bytes_min(arrays: usize) -> u64 {
        Self::blocks_min(arrays) * PAGE_BYTES as u64
    }

    /// The share in which all cells stay in memory.
    pub fn share_bytes_whole(arrays: usize, (len, cell_bytes): (u64, usize)) -> u64 {
        let block_bytes = Self::block_bytes_max(len.saturating_mul(cell_bytes as u64));
        let blocks = Self::blocks_max(arrays, len, block_bytes / cell_bytes as u64);
        let buffers_bytes = (TRANSFERS as u64 + 1) * STRETCH_BYTES_MAX;
        blocks.saturating_mul(block_bytes).saturating_add(buffers_bytes)
    }

    /// The longest blocks for arrays of so many bytes.
    fn block_bytes_max(array_bytes: u64) -> u64 {
        array_bytes
            .clamp(PAGE_BYTES as u64, BLOCK_BYTES_MAX)
            .next_power_of_two()
    }

    /// Blocks of all arrays: one that is shifted may reach into one more.
    fn blocks_max(arrays: usize, len: u64, block_cells: u64) -> u64 {
        (arrays as u64).saturating_mul(len.div_ceil(block_cells) + 1)
    }

    fn blocks_min(arrays: usize) -> u64 {
        BLOCKS_PER_ARRAY * arrays as u64 + BLOCKS_BESIDES
    }

    /// The cut of a share for arrays of `array_bytes`.
    pub fn of(what: &str, share_bytes: u64, arrays: usize, (len, cell_bytes): (u64, usize)) -> Result<Self> {
        let array_bytes = len.saturating_mul(cell_bytes as u64);
        let needed_bytes = Self::share_bytes_min(arrays);
        if share_bytes < needed_bytes {
            return Err(Error::BudgetTooSmall {
                what: format!("the share of {what} ({arrays} arrays)"),
                needed_bytes,
                limit_bytes: share_bytes,
            });
        }
        let block_bytes = (share_bytes / Self::blocks_min(arrays)).min(Self::block_bytes_max(array_bytes));
        let block_bytes = 1 << block_bytes.ilog2();
        let stretch_bytes = (share_bytes / 8).min(array_bytes).min(STRETCH_BYTES_MAX);
        let stretch_bytes = stretch_bytes / block_bytes * block_bytes;
        let mut cut = Self {
            block_bytes: block_bytes as usize,
            stretch_bytes: stretch_bytes.max(block_bytes) as usize,
            slots: 0,
        };
        let blocks = Self::blocks_max(arrays, len, block_bytes / cell_bytes as u64);
        cut.slots = cut.slots_within(share_bytes).min(blocks) as usize;
        Ok(cut)
    }

    /// Fewer slots for a smaller share; how many, unless there are as few already.
    pub fn shrink_to(&mut self, share_bytes: u64, arrays: usize) -> Option<usize> {
        let slots = (self.slots_within(share_bytes) as usize).max(2 * arrays);
        (slots < self.slots).then(|| {
            self.slots = slots;
            slots
        })
    }

    fn slots_within(&self, share_bytes: u64) -> u64 {
        share_bytes.saturating_sub(self.buffers_bytes()) / self.block_bytes as u64
    }

    fn buffers_bytes(&self) -> u64 {
        (TRANSFERS as u64 + 1) * self.stretch_bytes as u64
    }

    pub fn cache_bytes(&self) -> usize {
        self.slots * self.block_bytes
    }

    /// All that is leased.
    pub fn share_bytes(&self) -> u64 {
        self.cache_bytes() as u64 + self.buffers_bytes()
    }
}

/// Where the blocks in slots are. A block is named by its array and its number there.
pub(in super::super) trait Memory {
    /// The bytes of a block that is there, and that no other thread writes.
    fn bytes(&self, slot: usize, block: (usize, usize)) -> &[u8];

    /// A block comes, with these bytes, or zeros.
    fn enter(&mut self, slot: usize, block: (usize, usize), bytes: Option<&[u8]>) -> Result<()>;

    /// A block goes.
    fn leave(&mut self, block: (usize, usize));

    /// A block has another slot now.
    fn change_slot(&mut self, from: usize, to: usize);

    /// There are so many slots now.
    fn shrink_to(&mut self, slots: usize);
}

/// Slots side by side in one buffer.
pub(super) struct Slots {
    buffer: Buffer,
    block_bytes: usize,
}

impl Slots {
    pub fn new(workspace: &Workspace, what: &str, cut: &Cut) -> Result<Self> {
        Ok(Self {
            buffer: (workspace.budget).buffer_to_fill(cut.cache_bytes(), what.to_owned())?,
            block_bytes: cut.block_bytes,
        })
    }

    #[inline]
    fn range(&self, slot: usize) -> Range<usize> {
        slot * self.block_bytes..(slot + 1) * self.block_bytes
    }
}

impl Memory for Slots {
    fn bytes(&self, slot: usize, _: (usize, usize)) -> &[u8] {
        &self.buffer[self.range(slot)]
    }

    fn enter(&mut self, slot: usize, _: (usize, usize), bytes: Option<&[u8]>) -> Result<()> {
        let range = self.range(slot);
        match bytes {
            Some(bytes) => self.buffer[range].copy_from_slice(bytes),
            None => self.buffer[range].fill(0),
        }
        Ok(())
    }

    fn leave(&mut self, _: (usize, usize)) {}

    fn change_slot(&mut self, from: usize, to: usize) {
        let range = self.range(from);
        self.buffer.copy_within(range, to * self.block_bytes);
    }

    fn shrink_to(&mut self, slots: usize) {
        self.buffer.shrink_to(slots * self.block_bytes);
    }
}

pub(in super::super) struct Cache<M> {
    name: String,
    cut: Cut,
    arrays: Vec<Array>,
    memory: M,
    slots: Vec<Option<Entry>>,
    hand: usize,
    spare: Vec<Buffer>,
    /// Oldest first.
    flying: VecDeque<Flight>,
    /// Of the array that is read next.
    ahead: Option<Ahead>,
    has_failed: bool,
}

/// One array: its file, and where its blocks are.
struct Array {
    /// `None` once it was removed.
    frames: Option<Arc<Frames>>,
    /// For each block [`ZEROS`], [`STORED`], or [`FIRST_SLOT`] and its slot.
    places: LeasedVec<u32>,
    /// The slot of the block that was written last.
    current: Option<usize>,
}

/// A block in a slot.
#[derive(Clone, Copy)]
struct Entry {
    array: usize,
    block: usize,
    /// Used since the hand passed.
    is_touched: bool,
    /// Differs from what is on disk.
    is_changed: bool,
    /// On disk too, perhaps as it was before.
    is_stored: bool,
}

/// A block that is being written.
struct Flight {
    array: usize,
    block: usize,
    pending: PendingFrames,
}

/// The blocks of the first stretch of an array that were on disk only, and are being read.
struct Ahead {
    array: usize,
    stored: Vec<usize>,
    pending: PendingFrames,
}

/// The blocks of a stretch, in order: their bytes, or `None` for zeros.
pub(in super::super) struct Blocks<'a, M> {
    array: usize,
    blocks: Range<usize>,
    places: &'a [u32],
    memory: &'a M,
    read: std::slice::ChunksExact<'a, u8>,
}

impl<'a, M: Memory> Iterator for Blocks<'a, M> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.blocks.next()?;
        Some(match self.places[block] {
            ZEROS => None,
            STORED => self.read.next(),
            place => Some(
                self.memory
                    .bytes((place - FIRST_SLOT) as usize, (self.array, block)),
            ),
        })
    }
}

impl Cache<Slots> {
    /// A block, to be read.
    #[inline]
    pub fn block(&mut self, array: usize, block: usize) -> Result<&[u8]> {
        let slot = self.touch(array, block)?;
        let range = self.memory.range(slot);
        Ok(&self.memory.buffer[range])
    }

    /// A block, to be written. It stays until the caller wants another one of the array.
    #[inline]
    pub fn block_mut(&mut self, array: usize, block: usize) -> Result<&mut [u8]> {
        let slot = self.change(array, block)?;
        let range = self.memory.range(slot);
        Ok(&mut self.memory.buffer[range])
    }
}

impl<M: Memory> Cache<M> {
    /// Arrays of so many blocks each, of zeros.
    pub fn new(
        workspace: &Workspace,
        what: &str,
        (cut, memory): (Cut, M),
        blocks: impl Iterator<Item = u64>,
    ) -> Result<Self> {
        let budget = &workspace.budget;
        let array = |blocks: u64| {
            Ok(Array {
                places: budget.vec(blocks as usize, ZEROS, PLACES)?,
                frames: Some(Arc::new(Frames::rewritable(
                    workspace,
                    what,
                    (blocks, cut.block_bytes),
                )?)),
                current: None,
            })
        };
        let buffer = |bytes| budget.buffer_to_fill(bytes, what.to_owned());
        Ok(Self {
            name: what.to_owned(),
            cut,
            arrays: blocks.map(array).collect::<Result<_>>()?,
            memory,
            slots: vec![None; cut.slots],
            hand: 0,
            spare: (0..TRANSFERS)
                .map(|_| buffer(cut.stretch_bytes))
                .collect::<Result<_>>()?,
            flying: VecDeque::with_capacity(TRANSFERS),
            ahead: None,
            has_failed: false,
        })
    }

    /// Has a block in memory; its slot.
    #[inline]
    pub fn touch(&mut self, array: usize, block: usize) -> Result<usize> {
        let slot = self.slot_of(array, block)?;
        if let Some(entry) = &mut self.slots[slot] {
            entry.is_touched = true;
        }
        Ok(slot)
    }

    /// Has a block in memory that the caller writes, until it wants another one of the array; its slot.
    #[inline]
    pub fn change(&mut self, array: usize, block: usize) -> Result<usize> {
        let slot = self.slot_of(array, block)?;
        if let Some(entry) = &mut self.slots[slot] {
            (entry.is_touched, entry.is_changed) = (true, true);
        }
        self.arrays[array].current = Some(slot);
        Ok(slot)
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// No block is written any more.
    pub fn cool_down(&mut self) {
        (self.arrays.iter_mut()).for_each(|array| array.current = None);
    }

    #[inline]
    fn slot_of(&mut self, array: usize, block: usize) -> Result<usize> {
        match self.arrays[array].places[block] {
            place if place >= FIRST_SLOT => Ok((place - FIRST_SLOT) as usize),
            place => self.bring_in(array, block, place == STORED),
        }
    }

    #[cold]
    fn bring_in(&mut self, array: usize, block: usize, is_stored: bool) -> Result<usize> {
        self.check_usable()?;
        let slot = self.vacate()?;
        if is_stored {
            let run = Run {
                frame: block as u64,
                frames: 1,
                buffer_offset: 0,
            };
            self.settle_block(array, block)?;
            let buffer = self.transfer_buffer()?;
            let pending = self.frames(array)?.read(buffer, vec![run]);
            let buffer = self.landed(pending.wait())?;
            let bytes = &buffer[..self.cut.block_bytes];
            let entered = self.memory.enter(slot, (array, block), Some(bytes));
            self.spare.push(buffer);
            self.landed(entered)?;
        } else {
            let entered = self.memory.enter(slot, (array, block), None);
            self.landed(entered)?;
        }
        self.slots[slot] = Some(Entry {
            array,
            block,
            is_touched: true,
            is_changed: false,
            is_stored,
        });
        self.arrays[array].places[block] = slot as u32 + FIRST_SLOT;
        Ok(slot)
    }

    /// A slot without a block.
    fn vacate(&mut self) -> Result<usize> {
        // A round that forgets which blocks were used, and one that finds one: of two slots for each array,
        // one is not the current one.
        let slots = self.slots.len();
        for _ in 0..2 * slots {
            let slot = self.hand;
            self.hand = (slot + 1) % slots;
            let Some(entry) = &mut self.slots[slot] else {
                return Ok(slot);
            };
            if self.arrays[entry.array].current != Some(slot) && !std::mem::take(&mut entry.is_touched) {
                self.evict(slot)?;
                return Ok(slot);
            }
        }
        Err(Invalid::Empty {
            what: "blocks that may leave memory",
        }
        .into())
    }

    /// Takes a block from its slot.
    fn evict(&mut self, slot: usize) -> Result<()> {
        if self.slots[slot].is_some_and(|entry| entry.is_changed) {
            self.write_out(slot)?;
        }
        if let Some(entry) = self.slots[slot].take() {
            let array = &mut self.arrays[entry.array];
            array.places[entry.block] = if entry.is_stored { STORED } else { ZEROS };
            array.current.take_if(|current| *current == slot);
            self.memory.leave((entry.array, entry.block));
        }
        Ok(())
    }

    /// Starts to write a block.
    fn write_out(&mut self, slot: usize) -> Result<()> {
        let Some(Entry { array, block, .. }) = self.slots[slot] else {
            return Ok(());
        };
        self.settle_block(array, block)?;
        let mut buffer = self.transfer_buffer()?;
        let bytes = self.memory.bytes(slot, (array, block));
        buffer[..bytes.len()].copy_from_slice(bytes);
        if let Some(entry) = &mut self.slots[slot] {
            (entry.is_changed, entry.is_stored) = (false, true);
        }
        let run = Run {
            frame: block as u64,
            frames: 1,
            buffer_offset: 0,
        };
        let pending = self.frames(array)?.write(buffer, vec![run], false);
        self.flying.push_back(Flight {
            array,
            block,
            pending,
        });
        Ok(())
    }

    /// Hands `blocks` of an array to `each`, a stretch at a time. Meanwhile the first stretch of the array that is read next, if
    /// `then` names one, is on its way.
    pub fn read(
        &mut self,
        (array, blocks): (usize, Range<usize>),
        then: Option<(usize, Range<usize>)>,
        mut each: impl FnMut(Range<usize>, Blocks<'_, M>) -> Result<()>,
    ) -> Result<()> {
        self.check_usable()?;
        self.frames(array)?;
        self.settle()?;
        let step = self.cut.stretch_bytes / self.cut.block_bytes;
        let stretch = |start: usize| start..(start + step).min(blocks.end);
        let first = self.stored(array, stretch(blocks.start));
        let mut ahead = match self.ahead.take() {
            // Other blocks may have come or gone since.
            Some(ahead) if (ahead.array, &ahead.stored) == (array, &first) => Some(ahead.pending),
            other => {
                self.ahead = other;
                self.forget_ahead()?;
                self.read_ahead(array, &first)?
            }
        };
        for start in blocks.clone().step_by(step) {
            let now = stretch(start);
            let next = self.stored(array, stretch(now.end));
            let next = self.read_ahead(array, &next)?;
            if let (true, Some((array, blocks))) = (now.end == blocks.end, &then) {
                let stored = self.stored(*array, blocks.start..(blocks.start + step).min(blocks.end));
                self.ahead = self.read_ahead(*array, &stored)?.map(|pending| Ahead {
                    array: *array,
                    stored,
                    pending,
                });
            }
            let buffer = std::mem::replace(&mut ahead, next);
            let buffer = self.landed(buffer.map(PendingFrames::wait).transpose())?;
            let read: &[u8] = buffer.as_ref().map_or(&[], |buffer| buffer);
            let found = Blocks {
                array,
                blocks: now.clone(),
                places: &self.arrays[array].places,
                memory: &self.memory,
                read: read.chunks_exact(self.cut.block_bytes),
            };
            let done = each(now, found);
            self.spare.extend(buffer);
            if done.is_err() {
                if let Some(ahead) = ahead {
                    let buffer = self.landed(ahead.wait())?;
                    self.spare.push(buffer);
                }
                return done;
            }
        }
        Ok(())
    }

    /// What is being read of the next array may change before it is read.
    pub fn forget_ahead(&mut self) -> Result<()> {
        if let Some(ahead) = self.ahead.take() {
            let buffer = self.landed(ahead.pending.wait())?;
            self.spare.push(buffer);
        }
        Ok(())
    }

    /// Those of `blocks` that are on disk only.
    fn stored(&self, array: usize, blocks: Range<usize>) -> Vec<usize> {
        let places = &self.arrays[array].places;
        blocks.filter(|block| places[*block] == STORED).collect()
    }

    /// Starts to read blocks that are on disk only.
    fn read_ahead(&mut self, array: usize, stored: &[usize]) -> Result<Option<PendingFrames>> {
        let mut runs: Vec<Run> = Vec::new();
        for (at, &block) in stored.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.frame + run.frames == block as u64 => run.frames += 1,
                _ => runs.push(Run {
                    frame: block as u64,
                    frames: 1,
                    buffer_offset: at * self.cut.block_bytes,
                }),
            }
        }
        if runs.is_empty() {
            return Ok(None);
        }
        let buffer = self.transfer_buffer()?;
        Ok(Some(self.frames(array)?.read(buffer, runs)))
    }

    /// Writes an array out, and takes it from memory.
    pub fn release(&mut self, array: usize) -> Result<()> {
        self.check_usable()?;
        self.arrays[array].current = None;
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_some_and(|entry| entry.array == array) {
                self.evict(slot)?;
            }
        }
        self.settle()
    }

    /// Forgets an array, whose file goes.
    pub fn remove(&mut self, array: usize) {
        for slot in &mut self.slots {
            if let Some(entry) = slot.take_if(|entry| entry.array == array) {
                self.memory.leave((entry.array, entry.block));
            }
        }
        if let Some(array) = self.arrays.get_mut(array) {
            (array.frames, array.current) = (None, None);
            array.places.fill(ZEROS);
        }
    }

    /// Keeps as many slots as the arrays that are left take. `cached` says how many blocks of an array a plan has in
    /// memory; if more are there, they stay.
    ///
    /// # Errors
    /// [`Error::Io`] of an earlier write.
    pub fn shrink_to_arrays(&mut self, cached: impl Fn(usize) -> u64) -> Result<()> {
        let arrays = self.arrays.iter().enumerate();
        let left = arrays.filter(|(_, array)| array.frames.is_some());
        let planned: u64 = left.map(|(array, _)| cached(array)).sum();
        let slots = self.slots.iter().flatten().count().max(planned as usize);
        match slots < self.slots.len() {
            true => self.shrink_to(slots),
            false => Ok(()),
        }
    }

    /// How many blocks of an array are not in memory.
    pub fn stored_blocks(&self, array: usize) -> usize {
        let places = self.arrays.get(array).map_or(&[][..], |array| &array.places);
        places.iter().filter(|place| **place == STORED).count()
    }

    /// Keeps `slots` slots, at least two for each array, and gives back the memory of the others.
    pub fn shrink_to(&mut self, slots: usize) -> Result<()> {
        self.check_usable()?;
        let mut free = 0;
        for from in slots..self.slots.len() {
            let Some(entry) = self.slots[from] else { continue };
            let is_current = self.arrays[entry.array].current == Some(from);
            let next = self.slots[free..slots].iter().position(Option::is_none);
            let Some(to) = next.map(|next| free + next) else {
                // Blocks are in no order of use between slots.
                self.evict(from)?;
                continue;
            };
            free = to + 1;
            self.memory.change_slot(from, to);
            self.slots[to] = self.slots[from].take();
            let array = &mut self.arrays[entry.array];
            array.places[entry.block] = to as u32 + FIRST_SLOT;
            if is_current {
                array.current = Some(to);
            }
        }
        self.settle()?;
        self.slots.truncate(slots);
        self.hand = 0;
        self.cut.slots = slots;
        self.memory.shrink_to(slots);
        Ok(())
    }

    fn frames(&self, array: usize) -> Result<&Arc<Frames>> {
        let count = self.arrays.len() as u64;
        self.arrays[array].frames.as_ref().ok_or_else(|| {
            Invalid::Index {
                what: "array of cells",
                index: array as u64,
                count,
            }
            .into()
        })
    }

    fn check_usable(&self) -> Result<()> {
        if !self.has_failed {
            return Ok(());
        }
        Err(Error::File {
            operation: "go on after a failed transfer of",
            file: self.name.clone(),
            source: std::io::Error::from(std::io::ErrorKind::Other),
        })
    }

    /// A buffer for a transfer, once one is free.
    fn transfer_buffer(&mut self) -> Result<Buffer> {
        loop {
            if let Some(buffer) = self.spare.pop() {
                return Ok(buffer);
            }
            self.land()?;
        }
    }

    /// Waits for the oldest write.
    fn land(&mut self) -> Result<()> {
        let Some(flight) = self.flying.pop_front() else {
            // The buffer of a transfer that failed went with it.
            return self.check_usable().and(Err(Invalid::Empty {
                what: "buffers for transfers",
            }
            .into()));
        };
        let buffer = self.landed(flight.pending.wait())?;
        self.spare.push(buffer);
        Ok(())
    }

    /// Remembers that a transfer failed, or that a block did not enter memory.
    fn landed<T>(&mut self, result: Result<T>) -> Result<T> {
        self.has_failed |= result.is_err();
        result
    }

    /// Waits for all writes.
    fn settle(&mut self) -> Result<()> {
        while !self.flying.is_empty() {
            self.land()?;
        }
        Ok(())
    }

    /// Waits until a block is not being written any more.
    fn settle_block(&mut self, array: usize, block: usize) -> Result<()> {
        let is_it = |flight: &Flight| flight.array == array && flight.block == block;
        while self.flying.iter().any(is_it) {
            self.land()?;
        }
        Ok(())
    }
}
