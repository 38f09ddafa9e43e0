//! SHPLONK over columns.
//!
//! With the rotation sets `i` of polynomials `p_ij`, their interpolations `r_ij` over the set's points `S_i`,
//! and all points `T`, the proof commits to
//!
//! ```text
//! h(X) = sum over i of v^i * (sum over j of y^j * (p_ij(X) - r_ij(X))) / Z_{S_i}(X)
//! l(X) = (sum over i, j of v^i * z_i * y^j * (p_ij(X) - r_ij(u)) - Z_T(u) * h(X)) / (z_0 * (X - u)),  z_i = Z_{T \ S_i}(u)
//! ```
//!
//! (Boneh, Drake, Fisch and Gabizon 2020, section 4.1, with the first set's `z` divided out). `h` takes one
//! pass over all polynomials, which keeps it and the sums over `y^j * p_ij`; `l` takes one over those. The
//! transcript sees what it sees from halo2's prover, in the same order: sets, and the polynomials of a set,
//! stand in the order in which queries first name them.

use std::io;

use ark_ff::{AdditiveGroup, Field};
use spillproof_commit::{Combination, CommitCurve, Keep};
use spillproof_engine::column::{Column, Workspace};
use spillproof_kernels::field::KernelField;

use crate::curve::{PointOf, ScalarOf, stored};
use crate::error::Result;
use crate::openings::{Opening, powers, rotation_sets, scaled};
use crate::outside::Transcript;

/// Writes the proof of an opening.
///
/// # Errors
/// For two queries of one polynomial at one point; the engine's, and the transcript's.
pub(crate) fn open<C: CommitCurve>(
    workspace: &Workspace,
    bases: &Column<PointOf<C>>,
    opening: &Opening<'_, ScalarOf<C>>,
    transcript: &mut dyn Transcript<C>,
) -> Result<()> {
    let y = transcript.challenge();
    opening.check()?;
    let (sets, all_points) = rotation_sets(opening);
    let v = transcript.challenge();

    // For each set: its terms with powers of y, and the interpolation of their sum.
    let folded: Vec<_> = sets
        .iter()
        .map(|set| {
            let mut evaluations = vec![ScalarOf::<C>::ZERO; set.points.len()];
            let mut terms = Vec::with_capacity(set.members.len());
            for ((polynomial, values), factor) in set.members.iter().zip(powers(y)) {
                terms.extend(opening.terms(factor, *polynomial));
                let sums = evaluations.iter_mut().zip(values);
                sums.for_each(|(sum, value)| *sum += factor * value);
            }
            (terms, interpolate(&set.points, &evaluations))
        })
        .collect();
    let quotients: Vec<_> = (sets.iter().zip(&folded).zip(powers(v)))
        .map(|((set, (terms, low)), scale)| Combination {
            terms: terms.clone(),
            low: low.clone(),
            roots: set.points.clone(),
            scale,
        })
        .collect();
    let opened = C::divide_and_commit(workspace, bases, &quotients, Keep::SumAndNumerators)?;
    transcript.write_point(&stored::<C>(&opened.commitment))?;
    let u = transcript.challenge();

    let differences: Vec<ScalarOf<C>> = sets
        .iter()
        .map(|set| vanishing(all_points.iter().filter(|point| !set.points.contains(point)), u))
        .collect();
    let first = differences.first().and_then(Field::inverse);
    let scale = first.ok_or_else(|| io::Error::other("the challenge is one of the points"))?;
    let (mut terms, mut low) = (Vec::new(), ScalarOf::<C>::ZERO);
    let sums = folded.iter().zip(&opened.numerators);
    for ((((set_terms, interpolation), sum), weight), z) in sums.zip(powers(v)).zip(&differences) {
        let weight = weight * z;
        terms.extend(scaled(weight, set_terms, sum.as_ref()));
        low += weight * horner(interpolation, u);
    }
    terms.extend(opened.sum.as_ref().map(|h| (-vanishing(&all_points, u), h)));
    let linearisation = Combination {
        terms,
        low: vec![low],
        roots: vec![u],
        scale,
    };
    let opened = C::divide_and_commit(workspace, bases, &[linearisation], Keep::Nothing)?;
    transcript.write_point(&stored::<C>(&opened.commitment))?;
    Ok(())
}

/// The coefficients of the polynomial that has these values at these points, which differ.
fn interpolate<F: KernelField>(points: &[F], values: &[F]) -> Vec<F> {
    let mut sum = vec![F::ZERO; points.len()];
    for (at, (point, value)) in points.iter().zip(values).enumerate() {
        // The product of (X - other) over all others, and its value at the point.
        let (mut basis, mut scale) = (vec![F::ONE], F::ONE);
        for other in points[..at].iter().chain(&points[at + 1..]) {
            scale *= *point - other;
            basis.insert(0, F::ZERO);
            for power in 1..basis.len() {
                let higher = basis[power];
                basis[power - 1] -= higher * other;
            }
        }
        let factor = scale.inverse().unwrap_or_default() * value;
        let terms = sum.iter_mut().zip(basis);
        terms.for_each(|(sum, coefficient)| *sum += factor * coefficient);
    }
    sum
}

/// The polynomial that vanishes at the points, at `at`.
fn vanishing<'p, F: KernelField>(points: impl IntoIterator<Item = &'p F>, at: F) -> F {
    points.into_iter().map(|point| at - point).product()
}

fn horner<F: KernelField>(coefficients: &[F], at: F) -> F {
    let zero = F::ZERO;
    coefficients
        .iter()
        .rev()
        .fold(zero, |sum, coefficient| sum * at + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Scalar;

    #[test]
    fn an_interpolation_has_the_values() {
        for count in 0..6u64 {
            let points: Vec<_> = (0..count).map(|i| Scalar::from(i * i + 3)).collect();
            let values: Vec<_> = (0..count).map(|i| Scalar::from(7 * i + 1)).collect();
            let polynomial = interpolate(&points, &values);
            assert_eq!(polynomial.len() as u64, count);
            let evaluated: Vec<_> = points.iter().map(|point| horner(&polynomial, *point)).collect();
            assert_eq!(evaluated, values);
        }
    }
}
