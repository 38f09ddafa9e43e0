//! Page-locked memory, with an event that is done when the device no longer uses it.
//!
//! A slot is idle or in flight. In flight, the host cannot access its bytes before
//! [`RawSlot::wait_until_idle`] has waited for the event of the slot, and drop waits too. A leaked slot never
//! frees its memory. So a safe function may start an asynchronous copy. An idle slot may be lent
//! ([`RawSlot::lend`]); it cannot be used before all of it is given back.
#![allow(unsafe_code)]

use std::sync::Arc;

use cudarc::driver::result;
use spillproof_engine::budget::{Lender, Lent};

use super::{Context, DeviceMemory, Event, HostMemory, RawStream, failed};
use crate::error::{Error, Invalid, Result};

#[derive(Debug)]
pub(crate) struct RawSlot {
    memory: Lender<HostMemory>,
    event: Event,
    state: State,
}

/// A copy of a part of a slot to a buffer of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotCopy {
    /// Where it begins in the slot.
    pub from: usize,
    pub bytes: usize,
    /// Where it goes in the buffer.
    pub to: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    InFlight,
    /// A copy may be running, and its end cannot be observed.
    Unknown,
}

impl RawSlot {
    pub(crate) fn new(context: &Arc<Context>, bytes: usize, write_combined: bool) -> Result<Self> {
        Ok(Self {
            event: Event::for_host(context)?,
            memory: Lender::new(HostMemory::new(context, bytes, write_combined)?),
            state: State::Idle,
        })
    }

    /// Blocks until the device no longer uses the slot.
    pub(crate) fn wait_until_idle(&mut self) -> Result<()> {
        match self.state {
            State::Idle => Ok(()),
            State::InFlight => {
                self.event.wait()?;
                self.state = State::Idle;
                Ok(())
            }
            State::Unknown => Err(Error::Unusable {
                what: "a pinned slot",
            }),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// The bytes of an idle slot.
    pub(crate) fn as_slice(&mut self) -> Result<&[u8]> {
        Ok(self.idle()?.as_slice())
    }

    /// Lends the first `bytes` of an idle slot, to be written.
    pub(crate) fn lend(&mut self, bytes: usize) -> Result<Lent> {
        self.idle()?;
        self.memory.lend(bytes).ok_or_else(|| too_long(bytes))
    }

    /// Queues copies to the device; the slot is in flight.
    pub(crate) fn send(
        &mut self,
        stream: &RawStream,
        copies: impl Iterator<Item = SlotCopy>,
        to: &DeviceMemory,
    ) -> Result<()> {
        let memory = self.idle()?;
        stream.context().bind()?;
        let mut queued = copies.map(|copy| queue(memory, stream, copy, to));
        let all = queued.try_for_each(|queued| queued);
        drop(queued);
        // After an error too: a copy before it may run.
        let flies = self.flies(stream);
        all.and(flies)
    }

    /// Queues a copy from the device into the first `bytes`; the slot is in flight.
    pub(crate) fn receive(
        &mut self,
        stream: &RawStream,
        bytes: usize,
        from: &DeviceMemory,
        offset: u64,
    ) -> Result<()> {
        let from = from.at(offset, bytes as u64)?;
        let memory = self.idle()?;
        let to = memory
            .as_mut_slice()
            .get_mut(..bytes)
            .ok_or_else(|| too_long(bytes))?;
        stream.context().bind()?;
        // SAFETY: `to` is in our memory, and no reference to it is made before `wait_until_idle`; the slice itself
        // is only taken apart into address and length.
        let queued = unsafe { result::memcpy_dtoh_async(to, from, stream.raw()) };
        queued.map_err(failed("copy from the device"))?;
        self.flies(stream)
    }

    /// Marks a slot in flight as idle: the fault that tests of the ring must detect.
    #[cfg(test)]
    pub(crate) fn forget_the_event(&mut self) {
        self.state = State::Idle;
    }

    /// The memory of an idle slot that is not lent.
    fn idle(&mut self) -> Result<&mut HostMemory> {
        match self.state {
            State::Idle => self.memory.memory().ok_or_else(|| {
                let reason =
                    "a part of the pinned slot is lent: it must be given back before the slot is used";
                Invalid::call(reason).into()
            }),
            State::InFlight => {
                let reason = "a copy of the pinned slot is in flight: wait for it before the bytes are used";
                Err(Invalid::call(reason).into())
            }
            State::Unknown => Err(Error::Unusable {
                what: "a pinned slot",
            }),
        }
    }

    /// Records the event behind a queued copy. If that fails, waits for the whole stream.
    fn flies(&mut self, stream: &RawStream) -> Result<()> {
        self.state = State::Unknown;
        let recorded = stream.record(&self.event);
        if recorded.is_ok() {
            self.state = State::InFlight;
        } else if stream.synchronize().is_ok() {
            self.state = State::Idle;
        }
        recorded
    }
}

/// Queues one copy from the memory of an idle slot, which the caller then marks as in flight.
fn queue(memory: &HostMemory, stream: &RawStream, copy: SlotCopy, to: &DeviceMemory) -> Result<()> {
    let SlotCopy { from, bytes, to: at } = copy;
    let to = to.at(at, bytes as u64)?;
    let part = from
        .checked_add(bytes)
        .and_then(|end| memory.as_slice().get(from..end));
    let part = part.ok_or_else(|| too_long(from.saturating_add(bytes)))?;
    // SAFETY: the part is in the slot's memory, which the host cannot write before `wait_until_idle`, and which
    // is not freed before the slot's `drop` has waited; the destination is inside its allocation.
    let queued = unsafe { result::memcpy_htod_async(to, part, stream.raw()) };
    queued.map_err(failed("copy to the device"))
}

fn too_long(bytes: usize) -> Error {
    Invalid::memory_size("part of a pinned slot", bytes as u64).into()
}

impl Drop for RawSlot {
    fn drop(&mut self) {
        // If this fails the context is lost, or the driver itself waits when the memory is freed.
        let _ = self.wait_until_idle();
    }
}
