//! The circuits over the drop-in for midnight-proofs.

pub use midnight_proofs as halo2;

#[path = "../builtin.rs"]
pub mod any;
#[path = "../assign.rs"]
mod assign;
#[path = "../chain.rs"]
pub mod chain;
#[path = "described.rs"]
pub mod described;
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
#[path = "../rebuilt.rs"]
pub mod rebuilt;
#[path = "../rows.rs"]
pub mod rows;
#[path = "saved.rs"]
pub mod saved;
#[path = "../wide.rs"]
pub mod wide;
