//! Affine additions that share one inversion.
//!
//! An addition or doubling is lambda = numerator / denominator, x3 = lambda^2 - x1 - x2, y3 = lambda (x1 - x3) - y1. A queue of
//! pairs of places is taken [`CAPACITY`] (in lanes twice that) at a time: one loop without unpredictable branches multiplies the denominators up (so
//! that many cache misses are under way at once), their product is inverted once, and a second loop finishes the sums. Cost: 6
//! multiplications, and a share of an inversion. Where the processor can, [`super::eight`] does the same in eight
//! lanes. Memory: [`Adder::bytes`].

use ark_ff::{Field, Zero};

use super::eight::EightAdder;
use crate::kernels::curve::{Coordinates, Curve, Point};
use crate::kernels::field::KernelField;
use crate::kernels::platform::Platform;

/// Additions that share an inversion.
const CAPACITY: usize = 2048;
/// The same in lanes, where an addition takes less than half the memory.
pub(super) const CAPACITY_IN_LANES: usize = 2 * CAPACITY;

/// Independent chains of products: one alone would be bound by the multiplier's latency.
const CHAINS: usize = 4;

/// Both operands of an addition, by places whose meaning is the [`Places`]'.
pub(super) type Pair = [u32; 2];

/// What the places of a queue mean. A sum may go where its own first operand is, but where no other operand of the queue is.
pub(super) trait Places<P: Curve> {
    /// Whether bit 0 of an operand's place says that its negation is meant.
    const SIGNED: [bool; 2];

    /// The first operand.
    fn first(&self, place: u32) -> &Point<P>;
    /// The second operand.
    fn second(&self, place: u32) -> &Point<P>;
    /// Where the sum of the queue's pair `index` goes, whose first operand is at `first`.
    fn target(&mut self, index: usize, first: u32) -> &mut Point<P>;

    /// Both operands, with their signs.
    #[inline(always)]
    fn operands(&self, pair: Pair) -> [Point<P>; 2] {
        let signed = |point: &Point<P>, which: usize| Coordinates {
            x: point.x,
            y: point.y.signed(Self::SIGNED[which] && pair[which] & 1 == 1),
        };
        [signed(self.first(pair[0]), 0), signed(self.second(pair[1]), 1)]
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
    /// In the queue.
    index: u32,
}

/// Adds queues of pairs.
pub(super) struct Adder<P: Curve> {
    entries: Vec<Entry<P::BaseField>>,
    /// In place of `entries`, where the platform has lanes.
    eight: Option<EightAdder<P>>,
}

impl<P: Curve> Adder<P> {
    pub(super) fn new(platform: Platform) -> Self {
        let eight = match platform {
            Platform::Portable | Platform::Avx2 => None,
            Platform::Avx512Ifma => EightAdder::new(),
        };
        Self {
            entries: Vec::with_capacity(if eight.is_some() { 0 } else { CAPACITY }),
            eight,
        }
    }

    /// Bytes of an adder on any platform.
    pub(super) fn bytes() -> u64 {
        let entries = CAPACITY * size_of::<Entry<P::BaseField>>();
        entries.max(CAPACITY_IN_LANES * EightAdder::<P>::ADDITION_BYTES) as u64
    }

    /// Every pair's sum to its target.
    pub(super) fn add(&mut self, queue: &[Pair], places: &mut impl Places<P>) {
        let capacity = match &self.eight {
            Some(_) => CAPACITY_IN_LANES,
            None => CAPACITY,
        };
        for first in (0..queue.len()).step_by(capacity) {
            let end = (first + capacity).min(queue.len());
            match &mut self.eight {
                Some(eight) => eight.add(queue, first..end, places),
                None => {
                    self.read(queue, first..end, places);
                    self.write(queue, places);
                }
            }
        }
    }

    /// Queue to entries; sums that need no inversion are written.
    #[inline(always)]
    fn read(&mut self, queue: &[Pair], part: std::ops::Range<usize>, places: &mut impl Places<P>) {
        let start = part.start;
        for (i, pair) in queue[part].iter().enumerate() {
            let index = start + i;
            let [a, b] = places.operands(*pair);
            let denominator = b.x.minus(&a.x);
            // Zero is infinity's x, and equal x is doubling or cancelling.
            if denominator.is_zero() | a.x.is_zero() | b.x.is_zero() {
                match special::<P>(&a, &b) {
                    Ok(sum) => *places.target(index, pair[0]) = sum,
                    Err((numerator, denominator)) => {
                        self.entries
                            .push(entry::<P>(&a, &b, numerator, denominator, index as u32));
                    }
                }
                continue;
            }
            self.entries
                .push(entry::<P>(&a, &b, b.y.minus(&a.y), denominator, index as u32));
        }
    }

    /// Entries to sums.
    #[inline(always)]
    fn write(&mut self, queue: &[Pair], places: &mut impl Places<P>) {
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
            let index = entry.index as usize;
            *places.target(index, queue[index][0]) = Coordinates { x, y };
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
    index: u32,
) -> Entry<P::BaseField> {
    let x_sum = a.x.plus(&b.x);
    Entry {
        numerator,
        denominator,
        before: P::BaseField::ONE,
        x: a.x,
        y: a.y,
        x_sum,
        index,
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
    let mut inverse = product.inverted().unwrap_or(F::ZERO);
    let mut inverses = [F::ONE; N];
    for i in (0..N).rev() {
        inverses[i] = inverse.times(&before[i]);
        inverse = inverse.times(&values[i]);
    }
    inverses
}
