//! Polynomials that are opened together, as SHPLONK, GWC and zcash's opening have it in common.
//!
//! None is copied: what halo2 does step by step with clones (subtract, scale, add, divide, commit) is one
//! [`Combination`](spillproof_commit::Combination), of which [`multiopen`](spillproof_commit::multiopen)
//! makes as many as there are while it reads. Memory: what that pass leases.

use std::collections::HashSet;
use std::io;

use spillproof_engine::column::Column;
use spillproof_kernels::field::KernelField;

use crate::curve::Scalar;

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

/// A polynomial as a sum of columns with their factors; none for zero.
pub type Sum<'a, F = Scalar> = Vec<(F, &'a Column<F>)>;

/// Polynomials, and the points at which they are opened.
#[derive(Clone, Debug)]
pub struct Opening<'a, F = Scalar> {
    /// Each polynomial once.
    pub polynomials: Vec<Sum<'a, F>>,
    /// In the scheme's order.
    pub queries: Vec<Query<F>>,
}

impl<'a, F: KernelField> Opening<'a, F> {
    /// Refuses two queries of one polynomial at one point, as halo2 does.
    pub(crate) fn check(&self) -> io::Result<()> {
        let mut seen = HashSet::with_capacity(self.queries.len());
        let mut queries = self.queries.iter();
        if !queries.all(|query| seen.insert((query.polynomial, query.point))) {
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

    /// `factor` times a polynomial, as terms of a combination.
    pub(crate) fn terms(&self, factor: F, polynomial: usize) -> Sum<'a, F> {
        scaled(factor, &self.polynomials[polynomial], None)
    }
}

/// Polynomials that are opened at the same points.
pub(crate) struct RotationSet<F> {
    pub points: Vec<F>,
    /// Polynomials by their place, with their values at the points.
    pub members: Vec<(usize, Vec<F>)>,
}

/// The sets, and all points.
pub(crate) fn rotation_sets<F: KernelField>(opening: &Opening<'_, F>) -> (Vec<RotationSet<F>>, Vec<F>) {
    let mut all_points: Vec<F> = Vec::new();
    // For each polynomial its points and values, in the order in which queries first name it.
    let mut opened: Vec<(usize, Vec<(F, F)>)> = Vec::new();
    for query in &opening.queries {
        let at = (query.point, query.evaluation);
        if !all_points.contains(&query.point) {
            all_points.push(query.point);
        }
        match opened.iter_mut().find(|(other, _)| *other == query.polynomial) {
            Some((_, values)) => values.push(at),
            None => opened.push((query.polynomial, vec![at])),
        }
    }
    let mut sets: Vec<RotationSet<F>> = Vec::new();
    for (polynomial, values) in opened {
        let value_at = |point: &F| values.iter().find(|(at, _)| at == point).map(|(_, value)| *value);
        // The set with the same points, and the values in the order of its points.
        let same = sets.iter_mut().find_map(|set| {
            let in_order: Option<Vec<F>> = set.points.iter().map(value_at).collect();
            let in_order = in_order.filter(|in_order| in_order.len() == values.len())?;
            Some((set, in_order))
        });
        match same {
            Some((set, in_order)) => set.members.push((polynomial, in_order)),
            None => {
                let (points, values) = values.into_iter().unzip();
                sets.push(RotationSet {
                    points,
                    members: vec![(polynomial, values)],
                });
            }
        }
    }
    (sets, all_points)
}

/// `weight` times the sum of `terms`, in terms of their sum if it was kept.
pub(crate) fn scaled<'a, F: KernelField>(
    weight: F,
    terms: &[(F, &'a Column<F>)],
    sum: Option<&'a Column<F>>,
) -> Sum<'a, F> {
    match sum {
        Some(sum) => vec![(weight, sum)],
        None => terms
            .iter()
            .map(|(factor, column)| (weight * factor, *column))
            .collect(),
    }
}

/// Powers of a challenge from 1 on.
pub(crate) fn powers<F: KernelField>(base: F) -> impl Iterator<Item = F> {
    std::iter::successors(Some(F::ONE), move |power| Some(*power * base))
}
