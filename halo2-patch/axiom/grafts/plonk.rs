//! Keygen and the prover: in a session ours (`src/grafted/{keygen,witness,prover}.rs`), else upstream's.

use std::error::Error;

use spillproof_graft::{Operation, Substitution, Tree};

use super::append_module;

/// Functions of `src/plonk`: file, name, digest, the name of ours, our arguments after the session, the phase
/// that reports show, if any.
const FUNCTIONS: &[(&str, &str, &str, &str, &str, &str)] = &[
    (
        "keygen.rs",
        "keygen_vk_custom",
        "f3d2518fea0997e2",
        "verifying_key",
        "params, circuit, compress_selectors",
        "VerifyingKey",
    ),
    (
        "keygen.rs",
        "keygen_pk_impl",
        "6cc81b5fb9d29bfe",
        "proving_key",
        "params, vk, circuit, compress_selectors",
        "ProvingKey",
    ),
    (
        "witness.rs",
        "synthesize_witness",
        "04f0f405edb26cca",
        "witness::<Scheme, P, E, R, T, ConcreteCircuit>",
        "params, pk, circuits, instances, rng, transcript",
        "",
    ),
    (
        "prover.rs",
        "create_proof",
        "2c524753c35c083a",
        "create::<Scheme, P, E, R, T, ConcreteCircuit>",
        "params, pk, circuits, instances, rng, transcript",
        "Proof",
    ),
    (
        "prover.rs",
        "create_proof_from_advice",
        "0baf1480815957c5",
        "create_from_advice::<Scheme, P, E, R, T>",
        "params, pk, instances, advice, rng, transcript",
        "Proof",
    ),
];

/// Grafts them.
pub fn graft(tree: &mut Tree) -> Result<(), Box<dyn Error>> {
    for (file, name, digest, ours, arguments, phase) in FUNCTIONS {
        let module = format!("spillproof_{}", file.trim_end_matches(".rs"));
        let curve = if *file == "keygen.rs" {
            "C"
        } else {
            "Scheme::Curve"
        };
        // Upstream's keeps its generics in the order in which it has them; those of `impl Trait` arguments
        // are inferred.
        let generics = ours.split_once("::").map_or("", |(_, generics)| generics);
        let turbofish = if generics.is_empty() {
            String::new()
        } else {
            format!("::{generics}")
        };
        let rename = format!("{name}_in_memory");
        // Stock's prover verifies nothing, so nothing may come from a device.
        let alone = if *file == "prover.rs" {
            "let _alone = crate::spillproof::verify::processor_only();"
        } else {
            ""
        };
        let call = format!("crate::spillproof::error_of(|| {module}::{ours}(&session, {arguments}))");
        let call = match *phase {
            "" => call,
            phase => format!(
                "::spillproof_report::environment::phase(&session, spillproof_engine::plan::Phase::{phase}, || {call})"
            ),
        };
        let body = format!(
            "if let Some(session) = crate::spillproof::engine::prover_session::<{curve}>()? {{ \
                 {call} \
             }} else {{ {alone} {rename}{turbofish}({arguments}) }}"
        );
        let wrap = Operation::Wrap {
            rename: &rename,
            visibility: "",
            body: &body,
        };
        tree.graft(&format!("src/plonk/{file}"), &format!("fn {name}"), digest, wrap);
    }
    append_module(tree, "src/plonk/keygen.rs", "mod spillproof_keygen", "keygen.rs")?;
    append_module(
        tree,
        "src/plonk/witness.rs",
        "pub(super) mod spillproof_witness",
        "witness.rs",
    )?;
    append_module(
        tree,
        "src/plonk/prover.rs",
        "pub(crate) mod spillproof_prover",
        "prover.rs",
    )?;

    // So that a cell of zero bytes is `Assigned::Zero`; see `src/spillproof/cells.rs`.
    let from = "pub enum Assigned";
    let to = "#[repr(u8)]\npub enum Assigned";
    let substitution = Substitution { from, to, count: 1 };
    tree.graft(
        "src/plonk/assigned.rs",
        "enum Assigned",
        "78c03c9b3a8652d2",
        Operation::Substitute(&[substitution]),
    );
    Ok(())
}
