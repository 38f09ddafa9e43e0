//! Butterflies.
//!
//! Algorithm: that of `avx512/butterfly.rs` on limbs of 29 bits: a product with a known factor w takes its
//! quotient by p from 2^261 w / p, with the upper columns of that product alone: 135 multiplications, where a
//! product of two values takes 163 (`product`).
//!
//! Bounds, for a prime with 63 p < 2^261 (`Radix::roomy`). A *scaled* value lies below 11 p: of the
//! quotient's columns, those below 2^232 are left out, eight terms below 2^261 and less than one more, and
//! rounding counts for two. It is known modulo 2^261, in columns of at most 18 terms below 2^58. Less it, a
//! value comes in limbs of which each has borrowed 40 2^58 from the next: once in two such differences, or a
//! difference and a sum, which leave each limb between 4 2^58 and 60 2^58. [`Prime::cut`] ends that.
//! *Lowered* values are below 2 p. Between layers values are carried and below 26 p: lowered and scaled, 13
//! p, or 14 p for the difference and 12 p; scaled and 12 p more.
//!
//! Memory: the buffer that a thread keeps between two transforms, [`KEPT_BYTES_MAX`] at most.

use std::cell::Cell;

use ark_ff::{Fp, MontBackend, MontConfig, PrimeField};

use super::product::ScaledProduct;
use super::{Limbs, Pairs, Prime, WIDTH};
use crate::backend::lanes::{Factor, Lanes, LoopPart, WideLanes};
use crate::backend::limbs::Words;
use crate::backend::radix::{multiply_low, to_radix};

/// Limbs, pairs of them, and bits of a limb.
const LIMBS: usize = 9;
const PAIRS: usize = 5;
const BITS: usize = 29;

/// 8 p, 12 p and 20 p, by their places in `Radix::fours`.
const EIGHT: usize = 2;
const TWELVE: usize = 3;
const TWENTY: usize = 5;

/// What a limb borrows from the next one for the difference to a scaled value.
const BORROWED: u64 = 40 << (2 * BITS);

/// The most that a thread keeps of its buffer: sixteen columns of 2^13 values.
const KEPT_BYTES_MAX: usize = size_of::<Pairs<PAIRS>>() << 14;

thread_local! {
    static BUFFER: Cell<Vec<Pairs<PAIRS>>> = const { Cell::new(Vec::new()) };
}

/// Frees this thread's buffer.
pub(in crate::backend) fn forget_buffers() {
    drop(BUFFER.take());
}

/// Four words that hold two limbs each, of a value, then five of a quotient: as in [`Pairs`].
fn paired(limbs: &[u64; LIMBS], to: &mut [u64]) {
    for (pair, to) in limbs.chunks(2).zip(to) {
        *to = pair[0] | pair.get(1).map_or(0, |limb| limb << 32);
    }
}

/// Multiples of 4 p at [i][j] as in `Radix::fours`, where each limb has borrowed [`BORROWED`]; that of the
/// top limb is a multiple of 2^261.
const fn borrowed(fours: &[[u64; 8]; LIMBS]) -> [[u64; 8]; LIMBS] {
    let mut borrowed = *fours;
    let mut i = 0;
    while i < LIMBS {
        let mut j = 0;
        while j < 8 {
            borrowed[i][j] += BORROWED;
            if i > 0 {
                borrowed[i][j] -= BORROWED >> BITS;
            }
            j += 1;
        }
        i += 1;
    }
    borrowed
}

impl<T: MontConfig<4>> Prime<T, 4, LIMBS, PAIRS, BITS> {
    /// For differences to scaled values.
    const SCALED_FOURS: [[u64; 8]; LIMBS] = borrowed(&Self::P.fours);

    /// `a * w` modulo p and modulo 2^261, for carried `a`: see the bounds above.
    #[inline(always)]
    fn scaled_loose(self, a: &Limbs<LIMBS>, factor: &Factor) -> Limbs<LIMBS> {
        let constants = &Self::CONSTANTS_IN_LANES;
        self.avx2.run(ScaledProduct { a, factor, constants })
    }

