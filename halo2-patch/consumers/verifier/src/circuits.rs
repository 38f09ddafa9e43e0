//! The circuits' shapes, which a verifying key can't be read without.

pub use halo2_axiom as halo2;

#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/chain.rs"]
pub mod chain;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/axiom/dialect.rs"]
pub mod dialect;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/lookups.rs"]
pub mod lookups;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/rows.rs"]
pub mod rows;
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/wide.rs"]
pub mod wide;
