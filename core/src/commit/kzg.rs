//! KZG over an SRS on disk (Kate, Zaverucha and Goldberg, *Constant-size commitments to polynomials*, 2010).
//!
//! A commitment is one streamed MSM. An opening at `z` needs the quotient `(p(X) - p(z)) / (X - z)`, whose coefficients come
//! out of Horner's rule from the top down; they go straight into the MSM as they come, so an opening is one pass
//! over the polynomial and one over the SRS, and the quotient is never stored. Memory: that of the MSM.

use ark_bn254::{G1Affine, g1};
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;

use super::{Scalar, Srs};
use crate::column::{Column, descending};
use crate::kernels::curve::Point;

use crate::kernels::poly::divide_chunk;
use crate::stream::{MsmPlan, Scalars, leased_kernel, msm};
use crate::{Error, Result};

/// Commits to polynomials given by coefficients, with one pass over the SRS for as many as memory takes.
///
/// # Errors
/// [`Error::Invalid`] for a polynomial longer than the SRS, or an SRS without the monomial form; those of [`msm`].
pub fn commit(srs: &Srs, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    Ok(normalized(msm::<g1::Config>(srs.monomial()?, polynomials)?))
}

/// Commits to polynomials given by their values on the domain of the SRS.
///
/// # Errors
/// As [`commit`], with the Lagrange form.
pub fn commit_lagrange(srs: &Srs, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    Ok(normalized(msm::<g1::Config>(srs.lagrange()?, polynomials)?))
}

fn normalized(sums: Vec<ark_bn254::G1Projective>) -> Vec<G1Affine> {
    ark_bn254::G1Projective::normalize_batch(&sums)
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
    let len = polynomial.len();
    if len > bases.len() {
        return Err(Error::Invalid {
            what: "opening",
            details: format!("{len} coefficients for an SRS of {} points", bases.len()),
        });
    }
    if len == 0 {
        return Ok(Opening {
            value: Scalar::ZERO,
            proof: G1Affine::identity(),
        });
    }
    let budget = &bases.workspace().budget;
    let plan = MsmPlan::new::<g1::Config>(len, 1, 1, budget.available_bytes())?;
    let chunk = plan.chunk();
    let (_kernel_bytes, mut kernel) = leased_kernel::<g1::Config>(*plan.config(), budget)?;
    let mut tile = budget.vec(chunk as usize, Point::<g1::Config>::INFINITY, "MSM bases")?;
    let mut values = budget.vec(chunk as usize, Scalar::ZERO, "MSM scalars")?;
    let mut coefficients = polynomial.reader(descending(len, chunk), 2)?;
    let mut points = bases.prefix(len)?.reader(descending(len, chunk), 2)?;
    let mut carry = Scalar::ZERO;
    while let Some(region) = coefficients.next_into(&mut values)? {
        let len = region.len() as usize;
        points.next_into(&mut tile)?;
        // Coefficient i of the chunk becomes coefficient i of the quotient.
        carry = divide_chunk(&mut values[..len], &point, carry);
        kernel.update(&tile[..len], &[&values[..len]]);
    }
    let sums = normalized(kernel.finish());
    Ok(Opening {
        value: carry,
        proof: sums.first().copied().unwrap_or_default(),
    })
}
