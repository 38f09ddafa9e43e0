//! Affine additions that share one inversion.
//!
//! An addition or doubling is lambda = numerator / denominator, x3 = lambda^2 - x1 - x2, y3 = lambda (x1 - x3) - y1. Entries are queued with both
//! parts of lambda and what the rest needs; [`Batch::flush`] inverts the product of all denominators once. Operands are copied
//! in, so a result may be written over them. Cost: 6 multiplications, and an inversion shared by [`CAPACITY`].
//! Memory: [`Batch::bytes`].

use crate::kernels::curve::{Coordinates, Curve, Point};
use crate::kernels::field::KernelField;
use ark_ff::{Field, Zero};

/// Entries that share an inversion.
pub(super) const CAPACITY: usize = 2048;

/// Independent chains of products: one alone would be bound by the multiplier's latency.
const CHAINS: usize = 4;

#[derive(Clone, Copy)]
struct Entry<F> {
    numerator: F,
    denominator: F,
    /// Product of the chain's denominators before this one.
    before: F,
    x: F,
    y: F,
    x_sum: F,
    target: u32,
}

/// A queue of additions whose results are still to come.
pub(super) struct Batch<P: Curve> {
    entries: Vec<Entry<P::BaseField>>,
    products: [P::BaseField; CHAINS],
}

impl<P: Curve> Batch<P> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::with_capacity(CAPACITY),
            products: [P::BaseField::ONE; CHAINS],
        }
    }

    pub(super) fn bytes() -> u64 {
        (CAPACITY * size_of::<Entry<P::BaseField>>()) as u64
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= CAPACITY
    }

    /// Queues `target = a + b`, or gives the sum if it needs no inversion (one is infinity, or they cancel).
    #[inline(always)]
    pub(super) fn push(&mut self, a: &Point<P>, b: &Point<P>, target: u32) -> Option<Point<P>> {
        let mut denominator = b.x.minus(&a.x);
        let mut numerator = b.y.minus(&a.y);
        // One test for the common case: zero is infinity's x, and equal x is doubling or cancelling.
        if denominator.is_zero() || a.x.is_zero() || b.x.is_zero() {
            if a.is_infinity() {
                return Some(*b);
            }
            if b.is_infinity() {
                return Some(*a);
            }
            if denominator.is_zero() {
                if !numerator.is_zero() || a.y.is_zero() {
                    return Some(Point::<P>::INFINITY);
                }
                let square = a.x.squared();
                numerator = square.doubled().plus(&square).plus(&P::COEFF_A);
                denominator = a.y.doubled();
            }
        }
        let chain = &mut self.products[self.entries.len() % CHAINS];
        self.entries.push(Entry {
            numerator,
            denominator,
            before: *chain,
            x: a.x,
            y: a.y,
            x_sum: a.x.plus(&b.x),
            target,
        });
        *chain = chain.times(&denominator);
        None
    }

    /// Computes all queued sums and hands each to `write` with its target. The queue is empty then.
    #[inline(always)]
    pub(super) fn flush(&mut self, mut write: impl FnMut(u32, Point<P>)) {
        if self.entries.is_empty() {
            return;
        }
        let mut inverses = invert_all(&self.products);
        for (i, entry) in self.entries.iter().enumerate().rev() {
            let inverse = &mut inverses[i % CHAINS];
            let lambda = entry.numerator.times(&inverse.times(&entry.before));
            *inverse = inverse.times(&entry.denominator);
            let x = lambda.squared().minus(&entry.x_sum);
            let y = lambda.times(&entry.x.minus(&x)).minus(&entry.y);
            write(entry.target, Coordinates { x, y });
        }
        self.entries.clear();
        self.products = [P::BaseField::ONE; CHAINS];
    }
}

/// Inverses of non-zero values, with one inversion.
fn invert_all<F: KernelField, const N: usize>(values: &[F; N]) -> [F; N] {
    let mut before = [F::ONE; N];
    let mut product = F::ONE;
    for (before, value) in before.iter_mut().zip(values) {
        *before = product;
        product = product.times(value);
    }
    let mut inverse = product.inverse().unwrap_or(F::ZERO);
    let mut inverses = [F::ONE; N];
    for i in (0..N).rev() {
        inverses[i] = inverse.times(&before[i]);
        inverse = inverse.times(&values[i]);
    }
    inverses
}
