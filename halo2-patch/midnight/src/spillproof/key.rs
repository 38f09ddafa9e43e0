//! A proving key's columns: on disk, where a session made or read it, or spilled for one proof, where it is
//! in memory.
//!
//! A key on disk has values and coefficients, and no cosets: a proof makes those as it needs them. Its bytes
//! are stock's: values alone, which is all that is read, too.

use std::fmt;
use std::io;
use std::sync::Arc;

use ff::PrimeField;
use spillproof_engine::column::{Column, Element as _, Placement, Workspace, Writer};
use spillproof_engine::stream::Transform;
use spillproof_engine::Session;
use spillproof_plonk::keygen::ProvingColumns;
use spillproof_plonk::{KeyColumns, ProverField as _, Result};

use super::convert::{Foreign, Scalar};
use crate::plonk::ProvingKey;
use crate::poly::commitment::PolynomialCommitmentScheme;
use crate::poly::Polynomial;

/// Values that are read or written at a time.
const CHUNK_VALUES: usize = 1 << 12;
/// Bytes of a value: its limbs in Montgomery form, little-endian.
const VALUE_BYTES: usize = Scalar::BYTES;

/// The field of a `ProvingKey` that is ours: its columns, if they are on disk. Stock's own fields are empty
/// then.
#[derive(Clone, Default)]
pub(crate) struct StoredKey(Option<Arc<KeyOnDisk>>);

impl StoredKey {
    pub(crate) fn new(columns: KeyOnDisk) -> Self {
        Self(Some(Arc::new(columns)))
    }

    /// The columns, if they are on disk.
    pub(crate) fn on_disk(&self) -> Option<&KeyOnDisk> {
        self.0.as_deref()
    }

    /// Refuses a key on disk, for stock's prover.
    ///
    /// # Errors
    /// Says what to do.
    pub(crate) fn refuse(&self) -> io::Result<()> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(io::Error::other(
                "spillproof: this proving key was made in a session, on its disk, and there is no session now: install one, or make the key without",
            )),
        }
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.0.is_some() { "disk" } else { "memory" };
        f.debug_tuple("StoredKey").field(&place).finish()
    }
}

/// The columns of a key.
pub(crate) struct KeyOnDisk {
    fixed: Both,
    sigmas: Both,
}

/// Columns as values and as coefficients.
struct Both {
    values: Vec<Column<Scalar>>,
    polynomials: Vec<Column<Scalar>>,
}

impl From<ProvingColumns<Scalar>> for KeyOnDisk {
    fn from(columns: ProvingColumns<Scalar>) -> Self {
        Self {
            fixed: Both {
                values: columns.fixed_values,
                polynomials: columns.fixed_polynomials,
            },
            sigmas: Both {
                values: columns.sigma_values,
                polynomials: columns.sigma_polynomials,
            },
        }
    }
}

impl KeyOnDisk {
    /// Of columns as values and as coefficients: fixed ones, sigmas.
    pub(crate) fn new(fixed: [Vec<Column<Scalar>>; 2], sigmas: [Vec<Column<Scalar>>; 2]) -> Self {
        let both = |[values, polynomials]: [_; 2]| Both { values, polynomials };
        Self {
            fixed: both(fixed),
            sigmas: both(sigmas),
        }
    }
}

/// The columns for the task that this thread is inside of.
fn in_task(columns: &[Column<Scalar>]) -> Vec<Column<Scalar>> {
    columns.iter().map(Column::in_task).collect()
}

impl KeyColumns<Scalar> for KeyOnDisk {
    fn fixed_values(&self) -> Result<Vec<Column<Scalar>>> {
        Ok(in_task(&self.fixed.values))
    }

    fn fixed_polynomials(&self) -> Result<Vec<Column<Scalar>>> {
        Ok(in_task(&self.fixed.polynomials))
    }

    fn sigma_values(&self) -> Result<Vec<Column<Scalar>>> {
        Ok(in_task(&self.sigmas.values))
    }

    fn sigma_polynomials(&self) -> Result<Vec<Column<Scalar>>> {
        Ok(in_task(&self.sigmas.polynomials))
    }
}

