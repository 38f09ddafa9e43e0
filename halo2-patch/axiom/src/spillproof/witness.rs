//! The witness of a circuit in a file, and a proof from it.
//!
//! A program that has a circuit saves what it assigns; another one, which has a description of the circuit
//! ([`save_described_key`](super::save_described_key)), proves it. The file is a container (see
//! `disk-format/FORMAT.md`): the public inputs and the key that the witness belongs to in the section
//! `statement`, then the advice columns. It is a secret, and not encrypted: its owner alone may read it.
//!
//! Draws of a proof from a file are those of `create_proof`, in the same order, so with the same generator it
//! is the same proof. A circuit with challenges has no such file: its witness depends on the transcript.
//!
//! Memory: to save, the share of the circuit's cells; to prove, 32 bytes for each 16 KiB of the file, the
//! public inputs, and what a proof takes.

use std::hash::Hash;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ff::PrimeField;
use halo2curves::bn256::{Bn256, Fr, G1Affine};
use rand_core::RngCore;
use spillproof_engine::budget::{Budget, LeasedVec};
use spillproof_engine::column::{
    bundle_bytes, Bundle, BundleWriter, Bytes, Column, Group, Kind, StreamedBundle, STREAM_BYTES,
};
use spillproof_engine::plan::Phase;
use spillproof_engine::Session;
use spillproof_plonk::description::FieldError;
use spillproof_plonk::saved::{StatementHead, LENGTH_BYTES, STATEMENT_HEAD_BYTES, VALUE_BYTES};
use spillproof_plonk::{SavedError, Scalar, StoredAdvice};
use spillproof_report::environment;

use super::bytes::{ColumnReader, ColumnWriter};
use super::cells::AdviceCells;
use super::circuit::constraint_system;
use super::describe::{element, has_one_phase};
use super::engine::session_for;
use super::error_of;
use super::stored;
use crate::plonk::spillproof_prover::{assign, create_from_witness};
use crate::plonk::{self, Circuit, ProvingKey, VerifyingKey};
use crate::poly::commitment::Prover;
use crate::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use crate::transcript::{EncodedChallenge, TranscriptWrite};

const STATEMENT: &str = "statement";
const ADVICE: &str = "advice";

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
/// Where the circuit does; and with a [`spillproof::Error`](spillproof_engine::Error) as the payload, if the
/// disk fails while a cell is assigned.
pub fn save_witness<ConcreteCircuit: Circuit<Fr>>(
    vk: &VerifyingKey<G1Affine>,
    circuit: &ConcreteCircuit,
    instances: &[&[Fr]],
    path: impl AsRef<Path>,
) -> io::Result<[u8; 32]> {
    let session = session_for("a witness' own file")?;
    has_one_phase(vk.cs())?;
    let head = head_of(vk);
    fits(
        "the witness",
        vk,
        &head,
        instances.iter().map(|values| values.len()),
    )?;
    let (_pinned, path) = (session.pin(), path.as_ref());
    let cells = assign(&session, vk, circuit, instances)?;
    let save = || Ok(write(&session, vk, cells, (&head, instances), path));
    session.workspace().run(save).map_err(io::Error::other)?
}

fn write(
    session: &Session,
    vk: &VerifyingKey<G1Affine>,
    mut cells: AdviceCells<Fr>,
    (head, instances): (&StatementHead, &[&[Fr]]),
    path: &Path,
) -> io::Result<[u8; 32]> {
    let values: usize = instances.iter().map(|values| values.len()).sum();
    let bytes = STATEMENT_HEAD_BYTES + LENGTH_BYTES * instances.len() + VALUE_BYTES * values;
    let statement = Bytes {
        label: STATEMENT,
        bytes: bytes as u64,
    };
    let advice = Group {
        label: ADVICE,
        lagrange: true,
        polynomials: head.advice_columns as usize,
    };
    let (workspace, rows) = (session.workspace(), vk.get_domain().get_n());
    let bundle = BundleWriter::of_kind(workspace, path, Kind::Witness, &[statement], rows, &[advice]);
    let bundle = bundle.map_err(io::Error::other)?;
    let mut to = io::BufWriter::new(ColumnWriter(bundle.bytes(STATEMENT).map_err(io::Error::other)?));
    to.write_all(&head.encode())?;
    for values in instances {
        to.write_all(&(values.len() as u64).to_le_bytes())?;
    }
    for value in instances.iter().copied().flatten() {
        to.write_all(&element(value))?;
    }
    let to = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    to.0.finish().map_err(io::Error::other)?;
    let cs = constraint_system(vk.cs(), vk.cs().degree());
    // The engine's errors alone: no transcript is there.
    let engines = |error: spillproof_plonk::Error| match error {
        spillproof_plonk::Error::Engine(error) => error,
        other => spillproof_engine::error::Invalid::ProofSystem {
            what: "a witness' own file",
            reason: other.to_string(),
        }
        .into(),
    };
    let columns = cells.columns(workspace, &cs)?;
    let written = bundle.write(ADVICE, columns.map(|column| column.map_err(engines)));
    written.and_then(|()| bundle.publish()).map_err(io::Error::other)
}

