//! Many short columns: each whole in memory, and worked on by one thread, as many at a time as there are threads.
//!
//! A stage over one column shares each of its loops among all threads, and waits for the disk at its start and at its end. Of a column of
//! a few thousand elements that is most of its time. So where there are several such columns, threads have lanes: a lane reads the columns
//! of an item, computes what becomes of them, lets that be written behind it, and takes the next item that no lane has begun, whose
//! columns are on their way meanwhile.
//!
//! Memory: for each lane, of an item's largest columns, `inputs + outputs + spare` tiles, the frames of the inputs, and those of the
//! outputs twice. All of it, and the columns that are made, are there before the first lane starts: what is leased does not depend on
//! which lane is ahead.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::side_by_side::{Stopped, side_by_side};
use super::windows::pages;
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{
    Behind, Column, Draft, Element, Placement, Reader, Region, SCRATCH_FRAME_BYTES, SharedDraft, Workspace,
};
use spillproof_engine::dry::Work;

/// The longest columns that are short.
const ROWS_MAX: u64 = 1 << 16;
/// Lanes take at most this part of what is available.
const LANES_SHARE: u64 = 4;
/// Writes that a lane has behind it, of each of an item's outputs.
const WRITES_BEHIND: usize = 2;

/// What becomes of each item.
pub(super) struct Short<'a> {
    pub workspace: &'a Workspace,
    /// In errors, and the name of the columns that are made.
    pub what: &'static str,
    /// Columns that are made of an item.
    pub outputs: usize,
    /// Their length, and where they are put.
    pub rows: u64,
    pub placement: Placement,
    /// Tiles that the work on an item takes beside those of its columns.
    pub spare: usize,
    /// The work on an item, for the dry run.
    pub work: Work,
}

/// The tiles of an item.
pub(super) struct Tiles<'t, E> {
    /// The columns that were read; they may be overwritten.
    pub inputs: Vec<&'t mut [E]>,
    /// What is to be written, all of it.
    pub outputs: Vec<&'t mut [E]>,
    pub spare: Vec<&'t mut [E]>,
}

/// The columns that are read of each item: as many of each.
pub(super) type Items<'c, E> = [Vec<&'c Column<E>>];

impl Short<'_> {
    /// Lanes for these items: none where columns are long, or the room is small, or there are fewer than two items or threads.
    fn lanes<E: Element>(&self, items: &Items<'_, E>) -> u64 {
        let longest = items
            .iter()
            .flatten()
            .map(|column| column.len())
            .max()
            .unwrap_or(0);
        let threads = rayon::current_num_threads().min(items.len()) as u64;
        if threads < 2 || longest.max(self.rows) > ROWS_MAX {
            return 0;
        }
        let available = self.workspace.budget.available_bytes();
        let lanes = available / LANES_SHARE / self.lane_bytes(items).max(1);
        if lanes < 2 { 0 } else { lanes.min(threads) }
    }

    fn tile_elements<E: Element>(&self, items: &Items<'_, E>) -> u64 {
        let lengths = items.iter().flatten().map(|column| column.len());
        lengths.max().unwrap_or(0).max(self.rows)
    }

    fn tiles<E: Element>(&self, items: &Items<'_, E>) -> u64 {
        let inputs = items.first().map_or(0, Vec::len);
        (inputs + self.outputs + self.spare) as u64
    }

    fn lane_bytes<E: Element>(&self, items: &Items<'_, E>) -> u64 {
        let frames = |item: &Vec<&Column<E>>| {
            let bytes = item
                .iter()
                .map(|column| pages(column.region_bytes(whole(column)).max(1)));
            bytes.sum::<u64>()
        };
        let frames = items.iter().map(frames).max().unwrap_or(0);
        let tiles = pages(self.tiles(items) * self.tile_elements(items) * size_of::<E>() as u64);
        tiles + frames + (WRITES_BEHIND * self.outputs) as u64 * self.write_bytes::<E>()
    }

    /// Bytes of the frames of an output.
    fn write_bytes<E: Element>(&self) -> u64 {
        (self.rows * E::BYTES as u64).next_multiple_of(SCRATCH_FRAME_BYTES as u64)
    }

    /// The columns that `compute` makes of each item, in order, or `None` where the items are not for lanes. `compute` gets the number
    /// of the item.
    ///
    /// # Errors
    /// What reading, computing or writing gives first.
    pub fn take<E: Element + Send + Sync>(
        &self,
        items: &Items<'_, E>,
        zero: E,
        compute: impl Fn(usize, &mut Tiles<'_, E>) -> Result<()> + Sync,
    ) -> Result<Option<Vec<Vec<Column<E>>>>> {
        let lanes = self.lanes(items);
        if lanes == 0 {
            return Ok(None);
        }
        if self.workspace.is_dry() {
            return self.rehearse(items, lanes).map(Some);
        }
        let pass = Pass {
            short: self,
            items,
            next: AtomicUsize::new(0),
        };
        let lanes = (0..lanes).map(|_| pass.lane(zero)).collect::<Result<Vec<_>>>()?;
        let drafts = |_| {
            (0..self.outputs)
                .map(|_| Ok(self.draft()?.share()))
                .collect::<Result<Vec<_>>>()
        };
        let drafts: Vec<Vec<SharedDraft<E>>> = (0..items.len()).map(drafts).collect::<Result<_>>()?;
        side_by_side(lanes, |lane, stopped| pass.run(lane, &drafts, &compute, stopped))?;
        let finish = |drafts: Vec<SharedDraft<E>>| drafts.into_iter().map(SharedDraft::finish).collect();
        Ok(Some(drafts.into_iter().map(finish).collect()))
    }

    fn draft<E: Element>(&self) -> Result<Draft<E>> {
        Draft::scratch_with_frames(
            self.workspace,
            self.what,
            self.rows,
            self.placement,
            SCRATCH_FRAME_BYTES,
        )
    }

    fn rehearse<E: Element>(&self, items: &Items<'_, E>, lanes: u64) -> Result<Vec<Vec<Column<E>>>> {
        let _lanes = self.workspace.hold(lanes * self.lane_bytes(items), self.what)?;
        let mut made = Vec::with_capacity(items.len());
        for item in items {
            item.iter().for_each(|column| column.count_read());
            self.workspace.passed(u64::from(made.is_empty()), self.work);
            let outputs = (0..self.outputs).map(|_| self.draft()?.finish());
            made.push(outputs.collect::<Result<Vec<_>>>()?);
        }
        Ok(made)
    }
}

