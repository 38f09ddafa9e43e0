//! The one place that knows which instructions the processor has.
//!
//! An algorithm is a [`Kernel`]: a loop over [`Lanes`], W elements at a time, written once. A backend is a
//! file that implements the lanes: `portable`, one element in plain Rust, whose products are those of `words`
//! (MULX and ADX) where the processor has them; `avx2`, four elements in limbs of 29 bits; and `avx512`,
//! eight elements in 52-bit multiply-adds. The last two share `limbs`. Lanes of a quadratic extension are
//! made of any backend's lanes (`quadratic`). All backends give the same bits. Another one is another file, a
//! [`Backend`] and a line in `Backend::run`.
//!
//! `SPILLPROOF_CPU=portable`, `words`, `avx2` or `avx512` forces a backend, so that one machine can test them
//! all; a debug build has the lanes of its own machine only (`build.rs`). Memory: none.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod inverse;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod limbs;
#[cfg(target_arch = "x86_64")]
mod packed;
mod portable;
#[cfg(target_arch = "x86_64")]
mod quadratic;
#[cfg(target_arch = "x86_64")]
mod radix;
#[cfg(target_arch = "x86_64")]
mod words;

pub(super) use inverse::invert;
pub use lanes::{
    Beside, CHAINS_MAX, Factor, Kernel, Lanes, LoopPart, Once, PrimeKept, PrimeValue, WideKernel, WideLanes,
};
#[cfg(target_arch = "x86_64")]
pub(super) use words::Words;

use std::sync::OnceLock;

use super::field::CoordinateField;
#[cfg(target_arch = "x86_64")]
use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use avx512::Ifma;
#[cfg(target_arch = "x86_64")]
use packed::{Loop, Packed, WideLoop};
use portable::Portable;

/// The variable that forces a backend.
const VARIABLE: &str = "SPILLPROOF_CPU";

/// A set of instructions that kernels run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Plain Rust on 64-bit words.
    Portable,
    /// 64-bit words with MULX, ADCX and ADOX (BMI2 and ADX: Broadwell, Zen and later). It is a way to
    /// multiply that all kernels share, so it is chosen for the whole process only: by this backend, and by
    /// those below for what they do one element at a time.
    Words,
    /// Four lanes of limbs of 29 bits (x86-64 with AVX2: Haswell, Zen and later).
    Avx2,
    /// Eight lanes of 52-bit multiply-add (x86-64 with AVX-512 F, DQ and IFMA).
    Avx512,
}

/// A field that every backend has lanes for.
#[cfg(target_arch = "x86_64")]
pub trait Vectorised: Sized + Packed {}
#[cfg(target_arch = "x86_64")]
impl<F: Packed> Vectorised for F {}

/// A field whose transforms and programs a backend may have lanes for.
#[cfg(target_arch = "x86_64")]
pub trait WideVectorised:
    CoordinateField + Packed<Four: WideLanes<Self, { avx2::WIDTH }>, Eight: WideLanes<Self, { avx512::WIDTH }>>
{
}
#[cfg(target_arch = "x86_64")]
impl<F> WideVectorised for F where
    F: CoordinateField + Packed<Four: WideLanes<F, { avx2::WIDTH }>, Eight: WideLanes<F, { avx512::WIDTH }>>
{
}

/// A field that every backend has lanes for.
#[cfg(not(target_arch = "x86_64"))]
pub trait Vectorised {}
#[cfg(not(target_arch = "x86_64"))]
impl<F> Vectorised for F {}

/// A field whose transforms and programs a backend may have lanes for.
#[cfg(not(target_arch = "x86_64"))]
pub trait WideVectorised: CoordinateField {}
#[cfg(not(target_arch = "x86_64"))]
impl<F: CoordinateField> WideVectorised for F {}

