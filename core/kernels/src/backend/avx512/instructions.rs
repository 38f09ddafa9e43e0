//! The instructions themselves: all unsafe code of this backend.
//!
//! An [`Ifma`] is the proof that the processor has AVX-512 F, DQ and IFMA: only [`Ifma::detect`] makes one,
//! and every instruction is a method of it. [`Ifma::run`] is the one place where the compiler is told that
//! the instructions may be used: everything below it is `inline(always)`, so that it is compiled there, or is
//! another [`Ifma::run`]. Memory: none.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::detection::are_here;
use crate::backend::lanes::LoopPart;
use crate::backend::limbs::Words;

/// Proof that the processor has AVX-512 F, DQ and IFMA.
#[derive(Clone, Copy)]
pub struct Ifma(());

impl Ifma {
    /// The proof, if this processor has the instructions.
    pub fn detect() -> Option<Self> {
        are_here().then_some(Self(()))
    }

    /// Runs a part of a loop, or all of it, compiled for the instructions, as a function of its own.
    pub fn run<T: LoopPart>(self, part: T) -> T::Output {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
        fn with_features<T: LoopPart>(part: T) -> T::Output {
            part.run()
        }
        // SAFETY: an `Ifma` exists only where `detect` has found these three features.
        unsafe { with_features(part) }
    }
}

/// One instruction as a method of [`Ifma`], or as one of [`Words`].
macro_rules! instruction {
    (shared $($rest:tt)*) => {
        instruction!(@ [] $($rest)*);
    };
    (@ [$($visibility:tt)*] $name:ident$(<$bits:ident>)?($($argument:ident: $type:ty),*) -> $result:ty = $intrinsic:expr) => {
        #[inline(always)]
        $($visibility)* fn $name$(<const $bits: u32>)?(self, $($argument: $type),*) -> $result {
            // SAFETY: needs AVX-512 F, DQ or IFMA and no more, and `self` proves that the processor has them.
            unsafe { $intrinsic }
        }
    };
    ($($rest:tt)*) => {
        instruction!(@ [pub(super)] $($rest)*);
    };
}

impl Ifma {
    instruction!(plus_where(mask: u8, a: __m512i, b: __m512i) -> __m512i = _mm512_mask_add_epi64(a, mask, a, b));
    instruction!(minus_where(mask: u8, otherwise: __m512i, a: __m512i, b: __m512i) -> __m512i
        = _mm512_mask_sub_epi64(otherwise, mask, a, b));
    instruction!(select(mask: u8, a: __m512i, b: __m512i) -> __m512i = _mm512_mask_mov_epi64(b, mask, a));
    instruction!(low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_madd52lo_epu64(sum, a, b));
    instruction!(high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_madd52hi_epu64(sum, a, b));
    instruction!(negative(a: __m512i) -> u8 = _mm512_movepi64_mask(a));
    instruction!(zero(a: __m512i) -> u8 = _mm512_testn_epi64_mask(a, a));
    instruction!(equal_where(mask: u8, a: __m512i, b: __m512i) -> u8 = _mm512_mask_cmpeq_epi64_mask(mask, a, b));
    instruction!(lookup(index: __m512i, table: &[u64; 8]) -> __m512i
        = _mm512_permutexvar_epi64(index, _mm512_loadu_si512(table.as_ptr().cast())));
    instruction!(load(words: &[u64; 8]) -> __m512i = _mm512_loadu_si512(words.as_ptr().cast()));
    instruction!(load_fours(low: &[u64; 4], high: &[u64; 4]) -> __m512i = _mm512_inserti64x4::<1>(
        _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast())),
        _mm256_loadu_si256(high.as_ptr().cast()),
    ));
    instruction!(load_pairs(a: &[u64; 2], b: &[u64; 2], c: &[u64; 2], d: &[u64; 2]) -> __m512i = {
        let (a, b) = (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
        let (c, d) = (_mm_loadu_si128(c.as_ptr().cast()), _mm_loadu_si128(d.as_ptr().cast()));
        let (low, high) = (_mm256_set_m128i(b, a), _mm256_set_m128i(d, c));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    });
    instruction!(store_four_low(a: __m512i, words: &mut [u64; 4]) -> ()
        = _mm256_storeu_si256(words.as_mut_ptr().cast(), _mm512_castsi512_si256(a)));
    instruction!(store_four_high(a: __m512i, words: &mut [u64; 4]) -> ()
        = _mm256_storeu_si256(words.as_mut_ptr().cast(), _mm512_extracti64x4_epi64::<1>(a)));
    instruction!(store_pair(a: __m512i, which: usize, words: &mut [u64; 2]) -> () = {
        let pair = match which {
            0 => _mm512_castsi512_si128(a),
            1 => _mm512_extracti64x2_epi64::<1>(a),
            2 => _mm512_extracti64x2_epi64::<2>(a),
            _ => _mm512_extracti64x2_epi64::<3>(a),
        };
        _mm_storeu_si128(words.as_mut_ptr().cast(), pair);
    });
    instruction!(interleave_low(a: __m512i, b: __m512i) -> __m512i = _mm512_unpacklo_epi64(a, b));
    instruction!(interleave_high(a: __m512i, b: __m512i) -> __m512i = _mm512_unpackhi_epi64(a, b));
    instruction!(even_pairs(a: __m512i, b: __m512i) -> __m512i = _mm512_shuffle_i64x2::<0x88>(a, b));
    instruction!(odd_pairs(a: __m512i, b: __m512i) -> __m512i = _mm512_shuffle_i64x2::<0xdd>(a, b));
    instruction!(permute_two(a: __m512i, index: __m512i, b: __m512i) -> __m512i
        = _mm512_permutex2var_epi64(a, index, b));
    instruction!(shift_right_signed<BITS>(a: __m512i) -> __m512i = _mm512_srai_epi64::<BITS>(a));
}

impl Words for Ifma {
    type Vector = __m512i;

    instruction!(shared word(value: u64) -> __m512i = _mm512_set1_epi64(value as i64));
    instruction!(shared plus(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi64(a, b));
    instruction!(shared minus(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi64(a, b));
    instruction!(shared and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b));
    instruction!(shared or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b));
    instruction!(shared shift_left(a: __m512i, bits: usize) -> __m512i = _mm512_sllv_epi64(a, _mm512_set1_epi64(bits as i64)));
    instruction!(shared shift_right(a: __m512i, bits: usize) -> __m512i = _mm512_srlv_epi64(a, _mm512_set1_epi64(bits as i64)));

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: SSE, which every x86-64 processor has; a prefetch of no memory does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