    /// A carried value, less a multiple of p: below 2 p, modulo 2^261, loose.
    #[inline(always)]
    fn lowered_loose(self, a: &Limbs<LIMBS>) -> Limbs<LIMBS> {
        let avx2 = self.avx2;
        let top = avx2.product(a.0[LIMBS - 1], avx2.word(Self::P.quotient_low));
        self.less(a, avx2.shift_right(top, Self::QUOTIENT_BITS))
    }

    /// `a - b + 4 multiple p` modulo 2^261, for scaled `b`.
    #[inline(always)]
    fn less_scaled(self, a: &Limbs<LIMBS>, b: &Limbs<LIMBS>, multiple: usize) -> Limbs<LIMBS> {
        self.apart(a, b, &Self::SCALED_FOURS, multiple)
    }

    #[inline(always)]
    fn both_layers(self, values: [&mut Pairs<PAIRS>; 4], factors: [&Factor; 3]) {
        let [v0, v1, v2, v3] = values;
        let third = self.scaled_loose(&self.limbs(v3), factors[0]);
        let second = self.limbs(v1);
        let b1 = self.cut(self.sum(&second, &third));
        let b3 = self.cut(self.less_scaled(&second, &third, TWELVE));
        let second = self.scaled_loose(&self.limbs(v2), factors[0]);
        let first = self.lowered_loose(&self.limbs(v0));
        let b0 = self.sum(&first, &second);
        let b2 = self.less_scaled(&first, &second, TWELVE);
        let product = self.scaled_loose(&b1, factors[1]);
        *v0 = self.cut_pairs(self.sum(&b0, &product));
        *v1 = self.cut_pairs(self.less_scaled(&b0, &product, TWELVE));
        let product = self.scaled_loose(&b3, factors[2]);
        *v2 = self.cut_pairs(self.sum(&b2, &product));
        *v3 = self.cut_pairs(self.apart(&b2, &product, &Self::P.fours, TWELVE));
    }

    #[inline(always)]
    fn both_layers_one(self, values: [&mut Pairs<PAIRS>; 4], factor: &Factor) {
        let [v0, v1, v2, v3] = values;
        let (a0, a1, a2, a3) = (
            self.lowered_loose(&self.limbs(v0)),
            self.lowered_loose(&self.limbs(v1)),
            self.lowered_loose(&self.limbs(v2)),
            self.lowered_loose(&self.limbs(v3)),
        );
        let (b0, b1) = (self.sum(&a0, &a2), self.sum(&a1, &a3));
        let b2 = self.less_scaled(&a0, &a2, EIGHT);
        let b3 = self.cut(self.less_scaled(&a1, &a3, EIGHT));
        let product = self.scaled_loose(&b3, factor);
        *v0 = self.cut_pairs(self.sum(&b0, &b1));
        *v1 = self.cut_pairs(self.less_scaled(&b0, &b1, TWELVE));
        *v2 = self.cut_pairs(self.sum(&b2, &product));
        *v3 = self.cut_pairs(self.apart(&b2, &product, &Self::P.fours, TWELVE));
    }

    /// Cut, and as it waits in memory.
    #[inline(always)]
    fn cut_pairs(self, a: Limbs<LIMBS>) -> Pairs<PAIRS> {
        self.pairs(&self.cut(a))
    }
}

/// [`WideLanes::two_layers`], as a function of its own.
struct TwoLayers<'a, P> {
    lanes: P,
    values: [&'a mut Pairs<PAIRS>; 4],
    factors: [&'a Factor; 3],
}

impl<T: MontConfig<4>> LoopPart for TwoLayers<'_, Prime<T, 4, LIMBS, PAIRS, BITS>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.lanes.both_layers(self.values, self.factors);
    }
}

/// [`WideLanes::two_layers_one`], as a function of its own.
struct TwoLayersOne<'a, P> {
    lanes: P,
    values: [&'a mut Pairs<PAIRS>; 4],
    factor: &'a Factor,
}

impl<T: MontConfig<4>> LoopPart for TwoLayersOne<'_, Prime<T, 4, LIMBS, PAIRS, BITS>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.lanes.both_layers_one(self.values, self.factor);
    }
}

impl<T: MontConfig<4>> WideLanes<Fp<MontBackend<T, 4>, 4>, WIDTH> for Prime<T, 4, LIMBS, PAIRS, BITS> {
    const SAVED_ELEMENTS: usize = PAIRS;

