//! Values and points between halo2curves' types and the engine's, which is arkworks': the bytes are the same.
//!
//! Upstream is generic over curves, and the engine knows BN254. All panic for another curve or field: callers
//! have asked [`prover_session`](super::engine::prover_session).

use std::any::Any;

use ff::Field;
use halo2curves::bn256::{Fr, G1Affine};
use spillproof_engine::column::Element;
use spillproof_plonk::{Point, Scalar, Values};

/// A value of bn256's `Fr` as the engine's.
pub(crate) fn scalar<F: 'static>(value: &F) -> Scalar {
    let mut bytes = [0u8; <Fr as Element>::BYTES];
    same::<F, Fr>(value).encode(&mut bytes);
    Scalar::decode(&bytes)
}

/// The engine's value as one of bn256's `Fr`.
pub(crate) fn foreign<F: Copy + 'static>(value: Scalar) -> F {
    let mut bytes = [0u8; <Fr as Element>::BYTES];
    value.encode(&mut bytes);
    *same(&Fr::decode(&bytes))
}

/// A point of bn256's G1 as the engine's.
pub(crate) fn point<C: 'static>(point: &C) -> Point {
    let mut bytes = [0u8; <G1Affine as Element>::BYTES];
    same::<C, G1Affine>(point).encode(&mut bytes);
    Point::decode(&bytes)
}

/// The engine's point as one of bn256's G1.
pub(crate) fn foreign_point<C: Copy + 'static>(point: &Point) -> C {
    let mut bytes = [0u8; <G1Affine as Element>::BYTES];
    point.encode(&mut bytes);
    *same(&G1Affine::decode(&bytes))
}

/// The same value, where the types are the same.
fn same<A: 'static, B: 'static>(value: &A) -> &B {
    match (value as &dyn Any).downcast_ref() {
        Some(value) => value,
        None => panic!("spillproof: the engine computes over bn256 only"),
    }
}

/// A caller's values.
pub(crate) struct Foreign<'a, F>(pub(crate) &'a [F]);

impl<F: Field> Values for Foreign<'_, F> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [Scalar]) {
        for (out, value) in out.iter_mut().zip(&self.0[start..]) {
            *out = scalar(value);
        }
    }
}
