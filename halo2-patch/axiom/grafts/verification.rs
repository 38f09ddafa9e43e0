//! Multi-openings say how they open columns, and how their proofs are verified, so that a prover can verify
//! what a device took part in.

use spillproof_graft::{Operation, Substitution, Tree};

/// Constants of `Prover`, which are none unless an implementation says otherwise; SHPLONK and GWC do.
pub fn graft(tree: &mut Tree) {
    let declared = [Substitution {
        from: "E: bool;",
        to: "E: bool;

    /// How proofs with this multi-opening are verified, if that is known.
    #[doc(hidden)]
    const SPILLPROOF_CHECK: Option<crate::spillproof::verify::Check<Scheme>> = None;

    /// How this multi-opening opens columns, if that is known: upstream's own code is not compiled for a session then.
    #[doc(hidden)]
    const SPILLPROOF_OPEN: Option<crate::spillproof::verify::Open<Scheme>> = None;",
        count: 1,
    }];
    tree.graft(
        "src/poly/commitment.rs",
        "trait Prover",
        "f90db9c85848152e",
        Operation::Substitute(&declared),
    );
    for (scheme, item, pinned) in [
        ("shplonk", "impl Prover for ProverSHPLONK", "bd55143601551668"),
        ("gwc", "impl Prover for ProverGWC", "2b97b2bac25b815b"),
    ] {
        let to = format!(
            "= false;

    const SPILLPROOF_CHECK: Option<crate::spillproof::verify::Check<KZGCommitmentScheme<E>>> =
        Some(crate::spillproof::verify::{scheme}::<E>);

    const SPILLPROOF_OPEN: Option<crate::spillproof::verify::Open<KZGCommitmentScheme<E>>> =
        Some(crate::spillproof::openings::{scheme}::<E>);"
        );
        let said = [Substitution {
            from: "= false;",
            to: &to,
            count: 1,
        }];
        let file = format!("src/poly/kzg/multiopen/{scheme}/prover.rs");
        tree.graft(&file, item, pinned, Operation::Substitute(&said));
    }
}