/// What a witness of this key says of it.
fn head_of(vk: &VerifyingKey<G1Affine>) -> StatementHead {
    StatementHead {
        key: element(&vk.transcript_repr()),
        k: vk.get_domain().k(),
        advice_columns: vk.cs().num_advice_columns() as u32,
        instance_columns: vk.cs().num_instance_columns() as u32,
    }
}

/// Whether columns and instances have the key's shape.
fn fits(
    whose: &str,
    vk: &VerifyingKey<G1Affine>,
    head: &StatementHead,
    lengths: impl ExactSizeIterator<Item = usize>,
) -> Result<(), SavedError> {
    let (expected, cs) = (head_of(vk), vk.cs());
    let usable_rows = vk.get_domain().get_n() - (cs.blinding_factors() as u64 + 1);
    let check = |what, found: u64, expected: u64, is_fine: bool| match is_fine {
        true => Ok(()),
        false => Err(SavedError::Shape {
            whose: whose.to_owned(),
            what,
            found,
            expected,
        }),
    };
    let equal = |what, found: u64, expected: u64| check(what, found, expected, found == expected);
    equal("rows (as their logarithm)", head.k.into(), expected.k.into())?;
    equal(
        "advice columns",
        head.advice_columns.into(),
        expected.advice_columns.into(),
    )?;
    equal(
        "instance columns",
        lengths.len() as u64,
        expected.instance_columns.into(),
    )?;
    for length in lengths {
        let length = length as u64;
        check(
            "values in an instance column",
            length,
            usable_rows,
            length <= usable_rows,
        )?;
    }
    Ok(())
}

/// The file of a witness, opened. Its advice columns stay in the file, which must not change as long as this
/// lives.
#[derive(Debug)]
pub struct SavedWitness {
    path: PathBuf,
    head: StatementHead,
    instances: Vec<LeasedVec<Fr>>,
    advice: Vec<Column<Scalar>>,
}

impl SavedWitness {
    /// Opens a file of [`save_witness`].
    ///
    /// # Errors
    /// Without a session; [`SavedError`] within the error, and the engine's, for a file that is no witness or
    /// is damaged. What is damaged in its columns is found when they are read.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let session = session_for("a witness' own file")?;
        let path = path.as_ref().to_owned();
        let bundle =
            Bundle::open_kind(session.workspace(), &path, Kind::Witness).map_err(io::Error::other)?;
        let statement = bundle.bytes(STATEMENT).map_err(io::Error::other)?;
        let statement = statement.ok_or_else(|| no_statement(&path))?;
        let mut from = StatementReader::new(&statement, &path)?;
        let head = from.head()?;
        let instances = from.instances(&session, head.instance_columns)?;
        let columns = bundle.group::<Scalar>(ADVICE, head.advice_columns as usize, 1 << head.k);
        Ok(Self {
            head,
            instances,
            advice: columns.map_err(io::Error::other)?,
            path,
        })
    }

    /// The circuit has `2^k` rows.
    pub fn k(&self) -> u32 {
        self.head.k
    }

    /// The public inputs, a slice for each instance column.
    pub fn instances(&self) -> Vec<&[Fr]> {
        self.instances.iter().map(|values| &values[..]).collect()
    }

    /// The values of each advice column, in memory; behind the rows that a circuit may use, what they are has
    /// no meaning.
    ///
    /// # Errors
    /// Of each column: if the budget has no room for a copy of it, or it is damaged.
    pub fn advice(&self) -> impl Iterator<Item = io::Result<Vec<Fr>>> + '_ {
        self.advice
            .iter()
            .map(|column| stored::on_disk(column.clone(), []).to_vec())
    }

    /// Whether it is a witness of this key.
    ///
    /// # Errors
    /// [`SavedError::AnotherKey`], [`SavedError::Shape`].
    pub fn belongs_to(&self, vk: &VerifyingKey<G1Affine>) -> Result<(), SavedError> {
        let lengths = self.instances.iter().map(|values| values.len());
        belongs_to(&self.path, &self.head, lengths, vk)
    }
}

