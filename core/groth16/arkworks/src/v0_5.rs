//! For `ark-groth16` 0.5.

use ark_bls12_381_0_5 as ark_bls12_381;
use ark_bn254_0_5 as ark_bn254;
use ark_ec_0_5 as ark_ec;
use ark_ff_0_5 as ark_ff;
use ark_groth16_0_5 as ark_groth16;
use ark_relations_0_5::r1cs as relations;
use ark_snark_0_5 as ark_snark;

#[path = "r1cs.rs"]
mod system;
// The same code over the types of each version.
#[path = "version.rs"]
mod version;

pub use version::{CircomReduction, CircuitKey, Curve, Groth16, LibsnarkReduction, QapReduction};
