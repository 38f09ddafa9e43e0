//! SHPLONK over columns. A child of upstream's `poly::kzg::multiopen::shplonk::prover`.
//!
//! With the rotation sets `i` of polynomials `p_ij`, their interpolations `r_ij` over the set's points `S_i`, and all
//! points `T`, the proof commits to
//!
//! ```text
//! h(X) = sum over i of v^i * (sum over j of y^j * (p_ij(X) - r_ij(X))) / Z_{S_i}(X)
//! l(X) = (sum over i, j of v^i * z_i * y^j * (p_ij(X) - r_ij(u)) - Z_T(u) * h(X)) / (z_0 * (X - u)),  z_i = Z_{T \ S_i}(u)
//! ```
//!
//! (Boneh, Drake, Fisch and Gabizon 2020, section 4.1, with the first set's `z` divided out). Each is one pass over all
//! polynomials; `h` is kept on disk between the two. The transcript sees what it sees from stock, in the same order.

use super::*;

use ::spillproof::commit::multiopen::Combination;

use crate::spillproof::openings::Opening;
use crate::spillproof::values::scalar;

/// Makes the proof if the queries' polynomials are on disk; `false`, with nothing done, if that is for stock.
pub(super) fn create_proof<'com, E, Ch, T, I>(
    params: &ParamsKZG<E>,
    transcript: &mut T,
    queries: &I,
) -> io::Result<bool>
where
    E: Engine + Debug,
    E::G1Affine: SerdeCurveAffine<ScalarExt = E::Fr, CurveExt = E::G1>,
    E::Fr: Hash,
    Ch: EncodedChallenge<E::G1Affine>,
    T: TranscriptWrite<E::G1Affine, Ch>,
    I: IntoIterator<Item = ProverQuery<'com, E::G1Affine>> + Clone,
{
    let queries: Vec<_> = queries.clone().into_iter().collect();
    let Some(opening) = Opening::of(&params.g, &queries)? else {
        return Ok(false);
    };
    let y: ChallengeY<E::G1Affine> = transcript.squeeze_challenge_scalar();
    let sets = construct_intermediate_sets(queries).ok_or_else(crate::spillproof::openings::mismatch)?;
    let (sets, points) = (sets.rotation_sets, sets.super_point_set);
    let v: ChallengeV<E::G1Affine> = transcript.squeeze_challenge_scalar();

    // The interpolations of each set, added up with the powers of y; and each set's power of v.
    let sums: Vec<Vec<E::Fr>> = sets.iter().map(|set| interpolated(set, *y)).collect();
    let weights: Vec<E::Fr> = powers(*v).take(sets.len()).collect();

    let quotients: Vec<_> = sets
        .iter()
        .zip(&sums)
        .zip(&weights)
        .map(|((set, low), weight)| {
            let polys = set.commitments.iter().zip(powers(*y));
            Combination {
                terms: polys.filter_map(|(poly, factor)| opening.term(scalar(&factor), poly.get().poly)).collect(),
                low: low.iter().map(scalar).collect(),
                roots: set.points.iter().map(scalar).collect(),
                scale: scalar(weight),
            }
        })
        .collect();
    let (commitment, h) = opening.commit(&quotients, true)?;
    transcript.write_point(commitment)?;
    let u: ChallengeU<E::G1Affine> = transcript.squeeze_challenge_scalar();

    let differences: Vec<E::Fr> = sets
        .iter()
        .map(|set| {
            let others: Vec<E::Fr> = points.iter().filter(|point| !set.points.contains(point)).copied().collect();
            evaluate_vanishing_polynomial(&others, *u)
        })
        .collect();
    let first = differences.first().and_then(|z| Option::<E::Fr>::from(z.invert()));
    let first = first.ok_or_else(|| io::Error::other("the challenge is one of the points"))?;
    let all: Vec<E::Fr> = points.iter().copied().collect();
    let (mut terms, mut low) = (Vec::new(), E::Fr::ZERO);
    for (((set, sum), weight), z) in sets.iter().zip(&sums).zip(&weights).zip(&differences) {
        let weight = *weight * z;
        let polys = set.commitments.iter().zip(powers(*y));
        terms.extend(polys.filter_map(|(poly, factor)| opening.term(scalar(&(weight * factor)), poly.get().poly)));
        low += weight * eval_polynomial(sum, *u);
    }
    let minus_all = scalar(&-evaluate_vanishing_polynomial(&all, *u));
    terms.extend(h.as_ref().map(|h| (minus_all, h)));
    let linearisation = Combination {
        terms,
        low: vec![scalar(&low)],
        roots: vec![scalar(&*u)],
        scale: scalar(&first),
    };
    let (commitment, _) = opening.commit(&[linearisation], false)?;
    transcript.write_point(commitment)?;
    Ok(true)
}

/// `sum over j of y^j * r_j(X)`, where `r_j` takes the values of polynomial `j` at the set's points.
fn interpolated<C: CurveAffine>(
    set: &RotationSet<C::Scalar, PolynomialPointer<'_, C>>,
    y: C::Scalar,
) -> Vec<C::Scalar> {
    let mut sum = vec![C::Scalar::ZERO; set.points.len()];
    for (poly, factor) in set.commitments.iter().zip(powers(y)) {
        let low = lagrange_interpolate(&set.points, &poly.evals());
        sum.iter_mut().zip(low).for_each(|(sum, low)| *sum += factor * low);
    }
    sum
}
