//! The instructions themselves: all unsafe code of this backend but the assembly of `product`.
//!
//! An [`Avx2`] is the proof that the processor has AVX2: only [`Avx2::detect`] makes one, and every
//! instruction is a method of it. [`Avx2::run`] is the one place where the compiler is told that the
//! instructions may be used: everything below it is `inline(always)`, so that it is compiled there, or is
//! another [`Avx2::run`]. Memory: none.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;
use std::mem::MaybeUninit;

use crate::backend::lanes::LoopPart;
use crate::backend::limbs::Words;

/// Proof that the processor has AVX2.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// The proof, if this processor has the instructions.
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Runs a part of a loop, or all of it, compiled for the instructions: as a function of its own, unless
    /// it is so short that the compiler puts it into another such function. (rustc drops `inline(never)` from
    /// functions with target features.)
    pub fn run<T: LoopPart>(self, part: T) -> T::Output {
        #[inline(never)]
        #[target_feature(enable = "avx2")]
        fn with_features<T: LoopPart>(part: T) -> T::Output {
            // A vector on the stack aligns it. Without one the compiler finds out that vectors have to be
            // moved there when it is too late for that, and half of them straddle cache lines.
            let anchor = MaybeUninit::<__m256i>::uninit();
            black_box(&anchor);
            part.run()
        }
        // SAFETY: an `Avx2` exists only where `detect` has found the feature.
        unsafe { with_features(part) }
    }
}

/// One instruction as a method of [`Avx2`], or as one of [`Words`].
macro_rules! instruction {
    (shared $($rest:tt)*) => {
        instruction!(@ [] $($rest)*);
    };
    (@ [$($visibility:tt)*] $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $intrinsic:expr) => {
        #[inline(always)]
        $($visibility)* fn $name(self, $($argument: $type),*) -> $result {
            // SAFETY: needs AVX2 and no more, and `self` proves that the processor has it.
            unsafe { $intrinsic }
        }
    };
    ($($rest:tt)*) => {
        instruction!(@ [pub(super)] $($rest)*);
    };
}

impl Avx2 {
    // Of the lower halves of words.
    instruction!(product(a: __m256i, b: __m256i) -> __m256i = _mm256_mul_epu32(a, b));
    // All ones where it holds, else zero.
    instruction!(negative(a: __m256i) -> __m256i = _mm256_cmpgt_epi64(_mm256_setzero_si256(), a));
    instruction!(equal(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi64(a, b));
    instruction!(select(mask: __m256i, a: __m256i, b: __m256i) -> __m256i = _mm256_blendv_epi8(b, a, mask));
    // A bit for each word: its highest.
    instruction!(bits(a: __m256i) -> u8 = _mm256_movemask_pd(_mm256_castsi256_pd(a)) as u8);
    instruction!(load(words: &[u64; 4]) -> __m256i = _mm256_loadu_si256(words.as_ptr().cast()));
    instruction!(load_pairs(low: &[u64; 2], high: &[u64; 2]) -> __m256i
        = _mm256_set_m128i(_mm_loadu_si128(high.as_ptr().cast()), _mm_loadu_si128(low.as_ptr().cast())));
    instruction!(store(a: __m256i, words: &mut [u64; 4]) -> () = _mm256_storeu_si256(words.as_mut_ptr().cast(), a));
    instruction!(store_low(a: __m256i, words: &mut [u64; 2]) -> ()
        = _mm_storeu_si128(words.as_mut_ptr().cast(), _mm256_castsi256_si128(a)));
    instruction!(store_high(a: __m256i, words: &mut [u64; 2]) -> ()
        = _mm_storeu_si128(words.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(a)));
    instruction!(interleave_low(a: __m256i, b: __m256i) -> __m256i = _mm256_unpacklo_epi64(a, b));
    instruction!(interleave_high(a: __m256i, b: __m256i) -> __m256i = _mm256_unpackhi_epi64(a, b));
    instruction!(low_halves(a: __m256i, b: __m256i) -> __m256i = _mm256_permute2x128_si256::<0x20>(a, b));
    instruction!(high_halves(a: __m256i, b: __m256i) -> __m256i = _mm256_permute2x128_si256::<0x31>(a, b));
    instruction!(neighbours_swapped(a: __m256i) -> __m256i = _mm256_permute4x64_epi64::<0b10_11_00_01>(a));
    instruction!(halves_swapped(a: __m256i) -> __m256i = _mm256_permute4x64_epi64::<0b01_00_11_10>(a));
}

impl Words for Avx2 {
    type Vector = __m256i;

    instruction!(shared word(value: u64) -> __m256i = _mm256_set1_epi64x(value as i64));
    instruction!(shared plus(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi64(a, b));
    instruction!(shared minus(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi64(a, b));
    instruction!(shared and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b));
    instruction!(shared or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b));
    instruction!(shared shift_left(a: __m256i, bits: usize) -> __m256i = _mm256_sllv_epi64(a, _mm256_set1_epi64x(bits as i64)));
    instruction!(shared shift_right(a: __m256i, bits: usize) -> __m256i = _mm256_srlv_epi64(a, _mm256_set1_epi64x(bits as i64)));

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: SSE, which every x86-64 processor has; a prefetch of no memory does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