impl KeyOnDisk {
    /// Reads what stock writes after a verifying key: fixed columns and sigma columns of `2^k` rows.
    /// `to_coefficients` is the transform of a column.
    ///
    /// # Errors
    /// Those of the reader; for another number of rows, of columns, or a value that is none; where the disk
    /// or the budget has no room.
    pub(crate) fn read(
        session: &Session,
        reader: &mut dyn io::Read,
        shape: KeyShape,
        to_coefficients: &Transform<Scalar>,
    ) -> io::Result<Self> {
        let mut both = |what, columns| {
            let values = read_columns(session.workspace(), reader, (what, columns), shape.rows)?;
            let polynomials = values
                .iter()
                .map(|column| Scalar::transform(column, to_coefficients));
            let polynomials = polynomials.collect::<spillproof_engine::Result<_>>();
            Ok::<_, io::Error>(Both {
                polynomials: polynomials.map_err(io::Error::other)?,
                values,
            })
        };
        Ok(Self {
            fixed: both("fixed", shape.fixed)?,
            sigmas: both("sigma", shape.sigmas)?,
        })
    }

    /// Writes what [`Self::read`] reads.
    ///
    /// # Errors
    /// Those of the writer, and of reading a column.
    pub(crate) fn write(&self, writer: &mut dyn io::Write) -> io::Result<()> {
        for columns in [&self.fixed.values, &self.sigmas.values] {
            writer.write_all(&(columns.len() as u32).to_be_bytes())?;
            for column in columns {
                writer.write_all(&(column.len() as u32).to_be_bytes())?;
                write_column(column, writer)?;
            }
        }
        Ok(())
    }

    /// What stock says that the columns of this key take, where cosets have so many rows: it counts
    /// coefficients and cosets of sigma columns, which are not written.
    pub(crate) fn bytes_length(&self, extended_rows: usize) -> usize {
        let slice = |columns: &[Column<Scalar>], rows: Option<usize>| {
            let of_first = columns.first().map_or(0, |column| column.len() as usize);
            let rows = if columns.is_empty() {
                0
            } else {
                rows.unwrap_or(of_first)
            };
            4 + columns.len() * (4 + VALUE_BYTES * rows)
        };
        let sigmas = &self.sigmas.values;
        slice(&self.fixed.values, None) + 2 * slice(sigmas, None) + slice(sigmas, Some(extended_rows))
    }
}

/// The columns that a key must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyShape {
    pub(crate) rows: u64,
    pub(crate) fixed: usize,
    pub(crate) sigmas: usize,
}

