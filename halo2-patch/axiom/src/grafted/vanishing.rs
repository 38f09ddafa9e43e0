//! The random polynomial of the vanishing argument, drawn in order. A child of upstream's
//! `plonk::vanishing::prover`.
//!
//! Draws: `n` coefficients, from the caller's rng if the reproducible switch is on and else from
//! `thread_rng`; then, as stock, the blinding factor from the caller's rng. Memory: one polynomial, `32 * n`
//! bytes.

use super::*;

/// Draws the polynomial, commits to it, and hashes the commitment.
pub(super) fn commit<'params, C, P, E, R, T>(
    params: &P,
    domain: &EvaluationDomain<C::Scalar>,
    mut rng: R,
    transcript: &mut T,
) -> Result<Committed<C>, Error>
where
    C: CurveAffine,
    P: ParamsProver<'params, C>,
    E: EncodedChallenge<C>,
    R: RngCore,
    T: TranscriptWrite<C, E>,
{
    let mut random_poly = domain.empty_coeff();
    if crate::spillproof::reproducible() {
        draw(&mut random_poly, &mut rng);
    } else {
        draw(&mut random_poly, rand::thread_rng());
    }
    let random_blind = Blind(C::Scalar::random(&mut rng));
    let commitment = params.commit(&random_poly, random_blind).to_affine();
    transcript.write_point(commitment)?;
    Ok(Committed { random_poly, random_blind })
}

fn draw<F: Field>(coefficients: &mut [F], mut rng: impl RngCore) {
    coefficients.iter_mut().for_each(|coefficient| *coefficient = F::random(&mut rng));
}
