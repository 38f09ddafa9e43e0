//! The two ends of a ring on the host: pinned slots that a source fills, and pinned slots whose bytes a sink
//! takes.

use std::collections::VecDeque;

use spillproof_engine::accelerator::Arrivals;
use spillproof_engine::budget::Lent;

use super::chunks::{Chunking, Part, Parts, Piece};
use super::fault::Fault;
use crate::error::{BoxedError, Error, Invalid, Result, Values};
use crate::pinned::{Caching, Slot};
use crate::raw::{DeviceMemory, RawSlot, RawStream, SlotCopy};
use crate::trace::{SpanKind, Trace};

/// The source of a job's bytes. It gives each byte once.
///
/// A function that fills a slice is one: it works when the slot is begun, on the thread that runs the job.
pub trait Source {
    /// Begins to fill `into`, a pinned slot, with the job's bytes from `offset` on; they are there when the arrivals
    /// are settled. Slots are begun in order, some before those before them are settled, and settled in order.
    ///
    /// Offset and length are multiples of an element. A job over several columns has elements of all their
    /// bytes, and may lay out a chunk column after column; `offset` and length then give the rows.
    ///
    /// # Errors
    /// Any error; the job ends with [`Error::Source`].
    fn begin(&mut self, offset: u64, into: Lent) -> Result<Arrivals, BoxedError>;
}

impl<F: FnMut(u64, &mut [u8]) -> Result<(), BoxedError>> Source for F {
    fn begin(&mut self, offset: u64, mut into: Lent) -> Result<Arrivals, BoxedError> {
        self(offset, &mut into).map(|()| Arrivals::default())
    }
}

/// The sink of a job's bytes. It takes each byte once, in order, on the thread that runs the job.
pub trait Sink {
    /// Takes `bytes`, in a pinned slot: the job's bytes from `offset` on.
    ///
    /// # Errors
    /// Any error; the job ends with [`Error::Sink`].
    fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoxedError>;
}

impl<F: FnMut(u64, &[u8]) -> Result<(), BoxedError>> Sink for F {
    fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        self(offset, bytes)
    }
}

/// Slots for copies to the device. Filling them needs neither device memory nor the right to use the device,
/// so a job fills them first ([`Upload::stage`]), then takes the device, and its first copies start at once.
#[derive(Debug)]
pub struct Upload {
    slots: Vec<Slot>,
    /// The slot of the next part.
    next: usize,
    /// Parts in slots that are begun or filled, oldest first; the last of them is in the slot before `next`.
    begun: VecDeque<BegunSlot>,
    /// Length of the job that is staged or runs, and its parts that are not begun yet.
    rest: Option<(u64, Parts)>,
    running: bool,
    trace: Trace,
}

/// Slots for copies from the device. The host reads them, so they must not be write-combined.
#[derive(Debug)]
pub struct Download {
    slots: Vec<Slot>,
    next: usize,
    /// Chunks in slots that the sink has not seen, oldest first.
    waiting: VecDeque<Piece>,
    trace: Trace,
}

/// A part of a chunk on its way into a slot.
#[derive(Debug)]
struct BegunSlot {
    part: Part,
    slot: usize,
    arrivals: Arrivals,
}

/// A part of a chunk in a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilledSlot {
    pub part: Part,
    /// The number of the slot.
    pub slot: usize,
}

impl Upload {
    /// An end over these slots, at least one.
    ///
    /// # Errors
    /// [`Error::Invalid`] without slots.
    pub fn new(slots: Vec<Slot>, trace: &Trace) -> Result<Self> {
        Ok(Self {
            slots: some(slots)?,
            next: 0,
            begun: VecDeque::new(),
            rest: None,
            running: false,
            trace: trace.clone(),
        })
    }

    /// Bytes of the smallest slot: the most that a part of a chunk may have.
    pub fn slot_bytes(&self) -> u64 {
        slot_bytes(&self.slots)
    }

    /// Fills as many slots as there are with the start of a job, before the device is needed. Returns the
    /// bytes staged. The ring then must run a job of the same length, from the same source.
    ///
    /// # Errors
    /// [`Error::Source`]; [`Error::Invalid`] if a job is staged already, or the parts of its chunks are longer
    /// than the slots.
    pub fn stage(&mut self, chunking: &Chunking, total_bytes: u64, source: &mut dyn Source) -> Result<u64> {
        if self.rest.is_some() {
            let reason = "another job is staged in these slots: run it first";
            return Err(Invalid::call(reason).into());
        }
        self.fits(chunking)?;
        let mut parts = chunking.parts(total_bytes)?;
        let filled = self.fill_all(&mut parts, source);
        if filled.is_err() {
            self.begun.clear();
        }
        self.rest = Some((total_bytes, parts)).filter(|_| filled.is_ok());
        filled
    }

