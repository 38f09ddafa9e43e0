//! Elementwise arithmetic on slices of one length: what a constraint program is made of. One thread, memory: none.
//!
//! Every function writes the first operand, element by element, and panics if a slice is shorter than it.

use crate::kernels::field::KernelField;

#[inline(always)]
fn unary<F: KernelField>(to: &mut [F], a: &[F], each: impl Fn(&F) -> F) {
    let a = &a[..to.len()];
    for (to, a) in to.iter_mut().zip(a) {
        *to = each(a);
    }
}

#[inline(always)]
fn binary<F: KernelField>(to: &mut [F], a: &[F], b: &[F], each: impl Fn(&F, &F) -> F) {
    let (a, b) = (&a[..to.len()], &b[..to.len()]);
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = each(a, b);
    }
}

/// `to = a + b`.
pub fn sum<F: KernelField>(to: &mut [F], a: &[F], b: &[F]) {
    binary(to, a, b, F::plus);
}

/// `to = a - b`.
pub fn difference<F: KernelField>(to: &mut [F], a: &[F], b: &[F]) {
    binary(to, a, b, F::minus);
}

/// `to = a * b`.
pub fn product<F: KernelField>(to: &mut [F], a: &[F], b: &[F]) {
    binary(to, a, b, F::times);
}

/// `to = a * factor + b`.
pub fn scaled_sum<F: KernelField>(to: &mut [F], a: &[F], factor: &F, b: &[F]) {
    binary(to, a, b, |a, b| a.times(factor).plus(b));
}

/// `to = a * factor`.
pub fn scaled<F: KernelField>(to: &mut [F], a: &[F], factor: &F) {
    unary(to, a, |a| a.times(factor));
}

/// `to = a + shift`.
pub fn shifted<F: KernelField>(to: &mut [F], a: &[F], shift: &F) {
    unary(to, a, |a| a.plus(shift));
}

/// `to = constant - a`.
pub fn reflected<F: KernelField>(to: &mut [F], a: &[F], constant: &F) {
    unary(to, a, |a| constant.minus(a));
}

/// `to = a * a`.
pub fn squared<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::squared);
}

/// `to = 2 * a`.
pub fn doubled<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::doubled);
}

/// `to = -a`.
pub fn negated<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::negated);
}
