//! Values and points between midnight-curves' types and the engine's, and between names of one type.
//!
//! Upstream is generic over pairings; the engine computes over BLS12-381's G1, which it has in arkworks' form
//! ([`P`]). Where upstream names a type by its parameters, [`same`] says that it is the one of BLS12-381; all
//! conversions panic for another: callers have come through [`is_known`](super::bridge::is_known).

use std::any::{type_name, Any};

use ark_ec::AffineRepr as _;
use ff::PrimeField;
use group::prime::PrimeCurveAffine as _;
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

/// The engine's point as one of midnight-curves'. Coordinates of both are six limbs in Montgomery form, with the
/// same R; infinity is all zero in both.
pub(crate) fn foreign_point(point: &Point) -> G1Projective {
    let mut affine = G1Affine::default();
    let raw = affine.as_mut();
    raw.x.l = point.x.0 .0;
    raw.y.l = point.y.0 .0;
    affine.into()
}

/// A point of the second group as the engine's.
pub(crate) fn g2(point: &G2Projective) -> ark_bls12_381::G2Affine {
    let affine = point.to_affine();
    let raw = affine.as_ref();
    let coordinate = |fp: [[u64; 6]; 2]| {
        let [c0, c1] = fp.map(|limbs| ark_bls12_381::Fq::new_unchecked(ark_ff::BigInt(limbs)));
        ark_bls12_381::Fq2::new(c0, c1)
    };
    match bool::from(affine.is_identity()) {
        true => ark_bls12_381::G2Affine::identity(),
        false => ark_bls12_381::G2Affine::new_unchecked(
            coordinate(raw.x.fp.map(|fp| fp.l)),
            coordinate(raw.y.fp.map(|fp| fp.l)),
        ),
    }
}

/// [`g2`] the other way round.
pub(crate) fn foreign_g2(point: &ark_bls12_381::G2Affine) -> G2Projective {
    let mut affine = G2Affine::identity();
    if let Some((x, y)) = point.xy() {
        let raw = affine.as_mut();
        for (to, from) in [(&mut raw.x, x), (&mut raw.y, y)] {
            (to.fp[0].l, to.fp[1].l) = (from.c0.0 .0, from.c1.0 .0);
        }
    }
    affine.into()
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
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        for _ in 0..50 {
            let [a, b] = [0; 2].map(|_| Fq::random(&mut rng));
            assert_eq!(scalar(&(a * b + a)), scalar(&a) * scalar(&b) + scalar(&a));
            assert_eq!(foreign::<Fq>(scalar(&a)), a);
            let multiple = G1Projective::generator() * a;
            let expected = ark_bls12_381::G1Projective::generator() * scalar(&a);
            assert_eq!(
                foreign_point(&Point::from_affine::<P>(&expected.into_affine())),
                multiple
            );
            let multiple = G2Projective::generator() * a;
            let expected = ark_bls12_381::G2Projective::generator() * scalar(&a);
            assert_eq!(g2(&multiple), expected.into_affine());
            assert_eq!(foreign_g2(&g2(&multiple)), multiple);
        }
        assert!(bool::from(foreign_point(&Point::INFINITY).is_identity()));
        assert!(g2(&G2Projective::identity()).xy().is_none());
        assert!(bool::from(
            foreign_g2(&ark_bls12_381::G2Affine::identity()).is_identity()
        ));
    }
}
