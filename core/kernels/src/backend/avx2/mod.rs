//! Montgomery arithmetic in four lanes of AVX2: a [`Limbs`] holds four elements as vectors of limbs of B
//! bits, 29 or 28, so that the product of two limbs takes one multiplication of 32 by 32 bits (VPMULUDQ).
//!
//! Algorithm: sums of the products of limbs and those of the reduction (R = 2^(B L)), in columns of weight
//! 2^(B i): row after row in assembly (`product`), column after column where columns are kept. Each but the
//! last of L rounds adds m (k p + 1) / 2^B for the lowest B bits m of a column, where k = -1/p modulo 2^B:
//! that saves the multiplication by k that each round of the textbook starts with. The carry of a finished
//! column goes to the next. Primes of 4 words have 9 limbs of 29 bits, and of 6 words 14 of 28 bits, in which
//! the top limb of a prime of 381 bits has enough for a quotient.
//!
//! Bounds, for primes below 2^255 (or 2^381), so p <= R / 64. A value is *carried* if all its limbs are below
//! 2^B, and the whole is below R. A *loose* one has limbs from 0 to 2^40, but for the top one, which may be
//! negative: there is no right shift of signed 64-bit words, so multiples of p that are added to differences
//! come in limbs of which each has borrowed 2^34 from the next ([`borrowed`]).
//! - A column has at most 2 L products of operands, of two products that are reduced together, L - 1 of the
//!   rounds, the last round's, and a carry: 3 L 2^(2 B) and 2^36. That is below 2^62.8 (or 2^61.5), and no
//!   addend is negative.
//! - For carried a and b with a b <= 32 p^2, the product is a b / R modulo p, below a b / R + 2p <= 3p: the
//!   first rounds add less than (1 + 2^-B + ..) p, the last less than p.
//! - In a square limbs are doubled before they are multiplied: below 2^(B + 1), and half as many of them.
//! - [`Columns`] of sums are carried once for each product: 64 products are below 2^41. Columns of
//!   differences may be negative, and reduction starts by borrowing 2^50.
//! - [`Prime::canonical`] takes values below 63 p, carried, or loose and not below p. Loose lower limbs count
//!   for less than 2^12 / 2^13 / 64 of a p, so that the rounded quotient leaves a remainder within 0.6 p
//!   of 0.
//!
//! Native limbs (N of 64 bits, R = 2^(64 N)) are moved in and out by transposing and shifting. Values that
//! wait in memory have two limbs to a word ([`Pairs`]). Primes out of range have no lanes here: their kernels
//! run one element at a time.
//!
//! What it pays beside the same kernels on words: `docs/performance.md`. Inverses are left to words: 1.1.
//! Memory: none.
// Limbs are walked by index in several arrays at once.
#![allow(clippy::needless_range_loop)]

mod butterfly;
mod instructions;
mod product;
mod sums;

use std::arch::x86_64::__m256i;
use std::array::from_fn;
use std::marker::PhantomData;

use ark_ff::{Fp, MontBackend, MontConfig};

pub(super) use butterfly::forget_buffers;
pub use instructions::Avx2;
use product::{Constants, Square, SumOfProducts};

use sums::{Add, Borrowing, Product};

use super::lanes::{Beside, Lanes, LoopPart};
use super::limbs::{Words, unrolled};
use super::radix::{Radix, mask, to_radix};
use crate::field::CoordinateField;

/// Lanes of a vector.
pub const WIDTH: usize = 4;

/// Steps of the work beside a product. They come before it, since its text is one block.
const BESIDE_STEPS: usize = 6;

/// log2 of what limbs borrow from the next in differences.
const BORROWED: usize = 34;

/// Four elements: vector i holds limb i of each.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Limbs<const L: usize>([__m256i; L]);

/// Four elements in memory: vector i holds limbs 2 i and 2 i + 1 of each.
#[derive(Clone, Copy)]
pub struct Pairs<const H: usize>([__m256i; H]);

/// Sums of products in columns of weight 2^(B i), before their reduction: the lower L and the upper L.
#[derive(Clone, Copy)]
pub struct Columns<const L: usize>([[__m256i; L]; 2]);

