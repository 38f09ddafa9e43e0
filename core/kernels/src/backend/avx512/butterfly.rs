//! Butterflies.
//!
//! Algorithm: a product with a known factor w takes its quotient by p from 2^260 w / p, which is known too
//! (Shoup's trick; Harvey, *Faster arithmetic for number-theoretic transforms*, 2014, section 2), with the
//! upper columns of that product alone: 75 multiply-adds, where a product of two values takes 101.
//! Butterflies of two layers at once, so that values are loaded, carried and stored half as often.
//!
//! Bounds, for a prime with 32 p <= 2^260. A *scaled* value lies below 11 p: of the quotient's columns, those
//! below 2^260 are left out, nine terms below 2^260 and less than one more, and rounding counts for one. It is
//! known modulo 2^260, in columns that are loose; [`Prime::cut`] ends that. Between layers values are carried
//! and below 29 p. *Lowered*, they are loose and below 5 p. A value of 29 p and a scaled one are below 41 p,
//! which only primes with 63 p < 2^260 have room for (`Radix::roomy`): for others, as BLS12-381's scalars, the
//! value is lowered first.
//!
//! Memory: the buffer that a thread keeps between two transforms, [`KEPT_BYTES_MAX`] at most: fresh memory
//! for every strip was half of a proof's page faults.

use std::cell::Cell;

use ark_ff::{Fp, MontBackend, MontConfig, PrimeField};

use super::{LIMB_BITS, LIMB_MASK, Packed52, Prime, WIDTH};
use crate::backend::lanes::{Factor, Lanes, WideLanes};
use crate::backend::limbs::Words;
use crate::backend::radix::{multiply_low, to_radix};

const LIMBS: usize = 5;

/// 8 p, 12 p and 16 p, by their places in `Radix::fours`.
const EIGHT: usize = 2;
const TWELVE: usize = 3;
const SIXTEEN: usize = 4;

/// The most that a thread keeps of its buffer: rows, or eight columns, of 2^13 values.
const KEPT_BYTES_MAX: usize = size_of::<Packed52<LIMBS>>() << 13;

thread_local! {
    static BUFFER: Cell<Vec<Packed52<LIMBS>>> = const { Cell::new(Vec::new()) };
}

/// Frees this thread's buffer.
pub(in crate::backend) fn forget_buffers() {
    drop(BUFFER.take());
}

impl Factor {
    /// w.
    fn value(&self) -> &[u64] {
        &self.0[..LIMBS]
    }

    /// 2^260 w / p, rounded down.
    fn quotient(&self) -> &[u64] {
        &self.0[LIMBS..]
    }
}

impl<T: MontConfig<4>> Prime<T, 4, LIMBS> {
    /// `a * w` modulo p and modulo 2^260, for carried `a`: see the bounds above.
    #[inline(always)]
    fn scaled_loose(self, a: &Packed52<LIMBS>, factor: &Factor) -> Packed52<LIMBS> {
        let ifma = self.ifma;
        let mut quotient = self.zero();
        for i in 0..LIMBS {
            let word = ifma.word(factor.quotient()[i]);
            for j in LIMBS - 1 - i..LIMBS {
                let column = i + j + 1 - LIMBS;
                quotient.0[column] = ifma.high(quotient.0[column], a.0[j], word);
                if column > 0 {
                    quotient.0[column - 1] = ifma.low(quotient.0[column - 1], a.0[j], word);
                }
            }
        }
        let quotient = self.carried(quotient);
        let mut scaled = self.zero();
        for i in 0..LIMBS {
            let word = ifma.word(factor.value()[i]);
            for j in 0..LIMBS - i {
                scaled.0[i + j] = ifma.low(scaled.0[i + j], a.0[j], word);
                if i + j + 1 < LIMBS {
                    scaled.0[i + j + 1] = ifma.high(scaled.0[i + j + 1], a.0[j], word);
                }
            }
        }
        for i in 0..LIMBS {
            let word = ifma.word(Self::P.negative[i]);
            for j in 0..LIMBS - i {
                scaled.0[i + j] = ifma.low(scaled.0[i + j], quotient.0[j], word);
                if i + j + 1 < LIMBS {
                    scaled.0[i + j + 1] = ifma.high(scaled.0[i + j + 1], quotient.0[j], word);
                }
            }
        }
        scaled
    }

    /// A loose value modulo 2^260, carried.
    #[inline(always)]
    fn cut(self, a: Packed52<LIMBS>) -> Packed52<LIMBS> {
        let mut cut = self.carried(a);
        cut.0[LIMBS - 1] = self.ifma.and(cut.0[LIMBS - 1], self.ifma.word(LIMB_MASK));
        cut
    }

    /// `a - b + 4 multiple p`, loose.
    #[inline(always)]
    fn apart(self, a: &Packed52<LIMBS>, b: &Packed52<LIMBS>, multiple: usize) -> Packed52<LIMBS> {
        let mut apart = *a;
        for i in 0..LIMBS {
            let offset = self.ifma.word(Self::P.fours[i][multiple]);
            apart.0[i] = self.ifma.minus(self.ifma.plus(a.0[i], offset), b.0[i]);
        }
        apart
    }
}

impl<T: MontConfig<4>> WideLanes<Fp<MontBackend<T, 4>, 4>, WIDTH> for Prime<T, 4, LIMBS> {
    const SAVED_ELEMENTS: usize = 2 * LIMBS;

