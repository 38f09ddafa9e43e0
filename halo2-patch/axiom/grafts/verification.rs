//! Multi-openings say how their proofs are verified, so that a prover can verify what a device took part in.

use spillproof_graft::{Operation, Substitution, Tree};

/// A constant of `Prover`, which is none unless an implementation says otherwise; SHPLONK and GWC do.
pub fn graft(tree: &mut Tree) {
    let declared = [Substitution {
        from: "E: bool;",
        to: "E: bool;

    /// How proofs with this multi-opening are verified, if that is known.
    #[doc(hidden)]
    const SPILLPROOF_CHECK: Option<crate::spillproof::verify::Check<Scheme>> = None;",
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
        Some(crate::spillproof::verify::{scheme}::<E>);"
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
