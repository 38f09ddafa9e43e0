//! Errors are stock's, keys go where they can, and a budget that is too small is refused with the one that
//! works.

use proptest::prelude::*;

use crate::drop_in::halo2 as ours;
use crate::drop_in::prove as our_prove;
use crate::shape::{Broken, Shape};
use crate::stock::halo2 as stock;
use crate::stock::prove as stock_prove;
use crate::{circuits, in_session, of, stocks, turn};

use ours::pasta::{EqAffine, Fp};
use ours::spillproof::{Rates, Session};

const K: u32 = 6;

/// The first shape from `from` on with this property.
fn shape_with(from: u64, has: impl Fn(&Shape) -> bool) -> u64 {
    let is_it = |shape: &u64| {
        Shape::set(*shape);
        has(&Shape::current())
    };
    let found = (from..from + 1000).find(is_it).unwrap();
    Shape::set(found);
    found
}

/// What stock says of a proof, what the drop-in says without a session, and what it says in one.
fn refusals(instances: Vec<Vec<Vec<Fp>>>, broken: Broken) -> [String; 3] {
    let (our_circuits, their_circuits) = circuits(K, 1);
    let theirs = {
        let params = stock::poly::commitment::Params::<EqAffine>::new(K);
        let pk = stock_prove::keys(&params, &their_circuits[0]).unwrap();
        let mut circuits = their_circuits.clone();
        circuits[0].broken = broken;
        format!(
            "{:?}",
            stock_prove::prove_with(&params, &pk, &circuits, &instances, 1).unwrap_err()
        )
    };
    let made = || {
        let params = ours::poly::commitment::Params::<EqAffine>::new(K);
        let pk = our_prove::keys(&params, &our_circuits[0]).unwrap();
        let mut circuits = our_circuits.clone();
        circuits[0].broken = broken;
        format!(
            "{:?}",
            our_prove::prove_with(&params, &pk, &circuits, &instances, 1).unwrap_err()
        )
    };
    [theirs, made(), in_session(of(16 << 20), made)]
}

#[test]
fn errors_of_a_proof_are_stocks() {
    let _turn = turn();
    let shape = shape_with(1, |shape| {
        shape.is_public && shape.permuted_inputs > 0 && !shape.lookups.is_empty()
    });
    let (circuits, _) = circuits(K, 1);
    let good = vec![circuits[0].instances::<Fp>()];
    let too_large = vec![vec![vec![Fp::one(); 1 << K]]];
    for (instances, broken, expected) in [
        (good.clone(), Broken::NotInTable, "ConstraintSystemFailure"),
        (good.clone(), Broken::Unassigned, "Synthesis"),
        (
            good.clone(),
            Broken::BelowTheRows,
            "NotEnoughRowsAvailable { current_k: 6 }",
        ),
        (Vec::new(), Broken::Nothing, "InvalidInstances"),
        (vec![Vec::new()], Broken::Nothing, "InvalidInstances"),
        (too_large, Broken::Nothing, "InstanceTooLarge"),
    ] {
        let [theirs, without, within] = refusals(instances, broken);
        assert_eq!(theirs, expected, "shape {shape}");
        assert_eq!([&without, &within], [&theirs, &theirs]);
    }
}

#[test]
fn errors_of_keys_are_stocks() {
    let _turn = turn();
    shape_with(1, |shape| !shape.lookups.is_empty());
    let (mut our_circuits, mut their_circuits) = circuits(K, 1);
    // More rows than there are, and parameters that are too small for any.
    our_circuits[0].rows = 1 << K;
    their_circuits[0].rows = 1 << K;
    for k in [K, 2] {
        let theirs = stock_prove::keys(
            &stock::poly::commitment::Params::<EqAffine>::new(k),
            &their_circuits[0],
        );
        let theirs = format!("{:?}", theirs.unwrap_err());
        let made = || {
            let made = our_prove::keys(
                &ours::poly::commitment::Params::<EqAffine>::new(k),
                &our_circuits[0],
            );
            format!("{:?}", made.unwrap_err())
        };
        assert_eq!(made(), theirs);
        assert_eq!(in_session(of(16 << 20), made), theirs);
    }
}

#[test]
fn keys_in_memory_prove_in_a_session_and_keys_on_disk_are_refused_without_one() {
    let _turn = turn();
    shape_with(20, |shape| {
        !shape.lookups.is_empty() && shape.permuted_inputs > 0 && shape.gates.len() > 1
    });
    let expected = stocks::<EqAffine>(K, 2, 9).proof;
    let (circuits, _) = circuits(K, 2);
    let params = ours::poly::commitment::Params::<EqAffine>::new(K);
    let pk = our_prove::keys(&params, &circuits[0]).unwrap();
    let made = in_session(of(16 << 20), || {
        our_prove::prove(&params, &pk, &circuits, 9).unwrap()
    });
    assert!(made == expected);

    let dir = tempfile::tempdir().unwrap();
    let session = std::sync::Arc::new(of(16 << 20).dir(dir.path()).build().unwrap());
    let pk = {
        let _current = session.install();
        our_prove::keys(&params, &circuits[0]).unwrap()
    };
    let refused = our_prove::prove(&params, &pk, &circuits, 9)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("made in a session"), "{refused}");
    let _current = session.install();
    assert!(our_prove::prove(&params, &pk, &circuits, 9).unwrap() == expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_smallest_budget_works_and_a_smaller_one_is_refused(shape in any::<u64>(), count in 1..3usize) {
        let _turn = turn();
        Shape::set(shape);
        let expected = stocks::<EqAffine>(K, count, 3).proof;
        let (circuits, _) = circuits(K, count);
        let mut cs = ours::plonk::ConstraintSystem::<Fp>::default();
        <crate::Ours as ours::plonk::Circuit<Fp>>::configure(&mut cs);
        let threads = Session::builder().build().unwrap().threads();
        let planned = ours::spillproof::Shape::<EqAffine>::new(&cs, K, count);
        let smallest = planned.plan(1 << 40, threads, &Rates::default()).unwrap().smallest_budget_bytes;
        let params = ours::poly::commitment::Params::<EqAffine>::new(K);
        let prove = || {
            let pk = our_prove::keys(&params, &circuits[0])?;
            our_prove::prove(&params, &pk, &circuits, 3)
        };
        for budget in [smallest, smallest + smallest / 3, 2 * smallest] {
            prop_assert!(in_session(of(budget), prove).unwrap() == expected, "{budget} bytes");
        }
        let refused = in_session(of(smallest * 9 / 10), prove).unwrap_err().to_string();
        prop_assert!(refused.contains("budget"), "{refused}");
    }
}
