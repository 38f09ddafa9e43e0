//! One proof, from parameters to bytes; compiled over both crates.

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::halo2::halo2curves::bn256::{Bn256, Fr, G1Affine};
use super::halo2::plonk::{
    create_proof, create_proof_from_advice, keygen_pk, keygen_pk2, keygen_vk, keygen_vk_custom,
    synthesize_witness, verify_proof, ProvingKey, VerifyingKey,
};
use super::halo2::poly::commitment::{Prover, Verifier};
use super::halo2::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use super::halo2::poly::kzg::msm::MSMKZG;
use super::halo2::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK, VerifierGWC, VerifierSHPLONK};
use super::halo2::poly::kzg::strategy::SingleStrategy;
use super::halo2::poly::{ProverQuery, VerifierQuery};
use super::halo2::transcript::{
    Blake2bRead, Blake2bWrite, Challenge255, EncodedChallenge, TranscriptRead, TranscriptReadBuffer,
    TranscriptWrite, TranscriptWriterBuffer,
};
use super::halo2::SerdeFormat;
use super::rows::Builtin;
use crate::Scheme;

/// Seed of the rng from which parameters and blinding factors are drawn.
const SEED: u64 = 0x5eed;

/// Parameters for `k`.
pub fn params(k: u32) -> ParamsKZG<Bn256> {
    ParamsKZG::setup(k, ChaCha20Rng::seed_from_u64(SEED))
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
pub fn keys<C: Builtin>(params: &ParamsKZG<Bn256>, k: u32) -> ProvingKey<G1Affine> {
    let circuit = C::new(k, 0).without_witnesses();
    let vk = keygen_vk(params, &circuit).unwrap();
    keygen_pk(params, vk, &circuit).unwrap()
}

/// The circuit that [`run`] proves.
pub fn circuit<C: Builtin>(k: u32) -> C {
    C::new(k, 7)
}

/// A verifying key from bytes.
pub fn read_vk<C: Builtin>(bytes: &[u8]) -> VerifyingKey<G1Affine> {
    VerifyingKey::from_bytes::<C>(bytes, SerdeFormat::RawBytes, ()).unwrap()
}

/// A proof of these circuits.
pub fn prove<C: Builtin>(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuits: &[C],
    scheme: Scheme,
) -> Vec<u8> {
    match scheme {
        Scheme::Shplonk => prove_with::<C, ProverSHPLONK<'_, Bn256>>(params, pk, circuits),
        Scheme::Gwc => prove_with::<C, ProverGWC<'_, Bn256>>(params, pk, circuits),
        Scheme::Querying => prove_with::<C, Querying<ProverSHPLONK<'_, Bn256>>>(params, pk, circuits),
    }
}

fn prove_with<'p, C: Builtin, P: Prover<'p, KZGCommitmentScheme<Bn256>>>(
    params: &'p ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuits: &[C],
) -> Vec<u8> {
    let instances: Vec<_> = circuits.iter().map(Builtin::instances).collect();
    let columns = borrowed(&instances);
    let columns: Vec<&[&[Fr]]> = columns.iter().map(Vec::as_slice).collect();
    let rng = ChaCha20Rng::seed_from_u64(SEED);
    let mut transcript = Blake2bWrite::<_, G1Affine, Challenge255<_>>::init(Vec::new());
    create_proof::<KZGCommitmentScheme<Bn256>, P, _, _, _, _>(
        params,
        pk,
        circuits,
        &columns,
        rng,
        &mut transcript,
    )
    .unwrap();
    transcript.finalize()
}

fn borrowed(instances: &[Vec<Vec<Fr>>]) -> Vec<Vec<&[Fr]>> {
    instances
        .iter()
        .map(|columns| columns.iter().map(Vec::as_slice).collect())
        .collect()
}

/// The advice columns of a circuit of one phase, and what `create_proof_from_advice` makes of them.
pub fn prove_from_advice<C: Builtin>(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuit: C,
) -> (Vec<Vec<Fr>>, Vec<u8>) {
    type Shplonk<'p> = ProverSHPLONK<'p, Bn256>;
    type Commitments = KZGCommitmentScheme<Bn256>;
    let instances = circuit.instances();
    let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let rng = || ChaCha20Rng::seed_from_u64(SEED);
    let mut transcript = Blake2bWrite::<_, G1Affine, Challenge255<_>>::init(Vec::new());
    let (_, advice, _) = synthesize_witness::<Commitments, Shplonk<'_>, _, _, _, _>(
        params,
        pk,
        &[circuit],
        &[&columns],
        rng(),
        &mut transcript,
    )
    .unwrap();
    let advice: Vec<Vec<Fr>> = advice[0].advice_values.iter().map(|poly| poly.to_vec()).collect();
    let mut transcript = Blake2bWrite::<_, G1Affine, Challenge255<_>>::init(Vec::new());
    create_proof_from_advice::<Commitments, Shplonk<'_>, _, _, _>(
        params,
        pk,
        &columns,
        advice.clone(),
        rng(),
        &mut transcript,
    )
    .unwrap();
    (advice, transcript.finalize())
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

/// Does the proof verify?
pub fn verifies(
    params: &ParamsKZG<Bn256>,
    vk: &VerifyingKey<G1Affine>,
    instances: &[Vec<Vec<Fr>>],
    proof: &[u8],
    scheme: Scheme,
) -> bool {
    match scheme {
        Scheme::Querying => {
            verifies_with::<Querying<VerifierSHPLONK<'_, Bn256>>>(params, vk, instances, proof)
        }
        Scheme::Shplonk => verifies_with::<VerifierSHPLONK<'_, Bn256>>(params, vk, instances, proof),
        Scheme::Gwc => verifies_with::<VerifierGWC<'_, Bn256>>(params, vk, instances, proof),
    }
}

fn verifies_with<'p, V>(
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
    pub fn keys<C: Builtin>(&self, params: &ParamsKZG<Bn256>) -> ProvingKey<G1Affine> {
        let circuit = C::new(self.k, 0).without_witnesses();
        if self.keys_at_once {
            return keygen_pk2(params, &circuit, self.compress_selectors).unwrap();
        }
        let vk = keygen_vk_custom(params, &circuit, self.compress_selectors).unwrap();
        keygen_pk(params, vk, &circuit).unwrap()
    }

    /// Keys, and a proof with each scheme.
    pub fn run<C: Builtin>(&self, params: &ParamsKZG<Bn256>, schemes: &[Scheme]) -> Vec<Run> {
        let pk = self.keys::<C>(params);
        let circuits: Vec<C> = (0..self.circuits).map(|i| C::new(self.k, 7 + i as u64)).collect();
        let prove = |scheme: &Scheme| Run {
            params: Vec::new(),
            vk: pk.get_vk().to_bytes(SerdeFormat::RawBytes),
            pk: pk.to_bytes(SerdeFormat::RawBytes),
            proof: prove(params, &pk, &circuits, *scheme),
            instances: circuits.iter().map(Builtin::instances).collect(),
        };
        schemes.iter().map(prove).collect()
    }
}

/// Parameters, keys and a proof for `C` over `2^k` rows.
pub fn run<C: Builtin>(k: u32, scheme: Scheme) -> Run {
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
pub fn accepts<C: Builtin>(run: &crate::Bytes<'_>, scheme: Scheme) -> bool {
    let params = read_params(run.params, SerdeFormat::RawBytes).unwrap();
    verifies(&params, &read_vk::<C>(run.vk), run.instances, run.proof, scheme)
}
