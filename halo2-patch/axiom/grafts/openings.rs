//! Multi-openings: over columns where the polynomials are on disk.

use std::error::Error;

use spillproof_graft::{Operation, Tree};

use super::append_module;

/// SHPLONK's and GWC's provers ask ours first.
pub fn graft(tree: &mut Tree) -> Result<(), Box<dyn Error>> {
    let ask = "if spillproof_stream::create_proof(self.params, transcript, &queries)? {
            return Ok(());
        }";
    let shplonk = "src/poly/kzg/multiopen/shplonk/prover.rs";
    tree.graft(
        shplonk,
        "impl Prover for ProverSHPLONK :: fn create_proof",
        "c3fd249f83fe7623",
        Operation::Prepend(ask),
    );
    append_module(tree, shplonk, "mod spillproof_stream", "shplonk.rs")?;
    let gwc = "src/poly/kzg/multiopen/gwc/prover.rs";
    tree.graft(
        gwc,
        "impl Prover for ProverGWC :: fn create_proof",
        "0ac4cd82e5225404",
        Operation::Prepend(ask),
    );
    append_module(tree, gwc, "mod spillproof_stream", "gwc.rs")
}
