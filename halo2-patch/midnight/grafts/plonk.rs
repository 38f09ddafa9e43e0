//! Keygen and the prover: in a session ours (`src/grafted/{keygen,prover,key}.rs`), else upstream's. A
//! proving key's columns may be on disk.

use spillproof_graft::{Operation, Substitution};

use super::{Pins, Release, Source};

/// Grafts them.
pub fn graft(source: &mut Source) {
    functions(source);
    source.append_module(
        "src/plonk/keygen.rs",
        "pub(crate) mod spillproof_keygen",
        "keygen.rs",
    );
    source.append_module(
        "src/plonk/prover.rs",
        "pub(crate) mod spillproof_prover",
        "prover.rs",
    );
    source.append_module("src/plonk/mod.rs", "mod spillproof_key", "key.rs");
    key(source);
}

/// In a session `ours`, which gets the session and the bridge to the scheme first; else upstream's.
fn body(ours: &str, phase: &str, stocks: &str) -> String {
    format!(
        "if let Some(found) = crate::spillproof::engine::session_for::<F, CS>()? {{ \
             ::spillproof_report::environment::phase(&found.0, spillproof_engine::plan::Phase::{phase}, || {ours}) \
         }} else {{ {stocks} }}"
    )
}

fn functions(source: &mut Source) {
    let release = source.release;
    let mut wrap = |file: &str, name: &str, pins: Pins, body: &str| {
        let rename = format!("{name}_in_memory");
        let wrap = Operation::Wrap {
            rename: &rename,
            visibility: "",
            body,
        };
        source.graft(&format!("src/plonk/{file}"), &format!("fn {name}"), pins, wrap);
    };
    let verifying_key = body(
        "spillproof_keygen::verifying_key(&found, params, circuit, k)",
        "VerifyingKey",
        "keygen_vk_with_k_in_memory(params, circuit, k)",
    );
    wrap(
        "keygen.rs",
        "keygen_vk_with_k",
        Pins::both("4b82a9a5afd91db4"),
        &verifying_key,
    );
    let proving_key = body(
        "spillproof_keygen::proving_key(&found, vk, circuit)",
        "ProvingKey",
        "keygen_pk_in_memory(vk, circuit)",
    );
    wrap(
        "keygen.rs",
        "keygen_pk",
        Pins::both("c2d3f0c699bb4560"),
        &proving_key,
    );
    let (last, proof) = match release {
        Release::V07 => ("rng, transcript", "02ead8ffd91094a4"),
        Release::V08 => ("transcript, rng", "c96e0a66a6c5590b"),
    };
    let stocks = format!(
        "pk.spillproof.refuse()?; \
         create_proof_in_memory(params, pk, circuits, {COMMITTED} nb_committed_instances, instances, {last})"
    );
    let ours = format!(
        "spillproof_prover::create(&found, params, pk, \
             &spillproof_prover::Statement {{ circuits, {COMMITTED} committed: nb_committed_instances, instances }}, rng, transcript)"
    );
    wrap(
        "prover.rs",
        "create_proof",
        Pins::both(proof),
        &body(&ours, "Proof", &stocks),
    );
}

/// In front of what is there with the feature only.
const COMMITTED: &str = "#[cfg(feature = \"committed-instances\")]";

/// The columns of a proving key.
fn key(source: &mut Source) {
    let file = "src/plonk/mod.rs";
    let field = [Substitution {
        from: "ev: Evaluator<F>,",
        to: "ev: Evaluator<F>,
    pub(crate) spillproof: crate::spillproof::key::StoredKey,",
        count: 1,
    }];
    let mut graft = |item: &str, pinned, operation| source.graft(file, item, Pins::both(pinned), operation);
    graft(
        "struct ProvingKey",
        "ac950941b831bea5",
        Operation::Substitute(&field),
    );
    let none = [Substitution {
        from: " ev,",
        to: " ev, spillproof: Default::default(),",
        count: 1,
    }];
    let (item, pinned) = ("impl ProvingKey :: fn read", "9f8817a9bac97d5b");
    graft(item, pinned, Operation::Substitute(&none));
    let arguments = "reader, format, #[cfg(feature = \"circuit-params\")] params";
    let read = format!(
        "match crate::spillproof::engine::session_for::<F, CS>()? {{ \
             Some((session, _)) => spillproof_key::read::<F, CS, R, ConcreteCircuit>(&session, {arguments}), \
             None => Self::read_in_memory::<R, ConcreteCircuit>({arguments}), \
         }}"
    );
    let wrap = Operation::Wrap {
        rename: "read_in_memory",
        visibility: "",
        body: &read,
    };
    graft(item, pinned, wrap);
    let write = "if let Some(columns) = self.spillproof.on_disk() {
            self.vk.write(writer, format)?;
            return columns.write(writer);
        }";
    graft(
        "impl ProvingKey :: fn write",
        "44c609d7e7be0822",
        Operation::Prepend(write),
    );
    let length = "if let Some(columns) = self.spillproof.on_disk() {
            return self.vk.bytes_length(format) + 12 + columns.bytes_length(self.vk.domain.extended_len());
        }";
    graft(
        "impl ProvingKey :: fn bytes_length",
        "e44157989a48ac97",
        Operation::Prepend(length),
    );
    let pinned = Pins::both("c2d3f0c699bb4560");
    source.graft(
        "src/plonk/keygen.rs",
        "fn keygen_pk",
        pinned,
        Operation::Substitute(&none),
    );
    let (field, visibility) = ("commitments", "pub(crate)");
    source.graft(
        "src/plonk/permutation.rs",
        "struct VerifyingKey",
        Pins::both("3bfd96ca84e6a47e"),
        Operation::FieldVisibility { field, visibility },
    );
}
