//! Proving keys and proofs for the built-in circuits, by name.
//!
//! The rng of the prover follows from the seed, so a proof is a function of
//! `(circuit, k, seed, scheme, parameters)` as far as the prover draws from that rng (the drop-in's
//! reproducible switch does the rest).

use std::io;
use std::sync::Arc;

use halo2_axiom::spillproof::CircuitDescription;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::any::Any;
use super::create::create;
use super::described::OfProgram;
use super::dialect::Fr;
use super::halo2::SerdeFormat;
use super::halo2::halo2curves::bn256::G1Affine;
use super::halo2::plonk::{Error, ProvingKey, keygen_pk};
use super::halo2::transcript::{Blake2bWrite, TranscriptWriterBuffer};
use super::proof::{Challenge, Params, VerifierKey};
use crate::{Kind, Scheme};

/// The key of a prover.
pub type ProverKey = ProvingKey<G1Affine>;

/// What is proved.
pub(super) struct Statement<'s> {
    pub(super) params: &'s Params,
    pub(super) key: &'s ProverKey,
    pub(super) circuits: &'s [Any],
    pub(super) instances: &'s [&'s [&'s [Fr]]],
}

pub(super) type Writer = Blake2bWrite<Vec<u8>, G1Affine, Challenge>;

/// The proving key that goes with `key`.
///
/// # Errors
/// Stock's.
pub fn proving_key(params: &Params, key: VerifierKey, kind: Kind, k: u32) -> Result<ProverKey, Error> {
    keygen_pk(params, key, &Any::new(kind, k, 0))
}

/// The key of a program's own circuit, as [`SerdeFormat::RawBytesUnchecked`].
///
/// # Errors
/// Of the reader.
pub fn read_proving_key(reader: &mut dyn io::Read, of: &Arc<CircuitDescription>) -> io::Result<ProverKey> {
    let mut reader = io::BufReader::new(reader);
    ProverKey::read::<_, OfProgram>(&mut reader, SerdeFormat::RawBytesUnchecked, Some(Arc::clone(of)))
}

/// A proof for the circuit that follows from `seed`.
///
/// # Errors
/// Stock's.
pub fn prove(
    params: &Params,
    key: &ProverKey,
    kind: Kind,
    k: u32,
    seed: u64,
    scheme: Scheme,
) -> Result<Vec<u8>, Error> {
    let circuit = Any::new(kind, k, seed);
    let instances = circuit.instances();
    let instances: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    prove_circuit(params, key, (circuit, &instances), seed, scheme)
}

/// A proof for a circuit with its public inputs.
///
/// # Errors
/// Stock's.
pub fn prove_circuit(
    params: &Params,
    key: &ProverKey,
    (circuit, instances): (Any, &[&[Fr]]),
    seed: u64,
    scheme: Scheme,
) -> Result<Vec<u8>, Error> {
    let mut transcript = Writer::init(Vec::new());
    let rng = ChaCha20Rng::seed_from_u64(seed);
    let statement = Statement {
        params,
        key,
        circuits: &[circuit],
        instances: &[instances],
    };
    create(&statement, rng, &mut transcript, scheme)?;
    Ok(transcript.finalize())
}
