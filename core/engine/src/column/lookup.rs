//! A column whose elements are read in any order, within a share of memory.
//!
//! Algorithm: the caller names the elements of a piece of work. The frames of them that are not in memory are
//! read in one transfer ([`Seeker::seek`]), while threads work on the piece before. Then they take the places
//! of other frames ([`Lookup::land`]), and threads read the elements side by side ([`Lookup::get`]). Which
//! frames go is decided by Corbato's clock (1968): a frame that was used since the hand passed it stays once
//! more.
//!
//! Shapes: a slot holds the elements of one frame, decoded. Memory: the share, which is leased whole: slots,
//! with 8 bytes each besides; a buffer for transfers of at most an eighth of them and 1 MiB; 8 bytes for each
//! frame of the column.

use super::frames::{PendingFrames, Run};
use super::reader::{Column, decode_parts};
use super::{Element, SEQUENTIAL_BYTES};
use crate::Result;
use crate::budget::{Buffer, LeasedVec, PAGE_BYTES};

/// Slots that there are at least.
const SLOTS_MIN: u64 = 4;
/// In place of a slot: the frame is not in memory.
const ABSENT: u32 = u32::MAX;

/// What is held at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    slots: u64,
    /// Frames that are on the way.
    transfer_frames: u64,
    /// All that is leased.
    pub bytes: u64,
}

impl Share {
    /// The largest share of at most `bytes` that a lookup in `column` can use, or the smallest share.
    pub fn within<E: Element>(column: &Column<E>, bytes: u64) -> Self {
        let (mut slots, mut above) = (SLOTS_MIN, frames_of(column) + 1);
        while slots + 1 < above {
            let middle = slots.midpoint(above);
            match Self::of(column, middle).bytes <= bytes {
                true => slots = middle,
                false => above = middle,
            }
        }
        Self::of(column, slots.min(frames_of(column)))
    }

    fn of<E: Element>(column: &Column<E>, slots: u64) -> Self {
        let frames = frames_of(column);
        let frame_elements = column.frame_elements();
        let frame_bytes = frame_elements * E::BYTES as u64;
        let transfer_frames = (slots / 8).min(SEQUENTIAL_BYTES as u64 / frame_bytes).max(1);
        let pages = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES as u64);
        let bytes = pages(slots * frame_elements * size_of::<E>() as u64)
            + pages(slots * size_of::<Slot>() as u64)
            + 2 * pages(frames * size_of::<u32>() as u64)
            + pages(transfer_frames * frame_bytes);
        Self {
            slots,
            transfer_frames,
            bytes,
        }
    }

    /// Whether each frame has a slot.
    pub fn is_whole<E: Element>(&self, column: &Column<E>) -> bool {
        self.slots >= frames_of(column)
    }
}

fn frames_of<E: Element>(column: &Column<E>) -> u64 {
    column.len().div_ceil(column.frame_elements())
}

/// A frame in a slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    frame: u32,
    /// The last piece that had used it when the hand passed.
    piece: u32,
}

/// The frames of a column that are in memory.
pub struct Lookup<E: Element> {
    column: Column<E>,
    frame_elements: u64,
    values: LeasedVec<E>,
    slots: LeasedVec<Slot>,
    /// Slots that have a frame: the first ones.
    filled: usize,
    hand: usize,
    /// For each frame its slot, or [`ABSENT`].
    places: LeasedVec<u32>,
}

/// Which frames pieces of work need, one piece after the other.
pub struct Seeker {
    /// For each frame the last piece that needs it.
    pieces: LeasedVec<u32>,
    piece: u32,
    transfer_frames: usize,
    buffer: Option<Buffer>,
}

/// A piece of work whose frames are in memory, or on their way.
pub struct Sought {
    /// Elements of the piece.
    pub elements: usize,
    /// The frames on their way, ascending.
    missing: Vec<u32>,
    pending: Option<PendingFrames>,
}

impl<E: Element> Lookup<E> {
    /// A lookup in `column` with a share of [`Share::within`], and what names its pieces of work. Nothing is
    /// read yet.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::Memory`].
    pub fn new(column: &Column<E>, share: &Share, what: &'static str) -> Result<(Self, Seeker)> {
        let budget = &column.workspace.budget;
        let frames = frames_of(column) as usize;
        let frame_elements = column.frame_elements();
        let zero = E::decode(&vec![0; E::BYTES]);
        let lookup = Self {
            column: column.clone(),
            frame_elements,
            values: budget.vec((share.slots * frame_elements) as usize, zero, what)?,
            slots: budget.vec(share.slots as usize, Slot::default(), what)?,
            filled: 0,
            hand: 0,
            places: budget.vec(frames, ABSENT, what)?,
        };
        let buffer_bytes = share.transfer_frames as usize * column.frames.frame_bytes();
        let seeker = Seeker {
            pieces: budget.vec(frames, 0, what)?,
            piece: 0,
            transfer_frames: share.transfer_frames as usize,
            buffer: Some(budget.buffer_to_fill(buffer_bytes, what)?),
        };
        Ok((lookup, seeker))
    }

    /// An element of the piece that has landed.
    #[inline]
    pub fn get(&self, index: u64) -> &E {
        let (frame, at) = self.find(index);
        &self.values[self.places[frame] as usize * self.frame_elements as usize + at]
    }

    #[inline]
    fn find(&self, index: u64) -> (usize, usize) {
        let elements = self.frame_elements;
        // Frames of scalars have a power of two of them.
        let (frame, at) = match elements.is_power_of_two() {
            true => (index >> elements.trailing_zeros(), index & (elements - 1)),
            false => (index / elements, index % elements),
        };
        (frame as usize, at as usize)
    }

