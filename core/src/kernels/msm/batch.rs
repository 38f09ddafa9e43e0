//! Affine additions that share one inversion.
//!
//! An addition or doubling is lambda = numerator / denominator, x3 = lambda^2 - x1 - x2, y3 = lambda (x1 - x3) - y1. Additions are
//! queued by the places of their operands; [`Batch::flush`] then gathers all operands in one loop without
//! unpredictable branches (so that many cache misses are under way at once), multiplies the denominators up, inverts the
//! product once, and finishes the sums. All operands are read before the first result is written. Cost: 6 multiplications,
//! and an inversion shared by [`CAPACITY`]. Where the processor can, [`super::eight`] does the same in eight lanes. Memory:
//! [`Batch::bytes`].

use ark_ff::{Field, Zero};

use super::eight::EightBatch;
use crate::kernels::curve::{Coordinates, Curve, Point};
use crate::kernels::field::KernelField;
use crate::kernels::platform::Platform;

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

/// What places mean: where points are read from and written to.
pub(super) trait Places<P: Curve> {
    /// The point at a place, and whether its negation is meant.
    fn read(&self, place: u32) -> (&Point<P>, bool);
    /// Puts a point where a target says.
    fn write(&mut self, target: u32, point: Point<P>);

    /// The point at a place, with its sign.
    #[inline(always)]
    fn signed(&self, place: u32) -> Point<P> {
        let (point, negative) = self.read(place);
        Coordinates {
            x: point.x,
            y: point.y.signed(negative),
        }
    }
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

/// A target and its coordinates.
pub(super) type Ready<F> = (u32, F, F);

/// A queue of additions and moves.
pub(super) struct Batch<P: Curve> {
    queue: Vec<Addition>,
    /// (from, to): copies that belong to the queued additions.
    moves: Vec<(u32, u32)>,
    entries: Vec<Entry<P::BaseField>>,
    /// Sums that needed no inversion.
    ready: Vec<Ready<P::BaseField>>,
    /// In place of `entries`, where the platform has lanes.
    eight: Option<EightBatch<P>>,
}

impl<P: Curve> Batch<P> {
    pub(super) fn new(platform: Platform) -> Self {
        let eight = match platform {
            Platform::Portable => None,
            Platform::Avx512Ifma => EightBatch::new(),
        };
        Self {
            queue: Vec::with_capacity(CAPACITY),
            moves: Vec::with_capacity(CAPACITY),
            entries: Vec::with_capacity(if eight.is_some() { 0 } else { CAPACITY }),
            ready: Vec::with_capacity(CAPACITY),
            eight,
        }
    }

    /// Bytes of a batch on any platform.
    pub(super) fn bytes() -> u64 {
        let entry = size_of::<Entry<P::BaseField>>().max(EightBatch::<P>::ADDITION_BYTES);
        let each = size_of::<Addition>() + size_of::<(u32, u32)>() + entry + size_of::<Ready<P::BaseField>>();
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

    /// Reads all operands, does the moves in order, then writes all sums. The queue is empty then.
    #[inline(always)]
    pub(super) fn flush(&mut self, places: &mut impl Places<P>) {
        match &mut self.eight {
            Some(eight) => eight.read(&self.queue, places, &mut self.ready),
            None => self.read(places),
        }
        for (from, to) in self.moves.drain(..) {
            let point = places.signed(from);
            places.write(to, point);
        }
        for (target, x, y) in self.ready.drain(..) {
            places.write(target, Coordinates { x, y });
        }
        match &mut self.eight {
            Some(eight) => eight.write(&self.queue, places),
            None => self.write(places),
        }
        self.queue.clear();
    }

    /// Queue to entries and sums that are ready.
    #[inline(always)]
    fn read(&mut self, places: &impl Places<P>) {
        for addition in &self.queue {
            let (a, b) = (places.signed(addition.a), places.signed(addition.b));
            let denominator = b.x.minus(&a.x);
            // Zero is infinity's x, and equal x is doubling or cancelling.
            if denominator.is_zero() | a.x.is_zero() | b.x.is_zero() {
                match special::<P>(&a, &b) {
                    Ok(sum) => self.ready.push((addition.target, sum.x, sum.y)),
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
    }

    /// Entries to sums.
    #[inline(always)]
    fn write(&mut self, places: &mut impl Places<P>) {
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
            places.write(entry.target, Coordinates { x, y });
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
pub(super) fn special<P: Curve>(
    a: &Point<P>,
    b: &Point<P>,
) -> Result<Point<P>, (P::BaseField, P::BaseField)> {
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
