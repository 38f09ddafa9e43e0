//! A proving key in a file of the engine's, which is opened in place.
//!
//! A key is opened without reading more than its header, its digests and the verifying key; the polynomials
//! are columns of the file itself, checked frame by frame as they are read, and shared by every process that
//! opens it. The file is a container: the verifying key in halo2's bytes, perhaps a description of its
//! circuit, then groups of polynomials.
//!
//! Memory: 32 bytes for each 16 KiB of the file; buffers. Trust: the maker of the file vouches for the
//! polynomials; the digests say that it is the file that was made.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use spillproof_engine::Result;
use spillproof_engine::column::{
    Bundle, BundleKind, BundleWriter, Bytes, Column, Group, Kind, SCRATCH_FRAME_BYTES, Workspace,
};
use spillproof_engine::error::Invalid;
use spillproof_format::Curve;

use super::bytes::{ColumnReader, ColumnWriter, Counter};
use super::{SavedError, check_k};
use crate::compiled::ProverField;
use crate::description::{CircuitDescription, DESCRIPTION_BYTES_MAX, FieldError};

const KEY: &str = "key";
/// The description of the key's circuit.
const CIRCUIT: &str = "circuit";
/// The group of fixed columns, as values.
pub const FIXED_VALUES: &str = "fixed values";
/// As coefficients.
pub const FIXED_POLYS: &str = "fixed polys";
/// The group of sigma columns, as values.
pub const SIGMA_VALUES: &str = "sigma values";
/// As coefficients.
pub const SIGMA_POLYS: &str = "sigma polys";

/// What the digests of `columns` columns of `rows` scalars in a container hold of the budget.
pub fn digests_bytes(columns: u64, rows: u64) -> u64 {
    const DIGEST_BYTES: u64 = 32;
    columns * (rows * 32).div_ceil(SCRATCH_FRAME_BYTES as u64) * DIGEST_BYTES
}

/// Polynomials of a key that is being saved.
pub struct KeyGroup<'k, F> {
    /// What they are, and how many.
    pub group: Group,
    /// The polynomials.
    pub columns: Box<dyn Iterator<Item = Result<Column<F>>> + Send + 'k>,
}

/// A key that is being saved.
pub struct NewKeyFile<'k, F> {
    /// The curve that it is over.
    pub curve: Curve,
    /// Rows of each polynomial.
    pub rows: u64,
    /// Writes the verifying key in halo2's bytes; it is called twice.
    pub key: &'k (dyn Fn(&mut dyn Write) -> io::Result<()> + Sync),
    /// The description of its circuit, if that is saved.
    pub circuit: Option<&'k CircuitDescription>,
    /// Its polynomials.
    pub groups: Vec<KeyGroup<'k, F>>,
}

impl<F: ProverField> NewKeyFile<'_, F> {
    /// Writes a file that [`KeyFile::open`] opens. Returns the root, 32 bytes that name the file. The file
    /// appears under its name only when it is whole.
    ///
    /// # Errors
    /// If columns can't be read, or the file can't be written; [`SavedError::Indescribable`] within the
    /// error.
    pub fn save(self, workspace: &Workspace, path: &Path) -> io::Result<[u8; 32]> {
        let circuit = self.circuit.map(CircuitDescription::encode).transpose();
        let circuit = circuit.map_err(SavedError::Indescribable)?.unwrap_or_default();
        let mut counter = Counter(0);
        (self.key)(&mut counter)?;
        let save = || self.write(workspace, (path, counter.0), &circuit);
        workspace.run(save).map_err(io::Error::other)
    }

    fn write(
        self,
        workspace: &Workspace,
        (path, key_bytes): (&Path, u64),
        circuit: &[u8],
    ) -> Result<[u8; 32]> {
        let groups: Vec<Group> = self.groups.iter().map(|of| of.group).collect();
        let section = |label, bytes| Bytes { label, bytes };
        let (key, description) = (section(KEY, key_bytes), section(CIRCUIT, circuit.len() as u64));
        let both = [key, description];
        let sections = if circuit.is_empty() { &both[..1] } else { &both[..] };
        let kind = kind_over(self.curve);
        let bundle = BundleWriter::of_kind(workspace, path, kind, sections, self.rows, &groups)?;
        let mut bytes = io::BufWriter::new(ColumnWriter(bundle.key()?));
        let written = (self.key)(&mut bytes);
        let written = written.and_then(|()| bytes.into_inner().map_err(io::IntoInnerError::into_error));
        written.map_err(of_outside)?.0.finish()?;
        if !circuit.is_empty() {
            let mut bytes = bundle.bytes(CIRCUIT)?;
            bytes.push(circuit.as_chunks().0)?;
            bytes.finish()?;
        }
        for KeyGroup { group, mut columns } in self.groups {
            F::write_group(&bundle, group.label, &mut columns)?;
        }
        bundle.publish()
    }
}