fn read_columns(
    workspace: &Workspace,
    reader: &mut dyn io::Read,
    (what, expected): (&'static str, usize),
    rows: u64,
) -> io::Result<Vec<Column<Scalar>>> {
    let mut number = [0; 4];
    reader.read_exact(&mut number)?;
    let columns = u32::from_be_bytes(number) as usize;
    let refuse = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    if columns != expected {
        return Err(refuse(format!(
            "a proving key with {columns} {what} columns: its circuit has {expected}"
        )));
    }
    let mut column = |index| {
        reader.read_exact(&mut number)?;
        let found = u32::from_be_bytes(number);
        if u64::from(found) != rows {
            return Err(refuse(format!(
                "a proving key whose {what} column {index} has {found} rows: its verifying key says {rows}"
            )));
        }
        read_column(workspace, reader, (what, index), rows)
    };
    (0..columns).map(&mut column).collect()
}

fn read_column(
    workspace: &Workspace,
    reader: &mut dyn io::Read,
    (what, index): (&'static str, usize),
    rows: u64,
) -> io::Result<Column<Scalar>> {
    // Read on this thread, which the reader belongs to, and so in the session's turn.
    let mut read = Ok(());
    let written = workspace.run_here(|| {
        let mut writer = Writer::scratch(workspace, what, rows, Placement::Auto)?;
        let mut bytes = vec![0; CHUNK_VALUES.min(rows as usize) * VALUE_BYTES];
        let mut values = Vec::with_capacity(bytes.len() / VALUE_BYTES);
        for first in (0..rows).step_by(CHUNK_VALUES) {
            let count = (rows - first).min(CHUNK_VALUES as u64) as usize;
            let bytes = &mut bytes[..count * VALUE_BYTES];
            read = reader.read_exact(bytes).and_then(|()| {
                decode(bytes, &mut values).map_err(|row| {
                    let row = first + row as u64;
                    let message = format!(
                        "a proving key: row {row} of {what} column {index} is no scalar of BLS12-381"
                    );
                    io::Error::new(io::ErrorKind::InvalidData, message)
                })
            });
            if read.is_err() {
                writer.abandon();
                return Ok(None);
            }
            writer.push(&values)?;
        }
        writer.finish().map(Some)
    });
    read?;
    match written.map_err(|error: spillproof_engine::Error| io::Error::other(error))? {
        Some(column) => Ok(column),
        None => Err(io::Error::other("a column that was not read")),
    }
}

/// The values of these bytes; the first one that is none. (Stock takes any bytes, and computes with numbers
/// above the modulus.)
fn decode(bytes: &[u8], values: &mut Vec<Scalar>) -> std::result::Result<(), usize> {
    values.clear();
    for (row, bytes) in bytes.chunks_exact(VALUE_BYTES).enumerate() {
        let value = Scalar::decode(bytes);
        if value.0 >= <Scalar as ark_ff::PrimeField>::MODULUS {
            return Err(row);
        }
        values.push(value);
    }
    Ok(())
}

fn write_column(column: &Column<Scalar>, writer: &mut dyn io::Write) -> io::Result<()> {
    let chunk = column.sequential_chunk().min(CHUNK_VALUES as u64);
    let mut values = vec![Scalar::from(0u64); chunk as usize];
    let mut bytes = vec![0; values.len() * VALUE_BYTES];
    let mut reader = column.read_ascending(chunk).map_err(io::Error::other)?;
    while let Some(region) = reader.next_into(&mut values).map_err(io::Error::other)? {
        let bytes = &mut bytes[..region.len() as usize * VALUE_BYTES];
        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(VALUE_BYTES)) {
            value.encode(bytes);
        }
        writer.write_all(bytes)?;
    }
    Ok(())
}

/// The columns of a key, wherever they are.
pub(crate) enum KeyOf<'k, F> {
    /// On disk.
    Disk(&'k KeyOnDisk),
    /// In memory.
    Memory(KeyInMemory<'k, F>),
}

impl<'k, F: PrimeField> KeyOf<'k, F> {
    /// Of a key.
    pub(crate) fn new<CS: PolynomialCommitmentScheme<F>>(
        workspace: &'k Workspace,
        pk: &'k ProvingKey<F, CS>,
    ) -> Self {
        match pk.spillproof.on_disk() {
            Some(columns) => Self::Disk(columns),
            None => Self::Memory(KeyInMemory {
                workspace,
                polynomials: [
                    KeyInMemory::slices(&pk.fixed_values),
                    KeyInMemory::slices(&pk.fixed_polys),
                    KeyInMemory::slices(&pk.permutation.permutations),
                    KeyInMemory::slices(&pk.permutation.polys),
                ],
            }),
        }
    }

    /// Its columns, for a proof.
    pub(crate) fn columns(&self) -> &(dyn KeyColumns<Scalar> + Sync + 'k) {
        match self {
            Self::Disk(columns) => *columns,
            Self::Memory(columns) => columns,
        }
    }
}

/// The polynomials of a key in memory. Each time that columns are asked for, scratch columns are written.
pub(crate) struct KeyInMemory<'k, F> {
    workspace: &'k Workspace,
    /// Fixed values and coefficients, sigma values and coefficients.
    polynomials: [Vec<&'k [F]>; 4],
}

impl<'k, F: PrimeField> KeyInMemory<'k, F> {
    /// Values or coefficients, without their basis.
    fn slices<B>(polynomials: &'k [Polynomial<F, B>]) -> Vec<&'k [F]> {
        polynomials.iter().map(|polynomial| &polynomial[..]).collect()
    }

    fn columns(&self, which: usize) -> Result<Vec<Column<Scalar>>> {
        let column = |values: &&[F]| {
            let rows = values.len() as u64;
            Ok(Scalar::padded_column(
                self.workspace,
                rows,
                &Foreign(values),
                &[],
            )?)
        };
        self.polynomials[which].iter().map(column).collect()
    }
}

impl<F: PrimeField> KeyColumns<Scalar> for KeyInMemory<'_, F> {
    fn fixed_values(&self) -> Result<Vec<Column<Scalar>>> {
        self.columns(0)
    }

    fn fixed_polynomials(&self) -> Result<Vec<Column<Scalar>>> {
        self.columns(1)
    }

    fn sigma_values(&self) -> Result<Vec<Column<Scalar>>> {
        self.columns(2)
    }

    fn sigma_polynomials(&self) -> Result<Vec<Column<Scalar>>> {
        self.columns(3)
    }
}
