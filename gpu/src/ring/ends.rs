//! The two ends of a ring on the host: pinned slots that a source fills, and pinned slots whose bytes a sink
//! takes.

use std::collections::VecDeque;

use super::chunks::{Chunking, Part, Parts, Piece};
use super::fault::Fault;
use crate::error::{BoxedError, Error, Invalid, Result, Values};
use crate::pinned::{Caching, Slot};
use crate::raw::{DeviceMemory, RawSlot, RawStream, SlotCopy};
use crate::trace::{SpanKind, Trace};

/// The source of a job's bytes. It gives each byte once, in order, on the thread that runs the job.
pub trait Source {
    /// Fills `into`, a pinned slot, with the job's bytes from `offset` on.
    ///
    /// Offset and length are multiples of an element. A job over several columns has elements of all their
    /// bytes, and may lay out a chunk column after column; `offset` and length then give the rows.
    ///
    /// # Errors
    /// Any error; the job ends with [`Error::Source`].
    fn fill(&mut self, offset: u64, into: &mut [u8]) -> Result<(), BoxedError>;
}

impl<F: FnMut(u64, &mut [u8]) -> Result<(), BoxedError>> Source for F {
    fn fill(&mut self, offset: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        self(offset, into)
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
    /// Parts in filled slots, oldest first; the last of them is in the slot before `next`.
    staged: VecDeque<Part>,
    /// Length of the job that is staged or runs, and its parts that are not filled yet.
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
            staged: VecDeque::new(),
            rest: None,
            running: false,
            trace: trace.clone(),
        })
    }

    /// Bytes of the smallest slot: the most that a part of a chunk may have.
    pub fn slot_bytes(&self) -> u64 {
        slot_bytes(&self.slots)
    }

    /// How the host sees the slots: write-combined, if any is.
    pub fn caching(&self) -> Caching {
        let mut slots = self.slots.iter().map(Slot::caching);
        slots
            .find(|caching| *caching == Caching::WriteCombined)
            .unwrap_or_default()
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
        let mut staged_bytes = 0;
        while self.staged.len() < self.slots.len() {
            let Some(part) = parts.next() else { break };
            let filled = self.fill(part, source, Fault::None);
            if filled.is_err() {
                self.staged.clear();
            }
            filled?;
            self.staged.push_back(part);
            staged_bytes += part.bytes;
        }
        self.rest = Some((total_bytes, parts));
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

    /// Ends the job, whatever its result: no chunk is staged any more.
    pub(super) fn end(&mut self) {
        self.staged.clear();
        self.rest = None;
        self.running = false;
    }

    /// The next part in its slot; `None` at the end of the job.
    pub(super) fn next_filled(
        &mut self,
        source: &mut dyn Source,
        fault: Fault,
    ) -> Result<Option<FilledSlot>> {
        let count = self.slots.len();
        if self.staged.is_empty() {
            let Some(part) = self.rest.as_mut().and_then(|(_, parts)| parts.next()) else {
                return Ok(None);
            };
            self.fill(part, source, fault)?;
            self.staged.push_back(part);
        }
        let slot = (self.next + count - self.staged.len() % count) % count;
        Ok(self.staged.pop_front().map(|part| FilledSlot { part, slot }))
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

    /// Fills the slot of the next part, once the device no longer uses it.
    fn fill(&mut self, part: Part, source: &mut dyn Source, fault: Fault) -> Result<()> {
        let raw = self.slots[self.next].raw()?;
        match fault {
            #[cfg(test)]
            Fault::SlotRefilledEarly => raw.forget_the_event(),
            _ => wait_until_idle(raw, &self.trace)?,
        }
        let into = &mut raw.as_mut_slice()?[..part.bytes as usize];
        let filled = self
            .trace
            .host(SpanKind::Fill, part.bytes, || source.fill(part.offset(), into));
        filled.map_err(|source| Error::Source {
            offset: part.offset(),
            bytes: part.bytes,
            source,
        })?;
        self.next = (self.next + 1) % self.slots.len();
        Ok(())
    }

    fn fits(&self, chunking: &Chunking) -> Result<()> {
        fits(&self.slots, chunking.part_bytes())
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
