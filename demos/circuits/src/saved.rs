//! Keys and witnesses that programs over a drop-in save: what the binary and the server do with such files,
//! whichever drop-in it is.

use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;

use halo2_axiom::spillproof::{CircuitDescription, SavedError};
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::Plan;

use crate::{Scheme, System};

/// A drop-in that saves keys and witnesses. All functions take a current session.
pub trait Saved {
    /// Which one.
    const SYSTEM: System;
    /// The multi-opening arguments that a proof may have, the usual one first; none, if there is only one.
    const SCHEMES: &'static [Scheme];
    /// Its parameters.
    type Params: Clone + Send + Sync;
    /// A proving key with the description of its circuit.
    type Key: Send + Sync;
    /// A witness.
    type Witness: Send;
    /// A witness that was sent.
    type Sent: Send + Sync;
    /// A value of the field.
    type Value: Copy;
    /// The library's errors.
    type Error: Display;

    /// Opens parameters: a container, in place.
    ///
    /// # Errors
    /// The drop-in's.
    fn open_params(path: &Path) -> io::Result<Self::Params>;
    /// log2 of the rows that parameters are for.
    fn rows_of(params: &Self::Params) -> u32;
    /// Cuts parameters down to `2^k` rows.
    ///
    /// Panics with the engine's error, if the machine has no room for them.
    fn downsize(params: &mut Self::Params, k: u32);

    /// Opens a key that a program saved with its circuit.
    ///
    /// # Errors
    /// The drop-in's; [`SavedError`] within the error for a key without a description, or with another
    /// circuit's.
    fn open_key(path: &Path) -> io::Result<Self::Key>;
    /// `2^k` rows.
    fn k(key: &Self::Key) -> u32;
    /// The circuit.
    fn description(key: &Self::Key) -> &CircuitDescription;
    /// What a proof from files takes within a budget on so many threads, without a device and checkpoints, by the
    /// usual scheme if none is given; with the seconds of a usual machine.
    ///
    /// # Errors
    /// The engine's: a budget that is too small, with the smallest that works.
    fn plan(
        key: &Self::Key,
        scheme: Option<Scheme>,
        threads: usize,
        budget_bytes: u64,
    ) -> spillproof_engine::Result<Plan>;

    /// Opens a witness.
    ///
    /// # Errors
    /// The drop-in's.
    fn open_witness(path: &Path) -> io::Result<Self::Witness>;
    /// Whether it is one of this key.
    ///
    /// # Errors
    /// [`SavedError::AnotherKey`], [`SavedError::Shape`].
    fn belongs_to(witness: &Self::Witness, key: &Self::Key) -> Result<(), SavedError>;
    /// Its public inputs, a slice for each instance column.
    fn instances(witness: &Self::Witness) -> Vec<&[Self::Value]>;
    /// The value of canonical bytes, little-endian; none for a number that is not below the modulus.
    fn value(bytes: [u8; 32]) -> Option<Self::Value>;
    /// [`Self::value`] the other way round.
    fn bytes(value: &Self::Value) -> [u8; 32];
    /// The most bytes that the file of a witness has.
    fn witness_bytes_max(key: &Self::Key) -> u64;
    /// Reads a witness that comes. What is leased meanwhile is on the ledger; the name is for errors.
    ///
    /// # Errors
    /// The drop-in's.
    fn read_witness(
        name: &Path,
        key: &Self::Key,
        ledger: Budget,
        source: &mut dyn Read,
    ) -> io::Result<Self::Sent>;
    /// Opens a witness that was sent.
    ///
    /// # Errors
    /// The drop-in's.
    fn open_sent(sent: &Self::Sent) -> io::Result<Self::Witness>;

    /// A proof from a key and a witness, by the usual scheme if none is given. Its random values come from the
    /// system's entropy, or from a seed, with which anybody can compute the witness from the proof.
    ///
    /// # Errors
    /// The drop-in's.
    fn prove(
        params: &Self::Params,
        key: &Self::Key,
        witness: &Self::Witness,
        scheme: Option<Scheme>,
        seed: Option<u64>,
    ) -> Result<Vec<u8>, Self::Error>;
    /// Checks a proof against its public inputs.
    ///
    /// # Errors
    /// The library's.
    fn verify(
        params: &Self::Params,
        key: &Self::Key,
        instances: &[&[Self::Value]],
        proof: &[u8],
        scheme: Option<Scheme>,
    ) -> Result<(), Self::Error>;
    /// The words for a proof that was made and does not verify.
    fn does_not_verify(key: &Self::Key, error: &Self::Error) -> String;
    /// What a prover's error is.
    fn cause(error: Self::Error) -> Cause;
}

/// Why there is no proof.
#[derive(Debug)]
pub enum Cause {
    /// It does not verify: the verifier's words.
    Unverified(String),
    /// The engine's error, or the drop-in's of a file, within this one.
    Io(io::Error),
    /// Another one of the library's.
    Other(String),
}

/// Public inputs as text: a list for each instance column, of 64 hexadecimal digits each, most significant first.
pub fn public_digits<S: Saved>(instances: &[&[S::Value]]) -> Vec<Vec<String>> {
    let digits = |value: &S::Value| {
        let bytes = S::bytes(value);
        bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
    };
    let columns = instances.iter();
    columns
        .map(|values| values.iter().map(digits).collect())
        .collect()
}

/// The error of a key whose circuit the library does not take.
pub(crate) fn refused(path: &Path, reason: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{}: {reason}", path.display()),
    )
}

/// Whether the hash of a key is the one of its description.
pub(crate) fn same_hash(path: &Path, found: [u8; 32], expected: [u8; 32]) -> io::Result<()> {
    if found == expected {
        return Ok(());
    }
    let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Err(io::Error::other(SavedError::AnotherCircuit {
        file: path.to_owned(),
        found: hex(found),
        expected: hex(expected),
    }))
}
