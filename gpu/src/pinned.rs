//! Page-locked slots, made once and kept: locking pages takes far longer than copying them.
//!
//! A budget of its own, since page-locked memory is taken from the whole machine and cannot be swapped out. A pool's slots are equal;
//! whoever takes some holds them alone, and they come back on drop, idle. Peak = `count * slot_bytes`, for the pool's whole life.

use std::borrow::Cow;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::ledger::{Lease, Ledger};
use crate::lock::locked;
use crate::raw::RawSlot;

const REMEDY: &str = "raise the budget of pinned memory, or use fewer or smaller slots";

/// How the processor sees the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching {
    /// As ordinary memory.
    #[default]
    Cached,
    /// Written past the caches: a little faster to copy from, very slow to read on the host. For uploads only.
    WriteCombined,
}

/// The budget of page-locked memory of the process. Clones share it.
#[derive(Debug, Clone)]
pub struct Pinned {
    ledger: Ledger,
}

impl Pinned {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self {
            ledger: Ledger::new("pinned memory", REMEDY, bytes),
        }
    }

    /// A pool of `count` slots of `slot_bytes` each, all made now.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`] if the system locks less than the budget says, [`Error::Invalid`] for none or
    /// empty slots.
    pub fn pool(
        &self,
        gpu: &Gpu,
        count: usize,
        slot_bytes: usize,
        caching: Caching,
        what: impl Into<Cow<'static, str>>,
    ) -> Result<PinnedPool> {
        let total_bytes = (slot_bytes as u64)
            .checked_mul(count as u64)
            .filter(|&bytes| bytes > 0);
        let total_bytes = total_bytes.ok_or_else(|| Error::Invalid {
            what: "pool of pinned slots",
            details: format!("{count} slots of {slot_bytes} bytes"),
        })?;
        let lease = self.ledger.lease(total_bytes, what)?;
        let write_combined = caching == Caching::WriteCombined;
        let idle = (0..count)
            .map(|_| RawSlot::new(gpu.context(), slot_bytes, write_combined))
            .collect::<Result<Vec<_>>>()
            .map_err(|error| self.ledger.with_figures(error, &lease))?;
        Ok(PinnedPool {
            shelf: Arc::new(Shelf {
                state: Mutex::new(State { idle, count }),
                returned: Condvar::new(),
                slot_bytes,
                caching,
                _lease: lease,
            }),
        })
    }

    /// The ledger: limit, held, peak.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// A pool. Clones share it; its memory goes with the last of them and the last slot out of it.
#[derive(Debug, Clone)]
pub struct PinnedPool {
    shelf: Arc<Shelf>,
}

#[derive(Debug)]
struct Shelf {
    state: Mutex<State>,
    returned: Condvar,
    slot_bytes: usize,
    caching: Caching,
    _lease: Lease,
}

#[derive(Debug)]
struct State {
    idle: Vec<RawSlot>,
    /// Slots that there are, idle or out; fewer than at first after the device failed with some in flight.
    count: usize,
}

impl PinnedPool {
    /// Takes `count` slots, all or none.
    ///
    /// # Errors
    /// [`Error::NoSlot`] if fewer are idle.
    pub fn take(&self, count: usize) -> Result<Vec<Slot>> {
        let mut state = self.shelf.state();
        if state.idle.len() < count {
            return Err(state.too_few(count));
        }
        Ok(self.lend(&mut state, count))
    }

    /// Takes `count` slots, all at once; blocks until that many are idle. A thread that holds slots itself may wait for ever.
    ///
    /// # Errors
    /// [`Error::NoSlot`] if the pool has fewer.
    pub fn wait_for(&self, count: usize) -> Result<Vec<Slot>> {
        let mut state = self.shelf.state();
        loop {
            if state.count < count {
                return Err(state.too_few(count));
            }
            if state.idle.len() >= count {
                return Ok(self.lend(&mut state, count));
            }
            state = self
                .shelf
                .returned
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Bytes of each slot.
    pub fn slot_bytes(&self) -> usize {
        self.shelf.slot_bytes
    }

    /// How many slots there are, idle or not.
    pub fn count(&self) -> usize {
        self.shelf.state().count
    }

    /// How many are idle.
    pub fn idle(&self) -> usize {
        self.shelf.state().idle.len()
    }

    fn lend(&self, state: &mut State, count: usize) -> Vec<Slot> {
        let rest = state.idle.len() - count;
        let taken = state.idle.drain(rest..);
        let lend = |raw| Slot {
            raw: Some(raw),
            shelf: self.shelf.clone(),
        };
        taken.map(lend).collect()
    }
}

impl Shelf {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn too_few(&self, asked: usize) -> Error {
        Error::NoSlot {
            asked,
            idle: self.idle.len(),
            count: self.count,
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        // The memory goes before the lease on it.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(mem::take(&mut state.idle));
    }
}

/// A slot that was taken from a pool.
#[derive(Debug)]
pub struct Slot {
    /// `None` only inside `drop`.
    raw: Option<RawSlot>,
    shelf: Arc<Shelf>,
}

impl Slot {
    /// How the processor sees it.
    pub fn caching(&self) -> Caching {
        self.shelf.caching
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.shelf.slot_bytes
    }

    pub(crate) fn raw(&mut self) -> Result<&mut RawSlot> {
        self.raw.as_mut().ok_or(Error::Unusable {
            what: "a pinned slot",
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(mut raw) = self.raw.take() else {
            return;
        };
        // Comes back idle, or not at all: nobody else may get bytes that a copy may still use.
        let is_idle = raw.wait_until_idle().is_ok();
        let mut state = self.shelf.state();
        if is_idle {
            state.idle.push(raw);
        } else {
            state.count -= 1;
            drop(raw);
        }
        drop(state);
        self.shelf.returned.notify_all();
    }
}
