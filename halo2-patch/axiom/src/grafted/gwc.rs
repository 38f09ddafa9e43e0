//! GWC over columns. A child of upstream's `poly::kzg::multiopen::gwc::prover`.
//!
//! For each point `z` in turn, the proof commits to `(sum over j of v^j * (p_j(X) - p_j(z))) / (X - z)` over the polynomials
//! that are opened there (Gabizon, Williamson and Ciobotaru 2019, section 3): one pass over those polynomials each, and none
//! is stored.

use super::*;

use ::spillproof::commit::multiopen::Combination;
use ff::Field;

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
    Ch: EncodedChallenge<E::G1Affine>,
    T: TranscriptWrite<E::G1Affine, Ch>,
    I: IntoIterator<Item = ProverQuery<'com, E::G1Affine>> + Clone,
{
    let queries: Vec<_> = queries.clone().into_iter().collect();
    let Some(opening) = Opening::of(&params.g, &queries)? else {
        return Ok(false);
    };
    let v: ChallengeV<E::G1Affine> = transcript.squeeze_challenge_scalar();
    let sets = construct_intermediate_sets(queries).ok_or_else(crate::spillproof::openings::mismatch)?;
    for set in &sets {
        let (mut terms, mut value) = (Vec::new(), E::Fr::ZERO);
        for (query, factor) in set.queries.iter().zip(powers(*v)) {
            terms.extend(opening.term(scalar(&factor), query.get_commitment().poly));
            value += factor * query.get_eval();
        }
        let quotient = Combination {
            terms,
            low: vec![scalar(&value)],
            roots: vec![scalar(&set.point)],
            scale: scalar(&E::Fr::ONE),
        };
        let (commitment, _) = opening.commit(&[quotient], false)?;
        transcript.write_point(commitment)?;
    }
    Ok(true)
}
