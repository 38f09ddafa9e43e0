//! The circuits and the prover over the unmodified crate from the registry.

// The circuits are formatted where they live.

pub use stock_halo2_axiom as halo2;

#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/chain.rs"]
pub mod chain;
#[allow(dead_code)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/axiom/described.rs"]
pub mod described;
#[allow(dead_code)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/axiom/dialect.rs"]
pub mod dialect;
#[path = "erased.rs"]
pub mod erased;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/lookups.rs"]
pub mod lookups;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/machine.rs"]
pub mod machine;
#[allow(dead_code)]
#[path = "options.rs"]
pub mod options;
#[path = "prove.rs"]
pub mod prove;
#[allow(dead_code)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/rebuilt.rs"]
pub mod rebuilt;
#[allow(dead_code)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/rows.rs"]
pub mod rows;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/wide.rs"]
pub mod wide;
#[path = "circuits/phases.rs"]
pub mod phases;
#[path = "circuits/publics.rs"]
pub mod publics;
#[allow(dead_code)]
#[path = "circuits/random.rs"]
pub mod random;
#[path = "circuits/selected.rs"]
pub mod selected;
