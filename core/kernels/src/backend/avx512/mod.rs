//! Montgomery arithmetic in eight lanes of AVX-512 IFMA: a [`Packed52`] holds eight elements as vectors of
//! 52-bit limbs.
//!
//! Algorithm: the product of L by L limbs in columns, then L rounds of Montgomery reduction (R = 2^(52 L)),
//! of which all but the last add m (k p + 1) / 2^52 for the lowest limb m as it is, where k = -1/p modulo
//! 2^52: that saves the multiplication by k that each round of the textbook starts with (limbs shorter than
//! the words, summed in columns: Gueron and Krasnov, *Software implementation of modular exponentiation,
//! using advanced vector instructions architectures*, 2012). Primes of 4 words have 5 limbs and of 6 words 8.
//!
//! Bounds. A value is *carried* if all limbs but the last are below 2^52 and the whole is below R: the form
//! of operands and products. Otherwise limbs are signed words of at most 2^58 in size ("loose"). For carried
//! a and b with a b <= 32 p^2, and p <= R / 32, the product is a b / R modulo p, below a b / R + 2p <= 3p:
//! the first rounds add less than (1 + 2^-52 + ..) p, the last less than p. Columns hold at most 4 L terms
//! below 2^52 and a carry: no overflow. They may be negative: carries are taken with their signs.
//! [`Prime::canonical`] takes loose values from 0 to 7p whose top limb is not negative and gives the
//! canonical ones.
//!
//! Native limbs (N of 64 bits, R = 2^(64 N)) are moved in and out by transposing and shifting. Memory: none.
// Limbs are walked by index in several arrays at once.
#![allow(clippy::needless_range_loop)]

mod butterfly;
mod detection;
mod instructions;

use std::arch::x86_64::__m512i;
use std::array::from_fn;
use std::marker::PhantomData;

use ark_ff::{Fp, MontBackend, MontConfig};

pub(super) use butterfly::forget_buffers;
pub use instructions::Ifma;

use super::lanes::{Beside, Lanes, LoopPart};
use super::limbs::{Words, unrolled};
use super::radix::{self, to_radix};
use crate::field::CoordinateField;

/// Lanes of a vector.
pub const WIDTH: usize = 8;

const LIMB_BITS: usize = 52;
const LIMB_MASK: u64 = radix::mask::<LIMB_BITS>();

type Radix52<const L: usize> = radix::Radix<LIMB_BITS, L>;

/// Eight elements: vector i holds limb i of each.
#[derive(Clone, Copy)]
pub struct Packed52<const L: usize>([__m512i; L]);

/// Sums of products in columns of weight 2^(52 i), before their reduction: the lower L and the upper L.
#[derive(Clone, Copy)]
pub struct Columns<const L: usize>([[__m512i; L]; 2]);

/// Eight elements in native limbs: vector i holds the 64-bit limb i of each.
#[derive(Clone, Copy)]
pub struct Native<const N: usize>([__m512i; N]);

/// Eight elements in native limbs: limbs 0 to 3 of elements 0 and 2, 1 and 3, 4 and 6, 5 and 7; if there are
/// six, limbs 4 and 5 of the elements with an even number, and with an odd one.
#[derive(Clone, Copy)]
pub struct Transposed([__m512i; 6]);

/// The arithmetic of a prime field of N words in L limbs.
pub struct Prime<T, const N: usize, const L: usize> {
    ifma: Ifma,
    field: PhantomData<fn() -> T>,
}

impl<T, const N: usize, const L: usize> Clone for Prime<T, N, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize, const L: usize> Copy for Prime<T, N, L> {}

impl<const L: usize> Columns<L> {
    #[inline(always)]
    fn at(&mut self, column: usize) -> &mut __m512i {
        &mut self.0[column / L][column % L]
    }
}

/// The lanes in which all limbs are equal.
#[inline(always)]
fn equal_limbs<const K: usize>(ifma: Ifma, a: &[__m512i; K], b: &[__m512i; K]) -> u8 {
    let mut equal = u8::MAX;
    for i in 0..K {
        equal = ifma.equal_where(equal, a[i], b[i]);
    }
    equal
}

