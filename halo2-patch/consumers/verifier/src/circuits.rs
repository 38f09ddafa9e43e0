//! The circuits' shapes, which a verifying key can't be read without.

pub use halo2_axiom as halo2;

#[rustfmt::skip]
#[path = "../../../../demos/src/circuits/chain.rs"]
pub mod chain;
#[rustfmt::skip]
#[path = "../../../../demos/src/circuits/lookups.rs"]
pub mod lookups;
#[rustfmt::skip]
#[path = "../../../../demos/src/circuits/rows.rs"]
pub mod rows;
#[rustfmt::skip]
#[path = "../../../../demos/src/circuits/wide.rs"]
pub mod wide;
