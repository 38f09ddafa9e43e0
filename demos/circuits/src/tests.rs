//! The circuits are satisfied, have the shapes that they promise, and notice a wrong witness or a wrong output.

// Clippy does not take a module behind a feature for a test.
#![allow(clippy::expect_used)]

use super::chain::Chain;
use super::halo2::dev::MockProver;
use super::halo2::halo2curves::bn256::Fr;
use super::halo2::plonk::ConstraintSystem;
use super::lookups::Lookups;
use super::rows::Builtin;
use super::wide::Wide;

fn is_satisfied_and_checks_its_output<C: Builtin>(k: u32) {
    let circuit = C::new(k, 42);
    let instances = circuit.instances();
    let mock = MockProver::run(k, &circuit, instances.clone()).expect("synthesis");
    mock.verify()
        .unwrap_or_else(|failures| panic!("{} at k = {k}: {failures:?}", C::NAME));

    for column in 0..instances.len() {
        for row in 0..instances[column].len() {
            let mut wrong = instances.clone();
            wrong[column][row] += Fr::one();
            let mock = MockProver::run(k, &circuit, wrong).expect("synthesis");
            assert!(
                mock.verify().is_err(),
                "{} takes a wrong public input {row}",
                C::NAME
            );
        }
    }

    let other = C::new(k, 43);
    assert_ne!(
        other.instances(),
        instances,
        "{}: the seed changes nothing",
        C::NAME
    );
    let mock = MockProver::run(k, &other, instances).expect("synthesis");
    assert!(
        mock.verify().is_err(),
        "{} takes another witness' output",
        C::NAME
    );
}

fn constraint_system<C: Builtin>() -> ConstraintSystem<Fr> {
    let mut cs = ConstraintSystem::default();
    C::configure(&mut cs);
    let selectors = vec![vec![true; 8]; cs.num_selectors()];
    cs.compress_selectors(selectors).0
}

#[test]
fn chain_is_satisfied() {
    for k in [Chain::K_MIN, 6, 9] {
        is_satisfied_and_checks_its_output::<Chain>(k);
    }
}

#[test]
fn wide_is_satisfied() {
    for k in [Wide::K_MIN, 6] {
        is_satisfied_and_checks_its_output::<Wide>(k);
    }
}

#[test]
fn lookups_are_satisfied() {
    for k in [Lookups::K_MIN, 7, 10] {
        is_satisfied_and_checks_its_output::<Lookups>(k);
    }
}

#[test]
fn shapes() {
    let cs = constraint_system::<Chain>();
    assert_eq!(
        (
            cs.num_advice_columns(),
            cs.num_fixed_columns(),
            cs.permutation().get_columns().len()
        ),
        (3, 5, 4)
    );
    assert_eq!(cs.degree(), 3);

    let cs = constraint_system::<Wide>();
    assert_eq!(
        (cs.num_advice_columns(), cs.advice_queries().len(), cs.degree()),
        (96, 192, 5)
    );

    let cs = constraint_system::<Lookups>();
    assert_eq!(
        (
            cs.num_advice_columns(),
            cs.num_fixed_columns(),
            cs.lookups().len()
        ),
        (7, 6, 4)
    );
}

#[test]
fn proofs_hold_and_wrong_inputs_do_not() {
    use super::{proof, prover};
    use crate::{Kind, Scheme};

    let k = 7;
    let params = proof::insecure_params(k, 1);
    for kind in [Kind::Chain, Kind::Wide, Kind::Lookups] {
        let key = proof::verifying_key(&params, kind, k).expect("verifying key");
        let key = prover::proving_key(&params, key, kind, k).expect("proving key");
        let instances = proof::instances(kind, k, 9);
        for scheme in [Scheme::Shplonk, Scheme::Gwc] {
            let proof = prover::prove(&params, &key, kind, k, 9, scheme).expect("a proof");
            let verify = |instances: &[Vec<Fr>], proof: &[u8]| {
                proof::verify(&params, key.get_vk(), instances, proof, scheme)
            };
            verify(&instances, &proof).unwrap_or_else(|error| panic!("{kind:?} {scheme:?}: {error}"));
            assert!(
                verify(&proof::instances(kind, k, 10), &proof).is_err(),
                "{kind:?} {scheme:?}"
            );
            let mut damaged = proof.clone();
            *damaged.last_mut().expect("bytes") ^= 1;
            assert!(verify(&instances, &damaged).is_err(), "{kind:?} {scheme:?}");
        }
    }
}