/// Four elements in native limbs: vector i holds the 64-bit limb i of each.
#[derive(Clone, Copy)]
pub struct Native<const N: usize>([__m256i; N]);

/// Four elements in native limbs: limbs 0 to 3 of each; if there are six, limbs 4 and 5 of elements 0 and 2,
/// and of 1 and 3.
#[derive(Clone, Copy)]
pub struct Transposed([__m256i; 6]);

/// The arithmetic of a prime field of N words in L limbs of B bits, H pairs.
pub struct Prime<T, const N: usize, const L: usize, const H: usize, const B: usize> {
    avx2: Avx2,
    field: PhantomData<fn() -> T>,
}

impl<T, const N: usize, const L: usize, const H: usize, const B: usize> Clone for Prime<T, N, L, H, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize, const L: usize, const H: usize, const B: usize> Copy for Prime<T, N, L, H, B> {}

/// Vectors of all ones where a bit of the index is one.
const MASKS: [[u64; WIDTH]; 1 << WIDTH] = {
    let mut masks = [[0; WIDTH]; 1 << WIDTH];
    let mut index = 0;
    while index < 1 << WIDTH {
        let mut lane = 0;
        while lane < WIDTH {
            if index >> lane & 1 == 1 {
                masks[index][lane] = u64::MAX;
            }
            lane += 1;
        }
        index += 1;
    }
    masks
};

/// Limb i of j times a number at [i][j], for each multiple j, where each limb has borrowed 2^`bits` from the
/// next.
const fn borrowed<const B: usize, const L: usize>(multiples: &[[u64; 8]; L], bits: usize) -> [[u64; 8]; L] {
    let mut borrowed = *multiples;
    let mut i = 0;
    while i < L {
        let mut j = 0;
        while j < 8 {
            if i + 1 < L {
                borrowed[i][j] = borrowed[i][j].wrapping_add(1 << bits);
            }
            if i > 0 {
                borrowed[i][j] = borrowed[i][j].wrapping_sub(1 << (bits - B));
            }
            j += 1;
        }
        i += 1;
    }
    borrowed
}

/// The lanes in which all limbs are equal.
#[inline(always)]
fn equal_limbs<const K: usize>(avx2: Avx2, a: &[__m256i; K], b: &[__m256i; K]) -> u8 {
    let mut equal = avx2.equal(a[0], b[0]);
    for i in 1..K {
        equal = avx2.and(equal, avx2.equal(a[i], b[i]));
    }
    avx2.bits(equal)
}

impl<T: MontConfig<N>, const N: usize, const L: usize, const H: usize, const B: usize> Prime<T, N, L, H, B> {
    const CONSTANTS: Option<Radix<B, L>> = Radix::new(T::MODULUS.0);
    const P: Radix<B, L> = match Self::CONSTANTS {
        Some(constants) => constants,
        // Never used: `new` gives no lanes then.
        None => Radix::UNUSED,
    };
    const CONSTANTS_IN_LANES: Constants<L> = Constants::new::<B>(&Self::P);
    /// For differences.
    const MULTIPLES: [[u64; 8]; L] = borrowed::<B, L>(&Self::P.multiples, BORROWED);
    /// The same of 4 p.
    const FOURS: [[u64; 8]; L] = borrowed::<B, L>(&Self::P.fours, BORROWED);
    /// p, less which a carried value has no negative limb but the last.
    const NEGATED: [[u64; 8]; L] = borrowed::<B, L>(&Self::P.multiples, B);
    /// [`Lanes::SHIFT`].
    const SHIFT_BITS: usize = L * B - N * 64;
    /// Bits of a top limb's product with a quotient that are below the quotient by p.
    const QUOTIENT_BITS: usize = B - 2 + Self::P.top_bits as usize;

    pub(super) fn new(avx2: Avx2) -> Option<Self> {
        // A top limb of a value below 63 p, with its quotient in 32 bits.
        let fits = Self::CONSTANTS.is_some_and(|constants| constants.roomy);
        fits.then_some(Self {
            avx2,
            field: PhantomData,
        })
    }

