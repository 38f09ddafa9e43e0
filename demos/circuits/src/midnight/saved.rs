//! Proofs of a program's own circuit, from the key and the witness that it saved.

use std::io::{self, Read};
use std::path::Path;

use halo2_axiom::spillproof::{CircuitDescription, SavedError};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::{Plan, Rates};

use super::described::{check, constraint_system, hash_of};
use super::dialect::{Fr, PrimeField as _};
use super::halo2::plonk::Error;
use super::halo2::spillproof::{
    KeyFile, Shape, Unverified, commit_instances, create_proof_from_witness, open_params,
};
pub use super::halo2::spillproof::{SavedWitness, SentWitness};
use super::halo2::transcript::Transcript as _;
use super::proof::{Params, Transcript, downsize, rows_of, verify_columns};
use super::prover::ProverKey;
use crate::saved::{Cause, Saved, refused, same_hash};
use crate::{Scheme, System};

/// A proving key and its circuit.
pub struct SavedKey {
    /// The key.
    pub key: ProverKey,
    /// The circuit.
    pub description: CircuitDescription,
    /// So many instance columns, the first ones, are committed.
    pub committed_instances: usize,
    file: KeyFile,
}

impl SavedKey {
    /// Opens a key that a program saved with its circuit, in the current session.
    ///
    /// # Errors
    /// The drop-in's; [`SavedError`] within the error for a key without a description, or with another
    /// circuit's; in words, for proofs of another release.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = KeyFile::open(path)?;
        let description = file.description()?;
        let proofs = check(&description, file.k()?).map_err(|reason| refused(path, &reason))?;
        let key = file.proving_key(constraint_system(&description))?;
        same_hash(path, hash_of(key.get_vk()), description.key)?;
        Ok(Self {
            key,
            description,
            committed_instances: proofs.committed_instances,
            file,
        })
    }

    /// `2^k` rows.
    pub fn k(&self) -> u32 {
        self.key.get_vk().get_domain().k()
    }

    /// The verifying key's bytes, for the unmodified crate.
    ///
    /// # Errors
    /// The drop-in's.
    pub fn verifying_key_bytes(&self) -> io::Result<Vec<u8>> {
        self.file.verifying_key_bytes()
    }
}

/// What a proof with a key will take, for a plan.
pub fn shape(key: &SavedKey) -> Shape {
    Shape::new(key.key.get_vk().cs(), key.k())
        .with_committed_instances(key.committed_instances)
        .from_files()
}

/// midnight-proofs' drop-in.
pub struct Midnight;

impl Saved for Midnight {
    const SYSTEM: System = System::Midnight;
    const SCHEMES: &'static [Scheme] = &[];
    type Params = Params;
    type Key = SavedKey;
    type Witness = SavedWitness;
    type Sent = SentWitness;
    type Value = Fr;
    type Error = Error;

    fn open_params(path: &Path) -> io::Result<Params> {
        open_params(path)
    }

    fn rows_of(params: &Params) -> u32 {
        rows_of(params)
    }

    fn downsize(params: &mut Params, k: u32) {
        downsize(params, k);
    }

    fn open_key(path: &Path) -> io::Result<SavedKey> {
        SavedKey::open(path)
    }

    fn k(key: &SavedKey) -> u32 {
        key.k()
    }

    fn description(key: &SavedKey) -> &CircuitDescription {
        &key.description
    }

    fn plan(
        key: &SavedKey,
        _scheme: Option<Scheme>,
        threads: usize,
        budget_bytes: u64,
    ) -> spillproof_engine::Result<Plan> {
        shape(key).plan(budget_bytes, threads, &Rates::default())
    }

    fn open_witness(path: &Path) -> io::Result<SavedWitness> {
        SavedWitness::open(path)
    }

    fn belongs_to(witness: &SavedWitness, key: &SavedKey) -> Result<(), SavedError> {
        witness.belongs_to(key.key.get_vk())
    }

    fn instances(witness: &SavedWitness) -> Vec<&[Fr]> {
        witness.instances()
    }

    fn value(bytes: [u8; 32]) -> Option<Fr> {
        Fr::from_repr(bytes).into()
    }

    fn bytes(value: &Fr) -> [u8; 32] {
        value.to_repr()
    }

    fn witness_bytes_max(key: &SavedKey) -> u64 {
        SentWitness::bytes_max(key.key.get_vk())
    }

    fn read_witness(
        name: &Path,
        key: &SavedKey,
        ledger: Budget,
        source: &mut dyn Read,
    ) -> io::Result<SentWitness> {
        SentWitness::read(name, key.key.get_vk(), ledger, source)
    }

    fn open_sent(sent: &SentWitness) -> io::Result<SavedWitness> {
        sent.open()
    }

    fn prove(
        params: &Params,
        key: &SavedKey,
        witness: &SavedWitness,
        _scheme: Option<Scheme>,
        seed: Option<u64>,
    ) -> Result<Vec<u8>, Error> {
        let rng = match seed {
            Some(seed) => ChaCha20Rng::seed_from_u64(seed),
            None => ChaCha20Rng::from_entropy(),
        };
        let mut transcript = Transcript::init();
        let committed = key.committed_instances;
        create_proof_from_witness(params, &key.key, committed, witness, rng, &mut transcript)?;
        Ok(transcript.finalize())
    }

    fn verify(
        params: &Params,
        key: &SavedKey,
        instances: &[&[Fr]],
        proof: &[u8],
        _scheme: Option<Scheme>,
    ) -> Result<(), Error> {
        let (committed, plain) = instances.split_at(key.committed_instances.min(instances.len()));
        let committed = commit_instances(params, committed)?;
        verify_columns(params, key.key.get_vk(), &committed, plain, proof)
    }

    fn does_not_verify(_key: &SavedKey, error: &Error) -> String {
        let reason = error.to_string();
        Unverified { reason }.to_string()
    }

    fn cause(error: Error) -> Cause {
        if let Some(unverified) = Unverified::of(&error) {
            return Cause::Unverified(unverified.to_string());
        }
        match error {
            Error::Transcript(error) => Cause::Io(error),
            other => Cause::Other(other.to_string()),
        }
    }
}