impl<T: MontConfig<N>, const N: usize, const L: usize> Prime<T, N, L> {
    const CONSTANTS: Option<Radix52<L>> = Radix52::new(T::MODULUS.0);
    const P: Radix52<L> = match Self::CONSTANTS {
        Some(constants) => constants,
        // Never used: `new` gives no lanes then.
        None => Radix52::UNUSED,
    };
    /// [`Lanes::SHIFT`].
    const SHIFT_BITS: usize = L * LIMB_BITS - N * 64;

    pub(super) fn new(ifma: Ifma) -> Option<Self> {
        Self::CONSTANTS.is_some().then_some(Self {
            ifma,
            field: PhantomData,
        })
    }

    #[inline(always)]
    fn zero(self) -> Packed52<L> {
        Packed52([self.ifma.word(0); L])
    }

    /// Limbs 0 to 3 of eight elements, transposed.
    #[inline(always)]
    fn transposed_fours(self, from: [&[u64; 4]; WIDTH]) -> [__m512i; 4] {
        let ifma = self.ifma;
        let [f0, f1, f2, f3, f4, f5, f6, f7] = from;
        let (a, b) = (ifma.load_fours(f0, f2), ifma.load_fours(f1, f3));
        let (c, d) = (ifma.load_fours(f4, f6), ifma.load_fours(f5, f7));
        let (ab, cd) = (ifma.interleave_low(a, b), ifma.interleave_low(c, d));
        let (ab_odd, cd_odd) = (ifma.interleave_high(a, b), ifma.interleave_high(c, d));
        [
            ifma.even_pairs(ab, cd),
            ifma.even_pairs(ab_odd, cd_odd),
            ifma.odd_pairs(ab, cd),
            ifma.odd_pairs(ab_odd, cd_odd),
        ]
    }

    /// Two limbs of eight elements, transposed.
    #[inline(always)]
    fn transposed_pairs(self, from: [&[u64; 2]; WIDTH]) -> [__m512i; 2] {
        let ifma = self.ifma;
        let [f0, f1, f2, f3, f4, f5, f6, f7] = from;
        let (even, odd) = (ifma.load_pairs(f0, f2, f4, f6), ifma.load_pairs(f1, f3, f5, f7));
        [ifma.interleave_low(even, odd), ifma.interleave_high(even, odd)]
    }

    /// [`Lanes::reduced`], before the last carries.
    #[inline(always)]
    fn reduced_loose(self, mut columns: Columns<L>, beside: &mut impl Beside) -> Packed52<L> {
        let ifma = self.ifma;
        unrolled!(i below L in {
            if i < L - 1 {
                let lowest = *columns.at(i);
                let carry = ifma.shift_right_signed::<{ LIMB_BITS as u32 }>(lowest);
                let first = ifma.low(*columns.at(i + 1), lowest, ifma.word(Self::P.round[0]));
                *columns.at(i + 1) = ifma.plus(first, carry);
                for j in 1..L {
                    let column = columns.at(i + 1 + j);
                    *column = ifma.low(*column, lowest, ifma.word(Self::P.round[j]));
                }
                for j in 0..L {
                    let column = columns.at(i + 2 + j);
                    *column = ifma.high(*column, lowest, ifma.word(Self::P.round[j]));
                }
                beside.step(L + i, 2 * L);
            }
        });
        let factor = ifma.low(ifma.word(0), *columns.at(L - 1), ifma.word(Self::P.inverse));
        for j in 0..L {
            let column = columns.at(L - 1 + j);
            *column = ifma.low(*column, factor, ifma.word(Self::P.modulus[j]));
            let column = columns.at(L + j);
            *column = ifma.high(*column, factor, ifma.word(Self::P.modulus[j]));
        }
        beside.step(2 * L - 1, 2 * L);
        let carry = ifma.shift_right_signed::<{ LIMB_BITS as u32 }>(*columns.at(L - 1));
        let [_, mut upper] = columns.0;
        upper[0] = ifma.plus(upper[0], carry);
        Packed52(upper)
    }

