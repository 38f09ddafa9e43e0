//! Groth16 (Groth, *On the size of pairing-based non-interactive arguments*, 2016) with a key and a witness
//! on disk.
//!
//! A [`ProvingKey`] is points and coefficients in columns; a witness is a column of scalars. [`prove`], or
//! [`prove_in`] a session, goes through four stages:
//!
//! 1. `constraints`: the coefficients are read once, in the order of their constraints, and the witness in
//!    any order. They give the values of the left and right linear combinations, and of their product, which
//!    stands for the third one.
//! 2. `quotient`: the values go to the coset of the odd powers of a root of twice the order, where the
//!    numerator of the quotient is, up to a constant that the key contains, the quotient itself (so do circom
//!    and its provers; the key's `h` points belong to this coset).
//! 3. Sums over the key's points: four with the witness, one with the quotient.
//! 4. Blinding, and verification: a proof that does not verify is an error, never a result.
//!
//! Curves: BN254 and BLS12-381 ([`PairingCurve`]). All of it is compiled for both in this crate: functions
//! over a curve call that curve's, and functions over files take the curve that the file names.
//! Memory: that of one stage at a time, whatever the circuit.
//!
//! Architecture invariant: this room knows no format of files of other programs.

pub mod arkworks;
mod combine;
mod compiled;
mod constraints;
mod dealt;
pub(crate) mod dictionary;
mod distinct;
mod file;
pub mod iden3;
mod key;
mod over_ranks;
mod proof;
mod quotient;
mod setup;
mod task;

#[doc(hidden)]
pub use ark_bls12_381::Bls12_381;
#[doc(hidden)]
pub use ark_bn254::Bn254;
pub use compiled::PairingCurve;
pub use constraints::Constraints;
pub use dealt::{DealtKey, is_dealt};
pub(crate) use file::{check_curve, placement_of_copies};
pub(crate) use key::Layout;
pub use key::{Domain, ProvingKey, QuotientBasis, VerifyingKey};
pub use over_ranks::{Cut, Kept, KeyShare, OfRank, Place, Shares};
pub use proof::{Proof, prove, public_signals, verify};
pub(crate) use setup::{MATRICES, Powers, Queries, coset_lagrange, lagrange, queries};
#[doc(hidden)]
pub use spillproof_format::Curve as CurveId;
pub use spillproof_format::groth16::{Coefficient, Shape};
pub use spillproof_kernels::pairing::{G1Point, G2Point, PairingGroups};
pub use task::{plan, plan_over_ranks, prove_in, prove_over_ranks};
