//! Locks of this crate. Each guards a state that is whole whenever its lock is free, so a panic of another
//! thread does not damage it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, even if a thread has panicked while it held it.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
