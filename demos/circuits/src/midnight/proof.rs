//! Parameters, verifying keys and verification for the built-in circuits, by name.

use std::io;

pub use blake2b_simd::State as Hash;
use midnight_curves::pairing::group::Group;
use midnight_curves::{Bls12, G1Projective, G2Affine, G2Projective};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::any::Any;
use super::dialect::{Field, Fr};
use super::halo2::plonk::{Circuit, ConstraintSystem, Error, VerifyingKey, keygen_vk_with_k, prepare};
use super::halo2::poly::commitment::{Guard as _, Params as _};
use super::halo2::poly::kzg::KZGCommitmentScheme;
use super::halo2::poly::kzg::params::ParamsKZG;
use super::halo2::transcript::{CircuitTranscript, Transcript as _};
use super::halo2::utils::SerdeFormat;
use super::halo2::utils::helpers::ProcessedSerdeObject;
use crate::Kind;

/// The scheme of commitments.
pub type Scheme = KZGCommitmentScheme<Bls12>;
/// The parameters.
pub type Params = ParamsKZG<Bls12>;
/// The key of a verifier.
pub type VerifierKey = VerifyingKey<Fr, Scheme>;

pub(super) type Transcript = CircuitTranscript<Hash>;

/// Insecure parameters, for demonstrations and tests: the seed is enough to forge proofs.
pub fn insecure_params(k: u32, seed: u64) -> Params {
    Params::unsafe_setup(k, ChaCha20Rng::seed_from_u64(seed))
}

/// Parameters from midnight-proofs' own bytes.
///
/// # Errors
/// Of the reader.
pub fn read_params(mut reader: &mut dyn io::Read, format: SerdeFormat) -> io::Result<Params> {
    Params::read_custom(&mut reader, format)
}

/// log2 of the rows that parameters are for.
pub fn rows_of(params: &Params) -> u32 {
    params.max_k()
}

/// Cuts parameters down to `2^k` rows.
pub fn downsize(params: &mut Params, k: u32) {
    params.downsize(k);
}

/// Parameters of which a verifier alone has use: `g2` and `s_g2` as [`SerdeFormat::RawBytes`], and no other
/// points.
///
/// # Errors
/// For bytes that are no points.
pub fn verifier_params(pair: [&[u8]; 2]) -> io::Result<Params> {
    let point = |mut bytes: &[u8]| G2Projective::read(&mut bytes, SerdeFormat::RawBytes);
    Ok(of_pair(point(pair[0])?, point(pair[1])?))
}

/// The verifier's part of [`insecure_params`], without their points.
pub fn insecure_verifier_params(seed: u64) -> Params {
    let s = Fr::random(ChaCha20Rng::seed_from_u64(seed));
    let g2 = G2Projective::from(G2Affine::from(G2Projective::generator()));
    of_pair(g2, g2 * s)
}

fn of_pair(g2: G2Projective, s_g2: G2Projective) -> Params {
    let points = vec![G1Projective::generator()];
    Params::from_parts(0, points.clone(), Some(points), g2, s_g2)
}

/// The bytes of a verifying key, as [`read_verifying_key`] reads them.
pub fn verifying_key_bytes(key: &VerifierKey) -> Vec<u8> {
    key.to_bytes(SerdeFormat::RawBytes)
}

/// The verifying key of a circuit of `2^k` rows, from its bytes.
///
/// # Errors
/// For bytes that are no key of that circuit and size.
pub fn read_verifying_key(mut bytes: &[u8], kind: Kind, k: u32) -> io::Result<VerifierKey> {
    let whole = bytes.len();
    let key = Any::scope(kind, || {
        VerifierKey::read::<_, Any>(&mut bytes, SerdeFormat::RawBytes)
    })?;
    let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
    let found = key.get_domain().k();
    match bytes.len() {
        _ if found != k => refused(format!("a verifying key for 2^{found} rows, not 2^{k}")),
        0 => Ok(key),
        rest => refused(format!(
            "{rest} of {whole} bytes follow the verifying key: is it of another circuit?"
        )),
    }
}

/// The columns and constraints of a circuit, with selectors as they were written.
pub fn constraint_system(kind: Kind) -> ConstraintSystem<Fr> {
    let mut cs = ConstraintSystem::default();
    Any::scope(kind, || Any::configure(&mut cs));
    cs
}

/// The verifying key of a circuit of `2^k` rows.
///
/// # Errors
/// Stock's.
pub fn verifying_key(params: &Params, kind: Kind, k: u32) -> Result<VerifierKey, Error> {
    Any::scope(kind, || keygen_vk_with_k(params, &Any::new(kind, k, 0), k))
}

/// The public inputs of the circuit that follows from `seed`.
pub fn instances(kind: Kind, k: u32, seed: u64) -> Vec<Vec<Fr>> {
    Any::new(kind, k, seed).instances()
}

/// Checks a proof against the public inputs `instances`.
///
/// # Errors
/// Stock's, for a proof that does not hold; [`Error::Transcript`] for one that is cut short, and for bytes
/// behind it.
pub fn verify(params: &Params, key: &VerifierKey, instances: &[Vec<Fr>], proof: &[u8]) -> Result<(), Error> {
    let instances: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    // No instance is committed.
    verify_columns(params, key, &[], &instances, proof)
}

/// The same of public inputs that are borrowed, behind commitments to the first columns.
///
/// # Errors
/// As [`verify`].
pub fn verify_columns(
    params: &Params,
    key: &VerifierKey,
    committed: &[G1Projective],
    instances: &[&[Fr]],
    proof: &[u8],
) -> Result<(), Error> {
    let mut transcript = Transcript::init_from_bytes(proof);
    let prepared = prepare::<Fr, Scheme, _>(key, &[committed], &[instances], &mut transcript);
    let guard = prepared.map_err(|error| match error {
        Error::Transcript(error) => Error::Transcript(crate::unreadable(&error, proof)),
        other => other,
    })?;
    let read_bytes = transcript.buffer().position() as usize;
    guard
        .verify(&params.verifier_params())
        .map_err(|_| Error::Opening)?;
    match &proof[read_bytes..] {
        [] => Ok(()),
        rest => Err(Error::Transcript(crate::trailing(proof, rest))),
    }
}
