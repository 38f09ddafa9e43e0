//! The witness of a circuit in a file: what the circuit assigned to advice columns, and its public inputs.
//!
//! A container: the section `statement`, then the advice columns as values, zero in the rows that belong to
//! the prover. It is a secret, and not encrypted: its owner alone may read it.
//!
//! Memory: to save, what its source takes; to read, 32 bytes for each 16 KiB of the file, and the public
//! inputs.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use spillproof_engine::budget::{Budget, LeasedVec};
use spillproof_engine::column::{Bundle, BundleWriter, Bytes, Column, Group, STREAM_BYTES, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_format::Curve;

use super::SavedError;
use super::bytes::ColumnWriter;
use super::statement::{
    Foreign, LENGTH_BYTES, STATEMENT, STATEMENT_HEAD_BYTES, StatementHead, StatementReader, VALUE_BYTES,
    WitnessShape, kind_over,
};
use crate::compiled::ProverField;
use crate::witness::{AdviceSource, StoredAdvice};

const ADVICE: &str = "advice";

/// Writes a witness to a file that [`StoredWitness::open`] opens, of `instances` and the columns that `advice`
/// makes, whose last rows are zero. Returns the root, 32 bytes that name the file. The file appears under its
/// name only when it is whole.
///
/// # Errors
/// The engine's; of a source that fails.
pub fn save_witness<F: ProverField, T: Copy + Sync>(
    workspace: &Workspace,
    path: &Path,
    shape: &WitnessShape,
    (foreign, instances): (&Foreign<T>, &[&[T]]),
    advice: &mut (dyn AdviceSource<F> + Send),
) -> io::Result<[u8; 32]> {
    let write = || Ok(write(workspace, path, shape, (foreign, instances), advice));
    workspace.run(write).map_err(io::Error::other)?
}

fn write<F: ProverField, T: Copy>(
    workspace: &Workspace,
    path: &Path,
    shape: &WitnessShape,
    (foreign, instances): (&Foreign<T>, &[&[T]]),
    advice: &mut dyn AdviceSource<F>,
) -> io::Result<[u8; 32]> {
    let values: usize = instances.iter().map(|values| values.len()).sum();
    let bytes = STATEMENT_HEAD_BYTES + LENGTH_BYTES * instances.len() + VALUE_BYTES * values;
    let statement = Bytes {
        label: STATEMENT,
        bytes: bytes as u64,
    };
    let (head, rows) = (&shape.head, 1 << shape.head.k);
    let columns = Group {
        label: ADVICE,
        lagrange: true,
        polynomials: head.advice_columns as usize,
    };
    let bundle = BundleWriter::of_kind(workspace, path, shape.kind(), &[statement], rows, &[columns]);
    let bundle = bundle.map_err(io::Error::other)?;
    let mut to = io::BufWriter::new(ColumnWriter(bundle.bytes(STATEMENT).map_err(io::Error::other)?));
    to.write_all(&head.encode())?;
    for values in instances {
        to.write_all(&(values.len() as u64).to_le_bytes())?;
    }
    for value in instances.iter().copied().flatten() {
        to.write_all(&(foreign.to_element)(value))?;
    }
    let to = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    to.0.finish().map_err(io::Error::other)?;
    // The engine's errors alone: no transcript is there.
    let engines = |error: crate::Error| match error {
        crate::Error::Engine(error) => error,
        other => Invalid::ProofSystem {
            what: "a witness' own file",
            reason: other.to_string(),
        }
        .into(),
    };
    let tail = vec![F::ZERO; (rows - shape.usable_rows) as usize];
    advice.assigned()?;
    let last = columns.polynomials;
    let then = |index| (index + 1 < last).then_some(index + 1);
    let columns = (0..last).map(|index| advice.column(workspace, index, then(index), &tail));
    F::write_group(
        &bundle,
        ADVICE,
        &mut columns.map(|column| column.map_err(engines)),
    )
    .and_then(|()| bundle.publish())
    .map_err(io::Error::other)
}

/// The file of a witness, opened. Its advice columns stay in the file, which must not change as long as this
/// lives. `T` is a value of a halo2's field.
pub struct StoredWitness<F, T: Copy> {
    file: PathBuf,
    head: StatementHead,
    instances: Vec<LeasedVec<T>>,
    advice: Vec<Column<F>>,
}

impl<F, T: Copy> fmt::Debug for StoredWitness<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its values are secret.
        f.debug_struct("StoredWitness")
            .field("file", &self.file)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl<F: ProverField, T: Copy + Send + Sync> StoredWitness<F, T> {
    /// Opens a file of [`save_witness`].
    ///
    /// # Errors
    /// [`SavedError`] within the error, and the engine's, for a file that is no witness over the curve or is
    /// damaged. What is damaged in its columns is found when they are read.
    pub fn open(workspace: &Workspace, path: &Path, curve: Curve, foreign: &Foreign<T>) -> io::Result<Self> {
        let bundle = Bundle::open_kind(workspace, path, kind_over(curve)).map_err(io::Error::other)?;
        let statement = bundle.bytes(STATEMENT).map_err(io::Error::other)?;
        let statement = statement.ok_or_else(|| no_statement(path))?;
        let mut from = StatementReader::new(&statement, path)?;
        let head = from.head()?;
        let instances = from.instances(&workspace.budget, head.instance_columns, foreign)?;
        let columns = F::group_of(&bundle, ADVICE, head.advice_columns as usize, 1 << head.k);
        Ok(Self {
            head,
            instances,
            advice: columns.map_err(io::Error::other)?,
            file: path.to_owned(),
        })
    }

    /// The circuit has `2^k` rows.
    pub fn k(&self) -> u32 {
        self.head.k
    }

    /// The public inputs, a slice for each instance column.
    pub fn instances(&self) -> Vec<&[T]> {
        self.instances.iter().map(|values| &values[..]).collect()
    }

    /// The advice columns; behind the rows that a circuit may use, their values have no meaning.
    pub fn columns(&self) -> &[Column<F>] {
        &self.advice
    }

    /// The advice columns, for a proof.
    pub fn advice(&self) -> StoredAdvice<F> {
        StoredAdvice::new(self.advice.clone())
    }

    /// Whether it is a witness of this key.
    ///
    /// # Errors
    /// [`SavedError::AnotherKey`], [`SavedError::Shape`].
    pub fn belongs_to(&self, shape: &WitnessShape) -> Result<(), SavedError> {
        let lengths = self.instances.iter().map(|values| values.len());
        shape.is_of(&self.file, &self.head, lengths)
    }
}

/// A witness that was sent, in scratch of the session: sealed, if that is. Memory: 32 bytes for each 16 KiB of
/// its public inputs.
#[derive(Debug)]
pub struct SentWitness<F> {
    name: PathBuf,
    statement: Column<[u8; 1]>,
    advice: Vec<Column<F>>,
}

impl<F: ProverField> SentWitness<F> {
    /// Reads the bytes of a file of [`save_witness`] with a key of this shape from their start to their end,
    /// such as the body of a request. Meanwhile other tasks compute; what is leased is on the ledger of
    /// `workspace`, which has [`STREAM_BYTES`] or more. The name is for errors.
    ///
    /// # Errors
    /// [`SavedError`] within the error for a witness of another key; the engine's for bytes that are no
    /// witness, are damaged, end early or go on; those of `source`.
    pub fn read(
        workspace: &Workspace,
        name: &Path,
        shape: &WitnessShape,
        source: &mut dyn Read,
    ) -> io::Result<Self> {
        let most = (name, shape.bytes_max());
        let bundle = F::streamed_bundle(workspace, most, shape.kind(), source);
        let bundle = bundle.map_err(io::Error::other)?;
        let statement = bundle.bytes(STATEMENT).ok_or_else(|| no_statement(name))?;
        let mut from = StatementReader::new(&statement, name)?;
        let head = from.head()?;
        // First their number, of which there is only the sender's word.
        let columns = head.instance_columns as usize;
        shape.is_of(name, &head, std::iter::repeat_n(0, columns))?;
        let lengths = from.lengths(head.instance_columns)?;
        shape.is_of(name, &head, lengths.into_iter())?;
        let columns = bundle.group(ADVICE, head.advice_columns as usize, 1 << head.k);
        Ok(Self {
            name: name.to_owned(),
            statement,
            advice: columns.map_err(io::Error::other)?,
        })
    }

    /// What reading one leases at most.
    pub const STREAM_BYTES: u64 = STREAM_BYTES;

    /// The witness, whose public inputs are in memory as long as it lives.
    ///
    /// # Errors
    /// If the budget has no room for the public inputs; for one that is not below the modulus.
    pub fn open<T: Copy + Send + Sync>(
        &self,
        budget: &Budget,
        foreign: &Foreign<T>,
    ) -> io::Result<StoredWitness<F, T>> {
        let mut from = StatementReader::new(&self.statement, &self.name)?;
        let head = from.head()?;
        let instances = from.instances(budget, head.instance_columns, foreign)?;
        Ok(StoredWitness {
            file: self.name.clone(),
            head,
            instances,
            advice: self.advice.clone(),
        })
    }
}

fn no_statement(file: &Path) -> io::Error {
    let file = file.display().to_string();
    let section = STATEMENT.into();
    io::Error::other(spillproof_engine::Error::from(Invalid::MissingSection {
        file,
        section,
    }))
}
