//! Montgomery arithmetic in eight lanes: an [`Eight`] holds eight elements as five vectors of 52-bit limbs.
//!
//! Algorithm: the product of five by five limbs in columns, then five rounds of Montgomery reduction (R = 2^260), of which the
//! first four add m (k p + 1) / 2^52 for the lowest limb m as it is, where k = -1/p modulo 2^52: that saves the
//! multiplication by k that each round of the textbook starts with (limbs shorter than the words, summed in columns: Gueron
//! and Krasnov, *Software implementation of modular exponentiation, using advanced vector instructions architectures*, 2012).
//!
//! Bounds. A value is *carried* if limbs 0 to 3 are below 2^52 and the whole below 2^260: what the multiplier takes and
//! gives. Otherwise limbs are signed words of at most 2^58 in size ("loose"). For carried a and b with a b <= 32 p^2, and
//! p < 2^255 = R / 32, the product is a b / R modulo p, below a b / R + 2p <= 3p: the four rounds add less than
//! (1 + 2^-52 + ..) p, the fifth less than p. Columns hold at most 20 terms below 2^52 and a carry: no overflow.
//! [`Lanes::settled`] takes loose values from 0 to 7p whose top limb is not negative and gives what lies below p.
//!
//! Native limbs (four of 64 bits, R = 2^256) are moved in and out by transposing and shifting; what R = 2^260 makes of
//! them is the caller's to follow: native a R and b R give a b R / 16. Memory: none.
#![allow(unsafe_code)]
// Five limbs are walked by index in several arrays at once.
#![allow(clippy::needless_range_loop)]

mod butterfly;

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::Ifma;
use super::radix::{LIMB_MASK, Radix52, to_radix_52};
use crate::kernels::field::KernelField;

const LIMBS: usize = 5;

/// Eight elements: vector i holds limb i of each.
#[derive(Clone, Copy)]
pub(crate) struct Eight([__m512i; LIMBS]);

/// Sums of products in columns of weight 2^(52 i), before their reduction.
pub(crate) type Columns = [__m512i; 2 * LIMBS];

/// Eight elements in native limbs: vector i holds the 64-bit limb i of each.
#[derive(Clone, Copy)]
pub(crate) struct Native([__m512i; 4]);

/// Eight elements in native limbs, an element in half a vector.
#[derive(Clone, Copy)]
pub(crate) struct Rows([__m512i; 4]);

/// Work that is done while a product is made: the multiplier is busy then, and what looks ahead in a processor sees less than a
/// product's instructions, so that both go side by side only if they are written side by side.
pub(crate) trait Beside {
    /// Part `step` of [`STEPS`], which come in order.
    fn step(&mut self, step: usize);
}

impl Beside for () {
    #[inline(always)]
    fn step(&mut self, _: usize) {}
}

/// Calls of [`Beside::step`] in a product.
pub(crate) const STEPS: usize = 2 * LIMBS;

/// The arithmetic of the field `F` in lanes.
pub(crate) struct Lanes<F> {
    _ifma: Ifma,
    field: PhantomData<F>,
}

impl<F> Clone for Lanes<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Lanes<F> {}

/// One instruction as a method of [`Lanes`]: callable only where there is an [`Ifma`].
macro_rules! instruction {
    ($name:ident$(<$bits:ident>)?($($argument:ident: $type:ty),*) -> $result:ty = $intrinsic:expr) => {
        #[inline(always)]
        fn $name$(<const $bits: u32>)?(self, $($argument: $type),*) -> $result {
            // SAFETY: needs AVX-512 F, DQ or IFMA and no more, and `self` holds an `Ifma`: the processor has them.
            unsafe { $intrinsic }
        }
    };
}

