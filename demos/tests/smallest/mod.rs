//! Keys and a proof in the smallest budget that a plan names, for circuits of extreme shapes over all
//! drop-ins: a hundred instance columns, one column, many lookups, many fixed columns, few rows.
//!
//! Groth16's are in `demos/circom`, with its keys.

mod axiom;
mod midnight;
mod zcash;

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::{GRAIN_BYTES, Plan};

use crate::plan::alone;

const THREADS: usize = 2;
/// More than any of these circuits takes.
const ENOUGH_BYTES: u64 = 1 << 40;
/// Shapes that are drawn.
const DRAWN: u64 = 3;

/// What a circuit is like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub k: u32,
    pub advice: usize,
    pub fixed: usize,
    pub instances: usize,
    pub lookups: usize,
    /// Of the gate on the first column.
    pub degree: usize,
    /// Whether a column and all instances are copied.
    pub is_permuted: bool,
}

impl Shape {
    /// Rows with values.
    pub fn rows(&self) -> usize {
        1 << (self.k - 1)
    }

    /// The advice column whose cells instances are copies of.
    pub fn copied(&self) -> usize {
        self.advice - 1
    }

    fn random(rng: &mut ChaCha20Rng) -> Self {
        let mut below = |end: u32| (rng.next_u32() % end) as usize;
        // Few of most kinds, now and then many.
        let mut some = |most: u32| match below(3) {
            0 => below(most),
            _ => below(3),
        };
        let (advice, fixed, instances, lookups) = (1 + some(40), some(40), some(120), some(12));
        Self {
            k: 6 + some(4) as u32,
            advice,
            fixed,
            instances,
            lookups,
            degree: 3 + some(3),
            is_permuted: below(2) == 0,
        }
    }
}

/// A drop-in: the plan of a shape, and keys and a proof of it.
struct System {
    name: &'static str,
    plan: fn(Shape) -> Plan,
    make: fn(Shape) -> Result<(), String>,
}

const SYSTEMS: [System; 3] = [
    System {
        name: "axiom",
        plan: axiom::plan,
        make: axiom::make,
    },
    System {
        name: "midnight",
        plan: midnight::plan,
        make: midnight::make,
    },
    System {
        name: "zcash",
        plan: zcash::plan,
        make: zcash::make,
    },
];

fn works_in_its_smallest_budget(shape: Shape) {
    for system in SYSTEMS {
        let smallest = (system.plan)(shape).smallest_budget_bytes;
        let label = format!("{}, {shape:?}", system.name);
        println!("{label}: {smallest} bytes");
        let in_budget = |budget_bytes: u64| {
            let dir = tempfile::tempdir().expect("a folder");
            let builder = Session::builder()
                .memory(ByteSize::Bytes(budget_bytes))
                .dir(dir.path())
                .threads(THREADS);
            let session = Arc::new(builder.build().expect("a session"));
            let _current = session.install();
            (system.make)(shape)
        };
        assert_eq!(in_budget(smallest), Ok(()), "{label}");
        let refused = in_budget(smallest - GRAIN_BYTES).expect_err("too little");
        assert!(
            refused.contains(&smallest.to_string()),
            "{label}: {refused} does not name {smallest}"
        );
    }
}

#[test]
fn circuits_of_extreme_shapes_work_in_their_smallest_budget() {
    let _alone = alone();
    let least = Shape {
        k: 6,
        advice: 1,
        fixed: 0,
        instances: 0,
        lookups: 0,
        degree: 3,
        is_permuted: false,
    };
    for shape in [
        least,
        Shape {
            instances: 100,
            is_permuted: true,
            k: 8,
            ..least
        },
        Shape {
            instances: 100,
            ..least
        },
        Shape {
            advice: 60,
            fixed: 3,
            ..least
        },
        Shape {
            fixed: 100,
            k: 9,
            ..least
        },
        Shape {
            advice: 3,
            lookups: 16,
            is_permuted: true,
            instances: 1,
            ..least
        },
        Shape {
            degree: 5,
            k: 9,
            ..least
        },
    ] {
        works_in_its_smallest_budget(shape);
    }
}

#[test]
fn circuits_of_random_shapes_work_in_their_smallest_budget() {
    let _alone = alone();
    let first: u64 = rand::random();
    for seed in first..first + DRAWN {
        println!("seed {seed}");
        works_in_its_smallest_budget(Shape::random(&mut ChaCha20Rng::seed_from_u64(seed)));
    }
}
