//! Which transform: direction, root of unity, coset.

use ark_bn254::Fr;
use spillproof_kernels::error::RootOfUnityError;

use super::field::NttField;
use super::plan::check_length;
use crate::error::{Result, Values};

/// A transform between coefficients and values on a coset of the roots of unity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NttSpec<F = Fr> {
    pub(super) root: F,
    pub(super) log_n: u32,
    pub(super) inverse: bool,
    pub(super) shift: Option<F>,
}

impl NttSpec<Fr> {
    /// From coefficients to values at the powers of arkworks' root of order 2^`log_n`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if there is no such root.
    pub fn forward(log_n: u32) -> Result<Self> {
        Self::of_field(log_n)
    }
}

impl<F: NttField> NttSpec<F> {
    /// From coefficients to values at the powers of the root of order 2^`log_n` that arkworks or Plonky3 uses
    /// for the field.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if there is no such root.
    pub fn of_field(log_n: u32) -> Result<Self> {
        check_length::<F>(log_n)?;
        Self::by_root(F::root(log_n), log_n)
    }

    /// From coefficients to values at the powers of `root`: libraries use different roots of the same order.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the order of `root` is not 2^`log_n`.
    pub fn by_root(root: F, log_n: u32) -> Result<Self> {
        check_length::<F>(log_n)?;
        if !root.has_order(log_n) {
            return Err(Values::from(RootOfUnityError {
                omega: root.to_string(),
                log_n,
            })
            .into());
        }
        Ok(Self {
            root,
            log_n,
            inverse: false,
            shift: None,
        })
    }

    /// The inverse: from values to coefficients.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self {
            inverse: true,
            ..self
        }
    }

    /// The same transform with values at `shift` times the powers of the root.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for 0.
    pub fn on_coset(self, shift: F) -> Result<Self> {
        if shift == F::NONE {
            return Err(Values::Zero {
                what: "the shift of a coset",
            }
            .into());
        }
        Ok(Self {
            shift: Some(shift),
            ..self
        })
    }

    /// log2 of the number of elements.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }
}