/// All of a column.
pub(super) fn whole<E: Element>(column: &Column<E>) -> Region {
    Region::Span {
        start: 0,
        len: column.len(),
    }
}

/// All items on their way.
struct Pass<'a, 'c, E> {
    short: &'a Short<'a>,
    items: &'a Items<'c, E>,
    /// The item that no lane has begun.
    next: AtomicUsize,
}

/// Memory that one item after the other passes.
struct Lane<E: Copy> {
    tiles: LeasedVec<E>,
    behind: Behind,
    begun: Option<Begun<E>>,
}

/// An item whose columns are on their way.
struct Begun<E> {
    item: usize,
    readers: Vec<Reader<E>>,
}

impl<E: Element + Send + Sync> Pass<'_, '_, E> {
    fn lane(&self, zero: E) -> Result<Lane<E>> {
        let (short, budget) = (self.short, &self.short.workspace.budget);
        let writes = WRITES_BEHIND * short.outputs;
        let buffer = |_| budget.buffer_to_fill(short.write_bytes::<E>() as usize, "column writer");
        let elements = short.tiles(self.items) * short.tile_elements(self.items);
        Ok(Lane {
            tiles: budget.vec(elements as usize, zero, short.what)?,
            behind: Behind::with_buffers((0..writes).map(buffer).collect::<Result<_>>()?, writes),
            begun: self.begin_next()?,
        })
    }

    /// The next item, if one is left.
    fn begin_next(&self) -> Result<Option<Begun<E>>> {
        let item = self.next.fetch_add(1, Relaxed);
        let Some(columns) = self.items.get(item) else {
            return Ok(None);
        };
        let reader = |column: &&Column<E>| column.reader(std::iter::once(whole(column)), 1);
        Ok(Some(Begun {
            item,
            readers: columns.iter().map(reader).collect::<Result<_>>()?,
        }))
    }

    /// Takes items until none is left.
    fn run(
        &self,
        mut lane: Lane<E>,
        drafts: &[Vec<SharedDraft<E>>],
        compute: &(impl Fn(usize, &mut Tiles<'_, E>) -> Result<()> + Sync),
        stopped: &Stopped,
    ) -> Result<()> {
        let tile = self.short.tile_elements(self.items) as usize;
        while let Some(Begun { item, readers }) = lane.begun.take().filter(|_| !stopped.is_set()) {
            let mut tiles = lane.tiles.chunks_exact_mut(tile.max(1));
            let mut inputs = Vec::with_capacity(readers.len());
            for ((mut reader, column), tile) in readers.into_iter().zip(&self.items[item]).zip(&mut tiles) {
                let values = &mut tile[..column.len() as usize];
                reader.next_into(values)?;
                inputs.push(values);
            }
            lane.begun = self.begin_next()?;
            let rows = self.short.rows as usize;
            let outputs = tiles
                .by_ref()
                .take(self.short.outputs)
                .map(|tile| &mut tile[..rows]);
            let mut tiles = Tiles {
                inputs,
                outputs: outputs.collect(),
                spare: tiles.collect(),
            };
            compute(item, &mut tiles)?;
            for (draft, values) in drafts[item].iter().zip(tiles.outputs) {
                let mut part = draft.part(std::mem::replace(&mut lane.behind, Behind::new(1)));
                let len = values.len() as u64;
                part.write(Region::Span { start: 0, len }, values)?;
                lane.behind = part.into_behind();
            }
        }
        lane.behind.landed()
    }
}