    fn factor(self, value: &Fp<MontBackend<T, 4>, 4>) -> Factor {
        // 2^261 w less its remainder is a multiple of p; modulo 2^261 it is minus the remainder.
        let shifted: [u64; LIMBS] = to_radix::<BITS, 4, LIMBS>(self.shifted(value).0.0);
        let value: [u64; LIMBS] = to_radix::<BITS, 4, LIMBS>(value.into_bigint().0);
        let quotient = multiply_low::<BITS, LIMBS>(&shifted, &Self::P.inverse_wide);
        let mut factor = Factor([0; 2 * PAIRS]);
        paired(&value, &mut factor.0[..PAIRS]);
        paired(&quotient, &mut factor.0[PAIRS..]);
        factor
    }

    #[inline(always)]
    fn scaled(self, a: &Limbs<LIMBS>, factor: &Factor) -> Limbs<LIMBS> {
        self.cut(self.scaled_loose(a, factor))
    }

    #[inline(always)]
    fn lowered(self, a: &Limbs<LIMBS>) -> Limbs<LIMBS> {
        *a
    }

    #[inline(always)]
    fn sum_lowered(self, a: &Limbs<LIMBS>, b: &Limbs<LIMBS>) -> Limbs<LIMBS> {
        // Not carried, the top limb is too small if anything, and so is the quotient: by less than the bound
        // has to spare.
        self.cut(self.lowered_loose(&self.sum(a, b)))
    }

    #[inline(always)]
    fn difference_lowered(self, a: &Limbs<LIMBS>, b: &Limbs<LIMBS>) -> Limbs<LIMBS> {
        // With 4 p to spare, the top limb is not negative although it was borrowed from.
        self.cut(self.lowered_loose(&self.apart(a, b, &Self::FOURS, TWENTY)))
    }

    #[inline(always)]
    fn negative_lowered(self, a: &Limbs<LIMBS>) -> Limbs<LIMBS> {
        self.difference_lowered(&self.zero(), a)
    }

    #[inline(always)]
    fn butterfly_one(self, low: &mut Pairs<PAIRS>, high: &mut Pairs<PAIRS>) {
        let a = self.lowered_loose(&self.limbs(low));
        let b = self.lowered_loose(&self.limbs(high));
        *low = self.cut_pairs(self.sum(&a, &b));
        *high = self.cut_pairs(self.less_scaled(&a, &b, EIGHT));
    }

    #[inline(always)]
    fn two_layers(self, values: [&mut Pairs<PAIRS>; 4], factors: [&Factor; 3]) {
        let lanes = self;
        self.avx2.run(TwoLayers {
            lanes,
            values,
            factors,
        });
    }

    #[inline(always)]
    fn two_layers_one(self, values: [&mut Pairs<PAIRS>; 4], factor: &Factor) {
        let lanes = self;
        self.avx2.run(TwoLayersOne {
            lanes,
            values,
            factor,
        });
    }

    #[inline(always)]
    fn save(self, value: &Limbs<LIMBS>, to: &mut [Fp<MontBackend<T, 4>, 4>]) {
        if let Some(to) = to.first_chunk_mut::<PAIRS>() {
            for (pair, to) in self.pairs(value).0.iter().zip(to) {
                self.avx2.store(*pair, &mut to.0.0);
            }
        }
    }

    #[inline(always)]
    fn restore(self, from: &[Fp<MontBackend<T, 4>, 4>]) -> Limbs<LIMBS> {
        let from = &from[..PAIRS];
        let mut pairs = Pairs([self.avx2.word(0); PAIRS]);
        for i in 0..PAIRS {
            pairs.0[i] = self.avx2.load(&from[i].0.0);
        }
        self.limbs(&pairs)
    }

    fn take_buffer(self, len: usize) -> Vec<Pairs<PAIRS>> {
        let buffer = BUFFER.take();
        if buffer.len() >= len {
            return buffer;
        }
        // A new buffer: growing the old one would move its content.
        drop(buffer);
        vec![self.pairs(&self.unit()); len]
    }

    fn keep_buffer(self, buffer: Vec<Pairs<PAIRS>>) {
        if size_of_val(&buffer[..]) <= KEPT_BYTES_MAX {
            BUFFER.set(buffer);
        }
    }
}
