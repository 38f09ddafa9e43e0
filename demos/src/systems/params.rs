//! Parameters in files: what a file is, its bytes say.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use ark_bn254::{g1, g2};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use spillproof::budget::Budget;
use spillproof::column::Workspace;
use spillproof::commit::Srs;
use spillproof::storage::{Backend, Storage};
use spillproof_format::header::MAGIC;
use spillproof_format::native::{NativeField, point_bytes};
use spillproof_format::params_kzg::points::{read_checked, write_format};
use spillproof_format::params_kzg::{Layout, Region, SerdeFormat};

use crate::failure::Failure;
use crate::run::Result;

/// What a file of parameters is.
pub enum Kind {
    /// A container of ours.
    Container,
    /// What halo2 writes, or something else that has no name at its beginning.
    Other,
}

/// The kind of a file.
///
/// # Errors
/// [`Failure::File`]; [`Failure::Content`] for a file of powers of tau.
pub fn kind_of(path: &Path) -> Result<Kind> {
    let mut magic = [0; MAGIC.len()];
    let mut file = File::open(path).map_err(Failure::file(path))?;
    match file.read_exact(&mut magic) {
        Ok(()) if magic == MAGIC => Ok(Kind::Container),
        Ok(()) if magic.starts_with(b"ptau") => Err(Failure::Content {
            file: path.to_owned(),
            details: "powers of tau: `spillproof ptau import` makes an SRS of them".into(),
        }),
        Ok(()) => Ok(Kind::Other),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(Kind::Other),
        Err(error) => Err(Failure::file(path)(error)),
    }
}

/// A `ParamsKZG` file for `2^k` rows or more, and where everything in it is.
///
/// # Errors
/// [`Failure::File`]; [`Failure::Content`] for another length than such a file has, or a smaller k.
pub fn open_kzg(path: &Path, k: u32) -> Result<(File, Layout)> {
    let content = |details: String| Failure::Content {
        file: path.to_owned(),
        details,
    };
    let mut file = File::open(path).map_err(Failure::file(path))?;
    let bytes = file.metadata().map_err(Failure::file(path))?.len();
    let mut k_bytes = [0; 4];
    let head = file.read(&mut k_bytes).map_err(Failure::file(path))?;
    let layout = match head {
        4 => Layout::detect(bytes, k_bytes).map_err(|error| content(error.to_string()))?,
        _ => return Err(content(format!("{bytes} bytes: a ParamsKZG file has more"))),
    };
    file.rewind().map_err(Failure::file(path))?;
    is_enough(path, k, layout.k())?;
    Ok((file, layout))
}

/// Refuses parameters for fewer than `2^k` rows.
///
/// # Errors
/// [`Failure::Content`].
pub fn is_enough(path: &Path, k: u32, found: u32) -> Result<()> {
    match found >= k {
        true => Ok(()),
        false => Err(Failure::Content {
            file: path.to_owned(),
            details: format!(
                "parameters for 2^{found} rows, and the circuit (--k {k}, or its key) has 2^{k}"
            ),
        }),
    }
}

/// The points that a verifier takes, as [`SerdeFormat::RawBytes`].
pub struct VerifierPoints {
    /// `g[0]`.
    pub g: Vec<u8>,
    /// `g2` and `s_g2`.
    pub pair: [Vec<u8>; 2],
}

/// The verifier's points of a container or a `ParamsKZG` file for `2^k` rows or more; nothing else of it is read.
///
/// # Errors
/// Those of [`kind_of`] and [`open_kzg`]; the engine's; [`Failure::Content`] for what is no point.
pub fn verifier_points(path: &Path, k: u32) -> Result<VerifierPoints> {
    match kind_of(path)? {
        Kind::Container => {
            const BUDGET_BYTES: u64 = 4 << 20;
            // Nothing is written.
            let storage = Storage::builder().dir(".").backend(Backend::Pread).build()?;
            let srs = Srs::open_container(&Workspace::new(storage, Budget::new(BUDGET_BYTES)), path)?;
            is_enough(path, k, srs.k())?;
            let first = srs.monomial()?.prefix(1)?.to_vec()?;
            let first = first.first().ok_or_else(|| Failure::Content {
                file: path.to_owned(),
                details: "an SRS without points".into(),
            })?;
            Ok(VerifierPoints {
                g: raw::<g1::Config>(&first.to_affine()),
                pair: srs.pair().map(|point| raw::<g2::Config>(&point)),
            })
        }
        Kind::Other => {
            let (mut file, layout) = open_kzg(path, k)?;
            Ok(VerifierPoints {
                g: point::<g1::Config>(path, &mut file, &layout, Region::G)?,
                pair: [
                    point::<g2::Config>(path, &mut file, &layout, Region::G2)?,
                    point::<g2::Config>(path, &mut file, &layout, Region::SG2)?,
                ],
            })
        }
    }
}

/// The first point of a region.
fn point<P: SWCurveConfig<BaseField: NativeField>>(
    path: &Path,
    file: &mut File,
    layout: &Layout,
    region: Region,
) -> Result<Vec<u8>> {
    let offset = layout.offset(region);
    let mut bytes = vec![0; layout.point_bytes(region) as usize];
    file.seek(SeekFrom::Start(offset)).map_err(Failure::file(path))?;
    file.read_exact(&mut bytes).map_err(Failure::file(path))?;
    let point = read_checked::<P>(layout.format(), &bytes).map_err(|fault| Failure::Content {
        file: path.to_owned(),
        details: format!("the first point of {} at offset {offset} {fault}", region.name()),
    })?;
    Ok(raw(&point))
}

fn raw<P: SWCurveConfig<BaseField: NativeField>>(point: &Affine<P>) -> Vec<u8> {
    let mut bytes = vec![0; point_bytes::<P>()];
    write_format(SerdeFormat::RawBytes, point, &mut bytes);
    bytes
}