    /// Waits for what a piece lacks, and checks and decodes it. Elements of pieces before may go.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`], [`crate::Error::Io`].
    pub fn land(&mut self, seeker: &mut Seeker, sought: Sought) -> Result<()> {
        let Some(pending) = sought.pending else {
            return Ok(());
        };
        let buffer = pending.wait()?;
        let mut slots = Vec::with_capacity(sought.missing.len());
        for (at, &frame) in sought.missing.iter().enumerate() {
            let slot = self.vacate(seeker);
            let piece = seeker.piece;
            self.slots[slot] = Slot { frame, piece };
            self.places[frame as usize] = slot as u32;
            slots.push((slot, at));
        }
        slots.sort_unstable();
        let (elements, frame_bytes) = (self.frame_elements as usize, self.column.frames.frame_bytes());
        let mut values = &mut self.values[..];
        let mut first = 0;
        let parts = slots.into_iter().map(|(slot, at)| {
            let from_slot = &mut std::mem::take(&mut values)[(slot - first) * elements..];
            let (here, rest) = from_slot.split_at_mut(elements);
            (values, first) = (rest, slot + 1);
            (here, at * frame_bytes)
        });
        decode_parts(&self.column.workspace, &buffer, parts)?;
        seeker.buffer = Some(buffer);
        Ok(())
    }

    /// A slot whose frame the piece of `seeker` does not need: it needs no more frames than there are slots.
    fn vacate(&mut self, seeker: &Seeker) -> usize {
        if self.filled < self.slots.len() {
            self.filled += 1;
            return self.filled - 1;
        }
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.slots.len();
            let slot = &mut self.slots[at];
            let piece = seeker.pieces[slot.frame as usize];
            if piece != seeker.piece && std::mem::replace(&mut slot.piece, piece) == piece {
                self.places[slot.frame as usize] = ABSENT;
                return at;
            }
        }
    }
}

impl Seeker {
    /// Begins a piece of work with as many of `indices`, from the first on, as fit in memory at a time (at
    /// least one), and starts to read the frames that it lacks. The piece before must have landed, and none
    /// may land between this piece and its landing.
    pub fn seek<E: Element>(&mut self, lookup: &Lookup<E>, indices: impl Iterator<Item = u64>) -> Sought {
        self.piece += 1;
        let (mut elements, mut needed) = (0, 0);
        let mut missing = Vec::new();
        for index in indices {
            let (frame, _) = lookup.find(index);
            if self.pieces[frame] != self.piece {
                let is_missing = lookup.places[frame] == ABSENT;
                if needed == lookup.slots.len() || is_missing && missing.len() == self.transfer_frames {
                    break;
                }
                self.pieces[frame] = self.piece;
                needed += 1;
                if is_missing {
                    missing.push(frame as u32);
                }
            }
            elements += 1;
        }
        missing.sort_unstable();
        let pending = (self.buffer.take_if(|_| !missing.is_empty())).map(|buffer| {
            let (column, mut runs) = (&lookup.column, Vec::<Run>::new());
            for (at, &frame) in missing.iter().enumerate() {
                let frame = column.first_frame + u64::from(frame);
                match runs.last_mut() {
                    Some(run) if run.frame + run.frames == frame => run.frames += 1,
                    _ => runs.push(Run {
                        frame,
                        frames: 1,
                        buffer_offset: at * column.frames.frame_bytes(),
                    }),
                }
            }
            column.frames.read(buffer, runs)
        });
        Sought {
            elements,
            missing,
            pending,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::Budget;
    use crate::column::{Placement, Workspace, Writer};
    use crate::storage::Storage;

    fn column(len: u64) -> Column<u64> {
        let storage = Storage::builder().dir(std::env::temp_dir()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(4 << 20));
        let mut writer = Writer::scratch(&workspace, "numbers", len, Placement::Disk).unwrap();
        let values: Vec<u64> = (0..len).map(|index| index * index).collect();
        writer.push(&values).unwrap();
        writer.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn elements_are_those_of_the_column(
            len in 1u64..100_000,
            share_bytes in 0u64..1 << 20,
            start in 0u64..50_000,
            places in prop::collection::vec(0u64..100_000, 1..2000),
        ) {
            let column = column(len);
            // From a later frame on, too.
            let start = start / column.frame_elements() * column.frame_elements();
            let part = if start < len { column.part(start, len - start).unwrap() } else { column };
            let start = if start < len { start } else { 0 };
            let share = Share::within(&part, share_bytes);
            let held_bytes = part.workspace().budget.held_bytes();
            let (mut lookup, mut seeker) = Lookup::new(&part, &share, "test").unwrap();
            prop_assert_eq!(part.workspace().budget.held_bytes() - held_bytes, share.bytes);
            prop_assert!(share.bytes <= share_bytes.max(Share::within(&part, 0).bytes));
            let places: Vec<u64> = places.iter().map(|place| place % part.len()).collect();
            let mut left = &places[..];
            while !left.is_empty() {
                let sought = seeker.seek(&lookup, left.iter().copied());
                prop_assert!(sought.elements > 0);
                let (now, later) = left.split_at(sought.elements);
                lookup.land(&mut seeker, sought).unwrap();
                for place in now {
                    prop_assert_eq!(*lookup.get(*place), (start + place) * (start + place));
                }
                left = later;
            }
        }
    }

    #[test]
    fn a_share_is_used() {
        let column = column(400_000);
        for share_bytes in (100..4000).map(|kib| kib << 10) {
            let share = Share::within(&column, share_bytes);
            assert!(share.bytes <= share_bytes, "{share:?}");
            let is_full = share.is_whole(&column) || Share::of(&column, share.slots + 1).bytes > share_bytes;
            assert!(is_full, "{share:?} of {share_bytes}");
        }
        assert!(Share::within(&column, 4 << 20).is_whole(&column));
    }
}
