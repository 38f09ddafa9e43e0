//! The transforms that a column can take: root, shifts and scale.

use crate::Result;
use crate::error::Invalid;
use spillproof_kernels::field::KernelField;

/// A transform of `2^log_n` elements: `output[i] = scale * after^i * sum over j of omega^(i * j) * before^j *
/// input[j]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform<F> {
    /// log2 of the number of elements. A shorter input counts as padded with zeros.
    pub log_n: u32,
    /// A primitive `2^log_n`-th root of unity.
    pub omega: F,
    /// Goes to the power of the input's index: the shift of a coset, or 1.
    pub before: F,
    /// Goes to the power of the output's index: the inverse shift of a coset, or 1.
    pub after: F,
    /// Multiplies everything.
    pub scale: F,
}

impl<F: KernelField> Transform<F> {
    /// Coefficients to values at `1, omega, omega^2, ...`.
    pub fn forward(log_n: u32, omega: F) -> Self {
        Self {
            log_n,
            omega,
            before: F::ONE,
            after: F::ONE,
            scale: F::ONE,
        }
    }

    /// Values at `1, omega, omega^2, ...` to coefficients.
    ///
    /// # Errors
    /// [`Invalid::Zero`] for `omega` = 0.
    pub fn inverse(log_n: u32, omega: F) -> Result<Self> {
        let scale = invert("the length of a transform", F::from(2u64).pow([u64::from(log_n)]))?;
        Ok(Self {
            log_n,
            omega: invert("a root of unity", omega)?,
            before: F::ONE,
            after: F::ONE,
            scale,
        })
    }

    /// Coefficients to values on the coset `shift * <omega>`.
    pub fn coset_forward(log_n: u32, omega: F, shift: F) -> Self {
        Self {
            before: shift,
            ..Self::forward(log_n, omega)
        }
    }

    /// Values on the coset `shift * <omega>` to coefficients.
    ///
    /// # Errors
    /// [`Invalid::Zero`] for `omega` or `shift` = 0.
    pub fn coset_inverse(log_n: u32, omega: F, shift: F) -> Result<Self> {
        Ok(Self {
            after: invert("the shift of a coset", shift)?,
            ..Self::inverse(log_n, omega)?
        })
    }
}

/// The inverse of `value`, whose name is `what`.
///
/// # Errors
/// [`Invalid::Zero`].
pub fn invert<F: KernelField>(what: &'static str, value: F) -> Result<F> {
    Ok(value.inverse().ok_or(Invalid::Zero { what })?)
}
