//! Affine points as they lie on disk, and the curves that the kernels accept.
//!
//! A [`Point`] is two coordinates in Montgomery form: 64 bytes on BN254's G1, 96 and 192 on BLS12-381's G1
//! and G2; infinity is all zero bytes, which is no point of a curve with b != 0. arkworks' `Affine` carries a
//! flag beside its coordinates (72 bytes): the kernels read an SRS as it was written, so they use this form,
//! and convert at their edges only. Memory: none.

use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ec::{AffineRepr, CurveConfig, CurveGroup};

use spillproof_format::{Element, SpareBits};

use super::compiled::CurveKernels;
use super::field::CoordinateField;

/// A short Weierstrass curve with b != 0 (so that (0, 0) is free to mean infinity), over a field that the
/// kernels have arithmetic for.
///
/// Implemented for those of [`CurveKernels`]: G1 and G2 of BN254 and BLS12-381, Pallas, Vesta.
pub trait Curve: CurveKernels {}

impl<P: CurveKernels> Curve for P {}

/// An affine point: coordinates only, (0, 0) for infinity. Aligned, so that a point takes as few cache lines
/// as it can.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coordinates<F> {
    /// The x coordinate.
    pub x: F,
    /// The y coordinate.
    pub y: F,
}

/// An affine point of the curve `P`, (0, 0) for infinity.
pub type Point<P> = Coordinates<<P as CurveConfig>::BaseField>;

impl<F: CoordinateField> Coordinates<F> {
    /// The neutral element, kept as (0, 0).
    pub const INFINITY: Self = Self {
        x: F::ZERO,
        y: F::ZERO,
    };

    /// Whether this is the neutral element.
    #[inline(always)]
    pub fn is_infinity(&self) -> bool {
        self.x.is_zero() && self.y.is_zero()
    }

    /// The negated point.
    #[inline(always)]
    pub fn negated(&self) -> Self {
        Self {
            x: self.x,
            y: self.y.negated(),
        }
    }

    /// The same point from arkworks' form.
    pub fn from_affine<P: Curve + CurveConfig<BaseField = F>>(point: &Affine<P>) -> Self {
        if point.is_zero() {
            Self::INFINITY
        } else {
            Self {
                x: point.x,
                y: point.y,
            }
        }
    }

    /// The same point in arkworks' form. Whether it lies on the curve is not checked.
    pub fn to_affine<P: Curve + CurveConfig<BaseField = F>>(&self) -> Affine<P> {
        if self.is_infinity() {
            Affine::identity()
        } else {
            Affine::new_unchecked(self.x, self.y)
        }
    }

    /// The same point in arkworks' Jacobian form.
    pub fn to_projective<P: Curve + CurveConfig<BaseField = F>>(&self) -> Projective<P> {
        self.to_affine::<P>().into()
    }

    /// Whether the coordinates satisfy y^2 = x^3 + ax + b; infinity does.
    pub fn is_on_curve<P: Curve + CurveConfig<BaseField = F>>(&self) -> bool {
        self.is_infinity() || self.to_affine::<P>().is_on_curve()
    }
}

/// A point on disk: x, then y; infinity is all zero bytes.
impl<F: CoordinateField> Element for Coordinates<F> {
    const BYTES: usize = 2 * F::BYTES;
    const SPARE: Option<SpareBits> = F::SPARE;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let (x, y) = bytes.split_at(F::BYTES);
        Self {
            x: F::decode(x),
            y: F::decode(y),
        }
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let (x, y) = out.split_at_mut(F::BYTES);
        self.x.encode(x);
        self.y.encode(y);
    }
}

/// A point in three coordinates, as programs hold it that add points: (x, y, z) stands for (x/z^2, y/z^3), and
/// z = 0 for infinity.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jacobian<F> {
    /// The x coordinate, times z^2.
    pub x: F,
    /// The y coordinate, times z^3.
    pub y: F,
    /// Zero for infinity.
    pub z: F,
}

impl<F: CoordinateField> Jacobian<F> {
    /// The neutral element.
    pub const INFINITY: Self = Self {
        x: F::ZERO,
        y: F::ZERO,
        z: F::ZERO,
    };

    /// The point in arkworks' form. Whether it lies on the curve is not checked.
    pub fn to_projective<P: Curve + CurveConfig<BaseField = F>>(&self) -> Projective<P> {
        match self.z.is_zero() {
            true => Projective::default(),
            false => Projective::new_unchecked(self.x, self.y, self.z),
        }
    }
}

/// With z = 1.
impl<F: CoordinateField> From<&Coordinates<F>> for Jacobian<F> {
    fn from(point: &Coordinates<F>) -> Self {
        match point.is_infinity() {
            true => Self::INFINITY,
            false => Self {
                x: point.x,
                y: point.y,
                z: F::ONE,
            },
        }
    }
}

/// x, y, z.
impl<F: CoordinateField> Element for Jacobian<F> {
    const BYTES: usize = 3 * F::BYTES;
    const SPARE: Option<SpareBits> = F::SPARE;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let (x, rest) = bytes.split_at(F::BYTES);
        let (y, z) = rest.split_at(F::BYTES);
        Self {
            x: F::decode(x),
            y: F::decode(y),
            z: F::decode(z),
        }
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let (x, rest) = out.split_at_mut(F::BYTES);
        let (y, z) = rest.split_at_mut(F::BYTES);
        self.x.encode(x);
        self.y.encode(y);
        self.z.encode(z);
    }
}

/// Many points to affine form, with one inversion for all of them. Memory: two Jacobian points for each while
/// it runs.
pub fn normalize<P: Curve>(points: &[Projective<P>]) -> Vec<Point<P>> {
    Projective::normalize_batch(points)
        .iter()
        .map(Point::<P>::from_affine::<P>)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::PrimeGroup;
    use ark_ff::{AdditiveGroup, Field, Zero};

    fn round_trip<P: Curve>() {
        let generator = Projective::<P>::generator();
        let points = [generator, Projective::zero(), -generator, generator.double()];
        let flat = normalize::<P>(&points);
        for (point, want) in flat.iter().zip(&points) {
            assert_eq!(point.to_projective::<P>(), *want);
            assert_eq!(point.negated().to_projective::<P>(), -*want);
            assert!(point.is_on_curve::<P>());
        }
        assert_eq!(flat[1], Point::<P>::INFINITY);
        assert!(flat[1].is_infinity() && !flat[0].is_infinity());
        let mut off = flat[0];
        off.x += P::BaseField::ONE;
        assert!(!off.is_on_curve::<P>());
        let mut bytes = vec![0; Point::<P>::BYTES];
        for point in &flat {
            point.encode(&mut bytes);
            assert_eq!(Point::<P>::decode(&bytes), *point);
            assert_eq!(point.is_infinity(), bytes.iter().all(|byte| *byte == 0));
            let jacobian = Jacobian::from(point);
            assert_eq!(jacobian.to_projective::<P>(), point.to_projective::<P>());
            let mut bytes = vec![0; Jacobian::<P::BaseField>::BYTES];
            jacobian.encode(&mut bytes);
            assert_eq!(Jacobian::decode(&bytes), jacobian);
        }
    }

    #[test]
    fn points_convert_and_infinity_is_zero() {
        round_trip::<ark_bn254::g1::Config>();
        round_trip::<ark_pallas::PallasConfig>();
        round_trip::<ark_bn254::g2::Config>();
        round_trip::<ark_bls12_381::g1::Config>();
        round_trip::<ark_bls12_381::g2::Config>();
        assert_eq!(size_of::<Point<ark_bn254::g1::Config>>(), 64);
    }
}
