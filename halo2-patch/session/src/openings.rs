//! Polynomials that are opened together, and the pass that SHPLONK and GWC have in common.
//!
//! A proof's polynomials are read in two passes and evaluated in one, and none is copied: what halo2 does step by step with
//! clones (subtract, scale, add, divide, commit) is one [`Combination`], of which [`multiopen`] makes as many as there are
//! while it reads. Memory: what that pass leases.

use std::io;

use spillproof::column::{Column, Workspace};
use spillproof::commit::multiopen::{self, Combination};

use crate::curve::{Point, Scalar, stored};
use crate::error::Result;

/// A polynomial at a point.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// The polynomial, by its place among those of the opening.
    pub polynomial: usize,
    /// The point.
    pub point: Scalar,
    /// The polynomial's value there.
    pub evaluation: Scalar,
    /// The blind of its commitment.
    pub blind: Scalar,
}

/// Polynomials, and the points at which they are opened.
#[derive(Clone, Debug)]
pub struct Opening<'a> {
    /// Each polynomial once; none for zero.
    pub polynomials: Vec<Option<&'a Column<Scalar>>>,
    /// In the scheme's order.
    pub queries: Vec<Query>,
}

impl<'a> Opening<'a> {
    /// Refuses two queries of one polynomial at one point, as halo2 does.
    pub(crate) fn check(&self) -> io::Result<()> {
        let same = |a: &Query, b: &Query| (a.polynomial, a.point) == (b.polynomial, b.point);
        let mut queries = self.queries.iter().enumerate();
        if queries.any(|(at, query)| self.queries[..at].iter().any(|before| same(before, query))) {
            let message = "queries iterator contains mismatching evaluations";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    /// `factor` times a polynomial, as a term of a [`Combination`]; none for zero.
    pub(crate) fn term(&self, factor: Scalar, polynomial: usize) -> Option<(Scalar, &'a Column<Scalar>)> {
        self.polynomials[polynomial].map(|column| (factor, column))
    }
}

/// Commits to the sum of all combinations, and keeps it on disk if `keep`.
pub(crate) fn divide_and_commit(
    workspace: &Workspace,
    bases: &Column<Point>,
    combinations: &[Combination<'_, Scalar>],
    keep: bool,
) -> Result<(Point, Option<Column<Scalar>>)> {
    let (sum, kept) = multiopen::divide_and_commit(workspace, bases, combinations, keep)?;
    Ok((stored(&sum), kept))
}

/// Powers of a challenge from 1 on.
pub(crate) fn powers(base: Scalar) -> impl Iterator<Item = Scalar> {
    std::iter::successors(Some(Scalar::from(1u64)), move |power| Some(*power * base))
}
