//! Multi-openings: over columns where the polynomials are on disk.

use spillproof_graft::{Operation, Tree};

/// SHPLONK's and GWC's provers ask ours first.
pub fn graft(tree: &mut Tree) {
    for (scheme, item, pinned) in [
        (
            "shplonk",
            "impl Prover for ProverSHPLONK :: fn create_proof",
            "c3fd249f83fe7623",
        ),
        (
            "gwc",
            "impl Prover for ProverGWC :: fn create_proof",
            "0ac4cd82e5225404",
        ),
    ] {
        let ours = scheme.to_uppercase();
        let ask = format!(
            "let ours = crate::spillproof::openings::{ours};
        if crate::spillproof::openings::create_proof(&self.params.g, transcript, queries.clone(), ours)? {{
            return Ok(());
        }}"
        );
        let file = format!("src/poly/kzg/multiopen/{scheme}/prover.rs");
        tree.graft(&file, item, pinned, Operation::Prepend(&ask));
    }
}
