//! Faults for tests: the i-th operation of a storage fails, is cut short, or lies. Above the backends, so all
//! of them meet the same faults.
//!
//! Operations are counted in the order in which callers ask for them, from 0: each segment of a transfer, and
//! each open, create, resize, sync, link, rename and unlink; of a [map](super::PagedMap) each reservation and
//! write-out; each [region](super::Region) that is made. A test runs once without faults, asks how many there
//! were, and then tries each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::io::Errno;

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with EIO.
    Io,
    /// It fails with ENOSPC.
    NoSpace,
    /// It fails with EOPNOTSUPP, as where a file system lacks it: a nameless file then has a name for a
    /// moment.
    Unsupported,
    /// It fails with EFAULT if it goes straight to or from a caller's memory, as where the kernel cannot
    /// reach that; else nothing.
    BadAddress,
    /// Its first attempt is interrupted (EINTR); the second goes through.
    Interrupted,
    /// Every attempt transfers at most this many bytes (rounded to the alignment, at least one unit).
    Short(usize),
    /// One byte is changed, this many bytes (modulo the length) into the segment, on its way.
    FlipByte(usize),
    /// Only the first half is transferred, and the whole is reported as done.
    Torn,
    /// Nothing is transferred, and the whole is reported as done.
    Lost,
    /// The system says that it has transferred a page more than it was asked for.
    Overstated,
    /// Two frames of this size change places: inside the segment if it has two, else the transfer goes to the
    /// neighbouring frame's offset.
    SwapFrames(usize),
    /// The file ends where the segment starts: for good after a write, for this read otherwise.
    Truncate,
}

/// Which operations meet which fault. Clones share the plan and its counter.
#[derive(Clone, Default)]
pub struct FaultPlan {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    operations: AtomicU64,
    always: Option<Fault>,
    single: Mutex<BTreeMap<u64, Fault>>,
    /// The seed, and faults in a million operations.
    random: Option<(u64, u32)>,
    has_stopped: AtomicBool,
}

impl FaultPlan {
    /// No faults; only counts.
    pub fn none() -> Self {
        Self::default()
    }

    /// Operation `index` meets `fault`.
    pub fn at(index: u64, fault: Fault) -> Self {
        let plan = Self::default();
        plan.single().insert(index, fault);
        plan
    }

    /// Operation `index` meets `fault`, too.
    #[must_use]
    pub fn and(self, index: u64, fault: Fault) -> Self {
        self.single().insert(index, fault);
        self
    }

    /// Every operation meets `fault`.
    pub fn always(fault: Fault) -> Self {
        Self {
            shared: Arc::new(Shared {
                always: Some(fault),
                ..Shared::default()
            }),
        }
    }

    /// Of a million operations so many meet a fault. Which ones, and with which fault, follows from the seed
    /// and the operation's index.
    pub fn random(seed: u64, per_million: u32) -> Self {
        Self {
            shared: Arc::new(Shared {
                random: Some((seed, per_million)),
                ..Shared::default()
            }),
        }
    }

    /// No operation meets a fault from now on.
    pub fn stop(&self) {
        self.shared.has_stopped.store(true, Relaxed);
    }

    /// How many operations there were so far.
    pub fn operations(&self) -> u64 {
        self.shared.operations.load(Relaxed)
    }

    /// Counts an operation; its fault, if it has one.
    pub(super) fn next(&self) -> Option<Fault> {
        let index = self.shared.operations.fetch_add(1, Relaxed);
        if self.shared.has_stopped.load(Relaxed) {
            return None;
        }
        let drawn = || {
            let (seed, per_million) = self.shared.random?;
            drawn(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15), per_million)
        };
        (self.shared.always)
            .or_else(|| self.single().remove(&index))
            .or_else(drawn)
    }

    /// Counts an operation that is no transfer and runs it; one that was interrupted runs again.
    pub(super) fn run<T>(&self, operation: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match self.next() {
            Some(Fault::Io) => return Err(Errno::IO),
            Some(Fault::NoSpace) => return Err(Errno::NOSPC),
            Some(Fault::Unsupported) => return Err(Errno::OPNOTSUPP),
            // Interrupted before it began; the rest is about bytes.
            _ => {}
        }
        loop {
            match operation() {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    fn single(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Fault>> {
        self.shared.single.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fault of any kind, so many times in a million.
fn drawn(seed: u64, per_million: u32) -> Option<Fault> {
    let mut rng = StdRng::seed_from_u64(seed);
    if rng.gen_range(0..1_000_000) >= per_million {
        return None;
    }
    Some(match rng.gen_range(0..10) {
        0 => Fault::Io,
        1 => Fault::NoSpace,
        2 => Fault::Unsupported,
        3 => Fault::Interrupted,
        4 => Fault::Short(rng.gen_range(1..1 << 16)),
        5 => Fault::FlipByte(rng.r#gen::<u32>() as usize),
        6 => Fault::Torn,
        7 => Fault::Lost,
        8 => Fault::SwapFrames(4096 << rng.gen_range(0..3)),
        _ => Fault::Truncate,
    })
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultPlan")
            .field("operations", &self.operations())
            .field("always", &self.shared.always)
            .field("single", &*self.single())
            .finish()
    }
}
