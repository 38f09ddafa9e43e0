//! The inputs of a quotient: columns by their polynomials, and the cosets to evaluate on.

use spillproof_engine::Result;
use spillproof_engine::accelerator::RowSource;
use spillproof_engine::column::Column;
use spillproof_engine::stream::invert;
use spillproof_kernels::field::KernelField;

/// What stands for a column of the program.
#[derive(Debug)]
pub enum Source<'a, F> {
    /// A polynomial by its n coefficients, lowest first.
    Coefficients(&'a Column<F>),
    /// X itself; computed, not read.
    Identity,
    /// The Lagrange polynomial that is 1 at 1 and 0 at all other powers of omega; computed, not read. Its
    /// rotation by -i is the one that is 1 at `omega^i`.
    FirstLagrange,
}

impl<F> Source<'_, F> {
    /// Where its rows on a coset come from.
    pub(super) fn rows(&self) -> RowSource {
        match self {
            Self::Coefficients(_) => RowSource::Read,
            Self::Identity => RowSource::Identity,
            Self::FirstLagrange => RowSource::FirstLagrange,
        }
    }
}

// Derived, these would ask the same of the field.
impl<F> Clone for Source<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Source<'_, F> {}

/// The cosets on which a quotient is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CosetDomain<F> {
    /// log2 of n, the number of rows.
    pub log_n: u32,
    /// A primitive n-th root of unity.
    pub omega: F,
    /// log2 of the number of cosets.
    pub log_cosets: u32,
    /// A primitive root of order `2^(log_n + log_cosets)` whose power `2^log_cosets` is `omega`.
    pub extended_omega: F,
    /// What all cosets are shifted by (halo2's zeta).
    pub shift: F,
    /// Columns of n coefficients to give, at most `2^log_cosets`.
    pub pieces: usize,
}

impl<F: KernelField> CosetDomain<F> {
    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        1 << self.log_n
    }

    /// The number of cosets.
    pub(super) fn cosets(&self) -> u64 {
        1 << self.log_cosets
    }

    /// What a coset is shifted by.
    pub(super) fn shift_of(&self, coset: u64) -> F {
        self.shift.times(&self.extended_omega.pow([coset]))
    }

    /// The vanishing polynomial on the coset of `shift`, where it is a constant.
    fn vanishing(&self, shift: F) -> F {
        shift.pow([self.rows()]).minus(&F::ONE)
    }

    fn rows_inverse(&self) -> Result<F> {
        inverse(F::from(self.rows()))
    }

    /// `(shift^n - 1) / n`: l_0(x) is this over `x - 1`.
    pub(super) fn first_lagrange(&self, shift: F) -> Result<F> {
        Ok(self.vanishing(shift).times(&self.rows_inverse()?))
    }

    /// What values on the coset of `shift` are multiplied by on their way back: over the vanishing polynomial, and over n.
    pub(super) fn scale(&self, shift: F) -> Result<F> {
        let vanishing = invert("the vanishing polynomial on a coset", self.vanishing(shift))?;
        Ok(vanishing.times(&self.rows_inverse()?))
    }
}

/// The inverse of a root or a shift.
pub(super) fn inverse<F: KernelField>(value: F) -> Result<F> {
    invert("a root of unity, or the shift of a coset,", value)
}