/// An error of halo2's side, for the engine.
pub fn of_outside(error: io::Error) -> spillproof_engine::Error {
    Invalid::ProofSystem {
        what: "proving key",
        reason: error.to_string(),
    }
    .into()
}

const fn kind_over(curve: Curve) -> BundleKind {
    let kind = Kind::ProvingKeyBundle;
    BundleKind { kind, curve }
}

/// The file of a proving key, opened. It must not change as long as columns of it live.
#[derive(Debug)]
pub struct KeyFile {
    bundle: Bundle,
    path: PathBuf,
    workspace: Workspace,
    curve: Curve,
}

impl KeyFile {
    /// Opens a file of [`NewKeyFile::save`].
    ///
    /// # Errors
    /// If the file is not a proving key over the curve, or damaged.
    pub fn open(workspace: &Workspace, path: &Path, curve: Curve) -> io::Result<Self> {
        let bundle = Bundle::open_kind(workspace, path, kind_over(curve)).map_err(io::Error::other)?;
        Ok(Self {
            bundle,
            path: path.to_owned(),
            workspace: workspace.clone(),
            curve,
        })
    }

    /// The k that stands at an offset of the verifying key's bytes, if a circuit may have so many rows.
    ///
    /// # Errors
    /// [`SavedError::Field`] within the error.
    pub fn checked_k(&self, k: u32, offset: u64) -> io::Result<u32> {
        check_k(k, offset).map_err(|source| self.field(KEY, source))
    }

    /// The verifying key's bytes.
    ///
    /// # Errors
    /// If they are damaged, or the budget has no room for them while they are read.
    pub fn verifying_key_bytes(&self) -> io::Result<Vec<u8>> {
        let bytes = self.bundle.key().map_err(io::Error::other)?;
        self.to_vec(&bytes, "a verifying key")
    }

    /// A reader of the verifying key's bytes.
    ///
    /// # Errors
    /// The engine's.
    pub fn key_bytes(&self) -> io::Result<ColumnReader> {
        let bytes = self.bundle.key().map_err(io::Error::other)?;
        ColumnReader::new(&bytes).map_err(io::Error::other)
    }

    /// Whether the circuit is described.
    ///
    /// # Errors
    /// The engine's.
    pub fn is_described(&self) -> io::Result<bool> {
        let found = self.bundle.bytes(CIRCUIT).map_err(io::Error::other)?;
        Ok(found.is_some())
    }

    /// The circuit that the key is of.
    ///
    /// # Errors
    /// [`SavedError`] within the error, for a key that was saved without it and for a description that is
    /// none; the engine's.
    pub fn description(&self) -> io::Result<CircuitDescription> {
        let found = self.bundle.bytes(CIRCUIT).map_err(io::Error::other)?;
        let Some(bytes) = found else {
            let file = self.path.clone();
            return Err(SavedError::NoDescription { file }.into());
        };
        if bytes.len() > DESCRIPTION_BYTES_MAX {
            return Err(self.field(
                CIRCUIT,
                FieldError {
                    what: "the section's length",
                    offset: 0,
                    value: bytes.len().to_string(),
                    remedy: "at most 16 MiB are read",
                },
            ));
        }
        let bytes = self.to_vec(&bytes, "a circuit's description")?;
        let described = CircuitDescription::decode(&bytes).map_err(|source| self.field(CIRCUIT, source))?;
        match described.proofs.curve() == self.curve {
            true => Ok(described),
            false => Err(self.field(
                CIRCUIT,
                FieldError {
                    what: "version",
                    offset: 0,
                    value: "of a circuit over another curve than the file's".into(),
                    remedy: "save the key again",
                },
            )),
        }
    }

    /// The `polynomials` polynomials of a group, of `rows` values each, as columns of the file.
    ///
    /// # Errors
    /// If the file has another number of values there.
    pub fn group<F: ProverField>(
        &self,
        label: &str,
        polynomials: usize,
        rows: u64,
    ) -> io::Result<Vec<Column<F>>> {
        F::group_of(&self.bundle, label, polynomials, rows).map_err(io::Error::other)
    }

    /// The error of a key that is of another circuit than the given one.
    pub fn of_another_circuit(&self, what: &str) -> io::Error {
        let message = format!("{}: {what}: it belongs to another circuit", self.path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    }

    fn to_vec(&self, bytes: &Column<[u8; 1]>, what: &'static str) -> io::Result<Vec<u8>> {
        let lease = self.workspace.budget.lease(bytes.len(), what);
        let _while_read = lease.map_err(io::Error::other)?;
        let mut all = Vec::with_capacity(bytes.len() as usize);
        ColumnReader::new(bytes)
            .map_err(io::Error::other)?
            .read_to_end(&mut all)?;
        Ok(all)
    }

    fn field(&self, section: &'static str, source: FieldError) -> io::Error {
        let file = self.path.clone();
        SavedError::Field {
            file,
            section,
            source,
        }
        .into()
    }
}
