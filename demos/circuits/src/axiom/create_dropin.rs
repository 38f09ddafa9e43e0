//! `create_proof` of the drop-in, each of its halves by itself: the session's is compiled for either opening,
//! upstream's once for both.

use halo2_axiom::poly::commitment::Prover;
use halo2_axiom::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
use halo2_axiom::spillproof::{active, create_proof_half};
use rand_chacha::ChaCha20Rng;

use super::halo2::plonk::Error;
use super::openings::{AnyProver, scope};
use super::proof::{Challenge, Scheme256};
use super::prover::{Statement, Writer};
use crate::Scheme;

pub(super) fn create(
    statement: &Statement<'_>,
    rng: ChaCha20Rng,
    transcript: &mut Writer,
    scheme: Scheme,
) -> Result<(), Error> {
    match (active(), scheme) {
        (true, Scheme::Shplonk) => half::<true, ProverSHPLONK<'_, _>>(statement, rng, transcript),
        (true, Scheme::Gwc) => half::<true, ProverGWC<'_, _>>(statement, rng, transcript),
        (false, scheme) => scope(scheme, || {
            half::<false, AnyProver<'_>>(statement, rng, transcript)
        }),
    }
}

fn half<'s, const IN_SESSION: bool, P: Prover<'s, Scheme256>>(
    statement: &Statement<'s>,
    rng: ChaCha20Rng,
    transcript: &mut Writer,
) -> Result<(), Error> {
    let Statement {
        params,
        key,
        circuits,
        instances,
    } = *statement;
    create_proof_half::<IN_SESSION, Scheme256, P, Challenge, _, _, _>(
        params, key, circuits, instances, rng, transcript,
    )
}