    /// Fills all slots; the bytes in them.
    fn fill_all(&mut self, parts: &mut Parts, source: &mut dyn Source) -> Result<u64> {
        for part in parts.by_ref().take(self.slots.len()) {
            self.begin_part(part, source, Fault::None)?;
        }
        let mut staged_bytes = 0;
        for begun in &mut self.begun {
            settle(begun, &self.trace)?;
            staged_bytes += begun.part.bytes;
        }
        Ok(staged_bytes)
    }

    /// The parts of a job, those staged before them taken off the front of the queue as they are sent.
    pub(super) fn begin(&mut self, chunking: &Chunking, total_bytes: u64) -> Result<()> {
        self.fits(chunking)?;
        let parts = chunking.parts(total_bytes)?;
        if self.running {
            // A job that did not come to its end, since something in it panicked.
            self.end();
        }
        match self.rest.take() {
            None => self.rest = Some((total_bytes, parts)),
            Some((staged_bytes, rest)) if staged_bytes == total_bytes => {
                self.rest = Some((total_bytes, rest))
            }
            Some((staged_bytes, rest)) => {
                self.rest = Some((staged_bytes, rest));
                return Err(Values::Length {
                    what: "bytes of a job, whose first part is staged".into(),
                    given: total_bytes,
                    expected: staged_bytes,
                }
                .into());
            }
        }
        self.running = true;
        Ok(())
    }

    /// Gives up the job that is staged.
    pub fn unstage(&mut self) {
        self.end();
    }

    /// Ends the job, whatever its result: no chunk is staged any more.
    pub(super) fn end(&mut self) {
        self.begun.clear();
        self.rest = None;
        self.running = false;
    }

    /// The next part in its slot; `None` at the end of the job. Before it is settled, all others are begun whose
    /// slots are not the one that was sent last: its copy takes longer than all that the host does meanwhile.
    pub(super) fn next_filled(
        &mut self,
        source: &mut dyn Source,
        fault: Fault,
    ) -> Result<Option<FilledSlot>> {
        let most = self.slots.len().saturating_sub(1).max(1);
        while self.begun.len() < most
            && let Some(part) = self.rest.as_mut().and_then(|(_, parts)| parts.next())
        {
            self.begin_part(part, source, fault)?;
        }
        let Some(mut begun) = self.begun.pop_front() else {
            return Ok(None);
        };
        settle(&mut begun, &self.trace)?;
        let BegunSlot { part, slot, .. } = begun;
        Ok(Some(FilledSlot { part, slot }))
    }

    /// Queues the copy of a slot into the buffer of its chunk, which has `arrays` one behind the other: so many
    /// bytes of each element in each of them. A slot has the same arrays, of its own elements.
    pub(super) fn send(
        &mut self,
        filled: FilledSlot,
        stream: &RawStream,
        arrays: &[u64],
        to: &DeviceMemory,
    ) -> Result<()> {
        let FilledSlot { part, slot } = filled;
        let raw = self.slots[slot].raw()?;
        self.trace
            .device(SpanKind::ToDevicePinned, part.bytes, stream, || {
                raw.send(stream, copies(&part, arrays), to)
            })
    }

    /// Begins to fill the slot of the next part, once the device no longer uses it.
    fn begin_part(&mut self, part: Part, source: &mut dyn Source, fault: Fault) -> Result<()> {
        let slot = self.next;
        let raw = self.slots[slot].raw()?;
        match fault {
            #[cfg(test)]
            Fault::SlotRefilledEarly => raw.forget_the_event(),
            _ => wait_until_idle(raw, &self.trace)?,
        }
        let into = raw.lend(part.bytes as usize)?;
        let begun = self
            .trace
            .host(SpanKind::Fill, part.bytes, || source.begin(part.offset(), into));
        let arrivals = begun.map_err(|source| source_error(part, source))?;
        self.begun.push_back(BegunSlot { part, slot, arrivals });
        self.next = (self.next + 1) % self.slots.len();
        Ok(())
    }

    fn fits(&self, chunking: &Chunking) -> Result<()> {
        fits(&self.slots, chunking.part_bytes())
    }
}

/// Waits for what is on its way into a slot.
fn settle(begun: &mut BegunSlot, trace: &Trace) -> Result<()> {
    let arrivals = std::mem::take(&mut begun.arrivals);
    if arrivals.is_empty() {
        return Ok(());
    }
    let settled = trace.host(SpanKind::Arrival, begun.part.bytes, || arrivals.settle());
    settled.map_err(|error| source_error(begun.part, error.into()))
}

fn source_error(part: Part, source: BoxedError) -> Error {
    Error::Source {
        offset: part.offset(),
        bytes: part.bytes,
        source,
    }
}

