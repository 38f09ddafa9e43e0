//! Proofs from files in the smallest budget that their plan names, over keys of extreme shapes: many distinct
//! coefficients, one, many public signals, few constraints.

use std::path::PathBuf;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_circom::Error as CircomError;
use spillproof_circom::prove::{import, plan, prove, summary_of};
use spillproof_engine::Error;
use spillproof_engine::plan::GRAIN_BYTES;
use spillproof_groth16::PairingCurve;
use spillproof_testing::session;

use crate::circom_files;
use crate::r1cs::{Circuit, Key, Values};

const GIB: u64 = 1 << 30;
/// Bytes that happen may be so much more or less than those that are planned.
const TOLERANCE: f64 = 0.05;

/// Bytes of files that a plan does not count, and of the frames of four columns: with a few rows it makes no difference to
/// the time whether they are in memory, so that a plan may have them on the disk and a proof not.
const BESIDE_BYTES: u64 = 128 << 10;

/// What the coefficients of a circuit are like.
#[derive(Clone, Copy, Debug)]
enum Coefficients {
    /// Each has a value of its own.
    Distinct,
    /// All are one.
    One,
    /// As [`Circuit::random`] has them.
    Mixed,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    constraints: usize,
    public: usize,
    /// Terms of a linear combination.
    terms: usize,
    coefficients: Coefficients,
}

impl Shape {
    fn random(rng: &mut ChaCha20Rng) -> Self {
        let mut below = |end: u32| (rng.next_u32() % end) as usize;
        let coefficients = [Coefficients::Distinct, Coefficients::One, Coefficients::Mixed][below(3)];
        // As often few as many.
        let [log_constraints, log_public] = [11, 8].map(|log_most| 1 + below(log_most));
        Self {
            constraints: 1 + below(1 << log_constraints),
            public: below(1 << log_public),
            terms: 1 + below(8),
            coefficients,
        }
    }

    fn circuit<F: Field>(self, seed: u64) -> Circuit<F> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        if let Coefficients::Mixed = self.coefficients {
            return Circuit::random(seed, self.constraints, self.public, Values::Full);
        }
        let mut witness = vec![F::ONE];
        witness.extend((0..=self.public).map(|_| F::rand(&mut rng)));
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.constraints {
            let new = witness.len();
            let mut row = || -> Vec<(F, usize)> {
                let mut term = || {
                    let value = match self.coefficients {
                        Coefficients::One => F::ONE,
                        _ => F::rand(&mut rng),
                    };
                    (value, rng.next_u32() as usize % new)
                };
                (0..self.terms).map(|_| term()).collect()
            };
            let (left, right) = (row(), row());
            let sum = |row: &[(F, usize)]| {
                row.iter()
                    .map(|(value, signal)| witness[*signal] * value)
                    .sum::<F>()
            };
            witness.push(sum(&left) * sum(&right));
            a.push(left);
            b.push(right);
            c.push(vec![(F::ONE, new)]);
        }
        Circuit {
            public: self.public,
            a,
            b,
            c,
            witness,
        }
    }
}

/// The files of a circuit.
struct Files {
    _dir: tempfile::TempDir,
    zkey: PathBuf,
    container: PathBuf,
    witness: PathBuf,
}

impl Files {
    fn of<E: PairingCurve>(circuit: &Circuit<E::Scalar>, seed: u64) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        let key = Key::<E>::new(circuit, seed);
        let files = Self {
            zkey: path("c.zkey"),
            container: path("c.key"),
            witness: path("w.wtns"),
            _dir: dir,
        };
        std::fs::write(&files.zkey, circom_files::zkey::<E>(circuit, &key)).expect("a file");
        std::fs::write(&files.witness, circom_files::wtns::<E>(&circuit.witness)).expect("a file");
        let (_dir, session) = session(GIB, 2);
        import(&session, &files.zkey, &files.container, &mut |_| ()).expect("a container");
        files
    }
}

