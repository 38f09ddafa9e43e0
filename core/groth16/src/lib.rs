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

#[cfg(feature = "ark-groth16")]
pub mod arkworks;
mod combine;
mod compiled;
mod constraints;
pub(crate) mod dictionary;
mod distinct;
mod file;
pub mod iden3;
mod key;
mod proof;
mod quotient;
mod setup;
mod task;

#[doc(hidden)]
pub use ark_bls12_381::Bls12_381;
#[doc(hidden)]
pub use ark_bn254::Bn254;
use ark_ec::bls12::{Bls12, Bls12Config};
use ark_ec::bn::{Bn, BnConfig};
use ark_ec::pairing::Pairing;
use ark_ec::short_weierstrass::{Affine, Projective};

pub use compiled::PairingCurve;
pub use constraints::Constraints;
pub(crate) use file::check_curve;
pub(crate) use key::Layout;
pub use key::{Domain, ProvingKey, QuotientBasis, VerifyingKey};
pub use proof::{Proof, prove, public_signals, verify};
pub(crate) use setup::{MATRICES, Powers, Queries, coset_lagrange, lagrange, queries};
#[doc(hidden)]
pub use spillproof_format::Curve as CurveId;
pub use spillproof_format::groth16::{Coefficient, Shape};
pub use task::{plan, prove_in};

use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;

/// The scalars and groups of a curve with a pairing, which the kernels have arithmetic for.
///
/// Implemented for the curves of arkworks' families BN and BLS12 with scalars of four limbs.
pub trait PairingGroups:
    Pairing<
        ScalarField = Self::Scalar,
        G1 = Projective<Self::G1Config>,
        G1Affine = Affine<Self::G1Config>,
        G2 = Projective<Self::G2Config>,
        G2Affine = Affine<Self::G2Config>,
    >
{
    /// The scalars of both groups.
    type Scalar: KernelField;
    /// The curve of the first group.
    type G1Config: Curve<ScalarField = Self::Scalar>;
    /// The curve of the second group.
    type G2Config: Curve<ScalarField = Self::Scalar>;
}

impl<P, F> PairingGroups for Bn<P>
where
    P: BnConfig<G1Config: Curve<ScalarField = F>, G2Config: Curve<ScalarField = F>>,
    F: KernelField,
{
    type Scalar = F;
    type G1Config = P::G1Config;
    type G2Config = P::G2Config;
}

impl<P, F> PairingGroups for Bls12<P>
where
    P: Bls12Config<G1Config: Curve<ScalarField = F>, G2Config: Curve<ScalarField = F>>,
    F: KernelField,
{
    type Scalar = F;
    type G1Config = P::G1Config;
    type G2Config = P::G2Config;
}

/// A point of the first group as it lies on disk.
pub type G1Point<E> = Point<<E as PairingGroups>::G1Config>;
/// A point of the second group as it lies on disk.
pub type G2Point<E> = Point<<E as PairingGroups>::G2Config>;