impl<F> Lanes<F> {
    instruction!(word(value: u64) -> __m512i = _mm512_set1_epi64(value as i64));
    instruction!(plus(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi64(a, b));
    instruction!(minus(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi64(a, b));
    instruction!(plus_where(mask: u8, a: __m512i, b: __m512i) -> __m512i = _mm512_mask_add_epi64(a, mask, a, b));
    instruction!(minus_where(mask: u8, otherwise: __m512i, a: __m512i, b: __m512i) -> __m512i
        = _mm512_mask_sub_epi64(otherwise, mask, a, b));
    instruction!(select(mask: u8, a: __m512i, b: __m512i) -> __m512i = _mm512_mask_mov_epi64(b, mask, a));
    instruction!(and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b));
    instruction!(or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b));
    instruction!(low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_madd52lo_epu64(sum, a, b));
    instruction!(high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_madd52hi_epu64(sum, a, b));
    instruction!(negative(a: __m512i) -> u8 = _mm512_movepi64_mask(a));
    instruction!(zero(a: __m512i) -> u8 = _mm512_testn_epi64_mask(a, a));
    instruction!(equal_where(mask: u8, a: __m512i, b: __m512i) -> u8 = _mm512_mask_cmpeq_epi64_mask(mask, a, b));
    instruction!(lookup(index: __m512i, table: &[u64; 8]) -> __m512i
        = _mm512_permutexvar_epi64(index, _mm512_loadu_si512(table.as_ptr().cast())));
    instruction!(load(words: &[u64; 8]) -> __m512i = _mm512_loadu_si512(words.as_ptr().cast()));
    instruction!(load_pair(low: &[u64; 4], high: &[u64; 4]) -> __m512i = _mm512_inserti64x4::<1>(
        _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast())),
        _mm256_loadu_si256(high.as_ptr().cast()),
    ));
    instruction!(store_low(a: __m512i, words: &mut [u64; 4]) -> ()
        = _mm256_storeu_si256(words.as_mut_ptr().cast(), _mm512_castsi512_si256(a)));
    instruction!(store_high(a: __m512i, words: &mut [u64; 4]) -> ()
        = _mm256_storeu_si256(words.as_mut_ptr().cast(), _mm512_extracti64x4_epi64::<1>(a)));
    instruction!(interleave_low(a: __m512i, b: __m512i) -> __m512i = _mm512_unpacklo_epi64(a, b));
    instruction!(interleave_high(a: __m512i, b: __m512i) -> __m512i = _mm512_unpackhi_epi64(a, b));
    instruction!(even_pairs(a: __m512i, b: __m512i) -> __m512i = _mm512_shuffle_i64x2::<0x88>(a, b));
    instruction!(odd_pairs(a: __m512i, b: __m512i) -> __m512i = _mm512_shuffle_i64x2::<0xdd>(a, b));
    instruction!(permute_two(a: __m512i, index: __m512i, b: __m512i) -> __m512i
        = _mm512_permutex2var_epi64(a, index, b));
    instruction!(shift_left<BITS>(a: __m512i) -> __m512i = _mm512_slli_epi64::<BITS>(a));
    instruction!(shift_right<BITS>(a: __m512i) -> __m512i = _mm512_srli_epi64::<BITS>(a));
    instruction!(shift_right_signed<BITS>(a: __m512i) -> __m512i = _mm512_srai_epi64::<BITS>(a));
}

/// The conversions, and what the additions of points need.
impl<F: KernelField> Lanes<F> {
    const CONSTANTS: Radix52 = match F::RADIX_52 {
        Some(constants) => constants,
        // Never used: `new` gives no `Lanes` then.
        None => Radix52::UNUSED,
    };

    /// The arithmetic, if the field is of the right size.
    pub(crate) fn new(ifma: Ifma) -> Option<Self> {
        F::RADIX_52.map(|_| Self {
            _ifma: ifma,
            field: PhantomData,
        })
    }

    /// Eight elements' native limbs, by places in any memory.
    #[inline(always)]
    pub(crate) fn gather(self, from: [&F; 8]) -> Native {
        // No closures in here, as everywhere in lanes: they are not compiled for the instructions, and so not inlined.
        let [f0, f1, f2, f3, f4, f5, f6, f7] = from;
        let pair = (f0.montgomery_limbs(), f2.montgomery_limbs());
        let a = self.load_pair(pair.0, pair.1);
        let pair = (f1.montgomery_limbs(), f3.montgomery_limbs());
        let b = self.load_pair(pair.0, pair.1);
        let pair = (f4.montgomery_limbs(), f6.montgomery_limbs());
        let c = self.load_pair(pair.0, pair.1);
        let pair = (f5.montgomery_limbs(), f7.montgomery_limbs());
        let d = self.load_pair(pair.0, pair.1);
        let (ab, cd) = (self.interleave_low(a, b), self.interleave_low(c, d));
        let (ab_odd, cd_odd) = (self.interleave_high(a, b), self.interleave_high(c, d));
        Native([
            self.even_pairs(ab, cd),
            self.even_pairs(ab_odd, cd_odd),
            self.odd_pairs(ab, cd),
            self.odd_pairs(ab_odd, cd_odd),
        ])
    }