    #[inline(always)]
    fn zero(self) -> Limbs<L> {
        Limbs([self.avx2.word(0); L])
    }

    #[inline(always)]
    fn sum_of_products<const K: usize>(self, a: [&Limbs<L>; K], b: [&Limbs<L>; K]) -> Limbs<L> {
        let constants = &Self::CONSTANTS_IN_LANES;
        self.avx2.run(SumOfProducts::<K, L, B> { a, b, constants })
    }

    /// Four vectors of four words, transposed.
    #[inline(always)]
    fn transposed(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        let avx2 = self.avx2;
        let (ab, cd) = (avx2.interleave_low(a, b), avx2.interleave_low(c, d));
        let (ab_odd, cd_odd) = (avx2.interleave_high(a, b), avx2.interleave_high(c, d));
        [
            avx2.low_halves(ab, cd),
            avx2.low_halves(ab_odd, cd_odd),
            avx2.high_halves(ab, cd),
            avx2.high_halves(ab_odd, cd_odd),
        ]
    }

    /// The upper columns of kept ones after L rounds of reduction, which took the lower ones to zero: loose,
    /// with the carry from below.
    #[inline(always)]
    fn reduced_loose(self, columns: &Columns<L>) -> Limbs<L> {
        let avx2 = self.avx2;
        let sums = Borrowing::<L, B> { avx2, columns };
        let limb_mask = avx2.word(mask::<B>());
        let (mut rounds, mut carry) = (self.zero(), avx2.word(0));
        unrolled!(k below L in {
            let mut column = avx2.plus(sums.column(k), carry);
            // The newest round last: all the others are there already.
            unrolled!(i below L in {
                if i < k {
                    let term = avx2.product(rounds.0[i], avx2.word(Self::P.round[(k - i).wrapping_sub(1)]));
                    column = avx2.plus(column, term);
                }
            });
            if k < L - 1 {
                rounds.0[k] = avx2.and(column, limb_mask);
            } else {
                let factor = avx2.product(column, avx2.word(Self::P.inverse));
                rounds.0[k] = avx2.and(factor, limb_mask);
                column = avx2.plus(column, avx2.product(rounds.0[k], avx2.word(Self::P.modulus[0])));
            }
            carry = avx2.shift_right(column, B);
        });
        let mut upper = self.zero();
        unrolled!(k below L in {
            let mut column = sums.column(L + k);
            if k == 0 {
                column = avx2.plus(column, carry);
            }
            unrolled!(i below L in {
                if i >= k && i < L - 1 {
                    let term = avx2.product(rounds.0[i], avx2.word(Self::P.round[(L + k).wrapping_sub(1 + i)]));
                    column = avx2.plus(column, term);
                }
            });
            if k < L - 1 {
                let term = avx2.product(rounds.0[L - 1], avx2.word(Self::P.modulus[k + 1]));
                column = avx2.plus(column, term);
            }
            upper.0[k] = column;
        });
        upper
    }

    /// A loose value modulo R, carried.
    #[inline(always)]
    fn cut(self, a: Limbs<L>) -> Limbs<L> {
        let mut cut = self.carry(a);
        cut.0[L - 1] = self.avx2.and(cut.0[L - 1], self.avx2.word(mask::<B>()));
        cut
    }

    #[inline(always)]
    fn carry(self, mut a: Limbs<L>) -> Limbs<L> {
        let limb_mask = self.avx2.word(mask::<B>());
        for i in 0..L - 1 {
            let carry = self.avx2.shift_right(a.0[i], B);
            a.0[i + 1] = self.avx2.plus(a.0[i + 1], carry);
            a.0[i] = self.avx2.and(a.0[i], limb_mask);
        }
        a
    }

    /// `a - quotient * p` modulo R, loose.
    #[inline(always)]
    fn less(self, a: &Limbs<L>, quotient: __m256i) -> Limbs<L> {
        let mut less = *a;
        for i in 0..L {
            let term = self.avx2.product(quotient, self.avx2.word(Self::P.negative[i]));
            less.0[i] = self.avx2.plus(a.0[i], term);
        }
        less
    }

