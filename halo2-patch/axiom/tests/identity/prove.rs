//! One proof, from parameters to bytes; compiled over both crates.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::erased::{erased, Any, Listed};
use super::halo2::halo2curves::bn256::{Bn256, Fr, G1Affine};
use super::halo2::plonk::{
    create_proof, keygen_pk, keygen_vk, verify_proof, Error, ProvingKey, VerifyingKey,
};
use super::halo2::poly::commitment::{Prover, Verifier};
use super::halo2::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use super::halo2::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK, VerifierGWC, VerifierSHPLONK};
use super::halo2::poly::kzg::strategy::SingleStrategy;
use super::halo2::transcript::{
    Blake2bRead, Blake2bWrite, Challenge255, TranscriptReadBuffer, TranscriptWriterBuffer,
};
use super::halo2::SerdeFormat;
use crate::Scheme;

/// Seed of the rng from which parameters and blinding factors are drawn.
pub const SEED: u64 = 0x5eed;

/// Parameters for `k`. A session makes them each time; those in memory are made once.
pub fn params(k: u32) -> ParamsKZG<Bn256> {
    static MADE: Mutex<BTreeMap<u32, ParamsKZG<Bn256>>> = Mutex::new(BTreeMap::new());
    let make = || ParamsKZG::setup(k, ChaCha20Rng::seed_from_u64(SEED));
    if crate::active() {
        return make();
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(k).or_insert_with(make).clone()
}

/// What `write_custom` makes of them.
pub fn params_bytes(params: &ParamsKZG<Bn256>, format: SerdeFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write_custom(&mut bytes, format).unwrap();
    bytes
}

/// Parameters from bytes.
pub fn read_params(mut bytes: &[u8], format: SerdeFormat) -> std::io::Result<ParamsKZG<Bn256>> {
    let params = ParamsKZG::read_custom(&mut bytes, format)?;
    assert!(bytes.is_empty(), "{} bytes were not read", bytes.len());
    Ok(params)
}

/// Keys of the circuit.
pub fn keys<C: Listed>(params: &ParamsKZG<Bn256>, k: u32) -> ProvingKey<G1Affine> {
    let circuit = C::new(k, 0).without_witnesses().erased();
    let vk = keygen_vk(params, &circuit).unwrap();
    keygen_pk(params, vk, &circuit).unwrap()
}

/// The circuit that [`run`] proves.
pub fn circuit<C: Listed>(k: u32) -> C {
    C::new(k, 7)
}

/// A verifying key from bytes.
pub fn read_vk<C: Listed>(bytes: &[u8]) -> VerifyingKey<G1Affine> {
    VerifyingKey::from_bytes::<Any>(bytes, SerdeFormat::RawBytes, C::WHICH).unwrap()
}

/// A proof of these circuits.
pub fn prove<C: Listed>(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuits: &[C],
    scheme: Scheme,
) -> Vec<u8> {
    match scheme {
        Scheme::Shplonk => prove_with::<C, ProverSHPLONK<'_, Bn256>>(params, pk, circuits),
        Scheme::Gwc => prove_with::<C, ProverGWC<'_, Bn256>>(params, pk, circuits),
    }
}

/// [`prove`] with any scheme.
pub fn prove_with<'p, C: Listed, P: Prover<'p, KZGCommitmentScheme<Bn256>>>(
    params: &'p ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuits: &[C],
) -> Vec<u8> {
    let instances: Vec<_> = circuits.iter().map(C::instances).collect();
    try_prove_with::<C, P>(params, pk, circuits, &instances).unwrap()
}

/// [`prove_with`], for any instances.
pub fn try_prove_with<'p, C: Listed, P: Prover<'p, KZGCommitmentScheme<Bn256>>>(
    params: &'p ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuits: &[C],
    instances: &[Vec<Vec<Fr>>],
) -> Result<Vec<u8>, Error> {
    let mut proof = Vec::new();
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let circuits = &erased(circuits);
    let statement = Statement {
        params,
        pk,
        circuits,
        instances,
    };
    create::<P>(&statement, &mut rng, &mut transcript(&mut proof))?;
    Ok(proof)
}

/// A transcript of proofs: one type wherever they are written.
pub type Transcript<'w> = Blake2bWrite<&'w mut dyn Write, G1Affine, Challenge255<G1Affine>>;

/// A new one.
pub fn transcript(writer: &mut dyn Write) -> Transcript<'_> {
    Blake2bWrite::init(writer)
}

