//! The circuits over unmodified `halo2-axiom`.

pub use stock_halo2_axiom as halo2;

#[path = "any.rs"]
pub mod any;
#[path = "chain.rs"]
pub mod chain;
#[path = "lookups.rs"]
pub mod lookups;
#[path = "proof.rs"]
pub mod proof;
#[path = "rows.rs"]
pub mod rows;
#[path = "wide.rs"]
pub mod wide;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