    /// The reverse of [`Self::gather`]: element i goes to `to[i]`.
    #[inline(always)]
    pub(crate) fn scatter(self, values: &Native, to: &mut [F; 8]) {
        let [t0, t1, t2, t3, t4, t5, t6, t7] = to;
        self.scatter_to(values, [t0, t1, t2, t3, t4, t5, t6, t7]);
    }

    /// [`Self::scatter`] to places in any memory.
    #[inline(always)]
    pub(crate) fn scatter_to(self, values: &Native, to: [&mut F; 8]) {
        let Native([l0, l1, l2, l3]) = *values;
        let first = self.load(&[0, 1, 8, 9, 2, 3, 10, 11]);
        let second = self.load(&[4, 5, 12, 13, 6, 7, 14, 15]);
        let (low, high) = (self.interleave_low(l0, l1), self.interleave_low(l2, l3));
        let (low_odd, high_odd) = (self.interleave_high(l0, l1), self.interleave_high(l2, l3));
        let [t0, t1, t2, t3, t4, t5, t6, t7] = to;
        for (pair, low_to, high_to) in [
            (self.permute_two(low, first, high), t0, t2),
            (self.permute_two(low, second, high), t4, t6),
            (self.permute_two(low_odd, first, high_odd), t1, t3),
            (self.permute_two(low_odd, second, high_odd), t5, t7),
        ] {
            self.store_low(pair, low_to.montgomery_limbs_mut());
            self.store_high(pair, high_to.montgomery_limbs_mut());
        }
    }

    /// Lanes to rows, each an element's limbs.
    #[inline(always)]
    pub(crate) fn rows(self, values: &Native) -> Rows {
        let Native([l0, l1, l2, l3]) = *values;
        let first = self.load(&[0, 1, 8, 9, 2, 3, 10, 11]);
        let second = self.load(&[4, 5, 12, 13, 6, 7, 14, 15]);
        let (low, high) = (self.interleave_low(l0, l1), self.interleave_low(l2, l3));
        let (low_odd, high_odd) = (self.interleave_high(l0, l1), self.interleave_high(l2, l3));
        Rows([
            self.permute_two(low, first, high),
            self.permute_two(low_odd, first, high_odd),
            self.permute_two(low, second, high),
            self.permute_two(low_odd, second, high_odd),
        ])
    }

    /// Row `lane` (below 8) to its place in memory.
    #[inline(always)]
    pub(crate) fn store_row(self, rows: &Rows, lane: usize, to: &mut F) {
        // Vectors hold rows 0 and 2, 1 and 3, 4 and 6, 5 and 7.
        let vector = rows.0[(lane & 1) + lane / 4 * 2];
        if lane & 2 == 0 {
            self.store_low(vector, to.montgomery_limbs_mut());
        } else {
            self.store_high(vector, to.montgomery_limbs_mut());
        }
    }

    /// From native limbs: the same integers, carried.
    #[inline(always)]
    pub(crate) fn unpack(self, values: &Native) -> Eight {
        let Native([l0, l1, l2, l3]) = *values;
        let mask = self.word(LIMB_MASK);
        Eight([
            self.and(l0, mask),
            self.and(
                self.or(self.shift_right::<52>(l0), self.shift_left::<12>(l1)),
                mask,
            ),
            self.and(
                self.or(self.shift_right::<40>(l1), self.shift_left::<24>(l2)),
                mask,
            ),
            self.and(
                self.or(self.shift_right::<28>(l2), self.shift_left::<36>(l3)),
                mask,
            ),
            self.shift_right::<16>(l3),
        ])
    }

    /// Eight neighbouring elements' native limbs. Panics if there are fewer.
    #[inline(always)]
    pub(crate) fn gather_run(self, from: &[F]) -> Native {
        let from = &from[..8];
        self.gather([
            &from[0], &from[1], &from[2], &from[3], &from[4], &from[5], &from[6], &from[7],
        ])
    }

