//! Proving keys and proofs for the built-in circuits, by name.
//!
//! The rng of the prover follows from the seed, so a proof is a function of `(circuit, k, seed)`.

use std::convert::Infallible;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use stock_rand::TryRng;

use super::any::Any;
use super::dialect::Fr;
use super::halo2::plonk::{Error, ProvingKey, create_proof, keygen_pk};
use super::halo2::transcript::Blake2bWrite;
use super::proof::{Challenge, Curve, Params, VerifierKey};
use crate::Kind;

/// The key of a prover.
pub type ProverKey = ProvingKey<Curve>;

/// The proving key that goes with `key`.
///
/// # Errors
/// Stock's.
pub fn proving_key(params: &Params, key: VerifierKey, kind: Kind, k: u32) -> Result<ProverKey, Error> {
    Any::scope(kind, || keygen_pk(params, key, &Any::new(kind, k, 0)))
}

/// A proof for the circuit that follows from `seed`.
///
/// # Errors
/// Stock's.
pub fn prove(params: &Params, key: &ProverKey, kind: Kind, k: u32, seed: u64) -> Result<Vec<u8>, Error> {
    let circuit = Any::new(kind, k, seed);
    let instances = circuit.instances();
    let instances: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let mut transcript = Blake2bWrite::<_, Curve, Challenge>::init(Vec::new());
    let draws = Draws(ChaCha20Rng::seed_from_u64(seed));
    Any::scope(kind, || {
        create_proof(params, key, &[circuit], &[&instances], draws, &mut transcript)
    })?;
    Ok(transcript.finalize())
}

/// The generator of the other systems, as halo2_proofs takes one.
struct Draws(ChaCha20Rng);

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}
