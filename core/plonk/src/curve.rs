//! The curve. Everything in this crate is over any curve that the kernels take; where none is named, over
//! BN254's G1.

use ark_ec::CurveConfig;
use ark_ec::short_weierstrass::Affine;
use spillproof_kernels::curve::{self, Curve};

/// The curve where none is named.
pub type Config = ark_bn254::g1::Config;
/// Its scalars.
pub type Scalar = ScalarOf<Config>;
/// Its points.
pub type Point = curve::Point<Config>;
/// The scalars of a curve.
pub type ScalarOf<C> = <C as CurveConfig>::ScalarField;
/// The points of a curve, as they are on disk.
pub type PointOf<C> = curve::Point<C>;

/// The point as it is on disk.
pub fn stored<C: Curve>(point: &Affine<C>) -> PointOf<C> {
    PointOf::<C>::from_affine::<C>(point)
}
