//! Futures that do not wait: what they await is there. The ledger's traits are asynchronous for the sake of
//! networks, and a job has none. An executor would refuse to run inside of another one, as the proofs of a
//! transaction do.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The future's value.
pub fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        // Some combinators ask to be polled again.
        std::thread::yield_now();
    }
}
