//! The one place that knows which instructions the processor has.
//!
//! An algorithm is a [`Kernel`]: a loop over [`Lanes`], W elements at a time, written once. A backend is a file that implements the lanes:
//! `portable`, one element in plain Rust, whose products are those of `words` (MULX and ADX) where the processor has them; and `avx512`,
//! eight elements in 52-bit multiply-adds. Lanes of a quadratic extension are made of any backend's lanes (`quadratic`). All backends give
//! the same bits. Another one is another file, a [`Backend`] and a line in `Backend::run`.
//!
//! `SPILLPROOF_CPU=portable`, `avx2` or `avx512` forces a backend, so that one machine can test them all. Memory: none.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod inverse;
mod lanes;
mod portable;
mod quadratic;
#[cfg(target_arch = "x86_64")]
mod radix52;
#[cfg(target_arch = "x86_64")]
mod words;

pub(super) use inverse::invert;
pub use lanes::{Beside, CHAINS_MAX, Factor, Kernel, Lanes, LoopPart, PrimeValue, WideKernel, WideLanes};
#[cfg(target_arch = "x86_64")]
pub(super) use words::Words;

use std::sync::OnceLock;

use super::field::CoordinateField;
use portable::Portable;

/// The variable that forces a backend.
const VARIABLE: &str = "SPILLPROOF_CPU";

/// A set of instructions that kernels run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Plain Rust on 64-bit words.
    Portable,
    /// 64-bit words with MULX, ADCX and ADOX, for x86-64 processors of the AVX2 age (BMI2 and ADX: Broadwell, Zen and later). It
    /// is a way to multiply that all kernels share, so it is chosen for the whole process only.
    Words,
    /// Eight lanes of 52-bit multiply-add (x86-64 with AVX-512 F, DQ and IFMA).
    Avx512,
}

/// A field that every backend has lanes for.
#[cfg(target_arch = "x86_64")]
pub trait Vectorised: Sized + avx512::Packed {}
#[cfg(target_arch = "x86_64")]
impl<F: avx512::Packed> Vectorised for F {}

/// A field whose transforms and programs a backend may have lanes for.
#[cfg(target_arch = "x86_64")]
pub trait WideVectorised:
    CoordinateField + avx512::Packed<Lanes: WideLanes<Self, { avx512::WIDTH }>>
{
}
#[cfg(target_arch = "x86_64")]
impl<F: CoordinateField + avx512::Packed<Lanes: WideLanes<F, { avx512::WIDTH }>>> WideVectorised for F {}

/// A field that every backend has lanes for.
#[cfg(not(target_arch = "x86_64"))]
pub trait Vectorised {}
#[cfg(not(target_arch = "x86_64"))]
impl<F> Vectorised for F {}

/// A field whose transforms and programs a backend may have lanes for.
#[cfg(not(target_arch = "x86_64"))]
pub trait WideVectorised {}
#[cfg(not(target_arch = "x86_64"))]
impl<F> WideVectorised for F {}

impl Backend {
    /// The fastest backend of this machine, or the one that `SPILLPROOF_CPU` names: `portable`, `avx2` or `avx512`. A name that is
    /// unknown, or of a backend that the machine lacks, gives a warning and the portable one. Looked up once per process.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<Backend> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let request = std::env::var(VARIABLE).ok();
            Self::requested(request.as_deref())
        })
    }

    /// Whether this machine has the instructions.
    pub fn is_supported(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Words => Words::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::Ifma::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Words | Self::Avx512 => false,
        }
    }

    /// Whether its lanes are more than one.
    pub(super) fn has_vectors(self) -> bool {
        match self {
            Self::Portable | Self::Words => false,
            Self::Avx512 => self.is_supported(),
        }
    }

    /// Runs a loop over this backend's lanes.
    #[inline]
    pub(super) fn run<F: CoordinateField, K: Kernel<F>>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Avx512
            && let Some(ifma) = avx512::Ifma::detect()
            && let Some(lanes) = F::lanes(ifma)
        {
            return ifma.run(avx512::Loop::<F, _, _>::new(lanes, kernel));
        }
        kernel.run(Portable)
    }

    /// Runs a loop over this backend's wide lanes, if it has any for this field.
    #[inline]
    pub(super) fn run_wide<F: WideVectorised, K: WideKernel<F>>(self, kernel: K) -> Option<K::Output> {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Avx512
            && let Some(ifma) = avx512::Ifma::detect()
            && let Some(lanes) = F::lanes(ifma)
            && lanes.is_roomy()
        {
            return Some(ifma.run(avx512::WideLoop::<F, _, _>::new(lanes, kernel)));
        }
        let _ = kernel;
        None
    }

    /// Bytes of the widest form that an element takes in lanes, on any backend.
    pub(super) const fn lane_bytes_max<F: CoordinateField>() -> usize {
        #[cfg(target_arch = "x86_64")]
        return size_of::<<F::Lanes as Lanes<F, { avx512::WIDTH }>>::Value>() / avx512::WIDTH;
        #[cfg(not(target_arch = "x86_64"))]
        size_of::<F>()
    }

    /// Lets go what this thread keeps from one transform to the next.
    pub(super) fn forget_buffers() {
        #[cfg(target_arch = "x86_64")]
        avx512::forget_buffers();
    }

    fn requested(name: Option<&str>) -> Self {
        let backend = match name {
            None | Some("") if Self::Avx512.is_supported() => Self::Avx512,
            None | Some("") if Self::Words.is_supported() => Self::Words,
            None | Some("" | "portable") => Self::Portable,
            Some("avx2") => Self::Words,
            Some("avx512") => Self::Avx512,
            Some(name) => {
                tracing::warn!(
                    name,
                    "unknown {VARIABLE} (portable, avx2, avx512): using portable"
                );
                Self::Portable
            }
        };
        if backend.is_supported() {
            return backend;
        }
        tracing::warn!(
            ?backend,
            "this machine lacks the instructions that {VARIABLE} asks for: using portable"
        );
        Self::Portable
    }
}

#[cfg(test)]
mod tests;
