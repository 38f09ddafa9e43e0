//! The drop-in against the unmodified crate, in one process, with the same circuits over both.
//!
//! - Switch off, no session: the drop-in is stock. Parameters and keys are equal byte for byte, and proofs
//!   are equal up to where stock draws from `thread_rng`.
//! - Switch on: a proof is a function of its inputs, and a session makes the same one as memory.
//! - Whatever the drop-in makes, the unmodified verifier accepts, from bytes.

// The circuits and the prover are compiled twice, over each crate: that is the point.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use halo2_axiom::halo2curves::bn256::Fr;
use halo2_axiom::spillproof::{active, set_reproducible, ByteSize, Session, SessionBuilder};

mod accelerator;
mod budgets;
mod bundle;
mod checkpoints;
mod drop_in;
mod environment;
mod faults;
mod params;
mod polynomials;
mod saved;
mod session;
mod simulation;
mod stock;
mod together;

use spillproof_testing::columns::assert_nothing_held;
use spillproof_testing::watchdog;

/// Which multi-opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Shplonk,
    Gwc,
}

/// What a verifier needs, made by either crate.
pub struct Bytes<'a> {
    pub params: &'a [u8],
    pub vk: &'a [u8],
    pub proof: &'a [u8],
    pub instances: &'a [Vec<Vec<Fr>>],
}

macro_rules! bytes {
    ($run:expr) => {
        Bytes {
            params: &$run.params,
            vk: &$run.vk,
            proof: &$run.proof,
            instances: &$run.instances,
        }
    };
}

const SCHEMES: [Scheme; 2] = [Scheme::Shplonk, Scheme::Gwc];

/// The switch and the session belong to the process: tests that set them take turns.
fn turn(reproducible: bool) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_reproducible(reproducible);
    turn
}

/// Runs `work` in a session with this budget, and sees to it that nothing is left on disk.
fn in_session<T>(memory_bytes: u64, work: impl FnOnce() -> T) -> T {
    in_session_with(memory_bytes, 0, work)
}

/// [`in_session`] with so many threads; 0 is one for each core.
fn in_session_with<T>(memory_bytes: u64, threads: usize, work: impl FnOnce() -> T) -> T {
    let builder = Session::builder()
        .memory(ByteSize::Bytes(memory_bytes))
        .threads(threads);
    in_session_of(builder, work)
}

/// [`in_session`], of a kind that the builder says.
fn in_session_of<T>(builder: SessionBuilder, work: impl FnOnce() -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let builder = builder.dir(dir.path());
    let session = Arc::new(builder.build().unwrap());
    let result = {
        let _current = session.install();
        assert!(active());
        work()
    };
    assert!(!active());
    assert_nothing_held(session.budget());
    drop(session);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "something is left on disk"
    );
    result
}

/// Budget of the sessions here. What is held must not grow with `k`.
const SESSION_BYTES: u64 = 48 << 20;

/// Switch off and no session: `points` commitments come before the random polynomial's.
fn is_stock<D: drop_in::erased::Listed, S: stock::erased::Listed>(k: u32, points: usize) {
    let _turn = turn(false);
    for scheme in SCHEMES {
        let ours = drop_in::prove::run::<D>(k, scheme);
        let theirs = stock::prove::run::<S>(k, scheme);
        assert!(ours.params == theirs.params, "parameters differ");
        assert!(ours.vk == theirs.vk, "verifying keys differ");
        assert!(ours.pk == theirs.pk, "proving keys differ");
        assert_eq!(ours.proof.len(), theirs.proof.len());
        assert!(
            ours.proof[..points * 32] == theirs.proof[..points * 32],
            "the deterministic part differs"
        );
        assert!(
            ours.proof != theirs.proof,
            "the random polynomial is the same twice"
        );
        assert!(
            stock::prove::accepts::<S>(&bytes!(ours), scheme),
            "stock rejects the drop-in's proof"
        );
        assert!(
            drop_in::prove::accepts::<D>(&bytes!(theirs), scheme),
            "the drop-in rejects stock's proof"
        );
    }
}

/// Switch on: twice the same, and stock's verifier accepts.
fn is_reproducible<D: drop_in::erased::Listed, S: stock::erased::Listed>(k: u32) {
    let _turn = turn(true);
    for scheme in SCHEMES {
        let once = drop_in::prove::run::<D>(k, scheme);
        let again = drop_in::prove::run::<D>(k, scheme);
        assert!(once == again, "{scheme:?}: two runs differ");
        assert!(
            stock::prove::accepts::<S>(&bytes!(once), scheme),
            "stock rejects the proof"
        );
        let mut wrong = once.instances.clone();
        wrong[0][0][0] += Fr::one();
        let wrong = Bytes {
            instances: &wrong,
            ..bytes!(once)
        };
        assert!(
            !stock::prove::accepts::<S>(&wrong, scheme),
            "stock accepts another output"
        );
    }
}

