//! Values and points between midnight-curves' types and the engine's, and between names of one type.
//!
//! Upstream is generic over pairings; the engine computes over BLS12-381's G1, which it has in arkworks' form
//! ([`P`]). Where upstream names a type by its parameters, [`same`] says that it is the one of BLS12-381; all
//! conversions panic for another: callers have come through [`is_known`](super::bridge::is_known).

use std::any::{type_name, Any};

use ff::PrimeField;
use group::Curve as _;
use midnight_curves::serde::SerdeObject as _;
use midnight_curves::{Fq, G1Affine, G1Projective, G2Affine, G2Projective};
use spillproof_engine::column::Element as _;
use spillproof_engine::stream::ForeignScalars;
use spillproof_kernels::curve;
use spillproof_plonk::Values;

/// BLS12-381's G1, as the engine has it.
pub(crate) type P = ark_bls12_381::g1::Config;
/// A scalar, as the engine has it.
pub(crate) type Scalar = ark_bls12_381::Fr;
/// A point, as the engine has it.
pub(crate) type Point = curve::Point<P>;

/// The value by another name of its type.
///
/// Panics if it is another type.
pub(crate) fn same<A: Any, B: Any>(value: &A) -> &B {
    match (value as &dyn Any).downcast_ref() {
        Some(value) => value,
        None => panic!("spillproof: {} is not {}", type_name::<A>(), type_name::<B>()),
    }
}

/// [`same`] of a value that is given away.
pub(crate) fn same_owned<A: Any, B: Any>(value: A) -> B {
    let mut value = Some(value);
    let of_other_name = (&mut value as &mut dyn Any).downcast_mut::<Option<B>>();
    match of_other_name.and_then(Option::take) {
        Some(value) => value,
        None => panic!("spillproof: {} is not {}", type_name::<A>(), type_name::<B>()),
    }
}

/// A value of `F`, which is `Fq`, as the engine's. Both are four limbs in Montgomery form, with the same R.
#[inline]
pub(crate) fn scalar<F: PrimeField>(value: &F) -> Scalar {
    let mut bytes = [0; 32];
    let written = same::<F, Fq>(value).write_raw(&mut &mut bytes[..]);
    debug_assert!(written.is_ok(), "the bytes of a scalar hold it");
    Scalar::decode(&bytes)
}

/// The engine's value as one of `F`, which is `Fq`.
#[inline]
pub(crate) fn foreign<F: PrimeField>(value: Scalar) -> F {
    let mut bytes = [0; 32];
    value.encode(&mut bytes);
    same_owned(Fq::from_raw_bytes_unchecked(&bytes))
}

/// A point as the engine's. Coordinates of both are six limbs in Montgomery form, with the same R.
pub(crate) fn point(point: &G1Affine) -> Point {
    let raw = point.as_ref();
    let coordinate = |limbs: [u64; 6]| ark_bls12_381::Fq::new_unchecked(ark_ff::BigInt(limbs));
    Point {
        x: coordinate(raw.x.l),
        y: coordinate(raw.y.l),
    }
}

/// The engine's point as one of midnight-curves'. Infinity is all zero in both.
pub(crate) fn foreign_point(point: &Point) -> G1Projective {
    let mut affine = G1Affine::default();
    let raw = affine.as_mut();
    raw.x.l = point.x.0 .0;
    raw.y.l = point.y.0 .0;
    affine.into()
}

/// A point of the second group as the engine's.
pub(crate) fn pair_point(point: &G2Projective) -> ark_bls12_381::G2Affine {
    let affine = G2Affine::from(point);
    if affine == G2Affine::default() {
        return ark_bls12_381::G2Affine::identity();
    }
    let raw = affine.as_ref();
    let of = |limbs: [u64; 6]| ark_bls12_381::Fq::new_unchecked(ark_ff::BigInt(limbs));
    let [x, y] = [raw.x.fp, raw.y.fp].map(|[c0, c1]| ark_bls12_381::Fq2::new(of(c0.l), of(c1.l)));
    ark_bls12_381::G2Affine::new_unchecked(x, y)
}

/// [`pair_point`] the other way round.
pub(crate) fn foreign_pair_point(point: &ark_bls12_381::G2Affine) -> G2Projective {
    let mut affine = G2Affine::default();
    if let Some((x, y)) = ark_ec::AffineRepr::xy(point) {
        let raw = affine.as_mut();
        for (raw, of) in [(&mut raw.x, x), (&mut raw.y, y)] {
            [raw.fp[0].l, raw.fp[1].l] = [of.c0.0 .0, of.c1.0 .0];
        }
    }
    affine.into()
}

/// Points as the engine's, into `out`. `affine` has as many.
pub(crate) fn points(points: &[G1Projective], affine: &mut [G1Affine], out: &mut [Point]) {
    G1Projective::batch_normalize(points, affine);
    out.iter_mut()
        .zip(affine)
        .for_each(|(out, affine)| *out = point(affine));
}

/// A caller's values, of `Fq`.
pub(crate) struct Foreign<'a, F>(pub(crate) &'a [F]);

impl<F: PrimeField> Foreign<'_, F> {
    fn copy_to(&self, start: usize, out: &mut [Scalar]) {
        for (out, value) in out.iter_mut().zip(&self.0[start..]) {
            *out = scalar(value);
        }
    }
}

impl<F: PrimeField> Values<Scalar> for Foreign<'_, F> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [Scalar]) {
        self.copy_to(start, out);
    }
}

impl<F: PrimeField> ForeignScalars<Scalar> for Foreign<'_, F> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [Scalar]) {
        self.copy_to(start, out);
    }
}

#[cfg(test)]
mod tests {
    use ark_ec::{CurveGroup as _, PrimeGroup as _};
    use ff::Field as _;
    use group::Group as _;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng as _;

    use super::*;

    /// Arithmetic of one library is that of the other.
    #[test]
    fn values_and_points_are_the_same_numbers() {
        let projective = |of: &G1Projective| point(&of.to_affine());
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        for _ in 0..50 {
            let [a, b] = [0; 2].map(|_| Fq::random(&mut rng));
            assert_eq!(scalar(&(a * b + a)), scalar(&a) * scalar(&b) + scalar(&a));
            assert_eq!(foreign::<Fq>(scalar(&a)), a);
            let multiple = G1Projective::generator() * a;
            let expected = ark_bls12_381::G1Projective::generator() * scalar(&a);
            let converted = projective(&multiple);
            assert_eq!(converted, Point::from_affine::<P>(&expected.into_affine()));
            assert_eq!(foreign_point(&converted), multiple);
        }
        assert!(projective(&G1Projective::identity()).is_infinity());
        assert!(bool::from(foreign_point(&Point::INFINITY).is_identity()));
        assert!(point(&G1Affine::default()).is_infinity());
        for multiplier in [Fq::ZERO, Fq::ONE, Fq::random(&mut rng)] {
            let multiple = G2Projective::generator() * multiplier;
            let expected = ark_bls12_381::G2Projective::generator() * scalar(&multiplier);
            assert_eq!(pair_point(&multiple), expected.into_affine());
            assert_eq!(foreign_pair_point(&pair_point(&multiple)), multiple);
        }
    }
}
