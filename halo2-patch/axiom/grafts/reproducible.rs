//! The two things that stock leaves to chance: the random polynomial of the vanishing argument, and the order
//! of permuted lookup values.

use std::error::Error;

use spillproof_graft::{Operation, Tree};

use super::append_module;

/// With the switch on, or in a session: drawn in order, and sorted.
pub fn graft(tree: &mut Tree) -> Result<(), Box<dyn Error>> {
    let vanishing = "src/plonk/vanishing/prover.rs";
    let body = "if crate::spillproof::draws_in_order() { spillproof_draw::commit(params, domain, rng, transcript) } \
                else { Self::commit_in_parallel(params, domain, rng, transcript) }";
    let wrap = Operation::Wrap {
        rename: "commit_in_parallel",
        visibility: "",
        body,
    };
    tree.graft(vanishing, "impl Argument :: fn commit", "6be157c07803c4ed", wrap);
    append_module(tree, vanishing, "mod spillproof_draw", "vanishing.rs")?;

    let lookup = "src/plonk/lookup/prover.rs";
    let arguments = "(pk, params, domain, rng, input_expression, table_expression)";
    let body = format!(
        "if crate::spillproof::reproducible() {{ spillproof_order::permute_expression_pair{arguments} }} \
         else {{ permute_expression_pair_in_map_order{arguments} }}"
    );
    let wrap = Operation::Wrap {
        rename: "permute_expression_pair_in_map_order",
        visibility: "",
        body: &body,
    };
    tree.graft(lookup, "fn permute_expression_pair", "1cd846f63657df7f", wrap);
    append_module(tree, lookup, "mod spillproof_order", "lookup.rs")
}
