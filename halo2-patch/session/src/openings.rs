//! Polynomials that are opened together, and the pass that SHPLONK, GWC and zcash's opening have in common.
//!
//! A proof's polynomials are read in two passes and evaluated in one, and none is copied: what halo2 does step by step with
//! clones (subtract, scale, add, divide, commit) is one [`Combination`], of which [`multiopen`] makes as many as there are
//! while it reads. Memory: what that pass leases.

use std::io;

use spillproof::column::{Column, Workspace};
use spillproof::commit::multiopen::{self, Combination};
use spillproof::kernels::curve::Curve;
use spillproof::kernels::field::KernelField;

use crate::curve::{PointOf, Scalar, ScalarOf, stored};
use crate::error::Result;

/// A polynomial at a point.
#[derive(Clone, Copy, Debug)]
pub struct Query<F = Scalar> {
    /// The polynomial, by its place among those of the opening.
    pub polynomial: usize,
    /// The point.
    pub point: F,
    /// The polynomial's value there.
    pub evaluation: F,
    /// The blind of its commitment.
    pub blind: F,
}

/// Polynomials, and the points at which they are opened.
#[derive(Clone, Debug)]
pub struct Opening<'a, F = Scalar> {
    /// Each polynomial once; none for zero.
    pub polynomials: Vec<Option<&'a Column<F>>>,
    /// In the scheme's order.
    pub queries: Vec<Query<F>>,
}

impl<'a, F: KernelField> Opening<'a, F> {
    /// Refuses two queries of one polynomial at one point, as halo2 does.
    pub(crate) fn check(&self) -> io::Result<()> {
        let same = |a: &Query<F>, b: &Query<F>| (a.polynomial, a.point) == (b.polynomial, b.point);
        let mut queries = self.queries.iter().enumerate();
        if queries.any(|(at, query)| self.queries[..at].iter().any(|before| same(before, query))) {
            let message = "queries iterator contains mismatching evaluations";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    /// The blind of a polynomial's commitment, as the first query says; zero without one.
    pub(crate) fn blind(&self, polynomial: usize) -> F {
        let query = self.queries.iter().find(|query| query.polynomial == polynomial);
        query.map_or(F::ZERO, |query| query.blind)
    }

    /// `factor` times a polynomial, as a term of a [`Combination`]; none for zero.
    pub(crate) fn term(&self, factor: F, polynomial: usize) -> Option<(F, &'a Column<F>)> {
        self.polynomials[polynomial].map(|column| (factor, column))
    }
}

/// A sum that was kept.
type Kept<F> = Option<Column<F>>;

/// Commits to the sum of all combinations, and keeps it on disk if `keep`.
pub(crate) fn divide_and_commit<C: Curve>(
    workspace: &Workspace,
    bases: &Column<PointOf<C>>,
    combinations: &[Combination<'_, ScalarOf<C>>],
    keep: bool,
) -> Result<(PointOf<C>, Kept<ScalarOf<C>>)> {
    let (sum, kept) = multiopen::divide_and_commit::<C>(workspace, bases, combinations, keep)?;
    Ok((stored::<C>(&sum), kept))
}

/// Powers of a challenge from 1 on.
pub(crate) fn powers<F: KernelField>(base: F) -> impl Iterator<Item = F> {
    std::iter::successors(Some(F::ONE), move |power| Some(*power * base))
}
