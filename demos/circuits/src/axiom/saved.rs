//! Keys in files, and proofs of a program's own circuit, from the key and the witness that it saved.

use std::sync::Arc;
use std::{io, path::Path};

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::{Plan, Rates};

use super::any::{Any, Which};
use super::described::{OfProgram, check, hash_of};
use super::halo2::SerdeFormat;
use super::halo2::halo2curves::bn256::{Bn256, Fr};
use super::halo2::halo2curves::ff::PrimeField;
use super::halo2::plonk::Error;
use super::halo2::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
use super::halo2::spillproof::{
    self as of_dropin, CircuitDescription, KeyFile, OpeningScheme, SavedError, Shape, Unverified,
    create_proof_from_witness, open_proving_key, save_described_key,
};
pub use super::halo2::spillproof::{SavedWitness, SentWitness, open_params};
use super::halo2::transcript::TranscriptWriterBuffer;
use super::proof::{Challenge, Params, downsize, rows_of, verify_columns};
use super::prover::{ProverKey, Writer};
use crate::saved::{Cause, Saved, refused, same_hash};
use crate::{Kind, Scheme, System};

/// Writes the proving key of a built-in circuit of `2^k` rows, described, into a file; its root.
///
/// # Errors
/// The drop-in's.
pub fn save_key(key: &ProverKey, kind: Kind, k: u32, path: &Path) -> io::Result<[u8; 32]> {
    save_described_key(key, &Any::new(kind, k, 0), path)
}

/// Opens the proving key of a built-in circuit in the current session.
///
/// # Errors
/// The drop-in's.
pub fn open_key(path: &Path, kind: Kind) -> io::Result<ProverKey> {
    open_proving_key::<Any>(path, Some(Which::BuiltIn(kind)))
}

/// A proving key and its circuit.
pub struct SavedKey {
    /// The key.
    pub key: ProverKey,
    /// The circuit.
    pub description: Arc<CircuitDescription>,
    file: KeyFile,
}

impl SavedKey {
    /// Opens a key that a program saved with its circuit, in the current session.
    ///
    /// # Errors
    /// The drop-in's; [`SavedError`] within the error for a key without a description, or with another
    /// circuit's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = KeyFile::open(path)?;
        let description = Arc::new(file.description()?);
        check(&description, file.k()?).map_err(|reason| refused(path, &reason))?;
        let key = file.proving_key::<OfProgram>(Some(Arc::clone(&description)))?;
        same_hash(path, hash_of(key.get_vk()), description.key)?;
        Ok(Self {
            key,
            description,
            file,
        })
    }

    /// `2^k` rows.
    pub fn k(&self) -> u32 {
        self.key.get_vk().get_domain().k()
    }

    /// Writes the key in halo2's own bytes ([`SerdeFormat::RawBytesUnchecked`]), for the unmodified crate.
    ///
    /// # Errors
    /// Of the writer.
    pub fn write(&self, writer: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = io::BufWriter::new(writer);
        self.key.write(&mut writer, SerdeFormat::RawBytesUnchecked)?;
        io::Write::flush(&mut writer)
    }

    /// The verifying key's bytes, for the unmodified crate.
    ///
    /// # Errors
    /// The drop-in's.
    pub fn verifying_key_bytes(&self) -> io::Result<Vec<u8>> {
        self.file.verifying_key_bytes()
    }
}

/// The opening as the drop-in names it.
pub fn opening(scheme: Scheme) -> OpeningScheme {
    match scheme {
        Scheme::Shplonk => OpeningScheme::Shplonk,
        Scheme::Gwc => OpeningScheme::Gwc,
    }
}

/// What a proof with a key will take, for a plan.
pub fn shape(key: &SavedKey, scheme: Scheme) -> Shape {
    of_dropin::shape(key.key.get_vk().cs(), key.k(), 1, opening(scheme)).from_files()
}

/// A proof from a key and a witness. Its random values come from the system's entropy, or from a seed, with
/// which anybody can compute the witness from the proof.
///
/// # Errors
/// The drop-in's.
pub fn prove(
    params: &Params,
    key: &SavedKey,
    witness: &SavedWitness,
    scheme: Scheme,
    seed: Option<u64>,
) -> Result<Vec<u8>, Error> {
    let rng = match seed {
        Some(seed) => ChaCha20Rng::seed_from_u64(seed),
        None => ChaCha20Rng::from_entropy(),
    };
    let (key, mut transcript) = (&key.key, Writer::init(Vec::new()));
    match scheme {
        Scheme::Shplonk => create_proof_from_witness::<ProverSHPLONK<'_, Bn256>, Challenge, _, _>(
            params,
            key,
            witness,
            rng,
            &mut transcript,
        )?,
        Scheme::Gwc => create_proof_from_witness::<ProverGWC<'_, Bn256>, Challenge, _, _>(
            params,
            key,
            witness,
            rng,
            &mut transcript,
        )?,
    }
    Ok(transcript.finalize())
}

/// halo2-axiom's drop-in.
pub struct Axiom;

impl Axiom {
    /// The usual scheme is the first.
    fn scheme(asked: Option<Scheme>) -> Scheme {
        asked.unwrap_or(Scheme::Shplonk)
    }
}

impl Saved for Axiom {
    const SYSTEM: System = System::Axiom;
    const SCHEMES: &'static [Scheme] = &[Scheme::Shplonk, Scheme::Gwc];
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
        scheme: Option<Scheme>,
        threads: usize,
        budget_bytes: u64,
    ) -> spillproof_engine::Result<Plan> {
        shape(key, Self::scheme(scheme)).plan(budget_bytes, threads, &Rates::default())
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
        source: &mut dyn io::Read,
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
        scheme: Option<Scheme>,
        seed: Option<u64>,
    ) -> Result<Vec<u8>, Error> {
        prove(params, key, witness, Self::scheme(scheme), seed)
    }

    fn verify(
        params: &Params,
        key: &SavedKey,
        instances: &[&[Fr]],
        proof: &[u8],
        scheme: Option<Scheme>,
    ) -> Result<(), Error> {
        verify_columns(params, key.key.get_vk(), instances, proof, Self::scheme(scheme))
    }

    fn does_not_verify(key: &SavedKey, error: &Error) -> String {
        Unverified::by_processor(key.key.get_vk(), error).to_string()
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
