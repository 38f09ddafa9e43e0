//! Curves with a pairing, by the groups that the kernels have arithmetic for. Memory: none.

use ark_ec::bls12::{Bls12, Bls12Config};
use ark_ec::bn::{Bn, BnConfig};
use ark_ec::pairing::Pairing;
use ark_ec::short_weierstrass::{Affine, Projective};

use super::curve::{Curve, Point};
use super::field::KernelField;

/// The scalars and groups of a curve with a pairing.
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
