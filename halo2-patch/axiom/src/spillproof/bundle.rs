//! A proving key in a file of the engine's, which is opened in place.
//!
//! `ProvingKey::read` copies: from any reader, in stock's bytes, into scratch. A bundle is opened without
//! reading more than its header, its digests and the verifying key; the polynomials are columns of the file
//! itself, checked frame by frame as they are read, and shared by every process that opens it. The file is a
//! container (see `disk-format/FORMAT.md`): the verifying key as [`SerdeFormat::RawBytes`], perhaps a
//! description of its circuit, then five groups of polynomials.
//!
//! Memory: 32 bytes for each 16 KiB of the file; buffers. Trust: as for [`SerdeFormat::RawBytesUnchecked`],
//! the maker of the file vouches for the polynomials; the digests say that it is the file that was made.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use halo2curves::bn256::{Fr, G1Affine};
use spillproof_commit::Scalar;
use spillproof_engine::column::{Bundle, BundleWriter, Bytes, Column, Group, Kind, SCRATCH_FRAME_BYTES};
use spillproof_engine::error::Invalid;
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_plonk::description::{FieldError, DESCRIPTION_BYTES_MAX};
use spillproof_plonk::{CircuitDescription, SavedError};

use super::bytes::{ColumnReader, ColumnWriter, Counter};
use super::describe::{described, element};
use super::engine::session_for;
use super::values::{column, from_column};
use crate::plonk::{permutation, Circuit, ProvingKey, VerifyingKey};
use crate::poly::Polynomial;
use crate::SerdeFormat;

/// How the verifying key is written.
const FORMAT: SerdeFormat = SerdeFormat::RawBytes;
/// The largest domain of BN254.
const K_MAX: u32 = 28;

const KEY: &str = "key";
/// The description of the key's circuit.
const CIRCUIT: &str = "circuit";
/// `l_0`, `l_last`, `l_active_row`.
const ROWS: &str = "rows";
pub(super) const ROW_POLYNOMIALS: usize = 3;
const FIXED_VALUES: &str = "fixed values";
const FIXED_POLYS: &str = "fixed polys";
const SIGMA_VALUES: &str = "sigma values";
const SIGMA_POLYS: &str = "sigma polys";

/// What the digests of `columns` columns of `rows` scalars in a container hold of the budget.
pub(super) fn digests_bytes(columns: u64, rows: u64) -> u64 {
    const DIGEST_BYTES: u64 = 32;
    columns * (rows * 32).div_ceil(SCRATCH_FRAME_BYTES as u64) * DIGEST_BYTES
}

/// Writes a proving key to a file that [`open_proving_key`] opens in place. Returns the root, 32 bytes that
/// name the file. The file appears under its name only when it is whole.
///
/// # Errors
/// Without a session; if the key's columns can't be read, or the file can't be written.
pub fn save_proving_key(pk: &ProvingKey<G1Affine>, path: impl AsRef<Path>) -> io::Result<[u8; 32]> {
    let session = session_for("a proving key's own file")?;
    save(&session, pk, &[], path.as_ref())
}

/// [`save_proving_key`] with a description of the key's circuit in the file, so that another program can
/// prove and verify with it: the binary `spillproof`, with a witness of
/// [`save_witness`](super::save_witness). The circuit is the one that keygen had; its witness has no part in
/// it.
///
/// # Errors
/// As there; [`SavedError`] within the error for a key of another circuit, for one with challenges, and for
/// one too large to be described.
pub fn save_described_key<ConcreteCircuit: Circuit<Fr>>(
    pk: &ProvingKey<G1Affine>,
    circuit: &ConcreteCircuit,
    path: impl AsRef<Path>,
) -> io::Result<[u8; 32]> {
    let session = session_for("a proving key's own file")?;
    let description = described(&session, pk.get_vk(), circuit)?;
    let description = description.encode().map_err(SavedError::Indescribable)?;
    save(&session, pk, &description, path.as_ref())
}

fn save(session: &Session, pk: &ProvingKey<G1Affine>, circuit: &[u8], path: &Path) -> io::Result<[u8; 32]> {
    let mut counter = Counter(0);
    pk.get_vk().write(&mut counter, FORMAT)?;
    let save = || write(session, pk, circuit, (path, counter.0));
    session.workspace().run(save).map_err(io::Error::other)
}