/// Switch off, in a session, whose threads all draw the random polynomial (it has several threads' parts):
/// two proofs have stock's commitments before that of the random polynomial, and differ in that one.
#[test]
fn with_the_switch_off_a_session_draws_another_random_polynomial_each_time() {
    let _turn = turn(false);
    let points = 7;
    for scheme in SCHEMES {
        let run = || {
            in_session(SESSION_BYTES, || {
                drop_in::prove::run::<drop_in::chain::Chain>(12, scheme)
            })
        };
        let (once, again) = (run(), run());
        let theirs = stock::prove::run::<stock::chain::Chain>(12, scheme);
        assert!(once.pk == theirs.pk, "proving keys differ");
        for run in [&once, &again] {
            assert!(
                run.proof[..points * 32] == theirs.proof[..points * 32],
                "the deterministic part differs from stock's"
            );
        }
        let of_random = points * 32..(points + 1) * 32;
        assert!(
            once.proof[of_random.clone()] != again.proof[of_random],
            "the random polynomial is the same twice"
        );
        for run in [once, again] {
            assert!(
                stock::prove::accepts::<stock::chain::Chain>(&bytes!(run), scheme),
                "stock rejects the proof"
            );
        }
    }
}

#[test]
fn without_a_session_the_chain_is_stock() {
    // 3 advice columns, and 4 permuted columns with one at a time (degree 3).
    is_stock::<drop_in::chain::Chain, stock::chain::Chain>(8, 7);
}

#[test]
fn without_a_session_the_wide_gate_is_stock() {
    // 96 advice columns, and 2 permuted ones in one product.
    is_stock::<drop_in::wide::Wide, stock::wide::Wide>(6, 97);
}

#[test]
fn without_a_session_lookups_are_stock() {
    // 7 advice columns; permuted lookup values come next, in the order of a `HashMap`.
    is_stock::<drop_in::lookups::Lookups, stock::lookups::Lookups>(8, 7);
}

#[test]
fn with_the_switch_the_chain_is_reproducible() {
    is_reproducible::<drop_in::chain::Chain, stock::chain::Chain>(8);
}

#[test]
fn with_the_switch_the_wide_gate_is_reproducible() {
    is_reproducible::<drop_in::wide::Wide, stock::wide::Wide>(6);
}

#[test]
fn with_the_switch_lookups_are_reproducible() {
    is_reproducible::<drop_in::lookups::Lookups, stock::lookups::Lookups>(8);
}

/// Switch on: a session makes what memory makes, and stock's verifier accepts.
fn is_identical<D: drop_in::erased::Listed, S: stock::erased::Listed>(k: u32) {
    let _turn = turn(true);
    for scheme in SCHEMES {
        let memory = drop_in::prove::run::<D>(k, scheme);
        let session = in_session(SESSION_BYTES, || drop_in::prove::run::<D>(k, scheme));
        assert!(session.params == memory.params, "k = {k}: parameters differ");
        assert!(session.vk == memory.vk, "k = {k}: verifying keys differ");
        assert!(session.pk == memory.pk, "k = {k}: proving keys differ");
        assert!(
            session.proof == memory.proof,
            "k = {k}, {scheme:?}: proofs differ"
        );
        assert!(
            stock::prove::accepts::<S>(&bytes!(session), scheme),
            "stock rejects the proof"
        );
    }
}

#[test]
fn a_session_is_identical_for_the_chain() {
    (11..=12).for_each(is_identical::<drop_in::chain::Chain, stock::chain::Chain>);
}

#[test]
fn a_session_is_identical_for_the_wide_gate() {
    is_identical::<drop_in::wide::Wide, stock::wide::Wide>(10);
}

#[test]
fn a_session_is_identical_for_lookups() {
    (11..=12).for_each(is_identical::<drop_in::lookups::Lookups, stock::lookups::Lookups>);
}

#[test]
fn a_session_is_identical_for_the_machine() {
    is_identical::<drop_in::machine::Machine, stock::machine::Machine>(7);
}

#[test]
#[ignore = "minutes: the same as above over up to 65536 rows"]
fn a_session_is_identical_up_to_k_16() {
    (13..=16).for_each(is_identical::<drop_in::chain::Chain, stock::chain::Chain>);
    (13..=16).for_each(is_identical::<drop_in::lookups::Lookups, stock::lookups::Lookups>);
    (12..=16).for_each(is_identical::<drop_in::wide::Wide, stock::wide::Wide>);
}
