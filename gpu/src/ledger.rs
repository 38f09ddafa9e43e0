//! A limit in bytes, and the leases under it: one ledger for the memory of a device, one for page-locked
//! memory. It counts leases and allocates nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::sys::CUresult;

use crate::error::{Error, Result};
use crate::lock::locked;

/// The ledger. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    memory: &'static str,
    remedy: &'static str,
    limit_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held_bytes: u64,
    peak_bytes: u64,
    holders: BTreeMap<Cow<'static, str>, u64>,
}

impl Ledger {
    /// A ledger of `limit_bytes` of this kind of memory; every refusal ends with `remedy`.
    pub(crate) fn new(memory: &'static str, remedy: &'static str, limit_bytes: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                memory,
                remedy,
                limit_bytes,
                state: Mutex::default(),
            }),
        }
    }

    /// Takes `bytes` until the lease is dropped.
    ///
    /// # Errors
    /// [`Error::OverBudget`] if the leases would exceed the limit.
    pub fn lease(&self, bytes: u64, what: impl Into<Cow<'static, str>>) -> Result<Lease> {
        let what = what.into();
        let mut state = self.shared.state();
        let free_bytes = self.shared.limit_bytes - state.held_bytes;
        if bytes > free_bytes {
            return Err(Error::OverBudget {
                memory: self.shared.memory,
                what: what.into_owned(),
                requested_bytes: bytes,
                free_bytes,
                budget_bytes: self.shared.limit_bytes,
                holders: state.describe(),
                remedy: self.shared.remedy,
            });
        }
        state.held_bytes += bytes;
        state.peak_bytes = state.peak_bytes.max(state.held_bytes);
        *state.holders.entry(what.clone()).or_default() += bytes;
        drop(state);
        Ok(Lease {
            shared: self.shared.clone(),
            what,
            bytes,
        })
    }

    /// The limit.
    pub fn limit_bytes(&self) -> u64 {
        self.shared.limit_bytes
    }

    /// Bytes that are leased now.
    pub fn held_bytes(&self) -> u64 {
        self.shared.state().held_bytes
    }

    /// Bytes that are free.
    pub fn free_bytes(&self) -> u64 {
        self.shared.limit_bytes - self.held_bytes()
    }

    /// The most bytes that were leased at one time.
    pub fn peak_bytes(&self) -> u64 {
        self.shared.state().peak_bytes
    }

    /// Adds the ledger's figures to an error of the driver that says it is out of memory; other errors stay
    /// as they are.
    pub(crate) fn with_figures(&self, error: Error, lease: &Lease) -> Error {
        let Error::Driver {
            code: CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            ..
        } = error
        else {
            return error;
        };
        Error::OutOfMemory {
            memory: self.shared.memory,
            what: lease.what.to_string(),
            requested_bytes: lease.bytes,
            free_bytes: self.free_bytes() + lease.bytes,
            budget_bytes: self.shared.limit_bytes,
            remedy: self.shared.remedy,
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("memory", &self.shared.memory)
            .field("limit_bytes", &self.limit_bytes())
            .field("held_bytes", &self.held_bytes())
            .field("peak_bytes", &self.peak_bytes())
            .finish()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn describe(&self) -> String {
        const HOLDERS_NAMED_MAX: usize = 8;
        let mut held: Vec<_> = self.holders.iter().filter(|(_, bytes)| **bytes > 0).collect();
        held.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let mut text: Vec<String> = held
            .iter()
            .take(HOLDERS_NAMED_MAX)
            .map(|(what, bytes)| format!("{what}: {bytes}"))
            .collect();
        if held.len() > HOLDERS_NAMED_MAX {
            text.push(format!("and {} more", held.len() - HOLDERS_NAMED_MAX));
        }
        if text.is_empty() {
            "nothing".into()
        } else {
            text.join(", ")
        }
    }
}

/// The right to hold a number of bytes, given back on drop.
pub struct Lease {
    shared: Arc<Shared>,
    what: Cow<'static, str>,
    bytes: u64,
}

impl Lease {
    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its purpose.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        debug_assert!(state.held_bytes >= self.bytes);
        state.held_bytes -= self.bytes;
        if let Some(held_bytes) = state.holders.get_mut(&self.what) {
            *held_bytes -= self.bytes;
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("what", &self.what)
            .field("bytes", &self.bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_figures_and_the_holders() {
        let ledger = Ledger::new("device memory", "lower the budget", 4096);
        let buckets = ledger.lease(3000, "buckets").unwrap();
        let scalars = ledger.lease(1000, "scalars").unwrap();
        let refusal = ledger.lease(97, "tile").unwrap_err();
        assert!(refusal.is_memory_short() && !refusal.is_device_lost());
        assert_eq!(
            refusal.to_string(),
            "device memory: 97 bytes requested for tile, 96 free of a budget of 4096 (held: buckets: 3000, scalars: 1000); \
             lower the budget"
        );
        drop(buckets);
        assert_eq!((ledger.held_bytes(), ledger.peak_bytes()), (1000, 4000));
        assert!(ledger.lease(3096, "tile").is_ok());
        drop(scalars);
        assert_eq!(ledger.free_bytes(), 4096);
    }

    #[test]
    fn huge_requests_do_not_wrap() {
        let ledger = Ledger::new("device memory", "", 4096);
        let _held = ledger.lease(1, "one").unwrap();
        assert!(ledger.lease(u64::MAX, "all").is_err());
    }
}
