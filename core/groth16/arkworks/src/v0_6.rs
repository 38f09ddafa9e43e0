//! For `ark-groth16` 0.6.

use ark_relations::gr1cs as relations;
use {ark_bls12_381, ark_bn254, ark_ec, ark_ff, ark_groth16, ark_snark};

#[path = "gr1cs.rs"]
mod system;
// The same code over the types of each version.
#[path = "version.rs"]
mod version;

pub use version::{CircomReduction, CircuitKey, Curve, Groth16, LibsnarkReduction, QapReduction};
