//! The witness of a circuit in a file. Midnight's drop-in has this file, too.
//!
//! A program that has a circuit saves what it assigns; another one, which has a description of the circuit
//! ([`save_described_key`](super::save_described_key)), proves it
//! ([`create_proof_from_witness`](super::create_proof_from_witness)). The file is that of
//! [`spillproof_plonk::saved`].
//!
//! A circuit with challenges has no such file: its witness depends on the transcript.
//!
//! Memory: to save, the share of the circuit's cells; to read, 32 bytes for each 16 KiB of the file, and the
//! public inputs.

use std::io::{self, Read};
use std::path::Path;

use ff::{Field as _, PrimeField as _};
use spillproof_engine::budget::Budget;
use spillproof_plonk::saved::{self, Foreign, StatementHead, StoredWitness, WitnessShape};
use spillproof_plonk::SavedError;

use super::describe::{element, has_one_phase};
use super::names::{session_for, Fr, Scalar, VerifyingKey, CURVE};
use crate::plonk::spillproof_prover::assign;
use crate::plonk::Circuit;

/// Values of upstream's field.
const FOREIGN: Foreign<Fr> = Foreign {
    zero: Fr::ZERO,
    to_element: element,
    of_element: |element| Fr::from_repr(*element).into(),
};

/// Writes the witness of a circuit to a file that [`SavedWitness::open`] opens: what `synthesize` assigns to
/// advice columns, and the public inputs `instances`, as `create_proof` takes them. Returns the root, 32
/// bytes that name the file. The file appears under its name only when it is whole; it is not encrypted, and
/// its owner alone may read it. Whether the witness satisfies the circuit is not looked at.
///
/// # Errors
/// Without a session; [`SavedError`] within the error for a circuit with challenges or one that fails, and
/// for instances of another shape; if the file can't be written.
///
/// # Panics
/// Where the circuit does; and where upstream's assignments have no error to give, with a
/// [`spillproof::Error`](spillproof_engine::Error) as the payload, if the disk fails while a cell is assigned.
pub fn save_witness<ConcreteCircuit: Circuit<Fr>>(
    vk: &VerifyingKey,
    circuit: &ConcreteCircuit,
    instances: &[&[Fr]],
    path: impl AsRef<Path>,
) -> io::Result<[u8; 32]> {
    let session = session_for("a witness' own file")?;
    has_one_phase(vk.cs())?;
    let shape = shape_of(vk);
    let lengths = instances.iter().map(|values| values.len());
    shape.fits("the witness", &shape.head, lengths)?;
    let _pinned = session.pin();
    let mut advice = assign(&session, vk, circuit, instances)?;
    let (workspace, path) = (session.workspace(), path.as_ref());
    saved::save_witness(workspace, path, &shape, (&FOREIGN, instances), &mut *advice)
}

/// What a witness of this key is like.
fn shape_of(vk: &VerifyingKey) -> WitnessShape {
    let (k, cs) = (vk.get_domain().k(), vk.cs());
    WitnessShape {
        head: StatementHead {
            key: element(&vk.transcript_repr()),
            k,
            advice_columns: cs.num_advice_columns() as u32,
            instance_columns: cs.num_instance_columns() as u32,
        },
        usable_rows: (1u64 << k).saturating_sub(cs.blinding_factors() as u64 + 1),
        curve: CURVE,
    }
}

/// The file of a witness, opened. Its advice columns stay in the file, which must not change as long as this
/// lives.
#[derive(Debug)]
pub struct SavedWitness(pub(super) StoredWitness<Scalar, Fr>);

impl SavedWitness {
    /// Opens a file of [`save_witness`].
    ///
    /// # Errors
    /// Without a session; [`SavedError`] within the error, and the engine's, for a file that is no witness or
    /// is damaged. What is damaged in its columns is found when they are read.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let session = session_for("a witness' own file")?;
        let opened = StoredWitness::open(session.workspace(), path.as_ref(), CURVE, &FOREIGN);
        opened.map(Self)
    }

    /// The circuit has `2^k` rows.
    pub fn k(&self) -> u32 {
        self.0.k()
    }

    /// The public inputs, a slice for each instance column.
    pub fn instances(&self) -> Vec<&[Fr]> {
        self.0.instances()
    }

    /// Whether it is a witness of this key.
    ///
    /// # Errors
    /// [`SavedError::AnotherKey`], [`SavedError::Shape`].
    pub fn belongs_to(&self, vk: &VerifyingKey) -> Result<(), SavedError> {
        self.0.belongs_to(&shape_of(vk))
    }
}

/// A witness that was sent, in scratch of the session: sealed, if that is. Memory: 32 bytes for each 16 KiB of its public
/// inputs.
#[derive(Debug)]
pub struct SentWitness(saved::SentWitness<Scalar>);

impl SentWitness {
    /// Reads the bytes of a file of [`save_witness`] with this key from their start to their end, such as the body of a
    /// request. Meanwhile other tasks compute; what is leased is on `ledger`, which has
    /// [`STREAM_BYTES`](Self::STREAM_BYTES) or more. The name is for errors.
    ///
    /// # Errors
    /// Without a session; [`SavedError`] within the error for a witness of another key; the engine's for bytes that are
    /// no witness, are damaged, end early or go on; those of `source`.
    pub fn read(name: &Path, vk: &VerifyingKey, ledger: Budget, source: &mut dyn Read) -> io::Result<Self> {
        let session = session_for("a witness that is sent")?;
        let workspace = session.workspace().clone().with_budget(ledger);
        saved::SentWitness::read(&workspace, name, &shape_of(vk), source).map(Self)
    }

    /// What reading one leases at most.
    pub const STREAM_BYTES: u64 = saved::SentWitness::<Scalar>::STREAM_BYTES;

    /// The most bytes that a file of [`save_witness`] with this key has: that of public inputs in all rows.
    pub fn bytes_max(vk: &VerifyingKey) -> u64 {
        shape_of(vk).bytes_max()
    }

    /// The witness, whose public inputs are in memory as long as it lives.
    ///
    /// # Errors
    /// Without a session; if the budget has no room for the public inputs; for one that is not below the modulus.
    pub fn open(&self) -> io::Result<SavedWitness> {
        let session = session_for("a witness that is sent")?;
        self.0.open(session.budget(), &FOREIGN).map(SavedWitness)
    }
}
