//! The circuits over the drop-in for halo2-axiom: within a session it proves out of core, without one it is
//! stock.

pub use halo2_axiom as halo2;

#[path = "any.rs"]
pub mod any;
#[path = "../builtin.rs"]
pub mod builtin;
#[path = "../chain.rs"]
pub mod chain;
#[path = "create_dropin.rs"]
mod create;
#[path = "described.rs"]
pub mod described;
#[path = "dialect.rs"]
pub mod dialect;
#[path = "../lookups.rs"]
pub mod lookups;
#[path = "../machine.rs"]
pub mod machine;
#[path = "openings.rs"]
pub mod openings;
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
