//! Keys in files, and proofs of a program's own circuit, from the key and the witness that it saved.

use std::sync::Arc;
use std::{io, path::Path};

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::any::{Any, Which};
use super::described::{OfProgram, check, hash_of};
use super::halo2::SerdeFormat;
use super::halo2::halo2curves::bn256::{Bn256, Fr};
use super::halo2::halo2curves::ff::PrimeField;
use super::halo2::plonk::Error;
use super::halo2::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
use super::halo2::spillproof::{
    self as of_dropin, CircuitDescription, KeyFile, OpeningScheme, SavedError, Shape,
    create_proof_from_witness, open_proving_key, save_described_key,
};
pub use super::halo2::spillproof::{SavedWitness, SentWitness, open_params};
use super::halo2::transcript::TranscriptWriterBuffer;
use super::proof::{Challenge, Params};
use super::prover::{ProverKey, Writer};
use crate::{Kind, Scheme};

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
        let found = hash_of(key.get_vk());
        if found != description.key {
            let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(io::Error::other(SavedError::AnotherCircuit {
                file: path.to_owned(),
                found: hex(found),
                expected: hex(description.key),
            }));
        }
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

fn refused(path: &Path, reason: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{}: {reason}", path.display()),
    )
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

/// Public inputs as text: a list for each instance column, of 64 hexadecimal digits each, most significant first.
pub fn public_digits(instances: &[&[Fr]]) -> Vec<Vec<String>> {
    let digits = |value: &Fr| {
        let bytes = value.to_repr();
        bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
    };
    let columns = instances.iter();
    columns
        .map(|values| values.iter().map(digits).collect())
        .collect()
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
