//! Commitment schemes say what they are to the engine, which knows KZG over one pairing.

use spillproof_graft::{Operation, Substitution};

use super::{Pins, Source};

/// A function of the trait, which gives nothing unless an implementation says otherwise; KZG's does.
pub fn graft(source: &mut Source) {
    let declared = [Substitution {
        from: "type VerificationGuard: Guard<F, Self>;",
        to: "type VerificationGuard: Guard<F, Self>;

    /// What the scheme is to the engine, if it is known there.
    #[doc(hidden)]
    fn spillproof() -> Option<crate::spillproof::Bridge<F, Self>> {
        None
    }",
        count: 1,
    }];
    source.graft(
        "src/poly/commitment.rs",
        "trait PolynomialCommitmentScheme",
        Pins::both("9e918f3b9628c88f"),
        Operation::Substitute(&declared),
    );
    let said = [Substitution {
        from: "= DualMSM<E>;",
        to: "= DualMSM<E>;

    fn spillproof() -> Option<crate::spillproof::Bridge<E::Fr, Self>> {
        crate::spillproof::bridge::kzg::<E>()
    }",
        count: 1,
    }];
    source.graft(
        "src/poly/kzg/mod.rs",
        "impl PolynomialCommitmentScheme for KZGCommitmentScheme",
        Pins {
            v07: "60c35968e5936e0c",
            v08: "6d34e5d7533345c8",
        },
        Operation::Substitute(&said),
    );
}