    /// The reverse of [`Self::gather_run`], of a carried value below 2^256.
    #[inline(always)]
    pub(crate) fn store_run(self, value: &Eight, to: &mut [F]) {
        if let Some(to) = to.first_chunk_mut() {
            self.scatter(&self.pack(value), to);
        }
    }

    /// From native limbs of values below 2^256: 16 times the same integers, carried. A product with that is one of native
    /// limbs: `16 a * b / 2^260`.
    #[inline(always)]
    pub(crate) fn unpack_sixteenfold(self, values: &Native) -> Eight {
        let Native([l0, l1, l2, l3]) = *values;
        let mask = self.word(LIMB_MASK);
        Eight([
            self.and(self.shift_left::<4>(l0), mask),
            self.and(
                self.or(self.shift_right::<48>(l0), self.shift_left::<16>(l1)),
                mask,
            ),
            self.and(
                self.or(self.shift_right::<36>(l1), self.shift_left::<28>(l2)),
                mask,
            ),
            self.and(
                self.or(self.shift_right::<24>(l2), self.shift_left::<40>(l3)),
                mask,
            ),
            self.shift_right::<12>(l3),
        ])
    }

    /// To native limbs, of carried values below 2^256.
    #[inline(always)]
    pub(crate) fn pack(self, a: &Eight) -> Native {
        let Eight([a0, a1, a2, a3, a4]) = *a;
        Native([
            self.or(a0, self.shift_left::<52>(a1)),
            self.or(self.shift_right::<12>(a1), self.shift_left::<40>(a2)),
            self.or(self.shift_right::<24>(a2), self.shift_left::<28>(a3)),
            self.or(self.shift_right::<36>(a3), self.shift_left::<16>(a4)),
        ])
    }

    /// The same native limbs in all lanes.
    #[inline(always)]
    pub(crate) fn splat(self, value: &F) -> Eight {
        self.words(&to_radix_52(*value.montgomery_limbs()))
    }

    /// Zeros.
    #[inline(always)]
    pub(crate) fn no_elements(self) -> Native {
        Native([self.word(0); 4])
    }

    /// The integer 1 in all lanes: not zero, and no more is said.
    #[inline(always)]
    pub(crate) fn unit(self) -> Eight {
        self.words(&[1, 0, 0, 0, 0])
    }

    /// The native limbs of lane `lane` replaced.
    #[inline(always)]
    pub(crate) fn replace(self, a: &mut Eight, lane: usize, value: &F) {
        let value = self.splat(value);
        for i in 0..LIMBS {
            a.0[i] = self.select(1 << lane, value.0[i], a.0[i]);
        }
    }

    /// The lanes of `mask` made [`Self::unit`].
    #[inline(always)]
    pub(crate) fn replace_by_unit(self, a: &mut Eight, mask: u8) {
        let unit = self.unit();
        for i in 0..LIMBS {
            a.0[i] = self.select(mask, unit.0[i], a.0[i]);
        }
    }

    /// `a` in the lanes of `mask`, `b` in the others.
    #[inline(always)]
    pub(crate) fn blend(self, mask: u8, a: &Eight, b: &Eight) -> Eight {
        let mut blended = *b;
        for i in 0..LIMBS {
            blended.0[i] = self.select(mask, a.0[i], b.0[i]);
        }
        blended
    }

    /// The lanes that are zero.
    #[inline(always)]
    pub(crate) fn zeros(self, a: &Native) -> u8 {
        self.zero(self.or(self.or(a.0[0], a.0[1]), self.or(a.0[2], a.0[3])))
    }

    /// The lanes that are equal.
    #[inline(always)]
    pub(crate) fn equals(self, a: &Native, b: &Native) -> u8 {
        let mut equal = u8::MAX;
        for i in 0..4 {
            equal = self.equal_where(equal, a.0[i], b.0[i]);
        }
        equal
    }

