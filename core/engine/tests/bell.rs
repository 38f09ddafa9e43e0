//! All orders in which two senders and a thread that falls asleep can meet: none leaves the thread asleep
//! with something in its inbox.

#[path = "../src/storage/bell.rs"]
mod bell;

/// What `bell.rs` takes from `storage::sync`: here loom's, which runs a test once for each order of its
/// operations.
mod sync {
    pub use std::sync::PoisonError;

    pub use loom::sync::atomic::{AtomicBool, Ordering};
    pub use loom::sync::{Mutex, MutexGuard};
}

use bell::Desk;
use loom::sync::{Arc, Notify};
use loom::thread;

/// How often a thread is interrupted in favour of another in one order, at most: without a bound there are
/// too many orders.
const PREEMPTIONS_MAX: usize = 2;

/// Takes until the desk is closed, as the ring's thread does.
fn takes_all(desk: &Desk<u32>, bell: &Notify) -> Vec<u32> {
    let mut taken = Vec::new();
    loop {
        let (items, closing) = desk.take();
        taken.extend(items);
        if closing {
            return taken;
        }
        if desk.may_sleep(closing) {
            bell.wait();
            desk.is_awake();
        }
    }
}

#[test]
fn nothing_that_was_sent_stays_in_the_inbox() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(|| {
        let desk = Arc::new((Desk::new(), Notify::new()));
        let sender = |item| {
            let desk = desk.clone();
            thread::spawn(move || desk.0.send(item, || desk.1.notify()))
        };
        let senders = [sender(1), sender(2)];
        let taker = thread::spawn({
            let desk = desk.clone();
            move || takes_all(&desk.0, &desk.1)
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        desk.0.close(|| desk.1.notify());
        let mut taken = taker.join().unwrap();
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}
