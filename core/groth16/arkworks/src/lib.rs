//! `ark-groth16`'s proofs within a budget of memory, for programs over its versions 0.4, 0.5 and 0.6: a module for
//! each, behind a feature.
//!
//! ```text
//! the program's circuit, key and rng --in the types of its version--> v0_x --limbs--> spillproof-groth16 --> a proof, byte for byte
//! ```
//!
//! A program changes one `use`: `ark_groth16::Groth16` becomes [`v0_5::Groth16`], with the same methods of `SNARK`, and
//! the functions for circom's keys that `ark-circom` is used with. Keys and proofs stay arkworks' own types.
#![cfg_attr(feature = "ark-0-5", doc = "```no_run")]
#![cfg_attr(not(feature = "ark-0-5"), doc = "```ignore")]
//! # use ark_bn254_0_5 as ark_bn254;
//! # use ark_groth16_0_5 as ark_groth16;
//! # use ark_relations_0_5 as ark_relations;
//! # use ark_snark_0_5 as ark_snark;
//! use ark_bn254::{Bn254, Fr};
//! use ark_relations::r1cs::ConstraintSynthesizer;
//! use ark_snark::SNARK;
//! use spillproof_arkworks::v0_5::Groth16; // instead of ark_groth16::Groth16
//!
//! # type Error = Box<dyn std::error::Error>;
//! fn prove<C>(key: &ark_groth16::ProvingKey<Bn254>, circuit: C) -> Result<ark_groth16::Proof<Bn254>, Error>
//! where
//!     C: ConstraintSynthesizer<Fr>,
//! {
//!     Ok(Groth16::<Bn254>::prove(key, circuit, &mut rand::thread_rng())?)
//! }
//! ```
//!
//! The budget is that of the current [`Session`](spillproof_engine::Session): `SPILLPROOF_MEMORY` and `SPILLPROOF_DIR`,
//! or one that the program installs; without either, nearly all memory. A key that is given with each proof is copied
//! to the session's disk each time; a `CircuitKey` keeps it there, and reads it from a file without ever holding the
//! whole of it.
//!
//! Memory outside of the budget: the key that a program holds; the constraints that arkworks holds while a circuit is
//! synthesised, and the assignment, 32 bytes for each variable.

// The same code over the types of each version, which are other types.
#![allow(clippy::duplicate_mod)]

#[cfg(feature = "ark-0-4")]
pub mod v0_4;
#[cfg(feature = "ark-0-5")]
pub mod v0_5;
#[cfg(feature = "ark-0-6")]
pub mod v0_6;

pub use spillproof_groth16::arkworks::{Progress, Reduction};

/// Rows of terms: values and variables.
type Matrix<F> = Vec<Vec<(F, usize)>>;

/// What of a circuit is synthesised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Synthesis {
    /// Its constraints.
    Constraints,
    /// Its assignment.
    Assignment,
    /// Both.
    Both,
}
