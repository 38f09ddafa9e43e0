//! Elementwise arithmetic on slices of one length: what a constraint program is made of. One thread, memory: none.
//!
//! Every function writes the first operand, element by element, and panics if a slice is shorter than it.
//!
//! A list of [`Instruction`]s runs in lanes as a whole, so that what one leaves the next one finds there.
//!
//! Multiplications run in eight lanes ([`super::lanes`]) where [`super::platform`] says so; the results are the same bits.

mod eight;
mod evaluate;
mod instruction;

pub use evaluate::evaluate;
pub use instruction::{Instruction, Operand, Operation, SCALARS_PER_EIGHT, Target, run_in_lanes};

use crate::kernels::field::KernelField;
use crate::kernels::platform::Platform;

/// Whether to try lanes.
fn in_lanes() -> bool {
    Platform::detect() == Platform::Avx512Ifma
}

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
    let done = if in_lanes() { eight::product(to, a, b) } else { 0 };
    binary(&mut to[done..], &a[done..], &b[done..], F::times);
}

/// `to = a * factor + b`.
pub fn scaled_sum<F: KernelField>(to: &mut [F], a: &[F], factor: &F, b: &[F]) {
    let done = if in_lanes() {
        eight::scaled_sum(to, a, factor, b)
    } else {
        0
    };
    binary(&mut to[done..], &a[done..], &b[done..], |a, b| {
        a.times(factor).plus(b)
    });
}

/// `to = a * factor`.
pub fn scaled<F: KernelField>(to: &mut [F], a: &[F], factor: &F) {
    let done = if in_lanes() {
        eight::scaled(to, a, factor)
    } else {
        0
    };
    unary(&mut to[done..], &a[done..], |a| a.times(factor));
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
    let done = if in_lanes() { eight::product(to, a, a) } else { 0 };
    unary(&mut to[done..], &a[done..], F::squared);
}

/// `to = 2 * a`.
pub fn doubled<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::doubled);
}

/// `to = -a`.
pub fn negated<F: KernelField>(to: &mut [F], a: &[F]) {
    unary(to, a, F::negated);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn against_arkworks<F: KernelField>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let edges = [F::ZERO, F::ONE, -F::ONE, -F::ONE.double()];
        for len in [0usize, 1, 7, 8, 9, 64, 133] {
            let mut random = |shift: usize| -> Vec<F> {
                (0..len)
                    .map(|i| *edges.get((i + shift) % 11).unwrap_or(&F::rand(&mut rng)))
                    .collect()
            };
            let (a, b) = (random(0), random(3));
            let mut to = vec![F::ONE; len];
            let mut check = |name: &str, run: &dyn Fn(&mut [F]), wanted: &dyn Fn(F, F) -> F| {
                run(&mut to);
                for i in 0..len {
                    assert_eq!(to[i], wanted(a[i], b[i]), "{name} of {len}, element {i}");
                }
            };
            check("sum", &|to| sum(to, &a, &b), &|a, b| a + b);
            check("difference", &|to| difference(to, &a, &b), &|a, b| a - b);
            check("product", &|to| product(to, &a, &b), &|a, b| a * b);
            check("square", &|to| squared(to, &a), &|a, _| a * a);
            check("double", &|to| doubled(to, &a), &|a, _| a + a);
            check("negated", &|to| negated(to, &a), &|a, _| -a);
            for factor in [F::ZERO, F::ONE, -F::ONE, F::from(12345u64).inverse().unwrap()] {
                check("scaled", &|to| scaled(to, &a, &factor), &|a, _| a * factor);
                check("shifted", &|to| shifted(to, &a, &factor), &|a, _| a + factor);
                check("reflected", &|to| reflected(to, &a, &factor), &|a, _| factor - a);
                let run = |to: &mut [F]| scaled_sum(to, &a, &factor, &b);
                check("scaled sum", &run, &|a, b| a * factor + b);
            }
        }
    }

    #[test]
    fn equal_to_arkworks_on_edges_and_random_values() {
        against_arkworks::<ark_bn254::Fr>();
        against_arkworks::<ark_bn254::Fq>();
        against_arkworks::<ark_pallas::Fr>();
    }
}
