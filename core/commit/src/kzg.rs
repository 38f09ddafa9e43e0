//! KZG over an SRS on disk (Kate, Zaverucha and Goldberg, *Constant-size commitments to polynomials*, 2010).
//!
//! A commitment is one streamed MSM. An opening at `z` needs the quotient `(p(X) - p(z)) / (X - z)`, whose
//! coefficients come out of Horner's rule from the top down; they go straight into the MSM as they come, so
//! an opening is one pass over the polynomial and one over the SRS, and the quotient is never stored:
//! [`super::multiopen`] with one polynomial and one point.

use ark_bn254::{Bn254, G1Affine, G2Affine, g1};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, Zero};

use super::{Combination, G1, Keep, Opened, Scalar, Srs, divide_and_commit};
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Region};
use spillproof_engine::stream::{Scalars, msm};

/// Commits to polynomials given by coefficients, with one pass over the SRS for as many as memory takes.
///
/// # Errors
/// [`Error::Invalid`](spillproof_engine::Error::Invalid) for a polynomial longer than the SRS, or an SRS
/// without the monomial form; those of [`msm`].
pub fn commit(srs: &Srs, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    commit_over(srs.monomial()?, polynomials)
}

/// Commits to polynomials given by their values on the domain of the SRS.
///
/// # Errors
/// As [`commit`], with the Lagrange form.
pub fn commit_lagrange(srs: &Srs, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
    commit_over(srs.lagrange()?, polynomials)
}

/// Sums over any bases. The streamed MSM is compiled here once for BN254, and not again by each caller.
///
/// # Errors
/// Those of [`msm`].
pub fn commit_over(bases: &Column<G1>, polynomials: &[Scalars<'_, Scalar>]) -> Result<Vec<G1Affine>> {
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
    let Opened {
        commitment: proof,
        remainders,
        ..
    } = divide_and_commit(bases.workspace(), bases, &[quotient], Keep::Nothing)?;
    Ok(Opening {
        value: remainders.first().copied().unwrap_or(Scalar::ZERO),
        proof,
    })
}

/// Whether an opening proves that the polynomial behind `commitment` has its value at `point`. Of the SRS
/// three points are read.
///
/// # Errors
/// [`Error::Invalid`](spillproof_engine::Error::Invalid) for an SRS without the monomial form; what reading
/// its first frame may give.
pub fn check(srs: &Srs, commitment: &G1Affine, point: Scalar, opening: &Opening) -> Result<bool> {
    let mut generator = [G1::INFINITY];
    srs.monomial()?
        .read(Region::Span { start: 0, len: 1 }, &mut generator)?;
    let generator = generator[0].to_affine::<g1::Config>();
    Ok(holds(generator, srs.pair(), commitment, point, opening))
}

/// [`check`] with the three points of the SRS, its generator and its pair: `e(commitment - value * g +
/// point * proof, g2) = e(proof, s * g2)`.
pub fn holds(
    g: G1Affine,
    [g2, s_g2]: [G2Affine; 2],
    commitment: &G1Affine,
    point: Scalar,
    Opening { value, proof }: &Opening,
) -> bool {
    let left = commitment.into_group() - g * value + *proof * point;
    // Written additively: zero is the one of the target group.
    Bn254::multi_pairing([left.into_affine(), -*proof], [g2, s_g2]).is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_holds_for_its_value_alone() {
        // p = 1 + 2X, at 5: 11, and the quotient is 2.
        let (g, secret) = (G1Affine::generator(), Scalar::from(77u64));
        let pair = [
            G2Affine::generator(),
            (G2Affine::generator() * secret).into_affine(),
        ];
        let commitment = (g * (Scalar::from(1u64) + Scalar::from(2u64) * secret)).into_affine();
        let opening = |value: u64| Opening {
            value: Scalar::from(value),
            proof: (g * Scalar::from(2u64)).into_affine(),
        };
        let holds = |point: u64, value| holds(g, pair, &commitment, Scalar::from(point), &opening(value));
        assert!(holds(5, 11));
        assert!(!holds(5, 12));
        assert!(!holds(6, 11));
    }
}
