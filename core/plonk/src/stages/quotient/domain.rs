//! The inputs of a quotient: columns by their polynomials, and the cosets to evaluate on.

use spillproof_engine::accelerator::RowSource;
use spillproof_engine::column::Column;

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
