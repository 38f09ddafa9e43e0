//! The circuits and the prover over the unmodified crate from the registry.

pub use stock_halo2_axiom as halo2;

#[path = "../../../../demos/src/circuits/chain.rs"]
pub mod chain;
#[path = "../../../../demos/src/circuits/lookups.rs"]
pub mod lookups;
#[path = "prove.rs"]
pub mod prove;
#[allow(dead_code)]
#[path = "../../../../demos/src/circuits/rows.rs"]
pub mod rows;
#[path = "../../../../demos/src/circuits/wide.rs"]
pub mod wide;
