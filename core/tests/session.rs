//! Many callers, one budget: sums that are asked for at the same time wait for each other, and none is refused.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::Arc;

use ark_bn254::{Fr, G1Projective};
use ark_ff::AdditiveGroup;
use rayon::prelude::*;
use spillproof::budget::{Budget, ByteSize};
use spillproof::commit::{generate_scratch, kzg};
use spillproof::stream::Scalars;
use spillproof::tier::{self, Answer, Tier};
use spillproof::{Result, Session};

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

/// Says that every sum is zero, and leaves transforms to the processor.
#[derive(Debug)]
struct Zero;

impl Tier for Zero {
    fn sums(&self, job: &mut tier::Sums<'_>, _: &Budget) -> Result<Answer<Vec<G1Projective>>> {
        Ok(Answer::Done(vec![G1Projective::ZERO; job.scalars.len()]))
    }

    fn transform(&self, _: &mut tier::Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("this test declines".into()))
    }

    fn quotient(&self, _: &mut tier::Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("no quotients here".into()))
    }
}

#[test]
fn a_tier_is_counted_and_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || {
        Session::builder()
            .memory(ByteSize::Bytes(2 << 20))
            .dir(dir.path())
    };
    let session = builder().tier(Arc::new(Zero)).build().unwrap();
    assert!(builder().build().unwrap().tier().is_none());
    let srs = generate_scratch(session.workspace(), 6, Fr::from(77u64), |_| ()).unwrap();
    let values = vec![Fr::from(3u64); 1 << 6];
    let commit = || session.run_in_turn(|| kzg::commit(&srs, &[Scalars::Slice(&values)]).unwrap()[0]);
    let tier = session.tier().unwrap();

    let (before, before_of_all) = (tier.jobs(), tier::jobs_of_all());
    let zero = commit();
    assert_eq!(
        (tier.jobs(), tier::jobs_of_all()),
        (before + 1, before_of_all + 1)
    );
    let right = {
        let _nobody = tier::pause_all(None);
        commit()
    };
    assert_ne!(right, zero);
    {
        let _others = tier::pause_all(Some(tier));
        assert_eq!(commit(), zero);
    }
    assert_eq!(tier.jobs(), before + 2);
    assert!(!tier.is_distrusted());
    tier.distrust();
    assert_eq!(commit(), right);
    assert_eq!(
        (tier.jobs(), tier::jobs_of_all()),
        (before + 2, before_of_all + 2)
    );
}