    #[inline(always)]
    fn add_product_beside(
        self,
        columns: &mut Columns<L>,
        a: &Packed52<L>,
        b: &Packed52<L>,
        beside: &mut impl Beside,
    ) {
        let ifma = self.ifma;
        unrolled!(i below L in {
            for j in 0..L {
                let column = columns.at(i + j);
                *column = ifma.low(*column, a.0[j], b.0[i]);
            }
            for j in 0..L {
                let column = columns.at(i + j + 1);
                *column = ifma.high(*column, a.0[j], b.0[i]);
            }
            beside.step(i, 2 * L);
        });
    }
}

impl<T: MontConfig<N>, const N: usize, const L: usize> Lanes<Fp<MontBackend<T, N>, N>, WIDTH>
    for Prime<T, N, L>
where
    Fp<MontBackend<T, N>, N>: CoordinateField<Prime = Fp<MontBackend<T, N>, N>>,
{
    type Native = Native<N>;
    type Value = Packed52<L>;
    type Kept = Packed52<L>;
    type Columns = Columns<L>;
    type Transposed = Transposed;
    type Prime = Self;
    const CHAINS: usize = 2;
    const SHIFT: u32 = Self::SHIFT_BITS as u32;
    const EXTENSION: bool = false;
    const COLUMNS: bool = true;

    #[inline(always)]
    fn prime(self) -> Self {
        self
    }

    #[inline(always)]
    fn outlined<K: LoopPart>(self, part: K) -> K::Output {
        self.ifma.run(part)
    }

    #[inline(always)]
    fn gather(self, from: [&Fp<MontBackend<T, N>, N>; WIDTH]) -> Native<N> {
        let mut native = Native([self.ifma.word(0); N]);
        let first = from_fn(|lane| from[lane].0.0.first_chunk::<4>().unwrap_or(&[0; 4]));
        native.0[..4].copy_from_slice(&self.transposed_fours(first));
        if N == 6 {
            let last = from_fn(|lane| from[lane].0.0.last_chunk::<2>().unwrap_or(&[0; 2]));
            native.0[4..].copy_from_slice(&self.transposed_pairs(last));
        }
        native
    }

    #[inline(always)]
    fn unpack(self, values: &Native<N>) -> Packed52<L> {
        Packed52(self.ifma.spread::<N, L, LIMB_BITS>(&values.0, 0))
    }

    #[inline(always)]
    fn unpack_shifted(self, values: &Native<N>) -> Packed52<L> {
        Packed52(self.ifma.spread::<N, L, LIMB_BITS>(&values.0, Self::SHIFT_BITS))
    }

    #[inline(always)]
    fn splat(self, value: &Fp<MontBackend<T, N>, N>) -> Packed52<L> {
        Packed52(self.ifma.words(&to_radix::<LIMB_BITS, N, L>(value.0.0)))
    }

    #[inline(always)]
    fn keep(self, value: &Packed52<L>) -> Packed52<L> {
        *value
    }

    #[inline(always)]
    fn kept(self, value: &Packed52<L>) -> Packed52<L> {
        *value
    }

    #[inline(always)]
    fn rows(self, value: &Packed52<L>) -> Transposed {
        let ifma = self.ifma;
        let words = ifma.packed::<N, L, LIMB_BITS>(&value.0);
        let first = ifma.load(&[0, 1, 8, 9, 2, 3, 10, 11]);
        let second = ifma.load(&[4, 5, 12, 13, 6, 7, 14, 15]);
        let low = ifma.interleave_low(words[0], words[1]);
        let high = ifma.interleave_low(words[2], words[3]);
        let low_odd = ifma.interleave_high(words[0], words[1]);
        let high_odd = ifma.interleave_high(words[2], words[3]);
        let mut rows = Transposed([ifma.word(0); 6]);
        rows.0[0] = ifma.permute_two(low, first, high);
        rows.0[1] = ifma.permute_two(low_odd, first, high_odd);
        rows.0[2] = ifma.permute_two(low, second, high);
        rows.0[3] = ifma.permute_two(low_odd, second, high_odd);
        if N == 6 {
            rows.0[4] = ifma.interleave_low(words[4 % N], words[5 % N]);
            rows.0[5] = ifma.interleave_high(words[4 % N], words[5 % N]);
        }
        rows
    }

    #[inline(always)]
    fn store_row(self, rows: &Transposed, lane: usize, to: &mut Fp<MontBackend<T, N>, N>) {
        let vector = rows.0[(lane & 1) + lane / 4 * 2];
        let words = &mut to.0.0;
        if let Some(first) = words.first_chunk_mut::<4>() {
            if lane & 2 == 0 {
                self.ifma.store_four_low(vector, first);
            } else {
                self.ifma.store_four_high(vector, first);
            }
        }
        if N == 6
            && let Some(last) = words.last_chunk_mut::<2>()
        {
            self.ifma.store_pair(rows.0[4 + (lane & 1)], lane / 2, last);
        }
    }

    #[inline(always)]
    fn prefetch<V>(self, value: &V) {
        self.ifma.prefetch_all(value);
    }

    #[inline(always)]
    fn product_beside(self, a: &Packed52<L>, b: &Packed52<L>, beside: &mut impl Beside) -> Packed52<L> {
        let mut columns = self.no_columns();
        self.add_product_beside(&mut columns, a, b, beside);
        self.carried(self.reduced_loose(columns, beside))
    }

    #[inline(always)]
    fn square(self, a: &Packed52<L>) -> Packed52<L> {
        let ifma = self.ifma;
        let mut columns = self.no_columns();
        unrolled!(i below L in {
            for j in i + 1..L {
                let column = columns.at(i + j);
                *column = ifma.low(*column, a.0[i], a.0[j]);
                let column = columns.at(i + j + 1);
                *column = ifma.high(*column, a.0[i], a.0[j]);
            }
        });
        for column in columns.0.as_flattened_mut() {
            *column = ifma.plus(*column, *column);
        }
        for i in 0..L {
            let column = columns.at(2 * i);
            *column = ifma.low(*column, a.0[i], a.0[i]);
            let column = columns.at(2 * i + 1);
            *column = ifma.high(*column, a.0[i], a.0[i]);
        }
        self.reduced(&columns)
    }

    #[inline(always)]
    fn no_columns(self) -> Columns<L> {
        Columns([[self.ifma.word(0); L]; 2])
    }

    #[inline(always)]
    fn add_product(self, columns: &mut Columns<L>, a: &Packed52<L>, b: &Packed52<L>) {
        self.add_product_beside(columns, a, b, &mut ());
    }

    #[inline(always)]
    fn columns_difference(self, a: &Columns<L>, b: &Columns<L>) -> Columns<L> {
        let ([a, b], [c, d]) = (&a.0, &b.0);
        Columns([self.ifma.differences(a, c), self.ifma.differences(b, d)])
    }

    #[inline(always)]
    fn reduced(self, columns: &Columns<L>) -> Packed52<L> {
        self.carried(self.reduced_loose(*columns, &mut ()))
    }

    #[inline(always)]
    fn reduced_above(self, columns: &Columns<L>, multiple: usize) -> Packed52<L> {
        let mut loose = self.reduced_loose(*columns, &mut ());
        for i in 0..L {
            loose.0[i] = self
                .ifma
                .plus(loose.0[i], self.ifma.word(Self::P.multiples[i][multiple]));
        }
        self.carried(loose)
    }

    #[inline(always)]
    fn sum(self, a: &Packed52<L>, b: &Packed52<L>) -> Packed52<L> {
        Packed52(self.ifma.sums(&a.0, &b.0))
    }

    #[inline(always)]
    fn difference(self, a: &Packed52<L>, b: &Packed52<L>, multiple: usize) -> Packed52<L> {
        let mut difference = *a;
        for i in 0..L {
            let offset = self.ifma.word(Self::P.multiples[i][multiple]);
            difference.0[i] = self.ifma.plus(self.ifma.minus(a.0[i], b.0[i]), offset);
        }
        difference
    }

    #[inline(always)]
    fn signed(self, a: &Packed52<L>, mask: u8) -> Packed52<L> {
        let mut signed = *a;
        for i in 0..L {
            let modulus = self.ifma.word(Self::P.modulus[i]);
            signed.0[i] = self.ifma.minus_where(mask, a.0[i], modulus, a.0[i]);
        }
        signed
    }

    #[inline(always)]
    fn half_shifted(self, a: &Packed52<L>) -> Packed52<L> {
        let half = Self::SHIFT_BITS.div_ceil(2);
        let mut shifted = *a;
        if half <= 4 {
            // Loose limbs stay so.
            for i in 0..L {
                shifted.0[i] = self.ifma.shift_left(a.0[i], half);
            }
            return self.carried(shifted);
        }
        let a = self.carried(*a);
        let mask = self.ifma.word(LIMB_MASK);
        for i in 0..L {
            let mut limb = self.ifma.shift_left(a.0[i], half);
            if i > 0 {
                let below = self.ifma.shift_right(a.0[i - 1], LIMB_BITS - half);
                limb = self.ifma.or(limb, below);
            }
            shifted.0[i] = if i < L - 1 {
                self.ifma.and(limb, mask)
            } else {
                limb
            };
        }
        shifted
    }

    #[inline(always)]
    fn carried(self, mut a: Packed52<L>) -> Packed52<L> {
        let mask = self.ifma.word(LIMB_MASK);
        for i in 0..L - 1 {
            let carry = self.ifma.shift_right_signed::<{ LIMB_BITS as u32 }>(a.0[i]);
            a.0[i + 1] = self.ifma.plus(a.0[i + 1], carry);
            a.0[i] = self.ifma.and(a.0[i], mask);
        }
        a
    }

    /// The quotient is estimated from the top limb and rounded to the nearest. Loose lower limbs count for
    /// 2^6 of the top limb's 2^16 and more, so that the remainder lies within 0.6 p of 0.
    #[inline(always)]
    fn canonical(self, mut a: Packed52<L>) -> Packed52<L> {
        let ifma = self.ifma;
        let bits = Self::P.top_bits as usize - 2;
        let half = ifma.word(1 << (bits - 1));
        let quotient = ifma.high(half, a.0[L - 1], ifma.word(Self::P.quotient));
        let quotient = ifma.shift_right(quotient, bits);
        for i in 0..L {
            a.0[i] = ifma.minus(a.0[i], ifma.lookup(quotient, &Self::P.multiples[i]));
        }
        let mut a = self.carried(a);
        let negative = ifma.negative(a.0[L - 1]);
        for i in 0..L {
            a.0[i] = ifma.plus_where(negative, a.0[i], ifma.word(Self::P.modulus[i]));
        }
        self.carried(a)
    }

    #[inline(always)]
    fn norm(self, a: &Packed52<L>) -> Packed52<L> {
        *a
    }

    #[inline(always)]
    fn over_norm(self, _: &Packed52<L>, inverse: &Packed52<L>) -> Packed52<L> {
        *inverse
    }

    #[inline(always)]
    fn zeros(self, a: &Native<N>) -> u8 {
        let mut any = a.0[0];
        for i in 1..N {
            any = self.ifma.or(any, a.0[i]);
        }
        self.ifma.zero(any)
    }

    #[inline(always)]
    fn equals(self, a: &Native<N>, b: &Native<N>) -> u8 {
        equal_limbs(self.ifma, &a.0, &b.0)
    }

    #[inline(always)]
    fn same(self, a: &Packed52<L>, b: &Packed52<L>) -> u8 {
        equal_limbs(self.ifma, &a.0, &b.0)
    }

    #[inline(always)]
    fn unit(self) -> Packed52<L> {
        let mut unit = self.zero();
        unit.0[0] = self.ifma.word(1);
        unit
    }

    #[inline(always)]
    fn blend(self, mask: u8, a: &Packed52<L>, b: &Packed52<L>) -> Packed52<L> {
        let mut blended = *b;
        for i in 0..L {
            blended.0[i] = self.ifma.select(mask, a.0[i], b.0[i]);
        }
        blended
    }

    #[inline(always)]
    fn exchanged(self, a: &Packed52<L>, step: usize) -> Packed52<L> {
        let index = [0, 1, 2, 3, 4, 5, 6, 7].map(|lane: u64| lane ^ step as u64);
        let index = self.ifma.load(&index);
        let mut exchanged = *a;
        for i in 0..L {
            exchanged.0[i] = self.ifma.permute_two(a.0[i], index, a.0[i]);
        }
        exchanged
    }
}
