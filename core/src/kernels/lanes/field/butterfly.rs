//! Butterflies in eight lanes.
//!
//! Algorithm: a product with a known factor w takes its quotient by p from 2^260 w / p, which is known too (Shoup's trick; Harvey,
//! *Faster arithmetic for number-theoretic transforms*, 2014, section 2), with the upper columns of that product alone: 75
//! multiply-adds, where [`Lanes::product`] takes 101. Butterflies of two layers at once, so that values are loaded, carried and
//! stored half as often.
//!
//! Bounds, for a prime with 63 p < 2^260 ([`Radix52::roomy`]). A *scaled* value lies below 11 p: of the quotient's columns,
//! those below 2^260 are left out, nine terms below 2^260 and less than one more, and rounding counts for one. It is known
//! modulo 2^260, in columns that are loose; what is made of it is [`Lanes::cut`]. Between layers values are carried and below
//! 29 p. *Lowered*, they are loose and below 5 p.

use super::{Eight, LIMBS, Lanes};
use crate::kernels::field::KernelField;
use crate::kernels::lanes::Factor;
use crate::kernels::lanes::radix::LIMB_MASK;

/// 8 p, 12 p and 16 p, by their places in `Radix52::fours`.
const EIGHT: usize = 2;
const TWELVE: usize = 3;
const SIXTEEN: usize = 4;

impl<F: KernelField> Lanes<F> {
    /// `a * w` modulo p and modulo 2^260, for carried `a`: see the bounds above.
    #[inline(always)]
    fn scaled(self, a: &Eight, factor: &Factor) -> Eight {
        let zero = self.word(0);
        let mut quotient = Eight([zero; LIMBS]);
        for i in 0..LIMBS {
            let word = self.word(factor.quotient[i]);
            for j in LIMBS - 1 - i..LIMBS {
                let column = i + j + 1 - LIMBS;
                quotient.0[column] = self.high(quotient.0[column], a.0[j], word);
                if column > 0 {
                    quotient.0[column - 1] = self.low(quotient.0[column - 1], a.0[j], word);
                }
            }
        }
        let quotient = self.carried(quotient);
        let mut scaled = Eight([zero; LIMBS]);
        for i in 0..LIMBS {
            let word = self.word(factor.value[i]);
            for j in 0..LIMBS - i {
                scaled.0[i + j] = self.low(scaled.0[i + j], a.0[j], word);
                if i + j + 1 < LIMBS {
                    scaled.0[i + j + 1] = self.high(scaled.0[i + j + 1], a.0[j], word);
                }
            }
        }
        for i in 0..LIMBS {
            let word = self.word(Self::CONSTANTS.negative[i]);
            for j in 0..LIMBS - i {
                scaled.0[i + j] = self.low(scaled.0[i + j], quotient.0[j], word);
                if i + j + 1 < LIMBS {
                    scaled.0[i + j + 1] = self.high(scaled.0[i + j + 1], quotient.0[j], word);
                }
            }
        }
        scaled
    }

    /// A loose value modulo 2^260, carried.
    #[inline(always)]
    fn cut(self, a: Eight) -> Eight {
        let mut cut = self.carried(a);
        cut.0[LIMBS - 1] = self.and(cut.0[LIMBS - 1], self.word(LIMB_MASK));
        cut
    }

    /// A carried value below 32 p, less a multiple of 4 p: below 5 p, loose, its top limb not negative.
    #[inline(always)]
    pub(crate) fn lowered(self, a: &Eight) -> Eight {
        let constants = Self::CONSTANTS;
        let top = self.high(self.word(0), a.0[4], self.word(constants.quotient_low));
        let quotient = self.shift_right::<46>(top);
        let mut lowered = *a;
        for i in 0..LIMBS {
            lowered.0[i] = self.minus(a.0[i], self.lookup(quotient, &constants.fours[i]));
        }
        lowered
    }

    /// `a - b + 4 multiple p`, loose.
    #[inline(always)]
    fn apart(self, a: &Eight, b: &Eight, multiple: usize) -> Eight {
        let mut apart = *a;
        for i in 0..LIMBS {
            let offset = self.word(Self::CONSTANTS.fours[i][multiple]);
            apart.0[i] = self.minus(self.plus(a.0[i], offset), b.0[i]);
        }
        apart
    }

