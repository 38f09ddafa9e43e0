//! Affine additions that share one inversion.
//!
//! An addition or doubling is lambda = numerator / denominator, x3 = lambda^2 - x1 - x2, y3 = lambda (x1 - x3) - y1. Additions are
//! queued by the places of their operands; [`Batch::flush`] then gathers all operands in one loop without
//! unpredictable branches (so that many cache misses are under way at once), multiplies the denominators up, inverts the
//! product once, and finishes the sums. All operands are read before the first result is written. Cost: 6 multiplications,
//! and an inversion shared by [`CAPACITY`]. Memory: [`Batch::bytes`].

use ark_ff::{Field, Zero};

use crate::kernels::curve::{Coordinates, Curve, Point};
use crate::kernels::field::KernelField;

/// Additions that share an inversion.
pub(super) const CAPACITY: usize = 2048;

/// Independent chains of products: one alone would be bound by the multiplier's latency.
const CHAINS: usize = 4;

/// `target = a + b`, by places whose meaning is the caller's.
#[derive(Clone, Copy)]
pub(super) struct Addition {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) target: u32,
}

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

/// A queue of additions and moves.
pub(super) struct Batch<P: Curve> {
    queue: Vec<Addition>,
    /// (from, to): copies that belong to the queued additions.
    moves: Vec<(u32, u32)>,
    entries: Vec<Entry<P::BaseField>>,
    /// Sums that needed no inversion.
    ready: Vec<(u32, Point<P>)>,
}

impl<P: Curve> Batch<P> {
    pub(super) fn new() -> Self {
        Self {
            queue: Vec::with_capacity(CAPACITY),
            moves: Vec::with_capacity(CAPACITY),
            entries: Vec::with_capacity(CAPACITY),
            ready: Vec::with_capacity(CAPACITY),
        }
    }

    pub(super) fn bytes() -> u64 {
        let each = size_of::<Addition>()
            + size_of::<(u32, u32)>()
            + size_of::<Entry<P::BaseField>>()
            + size_of::<(u32, Point<P>)>();
        (CAPACITY * each) as u64
    }

    /// Whether it is time to flush.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= CAPACITY || self.moves.len() >= CAPACITY
    }

    #[inline(always)]
    pub(super) fn push(&mut self, a: u32, b: u32, target: u32) {
        self.queue.push(Addition { a, b, target });
    }

    /// Queues a copy.
    #[inline(always)]
    pub(super) fn push_move(&mut self, from: u32, to: u32) {
        self.moves.push((from, to));
    }

    /// Reads all operands with `fetch`, does the moves in order with `copy`, then writes all sums. `places` is what they
    /// work on. The queue is empty then.
    #[inline(always)]
    pub(super) fn flush<T>(
        &mut self,
        places: &mut T,
        fetch: impl Fn(&T, u32) -> Point<P>,
        copy: impl Fn(&mut T, u32, u32),
        write: impl Fn(&mut T, u32, Point<P>),
    ) {
        for addition in &self.queue {
            let (a, b) = (fetch(places, addition.a), fetch(places, addition.b));
            let denominator = b.x.minus(&a.x);
            // Zero is infinity's x, and equal x is doubling or cancelling.
            if denominator.is_zero() | a.x.is_zero() | b.x.is_zero() {
                match special::<P>(&a, &b) {
                    Ok(sum) => self.ready.push((addition.target, sum)),
                    Err((numerator, denominator)) => {
                        self.entries
                            .push(entry::<P>(&a, &b, numerator, denominator, addition.target));
                    }
                }
                continue;
            }
            self.entries
                .push(entry::<P>(&a, &b, b.y.minus(&a.y), denominator, addition.target));
        }
        self.queue.clear();
        for (from, to) in self.moves.drain(..) {
            copy(places, from, to);
        }
        for (target, sum) in self.ready.drain(..) {
            write(places, target, sum);
        }
        if self.entries.is_empty() {
            return;
        }
        let mut products = [P::BaseField::ONE; CHAINS];
        for (i, entry) in self.entries.iter_mut().enumerate() {
            let product = &mut products[i % CHAINS];
            entry.before = *product;
            *product = product.times(&entry.denominator);
        }
        let mut inverses = invert_all(&products);
        for (i, entry) in self.entries.iter().enumerate().rev() {
            let inverse = &mut inverses[i % CHAINS];
            let lambda = entry.numerator.times(&inverse.times(&entry.before));
            *inverse = inverse.times(&entry.denominator);
            let x = lambda.squared().minus(&entry.x_sum);
            let y = lambda.times(&entry.x.minus(&x)).minus(&entry.y);
            write(places, entry.target, Coordinates { x, y });
        }
        self.entries.clear();
    }
}

#[inline(always)]
fn entry<P: Curve>(
    a: &Point<P>,
    b: &Point<P>,
    numerator: P::BaseField,
    denominator: P::BaseField,
    target: u32,
) -> Entry<P::BaseField> {
    let x_sum = a.x.plus(&b.x);
    Entry {
        numerator,
        denominator,
        before: P::BaseField::ONE,
        x: a.x,
        y: a.y,
        x_sum,
        target,
    }
}

/// The sum, if it needs no inversion; else both parts of lambda.
#[cold]
#[allow(clippy::type_complexity)]
fn special<P: Curve>(a: &Point<P>, b: &Point<P>) -> Result<Point<P>, (P::BaseField, P::BaseField)> {
    if a.is_infinity() {
        return Ok(*b);
    }
    if b.is_infinity() {
        return Ok(*a);
    }
    if a.x != b.x {
        return Err((b.y.minus(&a.y), b.x.minus(&a.x)));
    }
    if a.y != b.y || a.y.is_zero() {
        return Ok(Point::<P>::INFINITY);
    }
    let square = a.x.squared();
    Err((square.doubled().plus(&square).plus(&P::COEFF_A), a.y.doubled()))
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
