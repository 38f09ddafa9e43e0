//! KZG over an SRS on disk (Kate, Zaverucha and Goldberg, *Constant-size commitments to polynomials*, 2010).
//!
//! A commitment is one streamed MSM. An opening at `z` needs the quotient `(p(X) - p(z)) / (X - z)`, whose
//! coefficients come out of Horner's rule from the top down; they go straight into the MSM as they come, so
//! an opening is one pass over the polynomial and one over the SRS, and the quotient is never stored:
//! [`super::multiopen`] with one polynomial and one point.

use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, Zero};

use super::compiled::KzgCurve;
use super::{Combination, Keep, Opened, Srs, divide_and_commit};
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Region};
use spillproof_engine::stream::{Scalars, msm};
use spillproof_kernels::pairing::{G1Point, PairingGroups};

/// Commits to polynomials given by coefficients, with one pass over the SRS for as many as memory takes.
///
/// # Errors
/// [`Error::Invalid`](spillproof_engine::Error::Invalid) for a polynomial longer than the SRS, or an SRS
/// without the monomial form; those of [`msm`].
pub fn commit<E: KzgCurve>(
    srs: &Srs<E>,
    polynomials: &[Scalars<'_, E::Scalar>],
) -> Result<Vec<Affine<E::G1Config>>> {
    E::commit_over(srs.monomial()?, polynomials)
}

/// Commits to polynomials given by their values on the domain of the SRS.
///
/// # Errors
/// As [`commit`], with the Lagrange form.
pub fn commit_lagrange<E: KzgCurve>(
    srs: &Srs<E>,
    polynomials: &[Scalars<'_, E::Scalar>],
) -> Result<Vec<Affine<E::G1Config>>> {
    E::commit_over(srs.lagrange()?, polynomials)
}

/// Sums over any bases.
///
/// # Errors
/// Those of [`msm`].
pub fn commit_over<E: KzgCurve>(
    bases: &Column<G1Point<E>>,
    polynomials: &[Scalars<'_, E::Scalar>],
) -> Result<Vec<Affine<E::G1Config>>> {
    E::commit_over(bases, polynomials)
}

pub(super) fn sums<E: PairingGroups>(
    bases: &Column<G1Point<E>>,
    polynomials: &[Scalars<'_, E::Scalar>],
) -> Result<Vec<Affine<E::G1Config>>> {
    // Normalised in the same turn: it is done in parallel.
    bases.workspace().run(|| {
        let sums = msm::<E::G1Config>(bases, polynomials)?;
        Ok(Projective::normalize_batch(&sums))
    })
}

/// A polynomial's value at a point, and the proof of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening<E: PairingGroups = ark_bn254::Bn254> {
    /// `p(z)`.
    pub value: E::Scalar,
    /// The commitment to `(p(X) - p(z)) / (X - z)`.
    pub proof: E::G1Affine,
}

/// Opens a polynomial, given by coefficients on disk, at `point`.
///
/// # Errors
/// As [`commit`].
pub fn open<E: KzgCurve>(
    srs: &Srs<E>,
    polynomial: &Column<E::Scalar>,
    point: E::Scalar,
) -> Result<Opening<E>> {
    E::open_at(srs.monomial()?, polynomial, point)
}

pub(super) fn open_over<E: PairingGroups>(
    bases: &Column<G1Point<E>>,
    polynomial: &Column<E::Scalar>,
    point: E::Scalar,
) -> Result<Opening<E>> {
    if polynomial.is_empty() {
        return Ok(Opening {
            value: E::Scalar::ZERO,
            proof: Affine::identity(),
        });
    }
    let quotient = Combination {
        terms: vec![(E::Scalar::ONE, polynomial)],
        low: vec![],
        roots: vec![point],
        scale: E::Scalar::ONE,
    };
    let Opened {
        commitment: proof,
        remainders,
        ..
    } = divide_and_commit::<E::G1Config>(bases.workspace(), bases, &[quotient], Keep::Nothing)?;
    Ok(Opening {
        value: remainders.first().copied().unwrap_or(E::Scalar::ZERO),
        proof,
    })
}

/// Whether an opening proves that the polynomial behind `commitment` has its value at `point`. Of the SRS
/// three points are read.
///
/// # Errors
/// [`Error::Invalid`](spillproof_engine::Error::Invalid) for an SRS without the monomial form; what reading
/// its first frame may give.
pub fn check<E: KzgCurve>(
    srs: &Srs<E>,
    commitment: &Affine<E::G1Config>,
    point: E::Scalar,
    opening: &Opening<E>,
) -> Result<bool> {
    let mut generator = [G1Point::<E>::INFINITY];
    srs.monomial()?
        .read(Region::Span { start: 0, len: 1 }, &mut generator)?;
    let generator = generator[0].to_affine::<E::G1Config>();
    Ok(holds(generator, srs.pair(), commitment, point, opening))
}

/// [`check`] with the three points of the SRS, its generator and its pair: `e(commitment - value * g +
/// point * proof, g2) = e(proof, s * g2)`.
pub fn holds<E: KzgCurve>(
    g: Affine<E::G1Config>,
    pair: [Affine<E::G2Config>; 2],
    commitment: &Affine<E::G1Config>,
    point: E::Scalar,
    opening: &Opening<E>,
) -> bool {
    E::holds(g, pair, commitment, point, opening)
}

pub(super) fn holds_over<E: PairingGroups>(
    g: Affine<E::G1Config>,
    [g2, s_g2]: [Affine<E::G2Config>; 2],
    commitment: &Affine<E::G1Config>,
    point: E::Scalar,
    Opening { value, proof }: &Opening<E>,
) -> bool {
    let left = commitment.into_group() - g * value + *proof * point;
    // Written additively: zero is the one of the target group.
    E::multi_pairing([left.into_affine(), -*proof], [g2, s_g2]).is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn an_opening_holds_for_its_value_alone<E: KzgCurve>() {
        // p = 1 + 2X, at 5: 11, and the quotient is 2.
        let scalar = |value: u64| E::Scalar::from(value);
        let (g, g2, secret) = (
            Affine::<E::G1Config>::generator(),
            Affine::<E::G2Config>::generator(),
            scalar(77),
        );
        let pair = [g2, (g2 * secret).into_affine()];
        let commitment = (g * (scalar(1) + scalar(2) * secret)).into_affine();
        let opening = |value| Opening::<E> {
            value: scalar(value),
            proof: (g * scalar(2)).into_affine(),
        };
        let holds = |point, value| holds(g, pair, &commitment, scalar(point), &opening(value));
        assert!(holds(5, 11));
        assert!(!holds(5, 12));
        assert!(!holds(6, 11));
    }

    #[test]
    fn openings_hold_for_their_values_alone() {
        an_opening_holds_for_its_value_alone::<ark_bn254::Bn254>();
        an_opening_holds_for_its_value_alone::<ark_bls12_381::Bls12_381>();
    }
}