    /// Lanes 2i and 2i + 1 exchanged (`STEP` 1), pairs of lanes (2), or the halves (4).
    #[inline(always)]
    pub(crate) fn exchanged(self, a: &Eight, step: u64) -> Eight {
        let index: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| lane ^ step);
        let index = self.load(&index);
        let mut exchanged = *a;
        for i in 0..LIMBS {
            exchanged.0[i] = self.permute_two(a.0[i], index, a.0[i]);
        }
        exchanged
    }

    #[inline(always)]
    fn words(self, limbs: &[u64; LIMBS]) -> Eight {
        let mut words = Eight([self.word(0); LIMBS]);
        for i in 0..LIMBS {
            words.0[i] = self.word(limbs[i]);
        }
        words
    }
}

/// The arithmetic.
impl<F: KernelField> Lanes<F> {
    /// `a * b / 2^260`: see the bounds above.
    #[inline(always)]
    pub(crate) fn product(self, a: &Eight, b: &Eight) -> Eight {
        self.product_beside(a, b, &mut ())
    }

    /// The same, with other work between.
    #[inline(always)]
    pub(crate) fn product_beside(self, a: &Eight, b: &Eight, beside: &mut impl Beside) -> Eight {
        let mut columns = self.no_columns();
        self.add_product_beside(&mut columns, a, b, beside);
        self.reduced_beside(columns, beside)
    }

    /// The columns of no product.
    #[inline(always)]
    pub(crate) fn no_columns(self) -> Columns {
        [self.word(0); 2 * LIMBS]
    }

    /// Adds `a * b`, of carried values: at most 10 terms below 2^52 to a column.
    #[inline(always)]
    pub(crate) fn add_product(self, columns: &mut Columns, a: &Eight, b: &Eight) {
        self.add_product_beside(columns, a, b, &mut ());
    }

    #[inline(always)]
    fn add_product_beside(self, columns: &mut Columns, a: &Eight, b: &Eight, beside: &mut impl Beside) {
        for i in 0..LIMBS {
            for j in 0..LIMBS {
                columns[i + j] = self.low(columns[i + j], a.0[j], b.0[i]);
            }
            for j in 0..LIMBS {
                columns[i + j + 1] = self.high(columns[i + j + 1], a.0[j], b.0[i]);
            }
            beside.step(i);
        }
    }

    /// `a * a / 2^260`.
    #[inline(always)]
    pub(crate) fn square(self, a: &Eight) -> Eight {
        let mut columns = [self.word(0); 2 * LIMBS];
        for i in 0..LIMBS {
            for j in i + 1..LIMBS {
                columns[i + j] = self.low(columns[i + j], a.0[i], a.0[j]);
                columns[i + j + 1] = self.high(columns[i + j + 1], a.0[i], a.0[j]);
            }
        }
        for column in &mut columns[1..] {
            *column = self.plus(*column, *column);
        }
        for i in 0..LIMBS {
            columns[2 * i] = self.low(columns[2 * i], a.0[i], a.0[i]);
            columns[2 * i + 1] = self.high(columns[2 * i + 1], a.0[i], a.0[i]);
        }
        self.reduced(columns)
    }

    /// The columns of a product, or of a sum of products, divided by 2^260 modulo p: below their 2^260th part and 2p. Columns
    /// below 2^63, and a sum below 2^260 in the end, are what it takes.
    #[inline(always)]
    pub(crate) fn reduced(self, columns: Columns) -> Eight {
        self.reduced_beside(columns, &mut ())
    }

    #[inline(always)]
    fn reduced_beside(self, mut columns: Columns, beside: &mut impl Beside) -> Eight {
        let constants = Self::CONSTANTS;
        for i in 0..LIMBS - 1 {
            let lowest = columns[i];
            let carry = self.shift_right::<52>(lowest);
            let first = self.low(columns[i + 1], lowest, self.word(constants.round[0]));
            columns[i + 1] = self.plus(first, carry);
            for j in 1..LIMBS {
                columns[i + 1 + j] = self.low(columns[i + 1 + j], lowest, self.word(constants.round[j]));
            }
            for j in 0..LIMBS {
                columns[i + 2 + j] = self.high(columns[i + 2 + j], lowest, self.word(constants.round[j]));
            }
            beside.step(LIMBS + i);
        }
        let factor = self.low(self.word(0), columns[4], self.word(constants.inverse));
        for j in 0..LIMBS {
            columns[4 + j] = self.low(columns[4 + j], factor, self.word(constants.modulus[j]));
            columns[5 + j] = self.high(columns[5 + j], factor, self.word(constants.modulus[j]));
        }
        beside.step(STEPS - 1);
        let first = self.plus(columns[5], self.shift_right::<52>(columns[4]));
        self.carried(Eight([first, columns[6], columns[7], columns[8], columns[9]]))
    }

