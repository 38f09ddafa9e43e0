//! The circuits and the prover over the drop-in.

pub use halo2_proofs as halo2;

#[path = "prove.rs"]
pub mod prove;
#[path = "random.rs"]
pub mod random;
