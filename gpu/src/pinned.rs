//! Page-locked slots, allocated once and kept: locking pages takes far longer than copying them.
//!
//! They have a budget of their own, since page-locked memory comes out of the whole machine and cannot be
//! swapped. The slots of a pool are equal. A slot that is taken has one owner; on drop it waits until it is
//! idle and goes back. Peak = `count * slot_bytes`, for the whole life of the pool.

use std::borrow::Cow;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spillproof_engine::budget::{Budget, Lease};

use crate::budget::{MemoryBudget, PINNED_MEMORY};
use crate::device::Gpu;
use crate::error::{Error, Invalid, Result};
use crate::lock::locked;
use crate::raw::RawSlot;

/// How the processor caches the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching {
    /// Like ordinary memory.
    #[default]
    Cached,
    /// Write-combined, past the caches: a little faster for copies to the device, very slow to read on the
    /// host. For uploads only.
    WriteCombined,
}

/// The budget of page-locked memory of the process. Clones share it.
#[derive(Debug, Clone)]
pub struct Pinned {
    memory: MemoryBudget,
}

impl Pinned {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self {
            memory: MemoryBudget::new(PINNED_MEMORY, bytes),
        }
    }

    /// A pool of `count` slots of `slot_bytes` each, all allocated now.
    ///
    /// # Errors
    /// [`Error::OverBudget`]; [`Error::OutOfMemory`] if the system locks less than the budget;
    /// [`Error::Invalid`] for no slots or empty ones.
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
        let total_bytes = total_bytes.ok_or_else(|| {
            let bytes = (slot_bytes as u64).saturating_mul(count as u64);
            Invalid::memory_size("pool of pinned slots", bytes)
        })?;
        let lease = self.memory.lease(total_bytes, what)?;
        let write_combined = caching == Caching::WriteCombined;
        let idle = (0..count)
            .map(|_| RawSlot::new(gpu.context(), slot_bytes, write_combined))
            .collect::<Result<Vec<_>>>()
            .map_err(|error| self.memory.with_figures(error, &lease))?;
        Ok(PinnedPool {
            shelf: Arc::new(Shelf {
                state: Mutex::new(State { idle, count }),
                slot_bytes,
                caching,
                _lease: lease,
            }),
        })
    }

    /// The figures: limit, held, peak.
    pub fn budget(&self) -> &Budget {
        self.memory.budget()
    }
}

/// A pool of slots. Clones share it; its memory is freed with the last clone and the last slot.
#[derive(Debug, Clone)]
pub struct PinnedPool {
    shelf: Arc<Shelf>,
}

#[derive(Debug)]
struct Shelf {
    state: Mutex<State>,
    slot_bytes: usize,
    caching: Caching,
    _lease: Lease,
}

#[derive(Debug)]
struct State {
    idle: Vec<RawSlot>,
    /// Slots of the pool, idle or taken. A slot that the device may still use after a failure leaves the
    /// pool.
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

    /// Bytes of each slot.
    pub fn slot_bytes(&self) -> usize {
        self.shelf.slot_bytes
    }

    /// Slots of the pool, idle or taken.
    pub fn count(&self) -> usize {
        self.shelf.state().count
    }

    /// Slots that are idle.
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
        // Frees the memory before the lease.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(mem::take(&mut state.idle));
    }
}

/// A slot that was taken from a pool.
#[derive(Debug)]
pub struct Slot {
    /// `None` inside `drop` only.
    raw: Option<RawSlot>,
    shelf: Arc<Shelf>,
}

impl Slot {
    /// How the processor caches it.
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
        // The slot goes back if it is idle. Otherwise it leaves the pool: a copy may still use its bytes.
        let is_idle = raw.wait_until_idle().is_ok();
        let mut state = self.shelf.state();
        if is_idle {
            state.idle.push(raw);
        } else {
            state.count -= 1;
            drop(raw);
        }
    }
}
