//! Many callers, one budget: sums that are asked for at the same time wait for each other, and none is refused.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::Arc;

use ark_bn254::Fr;
use rayon::prelude::*;
use spillproof::Session;
use spillproof::budget::ByteSize;
use spillproof::commit::{generate_scratch, kzg};
use spillproof::stream::Scalars;

#[test]
fn callers_on_every_thread_take_turns() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let budget = ByteSize::Bytes(2 << 20);
    let session = Session::builder()
        .memory(budget)
        .dir(dir.path())
        .build()
        .expect("a session");
    let srs = session
        .run(|| generate_scratch(session.workspace(), 10, Fr::from(77u64), |_| ()))
        .expect("an SRS");
    let values = vec![Fr::from(3u64); 1 << 10];
    let commit = || {
        session
            .run_in_turn(|| kzg::commit(&srs, &[Scalars::Slice(&values)]))
            .expect("committed")[0]
    };
    let wanted = commit();
    // The callers are workers of another pool, with more to do than they are many.
    let all: Vec<_> = (0..64).into_par_iter().map(|_| commit()).collect();
    assert!(all.iter().all(|commitment| *commitment == wanted));
    // And a caller that is one of the session's own threads does not wait for itself.
    assert_eq!(session.run(commit), wanted);
}

#[test]
fn suspended_is_no_session_until_the_guard_goes() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::builder()
        .memory(ByteSize::Bytes(1 << 20))
        .dir(dir.path())
        .build()
        .unwrap();
    let session = Arc::new(session);
    let is_current = || {
        Session::current()
            .unwrap()
            .is_some_and(|current| Arc::ptr_eq(&current, &session))
    };
    let _installed = session.install();
    assert!(is_current());
    let suspended = Session::suspend();
    assert!(Session::current().unwrap().is_none());
    let again = session.install();
    assert!(is_current());
    drop(again);
    assert!(Session::current().unwrap().is_none());
    drop(suspended);
    assert!(is_current());
}
