//! Which instructions the kernels use: decided once, at run time, here.
//!
//! Every kernel has a portable form; some have a faster one, and all forms give the same bits. `SPILLPROOF_CPU=portable`,
//! `avx2` or `avx512` forces one, so that one machine can test them all. Memory: none.

use std::sync::OnceLock;

use super::lanes::Ifma;
#[cfg(target_arch = "x86_64")]
use super::lanes::Words;

/// The variable that forces a platform.
const VARIABLE: &str = "SPILLPROOF_CPU";

/// A set of instructions that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Plain Rust on 64-bit words.
    Portable,
    /// 64-bit words with MULX, ADCX and ADOX, for x86-64 processors of the AVX2 age (BMI2 and ADX: Broadwell, Zen and later). It
    /// is a way to multiply that all kernels share, so it is chosen for the whole process only.
    Avx2,
    /// Eight lanes of 52-bit multiply-add (x86-64 with AVX-512 F, DQ and IFMA).
    Avx512Ifma,
}

impl Platform {
    /// The fastest platform of this machine, or the one that `SPILLPROOF_CPU` names: `portable`, `avx2` or `avx512`. A name that is
    /// unknown, or of something the machine lacks, gives a warning and the portable one. Looked up once per process.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<Platform> = OnceLock::new();
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
            Self::Avx2 => Words::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 => false,
            Self::Avx512Ifma => Ifma::detect().is_some(),
        }
    }

    fn requested(name: Option<&str>) -> Self {
        let platform = match name {
            None | Some("") if Self::Avx512Ifma.is_supported() => Self::Avx512Ifma,
            None | Some("") if Self::Avx2.is_supported() => Self::Avx2,
            None | Some("" | "portable") => Self::Portable,
            Some("avx2") => Self::Avx2,
            Some("avx512") => Self::Avx512Ifma,
            Some(name) => {
                tracing::warn!(
                    name,
                    "unknown {VARIABLE} (portable, avx2, avx512): using portable"
                );
                Self::Portable
            }
        };
        if platform.is_supported() {
            return platform;
        }
        tracing::warn!(
            ?platform,
            "this machine lacks what {VARIABLE} asks for: using portable"
        );
        Self::Portable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_back_to_portable() {
        let best = Platform::requested(None);
        assert!(best.is_supported());
        assert_eq!(Platform::requested(Some("")), best);
        assert_eq!(Platform::requested(Some("portable")), Platform::Portable);
        assert_eq!(Platform::requested(Some("abacus")), Platform::Portable);
        for (name, platform) in [("avx2", Platform::Avx2), ("avx512", Platform::Avx512Ifma)] {
            let wanted = match platform.is_supported() {
                true => platform,
                false => Platform::Portable,
            };
            assert_eq!(Platform::requested(Some(name)), wanted);
        }
    }
}