impl Backend {
    /// The fastest backend of this machine, or the one that `SPILLPROOF_CPU` names: `portable`, `words`,
    /// `avx2` or `avx512`. A name that is unknown, or of a backend that the machine lacks, gives a warning
    /// and the portable one. Looked up once per process.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<Backend> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let request = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
            Self::requested(request.as_deref())
        })
    }

    /// Whether this machine has the instructions, and this build the lanes (see `build.rs`).
    pub fn is_supported(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Words => Words::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => cfg!(lanes = "avx2") && Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => cfg!(lanes = "avx512") && Ifma::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Words | Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// Whether lanes pay where they take a multiplication more than one element at a time, as inverses do: of
    /// eight they do; with four, an inverse took 87 ns beside 79 (Zen 4).
    pub(super) fn pays_for_extra_products(self) -> bool {
        match self {
            Self::Portable | Self::Words | Self::Avx2 => false,
            Self::Avx512 => self.is_supported(),
        }
    }

    /// Runs code without lanes of its own: see [`Once`].
    pub(super) fn run_once<K: Once>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    /// Runs a loop over this backend's lanes.
    #[inline]
    pub(super) fn run<F: CoordinateField, K: Kernel<F>>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512 if cfg!(lanes = "avx512") => {
                if let Some(ifma) = Ifma::detect()
                    && let Some(lanes) = F::eight(ifma)
                {
                    return ifma.run(Loop::<F, _, _, { avx512::WIDTH }>::new(lanes, kernel));
                }
            }
            Self::Avx2 if cfg!(lanes = "avx2") => {
                if let Some(avx2) = Avx2::detect()
                    && let Some(lanes) = F::four(avx2)
                {
                    return avx2.run(Loop::<F, _, _, { avx2::WIDTH }>::new(lanes, kernel));
                }
            }
            _ => {}
        }
        kernel.run(Portable)
    }

    /// Runs a loop over this backend's wide lanes, if it has any for this field.
    #[inline]
    pub(super) fn run_wide<F: WideVectorised, K: WideKernel<F>>(self, kernel: K) -> Option<K::Output> {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512 if cfg!(lanes = "avx512") => {
                if let Some(ifma) = Ifma::detect()
                    && let Some(lanes) = F::eight(ifma)
                {
                    let part = WideLoop::<F, _, _, { avx512::WIDTH }>::new(lanes, kernel);
                    return Some(ifma.run(part));
                }
            }
            Self::Avx2 if cfg!(lanes = "avx2") => {
                if let Some(avx2) = Avx2::detect()
                    && let Some(lanes) = F::four(avx2)
                {
                    let part = WideLoop::<F, _, _, { avx2::WIDTH }>::new(lanes, kernel);
                    return Some(avx2.run(part));
                }
            }
            _ => {}
        }
        let _ = kernel;
        None
    }

    /// Bytes of the widest form in which an element waits in memory, on any backend.
    pub(super) const fn lane_bytes_max<F: CoordinateField>() -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            let four = kept_bytes::<F, F::Four, { avx2::WIDTH }>();
            let eight = kept_bytes::<F, F::Eight, { avx512::WIDTH }>();
            if four > eight { four } else { eight }
        }
        #[cfg(not(target_arch = "x86_64"))]
        size_of::<F>()
    }

    /// Lets go what this thread keeps from one transform to the next.
    pub(super) fn forget_buffers() {
        #[cfg(target_arch = "x86_64")]
        {
            avx2::forget_buffers();
            avx512::forget_buffers();
        }
    }

    fn requested(name: Option<&str>) -> Self {
        let backend = match name {
            None | Some("") if Self::Avx512.is_supported() => Self::Avx512,
            None | Some("") if Self::Avx2.is_supported() => Self::Avx2,
            None | Some("") if Self::Words.is_supported() => Self::Words,
            None | Some("" | "portable") => Self::Portable,
            Some("words") => Self::Words,
            Some("avx2") => Self::Avx2,
            Some("avx512") => Self::Avx512,
            Some(name) => {
                tracing::warn!(
                    name,
                    "unknown {VARIABLE} (portable, words, avx2, avx512): using portable"
                );
                Self::Portable
            }
        };
        if backend.is_supported() {
            return backend;
        }
        tracing::warn!(
            ?backend,
            "this machine or this build lacks the instructions that {VARIABLE} asks for: using portable"
        );
        Self::Portable
    }
}

/// Bytes of an element that waits in memory.
#[cfg(target_arch = "x86_64")]
const fn kept_bytes<F: CoordinateField, L: Lanes<F, W>, const W: usize>() -> usize {
    size_of::<L::Kept>() / W
}

#[cfg(test)]
mod tests;