fn works_in_its_smallest_budget<E: PairingCurve>(shape: Shape, seed: u64, threads: usize) {
    let files = Files::of::<E>(&shape.circuit::<E::Scalar>(seed), seed);
    for key in [&files.zkey, &files.container] {
        let label = format!("seed {seed}, {shape:?}, {threads} threads, {}", key.display());
        let planned = |budget_bytes: u64| {
            let (_dir, session) = session(budget_bytes, threads);
            let summary = summary_of(&session, key).expect("a summary");
            plan(&session, key, (&summary.shape, summary.curve), budget_bytes)
        };
        let smallest = planned(GIB).expect("a plan").smallest_budget_bytes;
        println!("{label}: {smallest} bytes");
        let planned = planned(smallest).expect("a plan in the smallest budget");
        assert_eq!(planned.smallest_budget_bytes, smallest, "{label}");
        {
            let (_dir, session) = session(smallest, threads);
            let before = session.storage().stats();
            let proved = prove(&session, key, &files.witness, &mut |_| ());
            let proved = proved.unwrap_or_else(|error| panic!("{label}: {error}"));
            let after = session.storage().stats();
            let total = planned.of(None);
            for (what, planned, happened) in [
                ("read", total.bytes_read, after.bytes_read - before.bytes_read),
                (
                    "written",
                    total.bytes_written,
                    after.bytes_written - before.bytes_written,
                ),
            ] {
                println!("{label}: {what}: {planned} planned, {happened} happened");
                // The header and the points of a verifying key are no columns. In so small a container a part
                // of a frame is read as a whole one, which no plan counts.
                let apart = planned.abs_diff(happened).saturating_sub(BESIDE_BYTES);
                let is_compared = key == &files.zkey;
                let is_near = apart as f64 <= TOLERANCE * happened as f64;
                assert!(!is_compared || is_near, "{label}: {what}");
            }
            assert_eq!(proved.public_signals, shape.public, "{label}");
        }
        // With a little less it may go well: the plan counts the last growth of the dictionary beside all
        // runs of the file.
        for budget_bytes in [smallest - GRAIN_BYTES, smallest / 2] {
            let (_dir, session) = session(budget_bytes, threads);
            match prove(&session, key, &files.witness, &mut |_| ()).map(|_| ()) {
                Err(CircomError::Engine(Error::BudgetTooSmall { needed_bytes, .. })) => {
                    assert_eq!(needed_bytes, smallest, "{label}");
                }
                ended => assert!(ended.is_ok() && budget_bytes > smallest / 2, "{label}: {ended:?}"),
            }
        }
    }
}

/// A dictionary of more than 2^14 values takes more than all the rest of a proof.
#[test]
fn keys_of_many_distinct_coefficients_are_planned() {
    let shape = Shape {
        constraints: 1500,
        public: 2,
        terms: 6,
        coefficients: Coefficients::Distinct,
    };
    works_in_its_smallest_budget::<Bn254>(shape, 1, 2);
}

#[test]
fn keys_of_extreme_shapes_are_planned() {
    let of = |constraints, public, terms, coefficients| Shape {
        constraints,
        public,
        terms,
        coefficients,
    };
    for (seed, shape) in [
        of(1, 0, 1, Coefficients::One),
        of(2000, 1, 1, Coefficients::One),
        of(3, 500, 2, Coefficients::Mixed),
        of(900, 0, 5, Coefficients::Distinct),
    ]
    .into_iter()
    .enumerate()
    {
        works_in_its_smallest_budget::<Bn254>(shape, seed as u64, 1);
    }
    works_in_its_smallest_budget::<Bls12_381>(of(600, 3, 4, Coefficients::Distinct), 5, 2);
}

#[test]
fn keys_of_random_shapes_are_planned() {
    let first: u64 = rand::random();
    for seed in first..first + 4 {
        println!("seed {seed}");
        let shape = Shape::random(&mut ChaCha20Rng::seed_from_u64(seed));
        works_in_its_smallest_budget::<Bn254>(shape, seed, 1 + (seed % 3) as usize);
    }
}
