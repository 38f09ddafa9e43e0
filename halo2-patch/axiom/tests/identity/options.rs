//! Proofs made in other ways: with combined selectors, keys at once, several circuits, advice from elsewhere,
//! and a scheme that opens instances; compiled over both crates.

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::erased::Listed;
use super::halo2::halo2curves::bn256::{Bn256, Fr, G1Affine};
use super::halo2::plonk::{
    create_proof_from_advice, keygen_pk, keygen_pk2, keygen_vk_custom, synthesize_witness, ProvingKey,
};
use super::halo2::poly::commitment::{Prover, Verifier};
use super::halo2::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use super::halo2::poly::kzg::msm::MSMKZG;
use super::halo2::poly::kzg::multiopen::{ProverSHPLONK, VerifierSHPLONK};
use super::halo2::poly::{ProverQuery, VerifierQuery};
use super::halo2::transcript::{EncodedChallenge, TranscriptRead, TranscriptWrite};
use super::halo2::SerdeFormat;
use super::prove::{prove, prove_with, read_params, read_vk, transcript, verifies_with, Run, SEED};
use crate::Scheme;

/// Whether selectors are combined, in how many steps keys are made, and how many circuits share a proof.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub k: u32,
    pub compress_selectors: bool,
    pub keys_at_once: bool,
    pub circuits: usize,
}

impl Plan {
    /// As a program does it that has no special wishes.
    pub fn plain(k: u32) -> Self {
        Self {
            k,
            compress_selectors: false,
            keys_at_once: false,
            circuits: 1,
        }
    }

    /// Keys of the circuit.
    pub fn keys<C: Listed>(&self, params: &ParamsKZG<Bn256>) -> ProvingKey<G1Affine> {
        let circuit = C::new(self.k, 0).without_witnesses().erased();
        if self.keys_at_once {
            return keygen_pk2(params, &circuit, self.compress_selectors).unwrap();
        }
        let vk = keygen_vk_custom(params, &circuit, self.compress_selectors).unwrap();
        keygen_pk(params, vk, &circuit).unwrap()
    }

    /// Keys, and a proof with each scheme.
    pub fn run<C: Listed>(&self, params: &ParamsKZG<Bn256>, schemes: &[Scheme]) -> Vec<Run> {
        let pk = self.keys::<C>(params);
        let proofs = schemes
            .iter()
            .map(|scheme| prove(params, &pk, &self.circuits::<C>(), *scheme));
        proofs.map(|proof| self.made::<C>(&pk, proof)).collect()
    }

    /// Keys, and a proof that opens instances.
    pub fn run_querying<C: Listed>(&self, params: &ParamsKZG<Bn256>) -> Run {
        let pk = self.keys::<C>(params);
        let proof = prove_with::<C, Querying<ProverSHPLONK<'_, Bn256>>>(params, &pk, &self.circuits::<C>());
        self.made::<C>(&pk, proof)
    }

    fn circuits<C: Listed>(&self) -> Vec<C> {
        (0..self.circuits).map(|i| C::new(self.k, 7 + i as u64)).collect()
    }

    fn made<C: Listed>(&self, pk: &ProvingKey<G1Affine>, proof: Vec<u8>) -> Run {
        Run {
            params: Vec::new(),
            vk: pk.get_vk().to_bytes(SerdeFormat::RawBytes),
            pk: pk.to_bytes(SerdeFormat::RawBytes),
            proof,
            instances: self.circuits::<C>().iter().map(C::instances).collect(),
        }
    }
}

/// The advice columns of a circuit of one phase, and what `create_proof_from_advice` makes of them.
pub fn prove_from_advice<C: Listed>(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuit: C,
) -> (Vec<Vec<Fr>>, Vec<u8>) {
    type Shplonk<'p> = ProverSHPLONK<'p, Bn256>;
    type Commitments = KZGCommitmentScheme<Bn256>;
    let instances = circuit.instances();
    let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let new_rng = || ChaCha20Rng::seed_from_u64(SEED);
    let (mut rng, mut unused): (_, Vec<u8>) = (new_rng(), Vec::new());
    let rng_of_witness: &mut dyn RngCore = &mut rng;
    let (_, advice, _) = synthesize_witness::<Commitments, Shplonk<'_>, _, _, _, _>(
        params,
        pk,
        &[circuit.erased()],
        &[&columns],
        rng_of_witness,
        &mut transcript(&mut unused),
    )
    .unwrap();
    let advice: Vec<Vec<Fr>> = advice[0].advice_values.iter().map(|poly| poly.to_vec()).collect();
    let (mut rng, mut proof) = (new_rng(), Vec::new());
    let rng: &mut dyn RngCore = &mut rng;
    create_proof_from_advice::<Commitments, Shplonk<'_>, _, _, _>(
        params,
        pk,
        &columns,
        advice.clone(),
        rng,
        &mut transcript(&mut proof),
    )
    .unwrap();
    (advice, proof)
}

/// A scheme that also opens the instance columns, which no KZG scheme of upstream's does.
#[derive(Debug)]
pub struct Querying<S>(S);

impl<'p, S: Prover<'p, KZGCommitmentScheme<Bn256>>> Prover<'p, KZGCommitmentScheme<Bn256>> for Querying<S> {
    const QUERY_INSTANCE: bool = true;

    fn new(params: &'p ParamsKZG<Bn256>) -> Self {
        Self(S::new(params))
    }

    fn create_proof<'com, E, T, R, I>(&self, rng: R, transcript: &mut T, queries: I) -> std::io::Result<()>
    where
        E: EncodedChallenge<G1Affine>,
        T: TranscriptWrite<G1Affine, E>,
        I: IntoIterator<Item = ProverQuery<'com, G1Affine>> + Clone,
        R: RngCore,
    {
        self.0.create_proof(rng, transcript, queries)
    }
}

impl<'p, S> Verifier<'p, KZGCommitmentScheme<Bn256>> for Querying<S>
where
    S: Verifier<'p, KZGCommitmentScheme<Bn256>>,
{
    type Guard = S::Guard;
    type MSMAccumulator = S::MSMAccumulator;

    const QUERY_INSTANCE: bool = true;

    fn new(params: &'p ParamsKZG<Bn256>) -> Self {
        Self(S::new(params))
    }

    fn verify_proof<'com, E, T, I>(
        &self,
        transcript: &mut T,
        queries: I,
        msm: Self::MSMAccumulator,
    ) -> Result<Self::Guard, super::halo2::poly::Error>
    where
        'p: 'com,
        E: EncodedChallenge<G1Affine>,
        T: TranscriptRead<G1Affine, E>,
        I: IntoIterator<Item = VerifierQuery<'com, G1Affine, MSMKZG<Bn256>>> + Clone,
    {
        self.0.verify_proof(transcript, queries, msm)
    }
}

/// Verifies a run that opens instances from its bytes alone.
pub fn accepts_querying<C: Listed>(run: &crate::Bytes<'_>) -> bool {
    let params = read_params(run.params, SerdeFormat::RawBytes).unwrap();
    let vk = read_vk::<C>(run.vk);
    verifies_with::<Querying<VerifierSHPLONK<'_, Bn256>>>(&params, &vk, run.instances, run.proof)
}
