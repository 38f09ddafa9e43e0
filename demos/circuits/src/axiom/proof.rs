//! Verifying keys and verification for the built-in circuits, by name.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::any::Any;
use super::dialect::Fr;
use super::halo2::halo2curves::bn256::{Bn256, G1Affine};
use super::halo2::plonk::{Circuit, ConstraintSystem, Error, VerifyingKey, keygen_vk, verify_proof};
use super::halo2::poly::commitment::ParamsProver;
use super::halo2::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use super::halo2::poly::kzg::multiopen::{VerifierGWC, VerifierSHPLONK};
use super::halo2::poly::kzg::strategy::SingleStrategy;
use super::halo2::transcript::{Blake2bRead, Challenge255, TranscriptReadBuffer};
use crate::{Kind, Scheme};

/// The parameters.
pub type Params = ParamsKZG<Bn256>;
/// The key of a verifier.
pub type VerifierKey = VerifyingKey<G1Affine>;

pub(super) type Scheme256 = KZGCommitmentScheme<Bn256>;
pub(super) type Challenge = Challenge255<G1Affine>;
type Reader<'a> = Blake2bRead<&'a [u8], G1Affine, Challenge>;

/// Insecure parameters, for demonstrations and tests: the seed is enough to forge proofs.
pub fn insecure_params(k: u32, seed: u64) -> Params {
    ParamsKZG::setup(k, ChaCha20Rng::seed_from_u64(seed))
}

/// The columns and constraints of a circuit, with selectors as they were written.
pub fn constraint_system(kind: Kind) -> ConstraintSystem<Fr> {
    let mut cs = ConstraintSystem::default();
    Any::configure_with_params(&mut cs, Some(kind));
    cs
}

/// The verifying key of a circuit of `2^k` rows.
///
/// # Errors
/// Stock's.
pub fn verifying_key(params: &Params, kind: Kind, k: u32) -> Result<VerifierKey, Error> {
    keygen_vk(params, &Any::new(kind, k, 0))
}

/// The public inputs of the circuit that follows from `seed`.
pub fn instances(kind: Kind, k: u32, seed: u64) -> Vec<Vec<Fr>> {
    Any::new(kind, k, seed).instances()
}

/// Checks a proof against the public inputs `instances`.
///
/// # Errors
/// Stock's, for a proof that does not hold.
pub fn verify(
    params: &Params,
    key: &VerifierKey,
    instances: &[Vec<Fr>],
    proof: &[u8],
    scheme: Scheme,
) -> Result<(), Error> {
    let instances: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let instances = &[instances.as_slice()];
    let mut transcript = Reader::init(proof);
    let verifier = params.verifier_params();
    let strategy = SingleStrategy::new(verifier);
    match scheme {
        Scheme::Shplonk => verify_proof::<Scheme256, VerifierSHPLONK<'_, Bn256>, Challenge, _, _>(
            verifier,
            key,
            strategy,
            instances,
            &mut transcript,
        ),
        Scheme::Gwc => verify_proof::<Scheme256, VerifierGWC<'_, Bn256>, Challenge, _, _>(
            verifier,
            key,
            strategy,
            instances,
            &mut transcript,
        ),
    }
}
