//! The circuits are satisfied, and notice a wrong witness or a wrong output.

// Clippy does not take a module behind a feature for a test.
#![allow(clippy::expect_used)]

use super::dialect::Fr;
use super::proof::{instances, mock};
use crate::Kind;

fn is_satisfied_and_checks_its_output(kind: Kind, k: u32) {
    let public = instances(kind, k, 42);
    let verify = |seed, public: &Vec<Vec<Fr>>| mock(kind, k, seed, public.clone());
    verify(42, &public).unwrap_or_else(|failures| panic!("{kind:?} at k = {k}: {failures:?}"));

    for column in 0..public.len() {
        for row in 0..public[column].len() {
            let mut wrong = public.clone();
            wrong[column][row] += Fr::one();
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
