//! Systems that have no session: keygen and the prover are upstream's, and refuse variables that ask for one.

use spillproof_graft::Operation;

use super::{Pins, Source};

/// Statements in front of upstream's.
pub fn graft(source: &mut Source) {
    let refuse = Operation::Prepend("crate::spillproof::refuse()?;");
    for (file, item, pins) in [
        (
            "src/plonk/keygen.rs",
            "fn keygen_vk_with_k",
            Pins::both("4b82a9a5afd91db4"),
        ),
        (
            "src/plonk/keygen.rs",
            "fn keygen_pk",
            Pins::both("c2d3f0c699bb4560"),
        ),
        (
            "src/plonk/prover.rs",
            "fn create_proof",
            Pins {
                v07: "02ead8ffd91094a4",
                v08: "c96e0a66a6c5590b",
            },
        ),
    ] {
        source.graft(file, item, pins, refuse);
    }
}