/// What is proved.
pub struct Statement<'p, 's> {
    pub params: &'p ParamsKZG<Bn256>,
    pub pk: &'s ProvingKey<G1Affine>,
    pub circuits: &'s [Any],
    pub instances: &'s [Vec<Vec<Fr>>],
}

/// `create_proof`, for one type of circuits, generators and transcripts.
pub fn create<'p, P: Prover<'p, KZGCommitmentScheme<Bn256>>>(
    statement: &Statement<'p, '_>,
    rng: &mut dyn RngCore,
    transcript: &mut Transcript<'_>,
) -> Result<(), Error> {
    let Statement {
        params,
        pk,
        circuits,
        instances,
    } = *statement;
    let columns = borrowed(instances);
    let columns: Vec<&[&[Fr]]> = columns.iter().map(Vec::as_slice).collect();
    create_proof::<KZGCommitmentScheme<Bn256>, P, _, _, _, _>(params, pk, circuits, &columns, rng, transcript)
}

/// As the prover and the verifier take them.
pub fn borrowed(instances: &[Vec<Vec<Fr>>]) -> Vec<Vec<&[Fr]>> {
    instances
        .iter()
        .map(|columns| columns.iter().map(Vec::as_slice).collect())
        .collect()
}

/// Does the proof verify?
pub fn verifies(
    params: &ParamsKZG<Bn256>,
    vk: &VerifyingKey<G1Affine>,
    instances: &[Vec<Vec<Fr>>],
    proof: &[u8],
    scheme: Scheme,
) -> bool {
    match scheme {
        Scheme::Shplonk => verifies_with::<VerifierSHPLONK<'_, Bn256>>(params, vk, instances, proof),
        Scheme::Gwc => verifies_with::<VerifierGWC<'_, Bn256>>(params, vk, instances, proof),
    }
}

/// [`verifies`] with any scheme.
pub fn verifies_with<'p, V>(
    params: &'p ParamsKZG<Bn256>,
    vk: &VerifyingKey<G1Affine>,
    instances: &[Vec<Vec<Fr>>],
    proof: &[u8],
) -> bool
where
    V: Verifier<
        'p,
        KZGCommitmentScheme<Bn256>,
        MSMAccumulator = super::halo2::poly::kzg::msm::DualMSM<'p, Bn256>,
        Guard = super::halo2::poly::kzg::strategy::GuardKZG<'p, Bn256>,
    >,
{
    let columns = borrowed(instances);
    let columns: Vec<&[&[Fr]]> = columns.iter().map(Vec::as_slice).collect();
    let mut transcript = Blake2bRead::<_, G1Affine, Challenge255<_>>::init(proof);
    let strategy = SingleStrategy::new(params);
    verify_proof::<KZGCommitmentScheme<Bn256>, V, _, _, _>(params, vk, strategy, &columns, &mut transcript)
        .is_ok()
}

/// Everything that one run makes, as bytes.
#[derive(PartialEq, Eq)]
pub struct Run {
    pub params: Vec<u8>,
    pub vk: Vec<u8>,
    pub pk: Vec<u8>,
    pub proof: Vec<u8>,
    /// Of each circuit.
    pub instances: Vec<Vec<Vec<Fr>>>,
}

/// Parameters, keys and a proof for `C` over `2^k` rows.
pub fn run<C: Listed>(k: u32, scheme: Scheme) -> Run {
    let params = params(k);
    let pk = keys::<C>(&params, k);
    let circuit = circuit::<C>(k);
    let instances = vec![circuit.instances()];
    let proof = prove(&params, &pk, &[circuit], scheme);
    Run {
        params: params_bytes(&params, SerdeFormat::RawBytes),
        vk: pk.get_vk().to_bytes(SerdeFormat::RawBytes),
        pk: pk.to_bytes(SerdeFormat::RawBytes),
        proof,
        instances,
    }
}

/// Verifies a run from its bytes alone.
pub fn accepts<C: Listed>(run: &crate::Bytes<'_>, scheme: Scheme) -> bool {
    let params = read_params(run.params, SerdeFormat::RawBytes).unwrap();
    verifies(&params, &read_vk::<C>(run.vk), run.instances, run.proof, scheme)
}
