//! The circuits over the unmodified `halo2-axiom`.

pub use stock_halo2_axiom as halo2;

#[path = "any.rs"]
pub mod any;
#[path = "../builtin.rs"]
pub mod builtin;
#[path = "../chain.rs"]
pub mod chain;
#[cfg(feature = "stock-prover")]
#[path = "create_stock.rs"]
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
#[cfg(feature = "stock-prover")]
#[path = "prover.rs"]
pub mod prover;
#[path = "../rebuilt.rs"]
pub mod rebuilt;
#[path = "../rows.rs"]
pub mod rows;
#[path = "../wide.rs"]
pub mod wide;
