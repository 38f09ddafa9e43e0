//! The circuits are satisfied, and notice a wrong witness or a wrong output.

use spillproof_circuits::Kind;

use super::scope;
use super::system::any::Any;
use super::system::dialect::{Field, Fr};
use super::system::halo2::dev::{MockProver, VerifyFailure};
use super::system::proof::instances;

/// Checks all constraints of a circuit one by one.
fn mock(kind: Kind, k: u32, seed: u64, instances: Vec<Vec<Fr>>) -> Result<(), Vec<VerifyFailure>> {
    let prover = scope(kind, || mock_prover!(k, &Any::new(kind, k, seed), instances));
    prover
        .unwrap_or_else(|error| panic!("synthesis: {error:?}"))
        .verify()
}

fn is_satisfied_and_checks_its_output(kind: Kind, k: u32) {
    let public = instances(kind, k, 42);
    let verify = |seed, public: &Vec<Vec<Fr>>| mock(kind, k, seed, public.clone());
    verify(42, &public).unwrap_or_else(|failures| panic!("{kind:?} at k = {k}: {failures:?}"));

    for column in 0..public.len() {
        for row in 0..public[column].len() {
            let mut wrong = public.clone();
            wrong[column][row] += Fr::ONE;
            assert!(
                verify(42, &wrong).is_err(),
                "{kind:?} takes a wrong public input {row}"
            );
        }
    }

    assert_ne!(
        instances(kind, k, 43),
        public,
        "{kind:?}: the seed changes nothing"
    );
    assert!(
        verify(43, &public).is_err(),
        "{kind:?} takes another witness' output"
    );
}

#[test]
fn chain_is_satisfied() {
    for k in [4, 6, 9] {
        is_satisfied_and_checks_its_output(Kind::Chain, k);
    }
}

#[test]
fn wide_is_satisfied() {
    for k in [4, 6] {
        is_satisfied_and_checks_its_output(Kind::Wide, k);
    }
}

#[test]
fn lookups_are_satisfied() {
    for k in [6, 7, 10] {
        is_satisfied_and_checks_its_output(Kind::Lookups, k);
    }
}

#[test]
fn the_machine_is_satisfied() {
    for k in [6, 7] {
        is_satisfied_and_checks_its_output(Kind::Machine, k);
    }
}
