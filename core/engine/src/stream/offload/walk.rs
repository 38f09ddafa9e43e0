//! Reads a column for an accelerator. Frames on disk land in the accelerator's memory, or go through buffers; a column
//! in memory is copied.
//!
//! A column on disk that is read upwards needs no reader where its frames can land in the accelerator's own
//! memory ([`InPlace`]): it takes the buffer of one frame, where a part ends inside of a frame. Bytes that land are
//! not copied on the host, and those of the next parts are on their way while one is checked. A column in
//! memory is copied once, by all threads. Frames on disk do not land in memory that does not begin at a page,
//! holds no frame, or is write-combined. Nor do bases that are read downwards (they begin with a short chunk, so no
//! frame behind it stands on a page), terms that are not one run of whole frames, and lines of a transform in two
//! steps. All of these go through buffers.

use std::ops::Range;
use std::sync::Arc;

use super::super::terms::{Chunk, Terms};
use super::beyond;
use crate::Result;
use crate::accelerator::{Arrivals, ColumnId, ReadElements};
use crate::budget::{LeasedVec, Lent, PAGE_BYTES};
use crate::column::{Column, Element, InPlace, Reader, Region, ascending, descending};

/// Chunks on the way for each reader.
const READ_AHEAD: usize = 2;

/// Bytes that a walk over a column leases between its first element and its last: chunks on the way, and the
/// tile.
pub(super) fn walk_bytes<E: Element>(column: &Column<E>, chunk: u64) -> u64 {
    (READ_AHEAD as u64 + 1) * column.transfer_bytes(chunk)
}

/// The order in which a column's chunks are read.
#[derive(Clone, Copy)]
enum Order {
    Upwards,
    /// The last chunk first, each in its own upward order.
    Downwards,
    /// What a sum over some terms has of the column.
    Of(Terms, fn(Chunk) -> Region),
}

/// A column that is read in chunks, in some order. Behind the last element there are zeros. A whole chunk is read to where
/// it is wanted; a chunk that is wanted in parts is read to a tile.
pub(super) struct Walk<const N: usize> {
    column: Column<[u8; N]>,
    chunk: u64,
    order: Order,
    /// Elements of all chunks.
    len: u64,
    in_place: Option<InPlace<N>>,
    reader: Option<Reader<[u8; N]>>,
    /// The element that is asked for next.
    next: u64,
    /// Chunks that the reader has not given.
    regions: Box<dyn Iterator<Item = Region>>,
    tile: Option<LeasedVec<[u8; N]>>,
    /// Of the tile, what has been read and not passed on.
    held: Range<usize>,
}

impl<const N: usize> Walk<N> {
    pub fn upwards(column: Column<[u8; N]>) -> Self {
        let chunk = column.sequential_chunk();
        Self::new(column, chunk, Order::Upwards)
    }

    /// The last chunk first, each in its own upward order.
    pub fn downwards(column: Column<[u8; N]>, chunk: u64) -> Self {
        Self::new(column, chunk, Order::Downwards)
    }

    /// One side of some terms.
    pub fn of_terms(column: Column<[u8; N]>, terms: Terms, side: fn(Chunk) -> Region) -> Self {
        // Short runs bring whole frames along: then there are fewer of them in a chunk.
        let most_bytes = column.transfer_bytes(column.sequential_chunk());
        let mut chunk = 1 << column.sequential_chunk().max(1).ilog2();
        while chunk > 1 && column.region_bytes(side(terms.chunk(0, chunk))) > most_bytes {
            chunk /= 2;
        }
        Self::new(column, chunk, Order::Of(terms, side))
    }

    fn new(column: Column<[u8; N]>, chunk: u64, order: Order) -> Self {
        let len = match &order {
            Order::Upwards | Order::Downwards => column.len(),
            Order::Of(terms, _) => terms.len(),
        };
        Self {
            column,
            chunk,
            order,
            len,
            in_place: None,
            reader: None,
            next: 0,
            regions: Box::new(std::iter::empty()),
            tile: None,
            held: 0..0,
        }
    }

    /// Bytes that are read for a chunk of terms: a later one may take a frame more than the first.
    fn bytes_of_chunk(&self, terms: Terms, side: fn(Chunk) -> Region) -> u64 {
        let chunks = [0, 1, terms.chunks(self.chunk).saturating_sub(1)].into_iter();
        let chunks = chunks.filter(|index| *index < terms.chunks(self.chunk));
        let bytes = chunks.map(|index| self.column.region_bytes(side(terms.chunk(index, self.chunk))));
        bytes.max().unwrap_or(0).next_multiple_of(PAGE_BYTES as u64)
    }

