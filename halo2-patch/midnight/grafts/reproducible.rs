//! What stock leaves to chance: the order of a lookup's left-over values.

use spillproof_graft::Operation;

use super::{Pins, Source};

/// With the switch on: in order.
pub fn graft(source: &mut Source) {
    let file = "src/plonk/lookup/prover.rs";
    let arguments = "(pk, domain, rng, input_expression, table_expression)";
    let body = format!(
        "if crate::spillproof::reproducible() {{ spillproof_order::permute_expression_pair{arguments} }} \
         else {{ permute_expression_pair_in_map_order{arguments} }}"
    );
    let wrap = Operation::Wrap {
        rename: "permute_expression_pair_in_map_order",
        visibility: "",
        body: &body,
    };
    source.graft(
        file,
        "fn permute_expression_pair",
        Pins::both("63e78bf39dff4958"),
        wrap,
    );
    source.append_module(file, "mod spillproof_order", "lookup.rs");
}