/// A witness that was sent, in scratch of the session: sealed, if that is. Memory: 32 bytes for each 16 KiB of its public
/// inputs.
#[derive(Debug)]
pub struct SentWitness {
    name: PathBuf,
    statement: Column<[u8; 1]>,
    advice: Vec<Column<Scalar>>,
}

impl SentWitness {
    /// Reads the bytes of a file of [`save_witness`] with this key from their start to their end, such as the body of a
    /// request. Meanwhile other tasks compute; what is leased is on `ledger`, which has
    /// [`STREAM_BYTES`](Self::STREAM_BYTES) or more. The name is for errors.
    ///
    /// # Errors
    /// Without a session; [`SavedError`] within the error for a witness of another key; the engine's for bytes that are
    /// no witness, are damaged, end early or go on; those of `source`.
    pub fn read(
        name: &Path,
        vk: &VerifyingKey<G1Affine>,
        ledger: Budget,
        source: &mut dyn Read,
    ) -> io::Result<Self> {
        let session = session_for("a witness that is sent")?;
        let workspace = session.workspace().clone().with_budget(ledger);
        let most = (name, Self::bytes_max(vk));
        let bundle = StreamedBundle::<Scalar>::read(&workspace, most, Kind::Witness, source);
        let bundle = bundle.map_err(io::Error::other)?;
        let statement = bundle.bytes(STATEMENT).ok_or_else(|| no_statement(name))?;
        let mut from = StatementReader::new(&statement, name)?;
        let head = from.head()?;
        // First their number, of which there is only the sender's word.
        let columns = head.instance_columns as usize;
        belongs_to(name, &head, std::iter::repeat_n(0, columns), vk)?;
        let lengths = from.lengths(head.instance_columns)?;
        belongs_to(name, &head, lengths.into_iter(), vk)?;
        let columns = bundle.group(ADVICE, head.advice_columns as usize, 1 << head.k);
        Ok(Self {
            name: name.to_owned(),
            statement,
            advice: columns.map_err(io::Error::other)?,
        })
    }

    /// What reading one leases at most.
    pub const STREAM_BYTES: u64 = STREAM_BYTES;

    /// The most bytes that a file of [`save_witness`] with this key has: that of public inputs in all rows.
    pub fn bytes_max(vk: &VerifyingKey<G1Affine>) -> u64 {
        let (rows, cs) = (vk.get_domain().get_n(), vk.cs());
        let instance_columns = cs.num_instance_columns() as u64;
        let values_bytes = LENGTH_BYTES as u64 + rows * VALUE_BYTES as u64;
        let statement_bytes = STATEMENT_HEAD_BYTES as u64 + instance_columns * values_bytes;
        bundle_bytes(statement_bytes, cs.num_advice_columns() as u64, rows)
    }

    /// The witness, whose public inputs are in memory as long as it lives.
    ///
    /// # Errors
    /// Without a session; if the budget has no room for the public inputs; for one that is not below the modulus.
    pub fn open(&self) -> io::Result<SavedWitness> {
        let session = session_for("a witness that is sent")?;
        let mut from = StatementReader::new(&self.statement, &self.name)?;
        let head = from.head()?;
        let instances = from.instances(&session, head.instance_columns)?;
        Ok(SavedWitness {
            path: self.name.clone(),
            head,
            instances,
            advice: self.advice.clone(),
        })
    }
}

fn no_statement(file: &Path) -> io::Error {
    let file = file.display().to_string();
    let section = STATEMENT.into();
    io::Error::other(spillproof_engine::Error::from(
        spillproof_engine::error::Invalid::MissingSection { file, section },
    ))
}

/// Whether a witness is one of this key.
fn belongs_to(
    file: &Path,
    head: &StatementHead,
    lengths: impl ExactSizeIterator<Item = usize>,
    vk: &VerifyingKey<G1Affine>,
) -> Result<(), SavedError> {
    let expected = head_of(vk);
    if head.key != expected.key {
        return Err(SavedError::AnotherKey {
            file: file.to_owned(),
            found: hex(&head.key),
            expected: hex(&expected.key),
        });
    }
    fits(&file.display().to_string(), vk, head, lengths)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The section `statement`.
struct StatementReader<'p> {
    reader: ColumnReader,
    left_bytes: u64,
    path: &'p Path,
    at: u64,
}