    /// `a + b`, for carried operands whose sum is below 32 p: carried, below 5 p.
    #[inline(always)]
    pub(crate) fn sum_lowered(self, a: &Eight, b: &Eight) -> Eight {
        // Not carried, the top limb is too small if anything, and so is the quotient: by less than the bound has to spare.
        self.carried(self.lowered(&self.sum(a, b)))
    }

    /// `a - b`, for carried operands below 16 p: carried, below 5 p.
    #[inline(always)]
    pub(crate) fn difference_lowered(self, a: &Eight, b: &Eight) -> Eight {
        self.carried(self.lowered(&self.carried(self.apart(a, b, SIXTEEN))))
    }

    /// `-a`, for a carried operand below 16 p: carried, below 5 p.
    #[inline(always)]
    pub(crate) fn negative_lowered(self, a: &Eight) -> Eight {
        self.difference_lowered(&Eight([self.word(0); LIMBS]), a)
    }

    /// The limbs, in the room of ten elements.
    #[inline(always)]
    pub(crate) fn store_words(self, value: &Eight, to: &mut [F]) {
        if let Some(to) = to.first_chunk_mut::<10>() {
            for (limb, pair) in value.0.iter().zip(to.chunks_exact_mut(2)) {
                let (low, high) = pair.split_at_mut(1);
                self.store_low(*limb, low[0].montgomery_limbs_mut());
                self.store_high(*limb, high[0].montgomery_limbs_mut());
            }
        }
    }

    /// The reverse of [`Self::store_words`]. Panics if there are fewer elements.
    #[inline(always)]
    pub(crate) fn load_words(self, from: &[F]) -> Eight {
        let from = &from[..10];
        let mut value = Eight([self.word(0); LIMBS]);
        for i in 0..LIMBS {
            value.0[i] = self.load_pair(from[2 * i].montgomery_limbs(), from[2 * i + 1].montgomery_limbs());
        }
        value
    }

    /// `a * w`, carried, below 11 p.
    #[inline(always)]
    pub(crate) fn scaled_by(self, a: &Eight, factor: &Factor) -> Eight {
        self.cut(self.scaled(a, factor))
    }

    /// One layer of a first group, whose factor is 1: `(low + high, low - high)`.
    #[inline(always)]
    pub(crate) fn butterfly_one(self, low: &mut Eight, high: &mut Eight) {
        let (a, b) = (self.lowered(low), self.lowered(high));
        *low = self.cut(self.sum(&a, &b));
        *high = self.cut(self.apart(&a, &b, EIGHT));
    }

    /// Two layers: with `factors[0]`, values 0 and 2, and 1 and 3; then with `factors[1]` 0 and 1, with `factors[2]` 2 and 3.
    #[inline(always)]
    pub(crate) fn two_layers(self, values: [&mut Eight; 4], factors: [&Factor; 3]) {
        let [v0, v1, v2, v3] = values;
        let third = self.scaled(v3, factors[0]);
        let b1 = self.cut(self.sum(v1, &third));
        let b3 = self.cut(self.apart(v1, &third, TWELVE));
        let second = self.scaled(v2, factors[0]);
        let first = self.lowered(v0);
        let b0 = self.sum(&first, &second);
        let b2 = self.apart(&first, &second, TWELVE);
        let product = self.scaled(&b1, factors[1]);
        *v0 = self.cut(self.sum(&b0, &product));
        *v1 = self.cut(self.apart(&b0, &product, TWELVE));
        let product = self.scaled(&b3, factors[2]);
        *v2 = self.cut(self.sum(&b2, &product));
        *v3 = self.cut(self.apart(&b2, &product, TWELVE));
    }

    /// [`Self::two_layers`] of a first group, where all factors but the last are 1.
    #[inline(always)]
    pub(crate) fn two_layers_one(self, values: [&mut Eight; 4], factor: &Factor) {
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
        let product = self.scaled(&b3, factor);
        *v0 = self.cut(self.sum(&b0, &b1));
        *v1 = self.cut(self.apart(&b0, &b1, TWELVE));
        *v2 = self.cut(self.sum(&b2, &product));
        *v3 = self.cut(self.apart(&b2, &product, TWELVE));
    }
}
