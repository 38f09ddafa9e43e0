//! The circuits over the drop-in for zcash's halo2_proofs.

pub use halo2_proofs as halo2;

#[path = "../builtin.rs"]
pub mod any;
#[path = "../assign.rs"]
mod assign;
#[path = "../chain.rs"]
pub mod chain;
#[path = "dialect.rs"]
pub mod dialect;
#[path = "../lookups.rs"]
pub mod lookups;
#[path = "../machine.rs"]
pub mod machine;
#[path = "proof.rs"]
pub mod proof;
#[path = "prover.rs"]
pub mod prover;
#[path = "../rows.rs"]
pub mod rows;
#[path = "../wide.rs"]
pub mod wide;
