//! Parameters, verifying keys and verification for the built-in circuits, by name, over Vesta.

use std::io;

use super::any::Any;
use super::dialect::Fr;
use super::halo2::pasta::EqAffine;
use super::halo2::plonk::{
    Circuit, ConstraintSystem, Error, SingleVerifier, VerifyingKey, keygen_vk, verify_proof,
};
use super::halo2::poly::commitment;
use super::halo2::transcript::{Blake2bRead, Challenge255};
use crate::Kind;

/// The curve of commitments, whose scalars are the circuits' values.
pub type Curve = EqAffine;
/// The parameters.
pub type Params = commitment::Params<Curve>;
/// The key of a verifier.
pub type VerifierKey = VerifyingKey<Curve>;

pub(super) type Challenge = Challenge255<Curve>;

/// Parameters for `2^k` rows.
pub fn params(k: u32) -> Params {
    Params::new(k)
}

/// Parameters from halo2's own bytes.
///
/// # Errors
/// Of the reader.
pub fn read_params(mut reader: &mut dyn io::Read) -> io::Result<Params> {
    Params::read(&mut reader)
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
    Any::scope(kind, || keygen_vk(params, &Any::new(kind, k, 0)))
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
    let mut rest = proof;
    let mut transcript = Blake2bRead::<_, Curve, Challenge>::init(&mut rest);
    let strategy = SingleVerifier::new(params);
    match verify_proof(params, key, strategy, &[&instances], &mut transcript) {
        Ok(()) if rest.is_empty() => Ok(()),
        Ok(()) => Err(Error::Transcript(crate::trailing(proof, rest))),
        Err(Error::Transcript(error)) => Err(Error::Transcript(crate::unreadable(&error, proof))),
        Err(other) => Err(other),
    }
}