impl<'p> StatementReader<'p> {
    fn new(statement: &Column<[u8; 1]>, path: &'p Path) -> io::Result<Self> {
        Ok(Self {
            reader: ColumnReader::new(statement).map_err(io::Error::other)?,
            left_bytes: statement.len(),
            path,
            at: 0,
        })
    }

    fn refused(&self, what: &'static str, value: impl ToString, remedy: &'static str) -> io::Error {
        let value = value.to_string();
        let source = FieldError {
            what,
            offset: self.at,
            value,
            remedy,
        };
        self.field(source)
    }

    fn field(&self, source: FieldError) -> io::Error {
        SavedError::Field {
            file: self.path.to_owned(),
            section: STATEMENT,
            source,
        }
        .into()
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> io::Result<[u8; N]> {
        let Some(left_bytes) = self.left_bytes.checked_sub(N as u64) else {
            let value = format!("{} bytes long", self.left_bytes);
            return Err(self.refused(what, value, "the section is cut short: save the witness again"));
        };
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.left_bytes = left_bytes;
        self.at += N as u64;
        Ok(bytes)
    }

    fn head(&mut self) -> io::Result<StatementHead> {
        StatementHead::decode(&self.take("the head")?).map_err(|source| self.field(source))
    }

    /// How many values instance columns have, which nothing has compared with the section's length.
    fn lengths(&mut self, columns: u32) -> io::Result<Vec<usize>> {
        let mut lengths = Vec::new();
        for _ in 0..columns {
            let length = u64::from_le_bytes(self.take("the length of an instance column")?);
            lengths.push(length as usize);
        }
        Ok(lengths)
    }

    fn instances(&mut self, session: &Session, columns: u32) -> io::Result<Vec<LeasedVec<Fr>>> {
        let mut instances = Vec::new();
        // The file alone says how many columns there are.
        let bytes = u64::from(columns) * size_of::<(usize, LeasedVec<Fr>)>() as u64;
        let lease = session.budget().lease(bytes, "lengths of instance columns");
        let _lengths = lease.map_err(io::Error::other)?;
        for length in self.lengths(columns)? {
            if length as u64 > self.left_bytes / VALUE_BYTES as u64 {
                return Err(self.refused(
                    "the length of an instance column",
                    length,
                    "more than the section has: save the witness again",
                ));
            }
            let values = session.budget().vec(length, Fr::zero(), "public inputs");
            let mut values = values.map_err(io::Error::other)?;
            for value in values.iter_mut() {
                let repr = self.take("a public input")?;
                let found: Option<Fr> = Fr::from_repr(repr).into();
                *value = found.ok_or_else(|| {
                    self.refused(
                        "a public input",
                        "not below the modulus",
                        "save the witness again",
                    )
                })?;
            }
            instances.push(values);
        }
        match self.left_bytes {
            0 => Ok(instances),
            more => Err(self.refused("the end", format!("{more} bytes more"), "save the witness again")),
        }
    }
}

/// [`create_proof`](plonk::create_proof) of one circuit from its witness in a file, in a session: nothing is
/// synthesised. With the same generator it is the same proof.
///
/// # Errors
/// Those of `create_proof`; without a session; [`SavedError`] within the error for a witness of another key.
pub fn create_proof_from_witness<'params, P, E, R, T>(
    params: &'params ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    witness: &SavedWitness,
    rng: R,
    transcript: &mut T,
) -> Result<(), plonk::Error>
where
    P: Prover<'params, KZGCommitmentScheme<Bn256>>,
    E: EncodedChallenge<G1Affine>,
    R: RngCore,
    T: TranscriptWrite<G1Affine, E>,
    Fr: Hash,
{
    let session = session_for("a proof from a witness' own file")?;
    let vk = pk.get_vk();
    has_one_phase(vk.cs()).map_err(io::Error::from)?;
    witness.belongs_to(vk).map_err(io::Error::from)?;
    let (instances, advice) = (witness.instances(), StoredAdvice::new(witness.advice.clone()));
    environment::phase(&session, Phase::Proof, || {
        error_of(|| {
            create_from_witness::<KZGCommitmentScheme<Bn256>, P, E, R, T>(
                &session,
                params,
                pk,
                (&instances, advice),
                rng,
                transcript,
            )
        })
    })
}
