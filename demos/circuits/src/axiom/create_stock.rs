//! `create_proof` of the unmodified crate.

use rand_chacha::ChaCha20Rng;

use super::halo2::plonk::{Error, create_proof};
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
    let Statement {
        params,
        key,
        circuits,
        instances,
    } = *statement;
    scope(scheme, || {
        create_proof::<Scheme256, AnyProver<'_>, Challenge, _, _, _>(
            params, key, circuits, instances, rng, transcript,
        )
    })
}
