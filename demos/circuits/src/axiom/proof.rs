//! Verifying keys and verification for the built-in circuits, by name.

use std::io;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::any::{Any, Which};
use super::dialect::Fr;
use super::halo2::SerdeFormat;
use super::halo2::halo2curves::bn256::{Bn256, G1Affine, G2Affine};
use super::halo2::halo2curves::ff::{Field, PrimeField};
use super::halo2::halo2curves::serde::SerdeObject;
use super::halo2::plonk::{Circuit, ConstraintSystem, Error, VerifyingKey, keygen_vk, verify_proof};
use super::halo2::poly::commitment::{Params as _, ParamsProver};
use super::halo2::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use super::halo2::poly::kzg::strategy::SingleStrategy;
use super::halo2::transcript::{Blake2bRead, Challenge255, TranscriptReadBuffer};
use super::openings::{AnyVerifier, scope};
use crate::{Kind, Scheme};

/// The parameters.
pub type Params = ParamsKZG<Bn256>;
/// The key of a verifier.
pub type VerifierKey = VerifyingKey<G1Affine>;

pub(super) type Scheme256 = KZGCommitmentScheme<Bn256>;
pub(super) type Challenge = Challenge255<G1Affine>;
type Reader<'a, 'p> = Blake2bRead<&'a mut &'p [u8], G1Affine, Challenge>;

/// Insecure parameters, for demonstrations and tests: the seed is enough to forge proofs.
pub fn insecure_params(k: u32, seed: u64) -> Params {
    ParamsKZG::setup(k, ChaCha20Rng::seed_from_u64(seed))
}

/// Parameters from halo2's own bytes.
///
/// # Errors
/// Of the reader.
pub fn read_params(mut reader: &mut dyn io::Read, format: SerdeFormat) -> io::Result<Params> {
    Params::read_custom(&mut reader, format)
}

/// log2 of the rows that parameters are for.
pub fn rows_of(params: &Params) -> u32 {
    params.k()
}

/// Cuts parameters down to `2^k` rows.
pub fn downsize(params: &mut Params, k: u32) {
    params.downsize(k);
}

/// Parameters of which a verifier alone has use: `g`, `g2` and `s_g2` as [`SerdeFormat::RawBytes`], and no
/// other points.
///
/// # Errors
/// For bytes that are no points.
pub fn verifier_params(k: u32, g: &[u8], pair: [&[u8]; 2]) -> io::Result<Params> {
    let refused = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "a point of the parameters is not on its curve",
        )
    };
    let g = G1Affine::from_raw_bytes(g).ok_or_else(refused)?;
    let g2 = G2Affine::from_raw_bytes(pair[0]).ok_or_else(refused)?;
    let s_g2 = G2Affine::from_raw_bytes(pair[1]).ok_or_else(refused)?;
    Ok(smallest().from_parts(k, vec![g], Some(Vec::new()), g2, s_g2))
}

/// The verifier's part of [`insecure_params`], without their points.
pub fn insecure_verifier_params(k: u32, seed: u64) -> Params {
    let s = Fr::random(ChaCha20Rng::seed_from_u64(seed));
    let (g, g2) = (G1Affine::generator(), G2Affine::generator());
    smallest().from_parts(k, vec![g], Some(Vec::new()), g2, (g2 * s).into())
}

/// Parts become parameters through parameters.
fn smallest() -> Params {
    ParamsKZG::setup(1, ChaCha20Rng::seed_from_u64(0))
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
    /// Of k: the version is before it.
    const K_OFFSET: usize = 1;
    let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
    // halo2's reader would make room for a domain of any k.
    let found = match bytes
        .get(K_OFFSET..K_OFFSET + 4)
        .and_then(|bytes| bytes.try_into().ok())
    {
        Some(bytes) => u32::from_le_bytes(bytes),
        None => return refused(format!("{} bytes are no verifying key", bytes.len())),
    };
    if found > Fr::S {
        return refused(format!(
            "no verifying key: its k at offset {K_OFFSET} is {found}, and {} at most: name a file of `spillproof keygen --vk`",
            Fr::S
        ));
    }
    if found != k {
        return refused(format!(
            "a verifying key for 2^{found} rows, not 2^{k}, or no verifying key"
        ));
    }
    let whole = bytes.len();
    let key = VerifierKey::read::<_, Any>(&mut bytes, SerdeFormat::RawBytes, Some(Which::BuiltIn(kind)))?;
    match bytes.len() {
        0 => Ok(key),
        rest => refused(format!(
            "{rest} of {whole} bytes follow the verifying key: is it of another circuit?"
        )),
    }
}

/// The columns and constraints of a circuit, with selectors as they were written.
pub fn constraint_system(kind: Kind) -> ConstraintSystem<Fr> {
    let mut cs = ConstraintSystem::default();
    Any::configure_with_params(&mut cs, Some(Which::BuiltIn(kind)));
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
/// Stock's, for a proof that does not hold; [`Error::Transcript`] for one that is cut short, and for bytes
/// behind it.
pub fn verify(
    params: &Params,
    key: &VerifierKey,
    instances: &[Vec<Fr>],
    proof: &[u8],
    scheme: Scheme,
) -> Result<(), Error> {
    let instances: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    verify_columns(params, key, &instances, proof, scheme)
}

/// The same of public inputs that are borrowed.
///
/// # Errors
/// As [`verify`].
pub fn verify_columns(
    params: &Params,
    key: &VerifierKey,
    instances: &[&[Fr]],
    proof: &[u8],
    scheme: Scheme,
) -> Result<(), Error> {
    let instances = &[instances];
    let mut rest = proof;
    let mut transcript = Reader::init(&mut rest);
    let verifier = params.verifier_params();
    let strategy = SingleStrategy::new(verifier);
    let verified = scope(scheme, || {
        verify_proof::<Scheme256, AnyVerifier<'_>, Challenge, _, _>(
            verifier,
            key,
            strategy,
            instances,
            &mut transcript,
        )
    });
    match verified {
        Ok(()) if rest.is_empty() => Ok(()),
        Ok(()) => Err(Error::Transcript(crate::trailing(proof, rest))),
        Err(Error::Transcript(error)) => Err(Error::Transcript(crate::unreadable(&error, proof))),
        Err(other) => Err(other),
    }
}