    /// `a + b`, loose.
    #[inline(always)]
    pub(crate) fn sum(self, a: &Eight, b: &Eight) -> Eight {
        let mut sum = *a;
        for i in 0..LIMBS {
            sum.0[i] = self.plus(a.0[i], b.0[i]);
        }
        sum
    }

    /// `a - b + multiple * p`, loose.
    #[inline(always)]
    pub(crate) fn difference(self, a: &Eight, b: &Eight, multiple: usize) -> Eight {
        let mut difference = *a;
        for i in 0..LIMBS {
            let offset = self.word(Self::CONSTANTS.multiples[i][multiple]);
            difference.0[i] = self.plus(self.minus(a.0[i], b.0[i]), offset);
        }
        difference
    }

    /// `a + multiple * p`, loose.
    #[inline(always)]
    pub(crate) fn shifted(self, a: &Eight, multiple: usize) -> Eight {
        let mut shifted = *a;
        for i in 0..LIMBS {
            shifted.0[i] = self.plus(a.0[i], self.word(Self::CONSTANTS.multiples[i][multiple]));
        }
        shifted
    }

    /// `p - a` in the lanes of `mask`, `a` in the others; loose.
    #[inline(always)]
    pub(crate) fn signed(self, a: &Eight, mask: u8) -> Eight {
        let mut signed = *a;
        for i in 0..LIMBS {
            signed.0[i] = self.minus_where(mask, a.0[i], self.word(Self::CONSTANTS.modulus[i]), a.0[i]);
        }
        signed
    }

    /// `4 a`, loose.
    #[inline(always)]
    pub(crate) fn quadruple(self, a: &Eight) -> Eight {
        let mut quadruple = *a;
        for i in 0..LIMBS {
            quadruple.0[i] = self.shift_left::<2>(a.0[i]);
        }
        quadruple
    }

    /// A loose value that is not negative, carried.
    #[inline(always)]
    pub(crate) fn carried(self, mut a: Eight) -> Eight {
        let mask = self.word(LIMB_MASK);
        for i in 0..LIMBS - 1 {
            a.0[i + 1] = self.plus(a.0[i + 1], self.shift_right_signed::<52>(a.0[i]));
            a.0[i] = self.and(a.0[i], mask);
        }
        a
    }

    /// A carried value below 4p, less 2p if it is not below that: below 2p, carried.
    #[inline(always)]
    pub(crate) fn below_two_p(self, a: &Eight) -> Eight {
        let mut less = *a;
        for i in 0..LIMBS {
            less.0[i] = self.minus(a.0[i], self.word(Self::CONSTANTS.multiples[i][2]));
        }
        let mut less = self.carried(less);
        let negative = self.negative(less.0[4]);
        for i in 0..LIMBS {
            less.0[i] = self.select(negative, a.0[i], less.0[i]);
        }
        less
    }

    /// A loose value from p to 7p, modulo p: below p, carried.
    ///
    /// The quotient is estimated from the top limb and rounded to the nearest, with an error of 2^-38 at most (loose lower
    /// limbs count for 2^6 of the top limb's 2^45 and more), so that what is left lies within 0.6 p of 0.
    #[inline(always)]
    pub(crate) fn settled(self, mut a: Eight) -> Eight {
        let constants = Self::CONSTANTS;
        let half = self.word(1 << 43);
        let quotient = self.shift_right::<44>(self.high(half, a.0[4], self.word(constants.quotient)));
        for i in 0..LIMBS {
            a.0[i] = self.minus(a.0[i], self.lookup(quotient, &constants.multiples[i]));
        }
        let mut a = self.carried(a);
        let negative = self.negative(a.0[4]);
        for i in 0..LIMBS {
            a.0[i] = self.plus_where(negative, a.0[i], self.word(constants.modulus[i]));
        }
        self.carried(a)
    }
}

#[cfg(test)]
mod tests;