    /// `a - b` and multiples of p in limbs that have borrowed.
    #[inline(always)]
    fn apart(self, a: &Limbs<L>, b: &Limbs<L>, multiples: &[[u64; 8]; L], multiple: usize) -> Limbs<L> {
        let mut apart = *a;
        for i in 0..L {
            let offset = self.avx2.word(multiples[i][multiple]);
            apart.0[i] = self.avx2.minus(self.avx2.plus(a.0[i], offset), b.0[i]);
        }
        apart
    }

    /// A carried value in pairs of limbs.
    #[inline(always)]
    fn pairs(self, a: &Limbs<L>) -> Pairs<H> {
        let mut pairs = Pairs([self.avx2.word(0); H]);
        for i in 0..H {
            pairs.0[i] = a.0[2 * i];
            if 2 * i + 1 < L {
                pairs.0[i] = self.avx2.or(pairs.0[i], self.avx2.shift_left(a.0[2 * i + 1], 32));
            }
        }
        pairs
    }

    #[inline(always)]
    fn limbs(self, pairs: &Pairs<H>) -> Limbs<L> {
        let mut limbs = self.zero();
        let limb_mask = self.avx2.word(mask::<B>());
        for i in 0..H {
            if 2 * i + 1 < L {
                limbs.0[2 * i] = self.avx2.and(pairs.0[i], limb_mask);
                limbs.0[2 * i + 1] = self.avx2.shift_right(pairs.0[i], 32);
            } else {
                limbs.0[2 * i] = pairs.0[i];
            }
        }
        limbs
    }

    #[inline(always)]
    fn lanes_of(self, mask: u8) -> __m256i {
        self.avx2.load(&MASKS[usize::from(mask) % MASKS.len()])
    }
}

impl<T: MontConfig<N>, const N: usize, const L: usize, const H: usize, const B: usize>
    Lanes<Fp<MontBackend<T, N>, N>, WIDTH> for Prime<T, N, L, H, B>
