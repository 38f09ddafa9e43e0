//! Values and points between pasta_curves' types and the engine's, and which curve of the engine's a curve of
//! pasta_curves is.
//!
//! Upstream is generic over curves; pasta_curves has two, and the engine computes over arkworks' forms of
//! both. [`with_engine`] finds the one that belongs to `C`. All conversions panic for a value of another
//! field: callers have come through [`with_engine`].
#![allow(unsafe_code)]

use std::any::{type_name, TypeId};
use std::mem::transmute_copy;

use ff::Field;
use pasta_curves::arithmetic::{Coordinates, CurveAffine, CurveExt};
use pasta_curves::{EpAffine, EqAffine, Fp, Fq};
use spillproof_engine::stream::ForeignScalars;
use spillproof_kernels::curve::Point;
use spillproof_kernels::field::KernelField;
use spillproof_plonk::Values;

/// Work that is done over the engine's form of `C`.
pub(crate) trait Task<C> {
    /// What comes of it.
    type Output;
    /// Does it; `P` is `C`.
    fn run<P: Engine>(self) -> Self::Output;
}

/// Does the work, if the engine has this curve. The curve's name is a constant, so the work is compiled for
/// that curve alone.
pub(crate) fn with_engine<C: CurveAffine, T: Task<C>>(task: T) -> Option<T::Output> {
    let curve = TypeId::of::<C>();
    if const { has_name::<C>("vesta") } {
        (curve == TypeId::of::<EqAffine>()).then(|| task.run::<ark_vesta::VestaConfig>())
    } else if const { has_name::<C>("pallas") } {
        (curve == TypeId::of::<EpAffine>()).then(|| task.run::<ark_pallas::PallasConfig>())
    } else {
        None
    }
}

/// Whether pasta_curves calls the curve so.
const fn has_name<C: CurveAffine>(name: &str) -> bool {
    let (found, name) = (C::CurveExt::CURVE_ID.as_bytes(), name.as_bytes());
    let mut at = 0;
    while at < found.len() && at < name.len() && found[at] == name[at] {
        at += 1;
    }
    at == found.len() && at == name.len()
}

/// Whether the engine has this curve.
pub(crate) fn is_known<C: 'static>() -> bool {
    let curve = TypeId::of::<C>();
    curve == TypeId::of::<EqAffine>() || curve == TypeId::of::<EpAffine>()
}

const _: () = assert!(size_of::<Fp>() == size_of::<[u64; 4]>() && size_of::<Fq>() == size_of::<[u64; 4]>());

/// A curve of the engine that pasta_curves has too. Each of Pallas and Vesta has the other's scalars for
/// coordinates.
pub(crate) trait Engine: spillproof_plonk::ProverCurve<BaseField: KernelField> {}
impl<P: spillproof_plonk::ProverCurve<BaseField: KernelField>> Engine for P {}

/// Panics unless both are the same field: `F` pasta_curves' form of it, four limbs in Montgomery form and
/// nothing else, and `G` arkworks'.
fn assert_same<F: 'static, G: 'static>() {
    let fields = (TypeId::of::<F>(), TypeId::of::<G>());
    let fp = (TypeId::of::<Fp>(), TypeId::of::<ark_pallas::Fq>());
    let fq = (TypeId::of::<Fq>(), TypeId::of::<ark_pallas::Fr>());
    assert!(
        fields == fp || fields == fq,
        "spillproof: {} is not {}",
        type_name::<F>(),
        type_name::<G>()
    );
}

/// A value as the engine's.
#[inline]
pub(crate) fn scalar<F: Copy + 'static, G: KernelField>(value: &F) -> G {
    assert_same::<F, G>();
    let mut converted = G::from(0u64);
    // SAFETY: `F` is `Fp` or `Fq`, which is `repr(transparent)` over four limbs.
    *converted.montgomery_limbs_mut() = unsafe { transmute_copy::<F, [u64; 4]>(value) };
    converted
}

/// The engine's value as one of pasta_curves'.
#[inline]
pub(crate) fn foreign<G: KernelField, F: Copy + 'static>(value: G) -> F {
    assert_same::<F, G>();
    // SAFETY: `F` is `Fp` or `Fq`, which is `repr(transparent)` over four limbs in Montgomery form below the
    // modulus; R is 2^256 for both.
    unsafe { transmute_copy::<[u64; 4], F>(value.montgomery_limbs()) }
}

/// A point as the engine's.
pub(crate) fn point<C: CurveAffine, P: Engine>(point: &C) -> Point<P> {
    match Option::<Coordinates<C>>::from(point.coordinates()) {
        Some(both) => Point::<P> {
            x: scalar(both.x()),
            y: scalar(both.y()),
        },
        None => Point::<P>::INFINITY,
    }
}

/// The engine's point as one of pasta_curves'.
pub(crate) fn foreign_point<P: Engine, C: CurveAffine>(point: &Point<P>) -> C {
    if point.is_infinity() {
        return C::identity();
    }
    match Option::from(C::from_xy(foreign(point.x), foreign(point.y))) {
        Some(point) => point,
        None => panic!("spillproof: a point that is not on the curve: {point:?}"),
    }
}

/// A caller's values.
pub(crate) struct Foreign<'a, F>(pub(crate) &'a [F]);

impl<F: Field> Foreign<'_, F> {
    fn copy_to<G: KernelField>(&self, start: usize, out: &mut [G]) {
        for (out, value) in out.iter_mut().zip(&self.0[start..]) {
            *out = scalar(value);
        }
    }
}

impl<F: Field, G: KernelField> Values<G> for Foreign<'_, F> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [G]) {
        self.copy_to(start, out);
    }
}

impl<F: Field, G: KernelField> ForeignScalars<G> for Foreign<'_, F> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [G]) {
        self.copy_to(start, out);
    }
}
