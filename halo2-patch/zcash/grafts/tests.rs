//! Upstream's tests: files that they read are beside the grafted source.

use spillproof_graft::{Operation, Substitution, Tree};

/// The golden proof of `tests/plonk_api.rs`.
pub fn graft(tree: &mut Tree) {
    let golden = [Substitution {
        from: "\"./tests/plonk_api_proof.bin\"",
        to: "concat!(env!(\"OUT_DIR\"), \"/upstream/tests/plonk_api_proof.bin\")",
        count: 2,
    }];
    let file = "tests/plonk_api.rs";
    tree.graft(
        file,
        "fn plonk_api",
        "6be9514a843c4edb",
        Operation::Substitute(&golden),
    );
}
