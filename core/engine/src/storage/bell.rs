//! The inbox of a thread that sleeps in a system call, and a bell that wakes it: rung only if the thread
//! sleeps.
//!
//! Either the sender sees the thread asleep, or the thread sees what was sent before it sleeps: `asleep` is
//! set before the inbox is looked at, and read after it was changed. All changes of `asleep` are swaps, whose
//! order loom knows: `tests/bell.rs` tries all orders.

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering::SeqCst, PoisonError};

/// An inbox of `T`s. The bell is the caller's.
pub(super) struct Desk<T> {
    inbox: Mutex<Inbox<T>>,
    asleep: AtomicBool,
}

struct Inbox<T> {
    items: Vec<T>,
    closing: bool,
}

impl<T> Desk<T> {
    pub(super) fn new() -> Self {
        let inbox = Inbox {
            items: Vec::new(),
            closing: false,
        };
        Self {
            inbox: Mutex::new(inbox),
            asleep: AtomicBool::new(false),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox<T>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `item`; rings if the thread sleeps.
    pub(super) fn send(&self, item: T, ring: impl FnOnce()) {
        self.inbox().items.push(item);
        self.wake(ring);
    }

    /// Nothing is sent any more; rings if the thread sleeps.
    pub(super) fn close(&self, ring: impl FnOnce()) {
        self.inbox().closing = true;
        self.wake(ring);
    }

    fn wake(&self, ring: impl FnOnce()) {
        if self.asleep.swap(false, SeqCst) {
            ring();
        }
    }

    /// What was sent, and whether the desk is closed.
    pub(super) fn take(&self) -> (Vec<T>, bool) {
        let mut inbox = self.inbox();
        (std::mem::take(&mut inbox.items), inbox.closing)
    }

    /// The thread is about to sleep until the bell rings, and knows whether the desk is closed; `false` if
    /// there is news for it.
    pub(super) fn may_sleep(&self, knows_closing: bool) -> bool {
        self.asleep.swap(true, SeqCst);
        let inbox = self.inbox();
        let has_news = !inbox.items.is_empty() || inbox.closing != knows_closing;
        drop(inbox);
        if has_news {
            self.is_awake();
        }
        !has_news
    }

    /// The thread sleeps no longer.
    pub(super) fn is_awake(&self) {
        self.asleep.swap(false, SeqCst);
    }
}