    /// Starts a reader at element `first`: 0, or the element at which frames turned out not to land.
    fn begin_reader(&mut self, first: u64) -> Result<()> {
        self.abandon();
        let (len, chunk) = (self.column.len(), self.chunk);
        let (chunks, skipped) = match self.order {
            Order::Upwards => (first / chunk, first % chunk),
            Order::Downwards => self.chunks_before(first),
            Order::Of(terms, side) => {
                // All of them but the last have the same length.
                let of_one = side(terms.chunk(0, chunk)).len();
                (first / of_one, first % of_one)
            }
        };
        self.reader = Some(match self.order {
            Order::Upwards => {
                let regions = ascending(len, chunk).skip(chunks as usize);
                self.regions = Box::new(regions.clone());
                self.column.reader(regions, READ_AHEAD)?
            }
            Order::Downwards => {
                let regions = descending(len, chunk).skip(chunks as usize);
                self.regions = Box::new(regions.clone());
                self.column.reader(regions, READ_AHEAD)?
            }
            Order::Of(terms, side) => {
                let regions = (chunks..terms.chunks(chunk)).map(move |index| side(terms.chunk(index, chunk)));
                self.regions = Box::new(regions.clone());
                self.column.reader(regions, READ_AHEAD)?
            }
        });
        (self.next, self.held) = (first, 0..0);
        let skipped = skipped as usize;
        if skipped > 0
            && let Some(region) = self.next_region()
        {
            self.next_to_tile(region.len() as usize)?;
            self.held.start = skipped.min(self.held.end);
        }
        Ok(())
    }

    /// What the reader gives next; there is none without a reader.
    fn next_region(&mut self) -> Option<Region> {
        self.reader.as_ref()?;
        self.regions.next()
    }

    /// The reader's next chunk, of so many elements, to the tile.
    fn next_to_tile(&mut self, elements: usize) -> Result<()> {
        let tile = match &mut self.tile {
            Some(tile) => tile,
            none => {
                let len = self.chunk.min(self.len) as usize;
                let budget = &self.column.workspace().budget;
                none.insert(budget.vec(len, [0; N], "elements for a compute accelerator")?)
            }
        };
        if let Some(reader) = &mut self.reader {
            reader.next_into(tile)?;
        }
        self.held = 0..elements;
        Ok(())
    }

    /// Reads the rest of a part with the reader.
    fn read_on(&mut self, mut into: &mut [[u8; N]]) -> Result<()> {
        self.next += into.len() as u64;
        while !into.is_empty() {
            let count = self.some(into)?;
            into = &mut into[count..];
        }
        if self.next >= self.len {
            // Others that are read after this one want the room.
            self.tile = None;
        }
        Ok(())
    }

