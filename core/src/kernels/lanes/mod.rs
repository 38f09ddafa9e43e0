//! Eight field elements at a time, in the 52-bit multiply-add instructions of AVX-512 IFMA.
//!
//! An `Ifma` is the proof that the processor has them: only `Ifma::detect` makes one, and every operation of `field`
//! takes one along. Loops over lanes implement `Kernel` and are started by `Ifma::run`, the one place where the compiler
//! is told that the instructions may be used: everything below it is `inline(always)`, so that it is compiled there.
//! `Words` is the same kind of proof for one element at a time, in 64-bit words. [`Radix52`] holds a field's constants, computed by the compiler. Memory: none.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod field;
mod radix;
#[cfg(target_arch = "x86_64")]
mod words;

pub use radix::{Factor, Radix52};
#[cfg(target_arch = "x86_64")]
pub(crate) use words::Words;

/// Proof that the processor has AVX-512 F, DQ and IFMA.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(());

/// A loop over lanes. `run` has to be `#[inline(always)]`.
#[cfg(target_arch = "x86_64")]
pub(crate) trait Kernel {
    /// The loop.
    fn run(self, ifma: Ifma);
}

impl Ifma {
    /// The proof, if this processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512ifma");
        has_all.then_some(Self(()))
    }

    /// The proof, if this processor has the instructions: it has not.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Option<Self> {
        None
    }

    /// Asks for the cache line of `value`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn prefetch<T>(self, value: &T) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE, which every x86-64 processor has; and a reference is a valid address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }

    /// Runs a loop, compiled for the instructions.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
        fn with_features<K: Kernel>(kernel: K, ifma: Ifma) {
            kernel.run(ifma);
        }
        // SAFETY: an `Ifma` exists only where `detect` has found these three features.
        unsafe { with_features(kernel, self) }
    }
}