/// Where each array of a part goes in the arrays of its chunk. A part that is its chunk is one copy, as is one
/// of a chunk of a single array.
fn copies<'a>(part: &Part, arrays: &'a [u64]) -> impl Iterator<Item = SlotCopy> + use<'a> {
    let Part { chunk, at, bytes } = *part;
    let is_whole = bytes == chunk.bytes || arrays.len() < 2;
    let whole = is_whole.then_some(SlotCopy {
        from: 0,
        bytes: bytes as usize,
        to: at,
    });
    let of_arrays = if is_whole { &[] } else { arrays };
    let element_bytes = of_arrays.iter().sum::<u64>().max(1);
    let [elements, before, own] = [chunk.bytes, at, bytes].map(|bytes| bytes / element_bytes);
    let mut of_element = 0;
    whole.into_iter().chain(of_arrays.iter().map(move |&array| {
        let copy = SlotCopy {
            from: (own * of_element) as usize,
            bytes: (own * array) as usize,
            to: elements * of_element + before * array,
        };
        of_element += array;
        copy
    }))
}

impl Download {
    /// An end over these slots, at least one.
    ///
    /// # Errors
    /// [`Error::Invalid`] without slots, or if they are write-combined: the host would read them a hundred
    /// times slower.
    pub fn new(slots: Vec<Slot>, trace: &Trace) -> Result<Self> {
        if slots.iter().any(|slot| slot.caching() == Caching::WriteCombined) {
            let reason =
                "the slots of a download are write-combined, and the host reads them: use a cached pool";
            return Err(Invalid::call(reason).into());
        }
        Ok(Self {
            slots: some(slots)?,
            next: 0,
            waiting: VecDeque::new(),
            trace: trace.clone(),
        })
    }

    /// Bytes of the smallest slot: the most that a chunk may have.
    pub fn slot_bytes(&self) -> u64 {
        slot_bytes(&self.slots)
    }

    pub(super) fn begin(&mut self, chunking: &Chunking) -> Result<()> {
        // Chunks of an earlier job that failed.
        self.waiting.clear();
        fits(&self.slots, chunking.chunk_bytes())
    }

    /// Queues the copy of a chunk into the next slot. If all slots wait, the sink takes the oldest first.
    pub(super) fn receive(
        &mut self,
        piece: Piece,
        stream: &RawStream,
        from: &DeviceMemory,
        sink: &mut dyn Sink,
        fault: Fault,
    ) -> Result<()> {
        if self.waiting.len() == self.slots.len() {
            self.drain_one(sink, fault)?;
        }
        let raw = self.slots[self.next].raw()?;
        wait_until_idle(raw, &self.trace)?;
        self.trace
            .device(SpanKind::FromDevicePinned, piece.bytes, stream, || {
                raw.receive(stream, piece.bytes as usize, from, 0)
            })?;
        self.waiting.push_back(piece);
        self.next = (self.next + 1) % self.slots.len();
        Ok(())
    }

    /// Waits for all copies and gives their bytes to the sink.
    pub(super) fn drain(&mut self, sink: &mut dyn Sink, fault: Fault) -> Result<()> {
        while !self.waiting.is_empty() {
            self.drain_one(sink, fault)?;
        }
        Ok(())
    }

    fn drain_one(&mut self, sink: &mut dyn Sink, fault: Fault) -> Result<()> {
        let count = self.slots.len();
        let slot = (self.next + count - self.waiting.len()) % count;
        let Some(piece) = self.waiting.pop_front() else {
            return Ok(());
        };
        let raw = self.slots[slot].raw()?;
        match fault {
            #[cfg(test)]
            Fault::SinkReadsEarly => raw.forget_the_event(),
            _ => wait_until_idle(raw, &self.trace)?,
        }
        let bytes = &raw.as_slice()?[..piece.bytes as usize];
        let taken = self
            .trace
            .host(SpanKind::Drain, piece.bytes, || sink.take(piece.offset, bytes));
        taken.map_err(|source| Error::Sink {
            offset: piece.offset,
            bytes: piece.bytes,
            source,
        })
    }
}

/// Waits until a slot is idle.
fn wait_until_idle(slot: &mut RawSlot, trace: &Trace) -> Result<()> {
    if slot.is_idle() {
        return Ok(());
    }
    trace.host(SpanKind::EventWait, 0, || slot.wait_until_idle())
}

fn some(slots: Vec<Slot>) -> Result<Vec<Slot>> {
    if slots.is_empty() {
        return Err(Values::Empty {
            what: "pinned slots of an end of a ring",
        }
        .into());
    }
    Ok(slots)
}

fn slot_bytes(slots: &[Slot]) -> u64 {
    slots.iter().map(Slot::bytes).min().unwrap_or(0) as u64
}

fn fits(slots: &[Slot], bytes: u64) -> Result<()> {
    let what = "bytes of a chunk for the smallest slot";
    Ok(Values::unless_at_most(what, bytes, slot_bytes(slots))?)
}