where
    Fp<MontBackend<T, N>, N>: CoordinateField<Prime = Fp<MontBackend<T, N>, N>>,
{
    type Native = Native<N>;
    type Value = Limbs<L>;
    type Kept = Pairs<H>;
    type Columns = Columns<L>;
    type Transposed = Transposed;
    type Prime = Self;
    const CHAINS: usize = 2;
    const SHIFT: u32 = Self::SHIFT_BITS as u32;
    const EXTENSION: bool = false;
    const COLUMNS: bool = false;

    #[inline(always)]
    fn prime(self) -> Self {
        self
    }

    #[inline(always)]
    fn outlined<K: LoopPart>(self, part: K) -> K::Output {
        self.avx2.run(part)
    }

    #[inline(always)]
    fn gather(self, from: [&Fp<MontBackend<T, N>, N>; WIDTH]) -> Native<N> {
        let avx2 = self.avx2;
        let mut native = Native([avx2.word(0); N]);
        let first = |lane: usize| from[lane].0.0.first_chunk::<4>().unwrap_or(&[0; 4]);
        let [a, b, c, d]: [&[u64; 4]; WIDTH] = from_fn(first);
        let words = [avx2.load(a), avx2.load(b), avx2.load(c), avx2.load(d)];
        native.0[..4].copy_from_slice(&self.transposed(words));
        if N == 6 {
            let last = |lane: usize| from[lane].0.0.last_chunk::<2>().unwrap_or(&[0; 2]);
            let [a, b, c, d]: [&[u64; 2]; WIDTH] = from_fn(last);
            let (even, odd) = (avx2.load_pairs(a, c), avx2.load_pairs(b, d));
            native.0[4 % N] = avx2.interleave_low(even, odd);
            native.0[5 % N] = avx2.interleave_high(even, odd);
        }
        native
    }

    #[inline(always)]
    fn unpack(self, values: &Native<N>) -> Limbs<L> {
        Limbs(self.avx2.spread::<N, L, B>(&values.0, 0))
    }

    #[inline(always)]
    fn unpack_shifted(self, values: &Native<N>) -> Limbs<L> {
        Limbs(self.avx2.spread::<N, L, B>(&values.0, Self::SHIFT_BITS))
    }

    #[inline(always)]
    fn splat(self, value: &Fp<MontBackend<T, N>, N>) -> Limbs<L> {
        Limbs(self.avx2.words(&to_radix::<B, N, L>(value.0.0)))
    }

    #[inline(always)]
    fn keep(self, value: &Limbs<L>) -> Pairs<H> {
        self.pairs(value)
    }

    #[inline(always)]
    fn kept(self, value: &Pairs<H>) -> Limbs<L> {
        self.limbs(value)
    }

    #[inline(always)]
    fn rows(self, value: &Limbs<L>) -> Transposed {
        let avx2 = self.avx2;
        let words = avx2.packed::<N, L, B>(&value.0);
        let [a, b, c, d] = self.transposed([words[0], words[1], words[2], words[3]]);
        let mut rows = Transposed([a, b, c, d, avx2.word(0), avx2.word(0)]);
        if N == 6 {
            rows.0[4] = avx2.interleave_low(words[4 % N], words[5 % N]);
            rows.0[5] = avx2.interleave_high(words[4 % N], words[5 % N]);
        }
        rows
    }

    #[inline(always)]
    fn store_row(self, rows: &Transposed, lane: usize, to: &mut Fp<MontBackend<T, N>, N>) {
        let words = &mut to.0.0;
        if let Some(first) = words.first_chunk_mut::<4>() {
            self.avx2.store(rows.0[lane], first);
        }
        if N == 6
            && let Some(last) = words.last_chunk_mut::<2>()
        {
            let pairs = rows.0[4 + (lane & 1)];
            match lane / 2 {
                0 => self.avx2.store_low(pairs, last),
                _ => self.avx2.store_high(pairs, last),
            }
        }
    }

    #[inline(always)]
    fn prefetch<V>(self, value: &V) {
        self.avx2.prefetch_all(value);
    }

    #[inline(always)]
    fn product_beside(self, a: &Limbs<L>, b: &Limbs<L>, beside: &mut impl Beside) -> Limbs<L> {
        unrolled!(step below BESIDE_STEPS in {
            beside.step(step, BESIDE_STEPS);
        });
        self.product(a, b)
    }

    #[inline(always)]
    fn product(self, a: &Limbs<L>, b: &Limbs<L>) -> Limbs<L> {
        self.sum_of_products([a], [b])
    }

    #[inline(always)]
    fn square(self, a: &Limbs<L>) -> Limbs<L> {
        let constants = &Self::CONSTANTS_IN_LANES;
        self.avx2.run(Square::<L, B> { a, constants })
    }

    #[inline(always)]
    fn two_products(self, a: [&Limbs<L>; 2], b: [&Limbs<L>; 2]) -> Limbs<L> {
        self.sum_of_products(a, b)
    }

    #[inline(always)]
    fn no_columns(self) -> Columns<L> {
        Columns([[self.avx2.word(0); L]; 2])
    }

    #[inline(always)]
    fn add_product(self, columns: &mut Columns<L>, a: &Limbs<L>, b: &Limbs<L>) {
        let avx2 = self.avx2;
        let product = Product { avx2, a, b };
        avx2.run(Add::<L, B> { columns, product });
    }

    #[inline(always)]
    fn columns_difference(self, a: &Columns<L>, b: &Columns<L>) -> Columns<L> {
        let ([a, b], [c, d]) = (&a.0, &b.0);
        Columns([self.avx2.differences(a, c), self.avx2.differences(b, d)])
    }

    #[inline(always)]
    fn reduced(self, columns: &Columns<L>) -> Limbs<L> {
        self.reduced_above(columns, 0)
    }

    #[inline(always)]
    fn reduced_above(self, columns: &Columns<L>, multiple: usize) -> Limbs<L> {
        let avx2 = self.avx2;
        let mut loose = self.reduced_loose(columns);
        for i in 0..L {
            loose.0[i] = avx2.plus(loose.0[i], avx2.word(Self::P.multiples[i][multiple]));
        }
        self.carry(loose)
    }

    #[inline(always)]
    fn sum(self, a: &Limbs<L>, b: &Limbs<L>) -> Limbs<L> {
        Limbs(self.avx2.sums(&a.0, &b.0))
    }

    #[inline(always)]
    fn difference(self, a: &Limbs<L>, b: &Limbs<L>, multiple: usize) -> Limbs<L> {
        self.apart(a, b, &Self::MULTIPLES, multiple)
    }

    #[inline(always)]
    fn signed(self, a: &Limbs<L>, mask: u8) -> Limbs<L> {
        let negated = self.apart(&self.zero(), a, &Self::NEGATED, 1);
        self.blend(mask, &negated, a)
    }

    #[inline(always)]
    fn half_shifted(self, a: &Limbs<L>) -> Limbs<L> {
        let mut shifted = *a;
        for i in 0..L {
            shifted.0[i] = self.avx2.shift_left(a.0[i], Self::SHIFT_BITS.div_ceil(2));
        }
        self.carry(shifted)
    }

    #[inline(always)]
    fn carried(self, a: Limbs<L>) -> Limbs<L> {
        self.carry(a)
    }

    #[inline(always)]
    fn canonical(self, a: Limbs<L>) -> Limbs<L> {
        let avx2 = self.avx2;
        let half = avx2.word(1 << (Self::QUOTIENT_BITS - 1));
        let quotient = avx2.product(a.0[L - 1], avx2.word(Self::P.quotient));
        let quotient = avx2.shift_right(avx2.plus(quotient, half), Self::QUOTIENT_BITS);
        let mut a = self.cut(self.less(&a, quotient));
        // A negative remainder has the top bit of R.
        let negative = avx2.negative(avx2.shift_left(a.0[L - 1], 64 - B));
        for i in 0..L {
            let correction = avx2.and(negative, avx2.word(Self::P.modulus[i]));
            a.0[i] = avx2.plus(a.0[i], correction);
        }
        self.cut(a)
    }

    #[inline(always)]
    fn norm(self, a: &Limbs<L>) -> Limbs<L> {
        *a
    }

    #[inline(always)]
    fn over_norm(self, _: &Limbs<L>, inverse: &Limbs<L>) -> Limbs<L> {
        *inverse
    }

    #[inline(always)]
    fn zeros(self, a: &Native<N>) -> u8 {
        let mut any = a.0[0];
        for i in 1..N {
            any = self.avx2.or(any, a.0[i]);
        }
        self.avx2.bits(self.avx2.equal(any, self.avx2.word(0)))
    }

    #[inline(always)]
    fn equals(self, a: &Native<N>, b: &Native<N>) -> u8 {
        equal_limbs(self.avx2, &a.0, &b.0)
    }

    #[inline(always)]
    fn same(self, a: &Limbs<L>, b: &Limbs<L>) -> u8 {
        equal_limbs(self.avx2, &a.0, &b.0)
    }

    #[inline(always)]
    fn unit(self) -> Limbs<L> {
        let mut unit = self.zero();
        unit.0[0] = self.avx2.word(1);
        unit
    }

    #[inline(always)]
    fn blend(self, mask: u8, a: &Limbs<L>, b: &Limbs<L>) -> Limbs<L> {
        let lanes = self.lanes_of(mask);
        let mut blended = *b;
        for i in 0..L {
            blended.0[i] = self.avx2.select(lanes, a.0[i], b.0[i]);
        }
        blended
    }

    #[inline(always)]
    fn exchanged(self, a: &Limbs<L>, step: usize) -> Limbs<L> {
        let mut exchanged = *a;
        for i in 0..L {
            exchanged.0[i] = match step {
                1 => self.avx2.neighbours_swapped(a.0[i]),
                _ => self.avx2.halves_swapped(a.0[i]),
            };
        }
        exchanged
    }
}
