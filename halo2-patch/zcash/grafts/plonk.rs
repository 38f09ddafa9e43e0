//! Keygen and the prover: in a session ours (`src/grafted/{keygen,prover}.rs`), else upstream's. A proving
//! key's columns may be on disk.

use std::error::Error;

use spillproof_graft::{Operation, Substitution, Tree};

use super::append_module;

/// Functions of `src/plonk`: file, name, digest, ours, our arguments after the session, the phase that
/// reports show.
const FUNCTIONS: &[(&str, &str, &str, &str, &str, &str)] = &[
    (
        "keygen.rs",
        "keygen_vk",
        "00205fa7e62e6b92",
        "verifying_key",
        "params, circuit",
        "VerifyingKey",
    ),
    (
        "keygen.rs",
        "keygen_pk",
        "6c514f5298a5440a",
        "proving_key",
        "params, vk, circuit",
        "ProvingKey",
    ),
    (
        "prover.rs",
        "create_proof",
        "38ece3a238a5bff8",
        "create::<C, E, R, T, ConcreteCircuit>",
        "params, pk, circuits, instances, rng, transcript",
        "Proof",
    ),
];

/// Grafts them.
pub fn graft(tree: &mut Tree) -> Result<(), Box<dyn Error>> {
    for (file, name, digest, ours, arguments, phase) in FUNCTIONS {
        let module = format!("spillproof_{}", file.trim_end_matches(".rs"));
        let refuse = if *file == "prover.rs" {
            "pk.spillproof.refuse()?;"
        } else {
            ""
        };
        let rename = format!("{name}_in_memory");
        let body = format!(
            "if let Some(session) = crate::spillproof::engine::session_over::<C>()? {{ \
                 ::spillproof_report::environment::phase(&session, spillproof_engine::plan::Phase::{phase}, || \
                     {module}::{ours}(&session, {arguments})) \
             }} else {{ {refuse} {rename}({arguments}) }}"
        );
        let wrap = Operation::Wrap {
            rename: &rename,
            visibility: "",
            body: &body,
        };
        tree.graft(&format!("src/plonk/{file}"), &format!("fn {name}"), digest, wrap);
    }
    append_module(tree, "src/plonk/keygen.rs", "mod spillproof_keygen", "keygen.rs")?;
    append_module(tree, "src/plonk/prover.rs", "mod spillproof_prover", "prover.rs")?;

    let field = [Substitution {
        from: "permutation: permutation::ProvingKey<C>,",
        to: "permutation: permutation::ProvingKey<C>,
    spillproof: crate::spillproof::key::StoredKey,",
        count: 1,
    }];
    tree.graft(
        "src/plonk.rs",
        "struct ProvingKey",
        "954850017c0e6424",
        Operation::Substitute(&field),
    );
    let none = [Substitution {
        from: "permutation: permutation_pk,",
        to: "permutation: permutation_pk,
        spillproof: Default::default(),",
        count: 1,
    }];
    tree.graft(
        "src/plonk/keygen.rs",
        "fn keygen_pk",
        "6c514f5298a5440a",
        Operation::Substitute(&none),
    );
    let permutation = "src/plonk/permutation.rs";
    for (file, item, digest, fields) in [
        (
            permutation,
            "struct ProvingKey",
            "329d6541ecb23a1e",
            &["permutations", "polys"][..],
        ),
        (
            permutation,
            "struct VerifyingKey",
            "ae8be20f348305c2",
            &["commitments"],
        ),
        (
            "src/poly.rs",
            "struct Polynomial",
            "91696db5f4336efe",
            &["values", "_marker"],
        ),
    ] {
        for field in fields {
            let visibility = "pub(crate)";
            tree.graft(
                file,
                item,
                digest,
                Operation::FieldVisibility { field, visibility },
            );
        }
    }
    Ok(())
}
