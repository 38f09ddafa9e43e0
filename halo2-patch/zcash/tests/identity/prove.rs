//! Parameters, keys and proofs over one of the two crates.

use ff::FromUniformBytes;

use super::halo2::arithmetic::CurveAffine;
use super::halo2::plonk::{
    create_proof, keygen_pk, keygen_vk, verify_proof, Error, ProvingKey, SingleVerifier, VerifyingKey,
};
use super::halo2::poly::commitment::Params;
use super::halo2::transcript::{Blake2bRead, Blake2bWrite, Challenge255};
use super::random::Random;
use crate::Draws;

/// A curve whose scalars can be challenges.
pub trait Curve: CurveAffine<ScalarExt: FromUniformBytes<64>> {}

impl<C: CurveAffine<ScalarExt: FromUniformBytes<64>>> Curve for C {}

/// Parameters of the other crate, or of the same one, as bytes.
pub fn read_params<C: Curve>(mut bytes: &[u8]) -> Params<C> {
    let params = Params::read(&mut bytes).unwrap();
    assert!(bytes.is_empty());
    params
}

pub fn written<C: Curve>(params: &Params<C>) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes).unwrap();
    bytes
}

pub fn keys<C: Curve>(params: &Params<C>, circuit: &Random) -> Result<ProvingKey<C>, Error> {
    use super::halo2::plonk::Circuit;
    let circuit = Circuit::<C::Scalar>::without_witnesses(circuit);
    let vk = keygen_vk(params, &circuit)?;
    keygen_pk(params, vk, &circuit)
}

/// All that a verifying key is made of, as text.
pub fn pinned<C: Curve>(vk: &VerifyingKey<C>) -> String {
    format!("{:?}", vk.pinned())
}

pub fn prove<C: Curve>(
    params: &Params<C>,
    pk: &ProvingKey<C>,
    circuits: &[Random],
    seed: u64,
) -> Result<Vec<u8>, Error> {
    let instances: Vec<Vec<Vec<C::Scalar>>> = circuits.iter().map(Random::instances).collect();
    prove_with(params, pk, circuits, &instances, seed)
}

pub fn prove_with<C: Curve>(
    params: &Params<C>,
    pk: &ProvingKey<C>,
    circuits: &[Random],
    instances: &[Vec<Vec<C::Scalar>>],
    seed: u64,
) -> Result<Vec<u8>, Error> {
    let columns: Vec<Vec<&[C::Scalar]>> = instances
        .iter()
        .map(|of| of.iter().map(|column| &column[..]).collect())
        .collect();
    let instances: Vec<&[&[C::Scalar]]> = columns.iter().map(|columns| &columns[..]).collect();
    let mut transcript = Blake2bWrite::<_, C, Challenge255<C>>::init(Vec::new());
    create_proof(
        params,
        pk,
        circuits,
        &instances,
        Draws::new(seed),
        &mut transcript,
    )?;
    Ok(transcript.finalize())
}

/// Whether this crate's verifier accepts a proof.
pub fn accepts<C: Curve>(
    params: &Params<C>,
    vk: &VerifyingKey<C>,
    circuits: &[Random],
    proof: &[u8],
) -> bool {
    let instances: Vec<Vec<Vec<C::Scalar>>> = circuits.iter().map(Random::instances).collect();
    let columns: Vec<Vec<&[C::Scalar]>> = instances
        .iter()
        .map(|of| of.iter().map(|column| &column[..]).collect())
        .collect();
    let instances: Vec<&[&[C::Scalar]]> = columns.iter().map(|columns| &columns[..]).collect();
    let strategy = SingleVerifier::new(params);
    let mut transcript = Blake2bRead::<_, C, Challenge255<C>>::init(proof);
    verify_proof(params, vk, strategy, &instances, &mut transcript).is_ok()
}
