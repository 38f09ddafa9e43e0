//! Values that are kept for their next use, with their leases, until their memory is needed.
//!
//! Some memory is slow to make: pages that are locked for a device. Its owner [keeps](Spares::keep) it
//! between two uses. The ledger goes on counting it ([`Budget::spare_bytes`]), and counts it as available
//! too: a lease of more than is free gets it, and the oldest of what is spare goes first. Nobody is refused
//! while anything is spare. What was taken back is no longer spare, and stays.
//!
//! Locks: that of the values before that of the ledger, and neither while a value is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Budget, Lease, Ledger};

/// Values of one owner, oldest first. They go with it.
pub struct Spares<T: Send + 'static> {
    shelf: Arc<Shelf<T>>,
}

struct Shelf<T> {
    kept: Mutex<Vec<Kept<T>>>,
}

struct Kept<T> {
    // Before the lease: memory is given back first.
    value: T,
    lease: Lease,
}

/// Who can give something back.
pub(super) trait Keeper: Send + Sync {
    /// Lets the oldest value go whose lease is of this ledger; `false` if there is none.
    fn give_back_one(&self, ledger: &Arc<Ledger>) -> bool;
}

impl<T: Send + 'static> Default for Spares<T> {
    fn default() -> Self {
        Self {
            shelf: Arc::new(Shelf {
                kept: Mutex::default(),
            }),
        }
    }
}

impl<T: Send + 'static> Spares<T> {
    /// Keeps `value`, which holds what `lease` is for, until it is taken or its room is needed.
    pub fn keep(&self, value: T, mut lease: Lease) {
        let mut kept = self.shelf.kept();
        lease.becomes_spare();
        let keeper = Arc::clone(&self.shelf) as Arc<dyn Keeper>;
        lease.ledger.remember(&keeper);
        kept.push(Kept { value, lease });
    }

    /// The oldest value that `fits`, if it is leased from `budget`. Those of other budgets are let go: their
    /// owner has moved on.
    pub fn take(&self, budget: &Budget, mut fits: impl FnMut(&T) -> bool) -> Option<(T, Lease)> {
        let (mut found, mut others) = (None, Vec::new());
        {
            let mut kept = self.shelf.kept();
            for mut each in std::mem::take(&mut *kept) {
                if !Arc::ptr_eq(&each.lease.ledger, &budget.ledger) {
                    others.push(each);
                } else if found.is_none() && fits(&each.value) {
                    each.lease.is_wanted_again();
                    found = Some((each.value, each.lease));
                } else {
                    kept.push(each);
                }
            }
        }
        drop(others);
        found
    }

    /// Lets the oldest value go; `false` if there is none.
    pub fn give_back_oldest(&self) -> bool {
        self.shelf.give_back(|_| true)
    }

    /// Lets all of them go.
    pub fn give_back_all(&self) {
        while self.give_back_oldest() {}
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shelf.kept().len()
    }
}

impl<T: Send + 'static> std::fmt::Debug for Spares<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spares").field("count", &self.count()).finish()
    }
}

impl<T> Shelf<T> {
    fn kept(&self) -> MutexGuard<'_, Vec<Kept<T>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, of: impl Fn(&Lease) -> bool) -> bool {
        let oldest = {
            let mut kept = self.kept();
            let at = kept.iter().position(|each| of(&each.lease));
            at.map(|at| kept.remove(at))
        };
        // Dropped outside of the lock: it may wait for a device.
        oldest.is_some()
    }
}

impl<T: Send> Keeper for Shelf<T> {
    fn give_back_one(&self, ledger: &Arc<Ledger>) -> bool {
        self.give_back(|lease| Arc::ptr_eq(&lease.ledger, ledger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spare_is_held_and_available() {
        let budget = Budget::new(100);
        let spares = Spares::default();
        for (value, bytes) in [("old", 30), ("new", 20)] {
            spares.keep(value, budget.lease(bytes, "slots").unwrap());
        }
        let figures = |budget: &Budget| {
            (
                budget.held_bytes(),
                budget.spare_bytes(),
                budget.available_bytes(),
            )
        };
        assert_eq!(figures(&budget), (0, 50, 100));
        assert_eq!(
            budget.report()[0].held_bytes,
            50,
            "the ledger still says who has it"
        );
        // What is free is given out first, then the oldest goes.
        let half = budget.lease(50, "tile").unwrap();
        assert_eq!((spares.count(), budget.peak_bytes()), (2, 100));
        let more = budget.lease(1, "more").unwrap();
        assert_eq!(figures(&budget), (51, 20, 49));
        let (value, lease) = spares.take(&budget, |_| true).unwrap();
        assert_eq!((value, lease.bytes()), ("new", 20));
        assert_eq!(figures(&budget), (71, 0, 29));
        // In use, it is not given back.
        assert!(budget.lease(30, "too much").is_err());
        drop((half, more));
        spares.keep(value, lease);
        // A refusal names who really holds the rest.
        let held = budget.lease(60, "rest").unwrap();
        let refusal = budget.lease(41, "too much").unwrap_err().to_string();
        assert!(
            refusal.contains("rest") && !refusal.contains("slots"),
            "{refusal}"
        );
        drop(held);
        assert_eq!(figures(&budget), (0, 0, 100));
    }

    #[test]
    fn another_budget_gets_nothing_of_it() {
        let (one, other) = (Budget::new(100), Budget::new(100));
        let spares = Spares::default();
        spares.keep((), one.lease(60, "slots").unwrap());
        assert!(other.lease(101, "slots").is_err());
        assert_eq!(one.spare_bytes(), 60);
        assert!(spares.take(&other, |()| true).is_none());
        assert_eq!((one.spare_bytes(), spares.count()), (0, 0));
        spares.keep((), one.lease(60, "slots").unwrap());
        assert!(spares.take(&one, |()| false).is_none());
        assert_eq!(one.spare_bytes(), 60);
        drop(spares);
        assert_eq!((one.held_bytes(), one.spare_bytes()), (0, 0));
    }

    /// Whoever asks while another's value is on its way out waits for it, and is not refused.
    #[test]
    fn threads_that_ask_at_once_are_not_refused() {
        struct Slow;
        impl Drop for Slow {
            fn drop(&mut self) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
        let budget = Budget::new(100);
        let spares = Spares::default();
        spares.keep(Slow, budget.lease(100, "slots").unwrap());
        std::thread::scope(|scope| {
            let threads =
                [0, 1, 2, 3].map(|_| scope.spawn(|| budget.lease(25, "tile").map(std::mem::forget)));
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap().unwrap());
        });
        assert_eq!((budget.held_bytes(), budget.peak_bytes()), (100, 100));
    }
}
