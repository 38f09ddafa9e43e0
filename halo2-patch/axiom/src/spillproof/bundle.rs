//! A proving key in a file of the engine's, which is opened in place.
//!
//! `ProvingKey::read` copies: from any reader, in stock's bytes, into scratch. A bundle is opened without reading more than
//! its header, its digests and the verifying key; the polynomials are columns of the file itself, checked frame by frame as
//! they are read, and shared by every process that opens it. The file is a container (see `disk-format/FORMAT.md`):
//! the verifying key as [`SerdeFormat::RawBytes`], then five groups of polynomials.
//!
//! Memory: 32 bytes for each 16 KiB of the file; buffers. Trust: as for [`SerdeFormat::RawBytesUnchecked`], the maker of
//! the file vouches for the polynomials; the digests say that it is the file that was made.

use std::io::{self, Read, Write};
use std::path::Path;

use ::spillproof::budget::LeasedVec;
use ::spillproof::column::{Bundle, BundleWriter, Column, Group, Reader, Writer};
use ::spillproof::commit::Scalar;
use ::spillproof::error::Invalid;
use ::spillproof::{Result, Session};
use halo2curves::bn256::{Fr, G1Affine};

use super::engine::session_for;
use super::values::{column, from_column};
use crate::plonk::{permutation, Circuit, ProvingKey, VerifyingKey};
use crate::poly::Polynomial;
use crate::SerdeFormat;

/// How the verifying key is written.
const FORMAT: SerdeFormat = SerdeFormat::RawBytes;

/// `l_0`, `l_last`, `l_active_row`.
const ROWS: &str = "rows";
const ROW_POLYNOMIALS: usize = 3;
const FIXED_VALUES: &str = "fixed values";
const FIXED_POLYS: &str = "fixed polys";
const SIGMA_VALUES: &str = "sigma values";
const SIGMA_POLYS: &str = "sigma polys";

/// Writes a proving key to a file that [`open_proving_key`] opens in place. Returns the root, 32 bytes that name the file.
/// The file appears under its name only when it is whole.
///
/// # Errors
/// Without a session; if the key's columns can't be read, or the file can't be written.
pub fn save_proving_key(pk: &ProvingKey<G1Affine>, path: impl AsRef<Path>) -> io::Result<[u8; 32]> {
    let session = session_for("a proving key's own file")?;
    let (path, mut counter) = (path.as_ref(), Counter(0));
    pk.get_vk().write(&mut counter, FORMAT)?;
    let save = || save(&session, pk, path, counter.0);
    session.workspace().run(save).map_err(io::Error::other)
}

fn save(session: &Session, pk: &ProvingKey<G1Affine>, path: &Path, key_bytes: u64) -> Result<[u8; 32]> {
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
    let rows = pk.get_vk().get_domain().get_n();
    let bundle = BundleWriter::create(session.workspace(), path, key_bytes, rows, &groups)?;
    let mut bytes = io::BufWriter::new(ColumnWriter(bundle.key()?));
    let written = pk.get_vk().write(&mut bytes, FORMAT);
    let written = written.and_then(|()| bytes.into_inner().map_err(io::IntoInnerError::into_error));
    written.map_err(outside)?.0.finish()?;
    bundle.write(ROWS, [pk.l0(), pk.l_last(), pk.l_active_row()].map(on_disk))?;
    bundle.write(FIXED_VALUES, pk.fixed_values().iter().map(on_disk))?;
    bundle.write(FIXED_POLYS, pk.fixed_polys().iter().map(on_disk))?;
    bundle.write(SIGMA_VALUES, pk.permutation().permutations().iter().map(on_disk))?;
    bundle.write(SIGMA_POLYS, pk.permutation().polys().iter().map(on_disk))?;
    bundle.publish()
}

