//! Proving keys and proofs for the built-in circuits, by name.
//!
//! The rng of the prover follows from the seed, so a proof is a function of `(circuit, k, seed, parameters)`
//! and of the number of threads of rayon's pool, which midnight-proofs divides its random polynomial by; where
//! a lookup leaves values of its table, of the drop-in's reproducible switch, too.

use std::io;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

use super::any::Any;
use super::dialect::Fr;
use super::halo2::plonk::{Error, ProvingKey, create_proof, keygen_pk};
use super::halo2::transcript::Transcript as _;
use super::halo2::utils::SerdeFormat;
use super::proof::{Params, Scheme, Transcript, VerifierKey};
use crate::Kind;

/// The key of a prover.
pub type ProverKey = ProvingKey<Fr, Scheme>;

/// The proving key that goes with `key`, which takes no parameters.
///
/// # Errors
/// Stock's.
pub fn proving_key(_params: &Params, key: VerifierKey, kind: Kind, k: u32) -> Result<ProverKey, Error> {
    Any::scope(kind, || keygen_pk(key, &Any::new(kind, k, 0)))
}

/// A proof for the circuit that follows from `seed`.
///
/// # Errors
/// Stock's.
pub fn prove(params: &Params, key: &ProverKey, kind: Kind, k: u32, seed: u64) -> Result<Vec<u8>, Error> {
    let circuit = Any::new(kind, k, seed);
    let instances = circuit.instances();
    let instances: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let mut transcript = Transcript::init();
    let rng = ChaCha20Rng::seed_from_u64(seed);
    Any::scope(kind, || {
        // No instance is committed.
        create_proof(params, key, &[circuit], 0, &[&instances], &mut transcript, rng)
    })?;
    Ok(transcript.finalize())
}

/// Writes a key, as [`read_proving_key`] reads it.
///
/// # Errors
/// Of the writer.
pub fn write_proving_key(key: &ProverKey, mut writer: &mut dyn io::Write) -> io::Result<()> {
    key.write(&mut writer, SerdeFormat::RawBytes)
}

/// The proving key of a circuit of `2^k` rows, from midnight-proofs' own bytes.
///
/// # Errors
/// Of the reader; for bytes that are no key of that circuit and size.
pub fn read_proving_key(reader: &mut dyn io::Read, kind: Kind, k: u32) -> io::Result<ProverKey> {
    let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
    // Version and k: of a key of another size, nothing else is read.
    let mut head = [0; 2];
    reader.read_exact(&mut head)?;
    let found = head[1];
    if u32::from(found) != k {
        return refused(format!(
            "a proving key for 2^{found} rows, not 2^{k}, or no proving key"
        ));
    }
    let mut whole = io::Read::chain(&head[..], reader);
    let key = Any::scope(kind, || {
        ProverKey::read::<_, Any>(&mut whole, SerdeFormat::RawBytes)
    })?;
    match io::Read::read(&mut whole, &mut [0])? {
        0 => Ok(key),
        _ => refused("bytes follow the proving key: is it of another circuit?".to_owned()),
    }
}
