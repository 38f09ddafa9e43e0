//! A proof from a witness in a file.
//!
//! Its draws are those of `create_proof`, in the same order, so with the same generator it is the same proof.
//!
//! Memory: what a proof takes.

use std::hash::Hash;
use std::io;

use halo2curves::bn256::{Bn256, Fr, G1Affine};
use rand_core::RngCore;
use spillproof_engine::plan::Phase;
use spillproof_report::environment;

use super::describe::has_one_phase;
use super::engine::session_for;
use super::error_of;
use super::stored;
use super::witness::SavedWitness;
use crate::plonk::spillproof_prover::create_from_witness;
use crate::plonk::{self, ProvingKey};
use crate::poly::commitment::Prover;
use crate::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use crate::transcript::{EncodedChallenge, TranscriptWrite};

impl SavedWitness {
    /// The values of each advice column, in memory; behind the rows that a circuit may use, what they are has
    /// no meaning.
    ///
    /// # Errors
    /// Of each column: if the budget has no room for a copy of it, or it is damaged.
    pub fn advice(&self) -> impl Iterator<Item = io::Result<Vec<Fr>>> + '_ {
        let columns = self.0.columns().iter();
        columns.map(|column| stored::on_disk(column.clone(), []).to_vec())
    }
}

/// [`create_proof`](plonk::create_proof) of one circuit from its witness in a file, in a session: nothing is
/// synthesised. With the same generator it is the same proof.
///
/// # Errors
/// Those of `create_proof`; without a session; [`SavedError`](super::SavedError) within the error for a witness of another key.
pub fn create_proof_from_witness<'params, P, E, R, T>(
    params: &'params ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    witness: &SavedWitness,
    rng: R,
    transcript: &mut T,
) -> Result<(), plonk::Error>
where
    P: Prover<'params, KZGCommitmentScheme<Bn256>>,
    E: EncodedChallenge<G1Affine>,
    R: RngCore,
    T: TranscriptWrite<G1Affine, E>,
    Fr: Hash,
{
    let session = session_for("a proof from a witness' own file")?;
    let vk = pk.get_vk();
    has_one_phase(vk.cs()).map_err(io::Error::from)?;
    witness.belongs_to(vk).map_err(io::Error::from)?;
    let (instances, advice) = (witness.instances(), witness.0.advice());
    environment::phase(&session, Phase::Proof, || {
        error_of(|| {
            create_from_witness::<KZGCommitmentScheme<Bn256>, P, E, R, T>(
                &session,
                params,
                pk,
                (&instances, advice),
                rng,
                transcript,
            )
        })
    })
}
