//! Elementwise arithmetic on slices of one length: the steps of a constraint program. One thread, memory:
//! none.
//!
//! Every function writes the first operand, element by element, and panics if a slice is shorter than it.
//!
//! A list of [`Instruction`]s runs in lanes as a whole, so that the results of one are in lanes for the next.
//!
//! Multiplications run in lanes ([`super::backend`]). Bounds, in multiples of p <= R / 32: operands 16 and 1,
//! their product below 2.5, with a summand below 3.5: what `canonical` takes.

/// For [`crate::compiled`].
pub(crate) mod compiled {
    pub use super::instruction::InLanes;
    pub use super::{Product, Scaled};
}
mod evaluate;
mod instruction;

pub use evaluate::Evaluation;
pub use instruction::{Instruction, Operand, Operation, SCALARS_PER_EIGHT, Target};

use crate::backend::{Backend, Kernel, Lanes};
use crate::field::KernelField;

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
    let (a, b) = (&a[..to.len()], &b[..to.len()]);
    F::run_product(Backend::detect(), Product { to, a, b });
}

#[doc(hidden)]
pub struct Product<'a, F> {
    to: &'a mut [F],
    a: &'a [F],
    b: &'a [F],
}

impl<F: KernelField> Kernel<F> for Product<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let operands = self.a.chunks(W).zip(self.b.chunks(W));
        for (to, (a, b)) in self.to.chunks_mut(W).zip(operands) {
            let product = lanes.product(&lanes.load_shifted(a), &lanes.load(b));
            lanes.store(&lanes.canonical(product), to);
        }
    }
}

/// `to = a * factor + b`.
pub fn scaled_sum<F: KernelField>(to: &mut [F], a: &[F], factor: &F, b: &[F]) {
    let (a, b) = (&a[..to.len()], Some(&b[..to.len()]));
    F::run_scaled(Backend::detect(), Scaled { to, a, factor, b });
}

/// `to = a * factor`.
pub fn scaled<F: KernelField>(to: &mut [F], a: &[F], factor: &F) {
    let (a, b) = (&a[..to.len()], None);
    F::run_scaled(Backend::detect(), Scaled { to, a, factor, b });
}

#[doc(hidden)]
pub struct Scaled<'a, F> {
    to: &'a mut [F],
    a: &'a [F],
    factor: &'a F,
    /// Added, if there is one.
    b: Option<&'a [F]>,
}

impl<F: KernelField> Kernel<F> for Scaled<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let factor = lanes.splat(&lanes.shifted(self.factor));
        let operands = self.a.chunks(W).enumerate();
        for (to, (i, a)) in self.to.chunks_mut(W).zip(operands) {
            let mut scaled = lanes.product(&lanes.load(a), &factor);
            if let Some(b) = self.b {
                scaled = lanes.sum(&scaled, &lanes.load(&b[i * W..]));
            }
            lanes.store(&lanes.canonical(scaled), to);
        }
    }
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
    product(to, a, a);
}

/// `to = 2 * a`.
pub fn doubled<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::doubled);
}

/// `to = -a`.
pub fn negated<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::negated);
}
