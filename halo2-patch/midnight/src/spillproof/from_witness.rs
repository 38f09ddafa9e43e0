//! A proof from a witness in a file.
//!
//! Its draws are those of `create_proof`, in the same order, so with the same generator, in a pool of as many
//! threads, it is the same proof.
//!
//! Memory: what a proof takes.

use std::io;

use group::Group as _;
use midnight_curves::{Bls12, G1Projective};
use rand_core::{CryptoRng, RngCore};
use spillproof_engine::plan::Phase;
use spillproof_engine::stream::Scalars;
use spillproof_plonk::ProverCurve as _;
use spillproof_report::environment;

use super::bridge;
use super::convert::{foreign_point, Foreign, P};
use super::describe::has_one_phase;
use super::names::{session_for, Fr, ProvingKey};
use super::witness::SavedWitness;
use crate::plonk;
use crate::plonk::spillproof_prover::{create_from_witness, Proved};
use crate::poly::kzg::params::ParamsKZG;
use crate::transcript::{Hashable, Sampleable, Transcript};

/// [`create_proof`](plonk::create_proof) of one circuit from its witness in a file, in a session: nothing is
/// synthesised. With the same generator, in a pool of as many threads, it is the same proof.
///
/// # Errors
/// Those of `create_proof`; without a session; [`SavedError`](super::SavedError) within the error for a
/// witness of another key.
pub fn create_proof_from_witness<R, T>(
    params: &ParamsKZG<Bls12>,
    pk: &ProvingKey,
    #[cfg(feature = "committed-instances")] nb_committed_instances: usize,
    witness: &SavedWitness,
    mut rng: R,
    transcript: &mut T,
) -> Result<(), plonk::Error>
where
    R: RngCore + CryptoRng,
    T: Transcript,
    Fr: Sampleable<T::Hash> + Hashable<T::Hash>,
    G1Projective: Hashable<T::Hash>,
{
    #[cfg(not(feature = "committed-instances"))]
    let nb_committed_instances = 0;
    let session = session_for("a proof from a witness' own file")?;
    let scheme = bridge::kzg::<Bls12>().ok_or_else(|| io::Error::other("KZG over BLS12-381 is not known"))?;
    has_one_phase(pk.get_vk().cs()).map_err(io::Error::from)?;
    witness.belongs_to(pk.get_vk()).map_err(io::Error::from)?;
    let columns = witness.instances();
    let instances = [&columns[..]];
    let proved = Proved::stored(nb_committed_instances, &instances);
    environment::phase(&session, Phase::Proof, || {
        let found = (session.clone(), scheme);
        create_from_witness(
            &found,
            params,
            pk,
            &proved,
            witness.0.advice(),
            &mut rng,
            transcript,
        )
    })
}

/// Commitments to instance columns, as [`prepare`](plonk::prepare) takes those of a proof whose first columns are
/// committed: sums over Lagrange points, through fixed buffers. Columns may be shorter than the circuit.
///
/// # Errors
/// Without a session; the engine's, also for a column that is longer than the parameters.
pub fn commit_instances(params: &ParamsKZG<Bls12>, columns: &[&[Fr]]) -> io::Result<Vec<G1Projective>> {
    let session = session_for("a commitment to public inputs")?;
    let commit = |values: &&[Fr]| {
        if values.is_empty() {
            return Ok(G1Projective::identity());
        }
        let points = params.g_lagrange.column(&session)?;
        let scalars = Foreign(values);
        let sums = || {
            P::sums(
                &points.prefix(values.len() as u64)?,
                &[Scalars::Foreign(&scalars)],
            )
        };
        // One vector of scalars, one sum.
        Ok(sums().map_err(io::Error::other)?.iter().map(foreign_point).sum())
    };
    columns.iter().map(commit).collect()
}
