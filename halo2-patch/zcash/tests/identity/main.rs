//! The drop-in against the unmodified crate, in one process, with the same circuits over both and the same
//! generator: parameters, verifying keys and proofs are equal byte for byte, with a session and without.

// The circuits and the prover are compiled twice, over each crate: that is the point.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use halo2_proofs::pasta::{EpAffine, EqAffine};
use halo2_proofs::spillproof::{active, ByteSize, Session, SessionBuilder};
use proptest::prelude::*;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;
use rand_core::TryRng;

mod drop_in;
mod errors;
mod params;
mod shape;
mod stock;

use drop_in::prove::Curve;
use drop_in::random::Random as Ours;
use shape::Shape;
use stock::random::Random as Theirs;

/// The same generator for both provers.
pub struct Draws(ChaCha20Rng);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// The shape and the session belong to the process: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` in a session of this kind, and sees to it that nothing is left.
fn in_session<T>(builder: SessionBuilder, work: impl FnOnce() -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let session = Arc::new(builder.dir(dir.path()).build().unwrap());
    let result = {
        let _current = session.install();
        assert!(active());
        work()
    };
    assert!(!active());
    assert_eq!(session.budget().held_bytes(), 0, "{:?}", session.budget());
    drop(session);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "something is left on disk"
    );
    result
}

fn of(memory_bytes: u64) -> SessionBuilder {
    Session::builder().memory(ByteSize::Bytes(memory_bytes))
}

/// Rows that a circuit of the current shape may assign, of `2^k`; fewer than there are, so that some stay
/// empty.
fn rows(k: u32) -> usize {
    (1 << k) - 20
}

/// Circuits of the current shape.
fn circuits(k: u32, count: usize) -> (Vec<Ours>, Vec<Theirs>) {
    let seeds = 1..=count as u64;
    let ours = seeds.clone().map(|seed| Ours::new(rows(k), seed)).collect();
    (ours, seeds.map(|seed| Theirs::new(rows(k), seed)).collect())
}

/// What stock makes.
struct Made {
    params: Vec<u8>,
    pinned: String,
    proof: Vec<u8>,
}

fn stocks<C: Curve>(k: u32, count: usize, seed: u64) -> Made {
    let (_, circuits) = circuits(k, count);
    let params = stock::halo2::poly::commitment::Params::<C>::new(k);
    let pk = stock::prove::keys(&params, &circuits[0]).unwrap();
    let proof = stock::prove::prove(&params, &pk, &circuits, seed).unwrap();
    assert!(stock::prove::accepts(&params, pk.get_vk(), &circuits, &proof));
    Made {
        params: stock::prove::written(&params),
        pinned: stock::prove::pinned(pk.get_vk()),
        proof,
    }
}

/// The same by the drop-in, from parameters to the verified proof.
fn ours<C: Curve>(k: u32, count: usize, seed: u64) -> Made {
    let (circuits, _) = circuits(k, count);
    let params = drop_in::halo2::poly::commitment::Params::<C>::new(k);
    let pk = drop_in::prove::keys(&params, &circuits[0]).unwrap();
    let proof = drop_in::prove::prove(&params, &pk, &circuits, seed).unwrap();
    assert!(drop_in::prove::accepts(&params, pk.get_vk(), &circuits, &proof));
    Made {
        params: drop_in::prove::written(&params),
        pinned: drop_in::prove::pinned(pk.get_vk()),
        proof,
    }
}

fn assert_same(made: &Made, expected: &Made) {
    assert!(made.params == expected.params, "parameters differ");
    assert!(made.pinned == expected.pinned, "verifying keys differ");
    assert!(made.proof == expected.proof, "proofs differ");
}

fn is_identical<C: Curve>(shape: u64, k: u32, count: usize) {
    let _turn = turn();
    Shape::set(shape);
    let expected = stocks::<C>(k, count, shape);
    assert_same(&ours::<C>(k, count, shape), &expected);
    for builder in [
        of(64 << 20),
        of(16 << 20).threads(1),
        of(24 << 20).quotient_tile_rows(7),
    ] {
        assert_same(&in_session(builder, || ours::<C>(k, count, shape)), &expected);
    }
}

#[test]
fn one_circuit_over_vesta() {
    is_identical::<EqAffine>(3, 7, 1);
}

/// The quotient is made in groups of circuits, of which the last one is smaller.
#[test]
fn eleven_circuits() {
    is_identical::<EqAffine>(3, 6, 11);
}

#[test]
fn three_circuits_over_pallas() {
    is_identical::<EpAffine>(5, 6, 3);
}

/// Times of the drop-in and of stock in one process, and the session's peak. `K` is log2 of the rows,
/// `BUDGET_MIB` the session's.
#[test]
#[ignore = "minutes: a measurement"]
fn full_size() {
    use std::time::Instant;
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (k, budget_mib, count) = (
        number("K", 18) as u32,
        number("BUDGET_MIB", 96),
        number("CIRCUITS", 1) as usize,
    );
    let is_alone = std::env::var("ALONE").is_ok();
    let _turn = turn();
    Shape::set(number("SHAPE", 3));
    eprintln!("{:?}", Shape::current());
    let (our_circuits, their_circuits) = circuits(k, count);
    let began = Instant::now();
    let lap = |what: &str, of: Instant| eprintln!("{what}: {:.2} s", of.elapsed().as_secs_f64());
    let made = in_session(of(budget_mib << 20), || {
        let params = drop_in::halo2::poly::commitment::Params::<EqAffine>::new(k);
        lap("parameters", began);
        let at = Instant::now();
        let pk = drop_in::prove::keys(&params, &our_circuits[0]).unwrap();
        lap("keys", at);
        let at = Instant::now();
        let proof = drop_in::prove::prove(&params, &pk, &our_circuits, 1).unwrap();
        lap("proof", at);
        let at = Instant::now();
        assert!(drop_in::prove::accepts(
            &params,
            pk.get_vk(),
            &our_circuits,
            &proof
        ));
        lap("verification", at);
        (drop_in::prove::written(&params), proof)
    });
    if is_alone {
        return;
    }
    let params = stock::prove::read_params::<EqAffine>(&made.0);
    let at = Instant::now();
    let pk = stock::prove::keys(&params, &their_circuits[0]).unwrap();
    lap("stock's keys", at);
    let at = Instant::now();
    let proof = stock::prove::prove(&params, &pk, &their_circuits, 1).unwrap();
    lap("stock's proof", at);
    let at = Instant::now();
    assert!(stock::prove::accepts(
        &params,
        pk.get_vk(),
        &their_circuits,
        &proof
    ));
    lap("stock's verification", at);
    assert!(proof == made.1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_circuits(shape in any::<u64>(), k in 6..8u32, count in 1..4usize, is_vesta in any::<bool>()) {
        match is_vesta {
            true => is_identical::<EqAffine>(shape, k, count),
            false => is_identical::<EpAffine>(shape, k, count),
        }
    }
}
