//! KZG over an SRS on disk (Kate, Zaverucha and Goldberg, *Constant-size commitments to polynomials*, 2010).
//!
//! A commitment is one streamed MSM. An opening at `z` needs the quotient `(p(X) - p(z)) / (X - z)`, whose coefficients come
//! out of Horner's rule from the top down; they go straight into the MSM as they come, so an opening is one pass
//! over the polynomial and one over the SRS, and the quotient is never stored: [`super::multiopen`] with one polynomial and one point.

use ark_bn254::{G1Affine, g1};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field};

use super::multiopen::divide;
use super::{Combination, G1, Scalar, Srs};
use crate::Result;
use crate::column::Column;
use crate::stream::{Scalars, msm};

/// Commits to polynomials given by coefficients, with one pass over the SRS for as many as memory takes.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for a polynomial longer than the SRS, or an SRS without the monomial form; those of [`msm`].
pub fn commit(srs: &Srs, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    committed(srs.monomial()?, polynomials)
}

/// Commits to polynomials given by their values on the domain of the SRS.
///
/// # Errors
/// As [`commit`], with the Lagrange form.
pub fn commit_lagrange(srs: &Srs, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    committed(srs.lagrange()?, polynomials)
}

fn committed(bases: &Column<G1>, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    // Normalised in the same turn: it is done in parallel.
    bases.workspace().run(|| {
        let sums = msm::<g1::Config>(bases, polynomials)?;
        Ok(ark_bn254::G1Projective::normalize_batch(&sums))
    })
}

/// A polynomial's value at a point, and the proof of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// `p(z)`.
    pub value: Scalar,
    /// The commitment to `(p(X) - p(z)) / (X - z)`.
    pub proof: G1Affine,
}

/// Opens a polynomial, given by coefficients on disk, at `point`.
///
/// # Errors
/// As [`commit`].
pub fn open(srs: &Srs, polynomial: &Column<Scalar>, point: Scalar) -> Result<Opening> {
    let bases = srs.monomial()?;
    if polynomial.is_empty() {
        return Ok(Opening {
            value: Scalar::ZERO,
            proof: G1Affine::identity(),
        });
    }
    let quotient = Combination {
        terms: vec![(Scalar::ONE, polynomial)],
        low: vec![],
        roots: vec![point],
        scale: Scalar::ONE,
    };
    let (proof, _, remainders) = divide(bases.workspace(), bases, &[quotient], false)?;
    Ok(Opening {
        value: remainders.first().copied().unwrap_or(Scalar::ZERO),
        proof,
    })
}