/// Opens a proving key that [`save_proving_key`] wrote. Its polynomials stay in the file, which must not change as long as
/// the key lives.
///
/// # Errors
/// Without a session; if the file is not a proving key, not one of this circuit, or damaged. What is damaged in its polynomials
/// is found when they are read.
pub fn open_proving_key<ConcreteCircuit: Circuit<Fr>>(
    path: impl AsRef<Path>,
    #[cfg(feature = "circuit-params")] params: ConcreteCircuit::Params,
) -> io::Result<ProvingKey<G1Affine>> {
    let session = session_for("a proving key's own file")?;
    let bundle = Bundle::open(session.workspace(), path.as_ref()).map_err(io::Error::other)?;
    let mut reader = ColumnReader::new(&bundle.key().map_err(io::Error::other)?).map_err(io::Error::other)?;
    let vk = VerifyingKey::<G1Affine>::read::<_, ConcreteCircuit>(
        &mut reader,
        FORMAT,
        #[cfg(feature = "circuit-params")]
        params,
    )?;
    if reader.read(&mut [0])? != 0 {
        let message = format!(
            "{}: more bytes than a verifying key of this circuit has: it belongs to another circuit",
            path.as_ref().display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let rows = vk.get_domain().get_n();
    let (fixed, sigmas) = (vk.fixed_commitments().len(), vk.permutation().commitments().len());
    let mut row_polys = group(&bundle, ROWS, ROW_POLYNOMIALS, rows)?.into_iter();
    let (Some(l0), Some(l_last), Some(l_active_row)) = (row_polys.next(), row_polys.next(), row_polys.next())
    else {
        return Err(io::Error::other("a group of three polynomials has fewer"));
    };
    let sigma_values = group(&bundle, SIGMA_VALUES, sigmas, rows)?;
    let permutation =
        permutation::ProvingKey::from_parts(sigma_values, group(&bundle, SIGMA_POLYS, sigmas, rows)?);
    let fixed_values = group(&bundle, FIXED_VALUES, fixed, rows)?;
    let fixed_polys = group(&bundle, FIXED_POLYS, fixed, rows)?;
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

fn group<B>(
    bundle: &Bundle,
    label: &str,
    polynomials: usize,
    rows: u64,
) -> io::Result<Vec<Polynomial<Fr, B>>> {
    let columns = bundle.group::<Scalar>(label, polynomials, rows);
    Ok(columns
        .map_err(io::Error::other)?
        .into_iter()
        .map(from_column)
        .collect())
}

/// The column of a polynomial, for the engine.
fn on_disk<B>(poly: &Polynomial<Fr, B>) -> Result<Column<Scalar>> {
    column(poly).map_err(outside)
}

/// An error of halo2's side, for the engine.
fn outside(error: io::Error) -> ::spillproof::Error {
    Invalid::ProofSystem {
        what: "proving key",
        reason: error.to_string(),
    }
    .into()
}

/// How many bytes were written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes into a column.
struct ColumnWriter(Writer<[u8; 1]>);

impl Write for ColumnWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.as_chunks().0).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes out of a column.
struct ColumnReader {
    reader: Reader<[u8; 1]>,
    tile: LeasedVec<[u8; 1]>,
    /// What of the tile is still to be handed out.
    left: std::ops::Range<usize>,
}

impl ColumnReader {
    fn new(column: &Column<[u8; 1]>) -> Result<Self> {
        let chunk = column.sequential_chunk();
        Ok(Self {
            reader: column.read_ascending(chunk)?,
            tile: column
                .workspace()
                .budget
                .vec(chunk as usize, [0], "bytes being read")?,
            left: 0..0,
        })
    }
}

impl Read for ColumnReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            let read = self.reader.next_into(&mut self.tile).map_err(io::Error::other)?;
            self.left = 0..read.map_or(0, |region| region.len() as usize);
        }
        let bytes = &self.tile[self.left.clone()].as_flattened();
        let now = out.len().min(bytes.len());
        out[..now].copy_from_slice(&bytes[..now]);
        self.left.start += now;
        Ok(now)
    }
}