fn write(
    session: &Session,
    pk: &ProvingKey<G1Affine>,
    circuit: &[u8],
    (path, key_bytes): (&Path, u64),
) -> Result<[u8; 32]> {
    let (fixed, sigmas) = (pk.fixed_values().len(), pk.permutation().permutations().len());
    let group = |label, lagrange, polynomials| Group {
        label,
        lagrange,
        polynomials,
    };
    let groups = [
        group(ROWS, false, ROW_POLYNOMIALS),
        group(FIXED_VALUES, true, fixed),
        group(FIXED_POLYS, false, fixed),
        group(SIGMA_VALUES, true, sigmas),
        group(SIGMA_POLYS, false, sigmas),
    ];
    let section = |label, bytes| Bytes { label, bytes };
    let (key, description) = (section(KEY, key_bytes), section(CIRCUIT, circuit.len() as u64));
    let both = [key, description];
    let sections = if circuit.is_empty() { &both[..1] } else { &both[..] };
    let rows = pk.get_vk().get_domain().get_n();
    let kind = Kind::ProvingKeyBundle;
    let bundle = BundleWriter::of_kind(session.workspace(), path, kind, sections, rows, &groups)?;
    let mut bytes = io::BufWriter::new(ColumnWriter(bundle.key()?));
    let written = pk.get_vk().write(&mut bytes, FORMAT);
    let written = written.and_then(|()| bytes.into_inner().map_err(io::IntoInnerError::into_error));
    written.map_err(outside)?.0.finish()?;
    if !circuit.is_empty() {
        let mut bytes = bundle.bytes(CIRCUIT)?;
        bytes.push(circuit.as_chunks().0)?;
        bytes.finish()?;
    }
    bundle.write(ROWS, [pk.l0(), pk.l_last(), pk.l_active_row()].map(on_disk))?;
    bundle.write(FIXED_VALUES, pk.fixed_values().iter().map(on_disk))?;
    bundle.write(FIXED_POLYS, pk.fixed_polys().iter().map(on_disk))?;
    bundle.write(SIGMA_VALUES, pk.permutation().permutations().iter().map(on_disk))?;
    bundle.write(SIGMA_POLYS, pk.permutation().polys().iter().map(on_disk))?;
    bundle.publish()
}

/// Opens a proving key that [`save_proving_key`] or [`save_described_key`] wrote. Its polynomials stay in the
/// file, which must not change as long as the key lives.
///
/// # Errors
/// Without a session; if the file is not a proving key, not one of this circuit, or damaged. What is damaged
/// in its polynomials is found when they are read.
pub fn open_proving_key<ConcreteCircuit: Circuit<Fr>>(
    path: impl AsRef<Path>,
    #[cfg(feature = "circuit-params")] params: ConcreteCircuit::Params,
) -> io::Result<ProvingKey<G1Affine>> {
    KeyFile::open(path)?.proving_key::<ConcreteCircuit>(
        #[cfg(feature = "circuit-params")]
        params,
    )
}

/// The file of a proving key, opened.
#[derive(Debug)]
pub struct KeyFile {
    bundle: Bundle,
    path: PathBuf,
    session: Arc<Session>,
}