    /// Elements, and that they are the ones to be asked for.
    fn in_order<'a>(&self, first: u64, into: &'a mut [u8]) -> Result<&'a mut [[u8; N]]> {
        let (elements, rest) = into.as_chunks_mut::<N>();
        if first != self.next || !rest.is_empty() {
            return Err(beyond(first, elements.len()));
        }
        Ok(elements)
    }

    /// Copies elements of a column in memory, as [`ReadElements::read`] gives them; `false` if it is not there, or
    /// was read otherwise before.
    fn copy(&mut self, first: u64, into: &mut [u8]) -> Result<bool> {
        let is_read_otherwise = self.reader.is_some() || self.in_place.is_some();
        if is_read_otherwise || matches!(self.order, Order::Of(..)) {
            return Ok(false);
        }
        let (len, mut next, mut rest) = (self.column.len(), first, into);
        let count = (rest.len() / N) as u64;
        if first != self.next || !rest.len().is_multiple_of(N) {
            return Err(beyond(first, rest.len() / N));
        }
        while !rest.is_empty() && next < len {
            let (start, left) = self.place(next);
            let bytes = rest.len().min(left as usize * N);
            let (part, later) = rest.split_at_mut(bytes);
            if !self.column.copy_out(start, part)? {
                return Ok(false);
            }
            (rest, next) = (later, next + (bytes / N) as u64);
        }
        rest.fill(0);
        self.next += count;
        Ok(true)
    }

    /// Where the element that is asked for as `position` is in the column, and how many follow it there.
    fn place(&self, position: u64) -> (u64, u64) {
        let (len, chunk) = (self.column.len(), self.chunk);
        if !matches!(self.order, Order::Downwards) {
            return (position, len - position);
        }
        let (chunks, within) = self.chunks_before(position);
        let start = (len.div_ceil(chunk) - 1 - chunks) * chunk;
        (start + within, chunk.min(len - start) - within)
    }

    /// Of a column that is read downwards, the chunks before the element that is asked for as `position`, and the
    /// elements of its own chunk: the last chunk, which is first, may be short.
    fn chunks_before(&self, position: u64) -> (u64, u64) {
        let (len, chunk) = (self.column.len(), self.chunk);
        let of_first = len - (len.div_ceil(chunk).max(1) - 1) * chunk;
        match position.checked_sub(of_first) {
            None => (0, position),
            Some(behind) => (1 + behind / chunk, behind % chunk),
        }
    }

    /// Some of what comes next, at the start of `into`; how many.
    fn some(&mut self, into: &mut [[u8; N]]) -> Result<usize> {
        if self.held.is_empty() {
            let Some(region) = self.next_region() else {
                into.fill([0; N]);
                return Ok(into.len());
            };
            let coming = region.len() as usize;
            if coming <= into.len()
                && let Some(reader) = &mut self.reader
            {
                reader.next_into(into)?;
                return Ok(coming);
            }
            self.next_to_tile(coming)?;
        }
        let count = self.held.len().min(into.len());
        if let Some(tile) = &self.tile {
            into[..count].copy_from_slice(&tile[self.held.start..][..count]);
        }
        self.held.start += count;
        Ok(count)
    }

    /// Read-ahead that is still under way holds its leases.
    fn abandon(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.abandon();
        }
    }
}

impl<const N: usize> Drop for Walk<N> {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl<const N: usize> ReadElements for Walk<N> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        if first == 0 {
            self.next = 0;
        }
        if self.copy(first, into)? {
            return Ok(());
        }
        let into = self.in_order(first, into)?;
        if first == 0 || self.in_place.take().is_some() || self.reader.is_none() {
            self.in_place = None;
            self.begin_reader(first)?;
        }
        self.read_on(into)
    }

    fn begin(&mut self, first: u64, mut into: Lent) -> Result<Arrivals> {
        if first == 0 {
            self.abandon();
            self.next = 0;
            self.in_place = match self.order {
                Order::Upwards => InPlace::of(&self.column, &into),
                Order::Downwards | Order::Of(..) => None,
            };
        }
        let Some(in_place) = &mut self.in_place else {
            self.read(first, &mut into)?;
            return Ok(Arrivals::default());
        };
        let count = (into.len() / N) as u64;
        if first != self.next || !into.len().is_multiple_of(N) {
            return Err(beyond(first, into.len() / N));
        }
        let workspace = self.column.workspace().clone();
        let mut arrivals = Arrivals::by(Arc::new(move |work| workspace.spread(work)));
        let left = in_place.begin(first, into, &mut arrivals)?;
        self.next += count;
        if let Some(mut left) = left {
            // It turned out that nothing lands there.
            self.in_place = None;
            self.next -= (left.len() / N) as u64;
            self.begin_reader(self.next)?;
            let (rest, _) = left.as_chunks_mut::<N>();
            self.read_on(rest)?;
        }
        Ok(arrivals)
    }

    fn disk_seconds_to_read(&self) -> f64 {
        let bytes = match self.order {
            Order::Upwards | Order::Downwards => self.len * N as u64,
            Order::Of(terms, side) => terms.chunks(self.chunk) * self.bytes_of_chunk(terms, side),
        };
        match self.column.on_disk() {
            true => (self.column.workspace()).disk_seconds(bytes, 0),
            false => 0.0,
        }
    }

    fn column(&self) -> Option<(ColumnId, u64)> {
        matches!(self.order, Order::Upwards).then(|| (self.column.column_id(), self.column.len()))
    }

    fn lease_bytes(&self) -> u64 {
        match self.order {
            Order::Upwards | Order::Downwards => walk_bytes(&self.column, self.chunk),
            Order::Of(terms, side) => (READ_AHEAD as u64 + 1) * self.bytes_of_chunk(terms, side),
        }
    }
}