    fn factor(self, value: &Fp<MontBackend<T, 4>, 4>) -> Factor {
        // 2^260 w less its remainder is a multiple of p; modulo 2^260 it is minus the remainder.
        let shifted: [u64; LIMBS] = to_radix::<LIMB_BITS, 4, LIMBS>(self.shifted(value).0.0);
        let value: [u64; LIMBS] = to_radix::<LIMB_BITS, 4, LIMBS>(value.into_bigint().0);
        let mut factor = Factor([0; 2 * LIMBS]);
        factor.0[..LIMBS].copy_from_slice(&value);
        factor.0[LIMBS..].copy_from_slice(&multiply_low::<LIMB_BITS, LIMBS>(&shifted, &Self::P.inverse_wide));
        factor
    }

    #[inline(always)]
    fn scaled(self, a: &Packed52<LIMBS>, factor: &Factor) -> Packed52<LIMBS> {
        self.cut(self.scaled_loose(a, factor))
    }

    #[inline(always)]
    fn lowered(self, a: &Packed52<LIMBS>) -> Packed52<LIMBS> {
        let ifma = self.ifma;
        let top = ifma.high(ifma.word(0), a.0[LIMBS - 1], ifma.word(Self::P.quotient_low));
        let quotient = ifma.shift_right(top, Self::P.top_bits as usize);
        let mut lowered = *a;
        for i in 0..LIMBS {
            lowered.0[i] = ifma.minus(a.0[i], ifma.lookup(quotient, &Self::P.fours[i]));
        }
        lowered
    }

    #[inline(always)]
    fn sum_lowered(self, a: &Packed52<LIMBS>, b: &Packed52<LIMBS>) -> Packed52<LIMBS> {
        // Not carried, the top limb is too small if anything, and so is the quotient: by less than the bound
        // has to spare.
        self.carried(self.lowered(&self.sum(a, b)))
    }

    #[inline(always)]
    fn difference_lowered(self, a: &Packed52<LIMBS>, b: &Packed52<LIMBS>) -> Packed52<LIMBS> {
        self.carried(self.lowered(&self.carried(self.apart(a, b, SIXTEEN))))
    }

    #[inline(always)]
    fn negative_lowered(self, a: &Packed52<LIMBS>) -> Packed52<LIMBS> {
        self.difference_lowered(&self.zero(), a)
    }

    #[inline(always)]
    fn butterfly_one(self, low: &mut Packed52<LIMBS>, high: &mut Packed52<LIMBS>) {
        let (a, b) = (self.lowered(low), self.lowered(high));
        *low = self.cut(self.sum(&a, &b));
        *high = self.cut(self.apart(&a, &b, EIGHT));
    }

    #[inline(always)]
    fn two_layers(self, values: [&mut Packed52<LIMBS>; 4], factors: [&Factor; 3]) {
        let [v0, v1, v2, v3] = values;
        let third = self.scaled_loose(v3, factors[0]);
        let a1 = if Self::P.roomy { *v1 } else { self.lowered(v1) };
        let b1 = self.cut(self.sum(&a1, &third));
        let b3 = self.cut(self.apart(&a1, &third, TWELVE));
        let second = self.scaled_loose(v2, factors[0]);
        let first = self.lowered(v0);
        let b0 = self.sum(&first, &second);
        let b2 = self.apart(&first, &second, TWELVE);
        let product = self.scaled_loose(&b1, factors[1]);
        *v0 = self.cut(self.sum(&b0, &product));
        *v1 = self.cut(self.apart(&b0, &product, TWELVE));
        let product = self.scaled_loose(&b3, factors[2]);
        *v2 = self.cut(self.sum(&b2, &product));
        *v3 = self.cut(self.apart(&b2, &product, TWELVE));
    }

    #[inline(always)]
    fn two_layers_one(self, values: [&mut Packed52<LIMBS>; 4], factor: &Factor) {
        let [v0, v1, v2, v3] = values;
        let (a0, a1, a2, a3) = (
            self.lowered(v0),
            self.lowered(v1),
            self.lowered(v2),
            self.lowered(v3),
        );
        let (b0, b1) = (self.sum(&a0, &a2), self.sum(&a1, &a3));
        let b2 = self.apart(&a0, &a2, EIGHT);
        let b3 = self.cut(self.apart(&a1, &a3, EIGHT));
        let product = self.scaled_loose(&b3, factor);
        *v0 = self.cut(self.sum(&b0, &b1));
        *v1 = self.cut(self.apart(&b0, &b1, TWELVE));
        *v2 = self.cut(self.sum(&b2, &product));
        *v3 = self.cut(self.apart(&b2, &product, TWELVE));
    }

    #[inline(always)]
    fn save(self, value: &Packed52<LIMBS>, to: &mut [Fp<MontBackend<T, 4>, 4>]) {
        if let Some(to) = to.first_chunk_mut::<{ 2 * LIMBS }>() {
            for (limb, pair) in value.0.iter().zip(to.chunks_exact_mut(2)) {
                let (low, high) = pair.split_at_mut(1);
                self.ifma.store_four_low(*limb, &mut low[0].0.0);
                self.ifma.store_four_high(*limb, &mut high[0].0.0);
            }
        }
    }

    #[inline(always)]
    fn restore(self, from: &[Fp<MontBackend<T, 4>, 4>]) -> Packed52<LIMBS> {
        let from = &from[..2 * LIMBS];
        let mut value = self.zero();
        for i in 0..LIMBS {
            value.0[i] = self.ifma.load_fours(&from[2 * i].0.0, &from[2 * i + 1].0.0);
        }
        value
    }

    fn take_buffer(self, len: usize) -> Vec<Packed52<LIMBS>> {
        let buffer = BUFFER.take();
        if buffer.len() >= len {
            return buffer;
        }
        // A new buffer: growing the old one would move its content.
        drop(buffer);
        vec![self.unit(); len]
    }

    fn keep_buffer(self, buffer: Vec<Packed52<LIMBS>>) {
        if size_of_val(&buffer[..]) <= KEPT_BYTES_MAX {
            BUFFER.set(buffer);
        }
    }
}