impl KeyFile {
    /// Opens a file of [`save_proving_key`] or [`save_described_key`].
    ///
    /// # Errors
    /// Without a session; if the file is not a proving key, or damaged.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let session = session_for("a proving key's own file")?;
        let path = path.as_ref().to_owned();
        let bundle = Bundle::open(session.workspace(), &path).map_err(io::Error::other)?;
        Ok(Self {
            bundle,
            path,
            session,
        })
    }

    /// `2^k` rows.
    ///
    /// # Errors
    /// If the key's bytes are damaged, or are none.
    pub fn k(&self) -> io::Result<u32> {
        /// halo2's version of a key, then k.
        const HEAD_BYTES: usize = 5;
        let mut head = [0; HEAD_BYTES];
        self.key_bytes()?.read_exact(&mut head)?;
        let [_version, k @ ..] = head;
        match u32::from_le_bytes(k) {
            k if k <= K_MAX => Ok(k),
            k => Err(self.field(
                KEY,
                FieldError {
                    what: "k",
                    offset: 1,
                    value: k.to_string(),
                    remedy: "a circuit over BN254 has at most 2^28 rows: save the key again",
                },
            )),
        }
    }

    /// The verifying key's bytes, as [`SerdeFormat::RawBytes`].
    ///
    /// # Errors
    /// If they are damaged, or the budget has no room for them while they are read.
    pub fn verifying_key_bytes(&self) -> io::Result<Vec<u8>> {
        let bytes = self.bundle.key().map_err(io::Error::other)?;
        self.to_vec(&bytes, "a verifying key")
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
        CircuitDescription::decode(&bytes).map_err(|source| self.field(CIRCUIT, source))
    }

    /// The key. The file must not change as long as it lives.
    ///
    /// # Errors
    /// As [`open_proving_key`].
    pub fn proving_key<ConcreteCircuit: Circuit<Fr>>(
        &self,
        #[cfg(feature = "circuit-params")] params: ConcreteCircuit::Params,
    ) -> io::Result<ProvingKey<G1Affine>> {
        self.k()?;
        let another = |what: &str| {
            let message = format!("{}: {what}: it belongs to another circuit", self.path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let mut reader = self.key_bytes()?;
        let vk = VerifyingKey::<G1Affine>::read::<_, ConcreteCircuit>(
            &mut reader,
            FORMAT,
            #[cfg(feature = "circuit-params")]
            params,
        )
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => another("fewer bytes than a verifying key of this circuit has"),
            _ => error,
        })?;
        if reader.read(&mut [0])? != 0 {
            return Err(another("more bytes than a verifying key of this circuit has"));
        }
        let is_described = self.bundle.bytes(CIRCUIT).map_err(io::Error::other)?.is_some();
        if is_described && self.description()?.key != element(&vk.transcript_repr()) {
            return Err(another("a key that differs from one of this circuit"));
        }
        let rows = vk.get_domain().get_n();
        let (fixed, sigmas) = (vk.fixed_commitments().len(), vk.permutation().commitments().len());
        let mut row_polys = self.group(ROWS, ROW_POLYNOMIALS, rows)?.into_iter();
        let (Some(l0), Some(l_last), Some(l_active_row)) =
            (row_polys.next(), row_polys.next(), row_polys.next())
        else {
            return Err(io::Error::other("a group of three polynomials has fewer"));
        };
        let sigma_values = self.group(SIGMA_VALUES, sigmas, rows)?;
        let sigma_polys = self.group(SIGMA_POLYS, sigmas, rows)?;
        let permutation = permutation::ProvingKey::from_parts(sigma_values, sigma_polys);
        let fixed_values = self.group(FIXED_VALUES, fixed, rows)?;
        let fixed_polys = self.group(FIXED_POLYS, fixed, rows)?;
        Ok(ProvingKey::from_parts(
            vk,
            l0,
            l_last,
            l_active_row,
            fixed_values,
            fixed_polys,
            permutation,
        ))
    }

    fn key_bytes(&self) -> io::Result<ColumnReader> {
        let bytes = self.bundle.key().map_err(io::Error::other)?;
        ColumnReader::new(&bytes).map_err(io::Error::other)
    }

    fn to_vec(&self, bytes: &Column<[u8; 1]>, what: &'static str) -> io::Result<Vec<u8>> {
        let lease = self.session.budget().lease(bytes.len(), what);
        let _while_read = lease.map_err(io::Error::other)?;
        let mut all = Vec::with_capacity(bytes.len() as usize);
        ColumnReader::new(bytes)
            .map_err(io::Error::other)?
            .read_to_end(&mut all)?;
        Ok(all)
    }

    fn group<B>(&self, label: &str, polynomials: usize, rows: u64) -> io::Result<Vec<Polynomial<Fr, B>>> {
        let columns = self.bundle.group::<Scalar>(label, polynomials, rows);
        Ok(columns
            .map_err(io::Error::other)?
            .into_iter()
            .map(from_column)
            .collect())
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

/// The column of a polynomial, for the engine.
fn on_disk<B>(poly: &Polynomial<Fr, B>) -> Result<Column<Scalar>> {
    column(poly).map_err(outside)
}

/// An error of halo2's side, for the engine.
fn outside(error: io::Error) -> spillproof_engine::Error {
    Invalid::ProofSystem {
        what: "proving key",
        reason: error.to_string(),
    }
    .into()
}
