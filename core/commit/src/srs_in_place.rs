//! A raw `ParamsKZG` file as an SRS, where it is: nothing is copied, and nothing is checked but what is read.
//!
//! The file has no digests, so each point is checked whenever it is read, on all cores, as far as arithmetic
//! needs it ([`Check::Range`]); points in big-endian form are brought to the native one then. That each is on
//! the curve and in the subgroup, and that the parts belong together, [`check_srs`](super::check_srs) says.
//!
//! Memory: none.

use std::path::Path;
use std::sync::Arc;

use spillproof_format::header::MAGIC;
use spillproof_format::params_kzg::points::{Check, to_native};
use spillproof_format::params_kzg::{Region, SerdeFormat, Stated};
use spillproof_format::{Curve as CurveId, FormatError, hex};

use super::compiled::KzgCurve;
use super::srs::{Srs, curve_id};
use super::srs_import::Import;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, ForeignArray, Workspace};
use spillproof_engine::storage::{File, Segment};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::pairing::PairingGroups;

impl<E: KzgCurve> Srs<E> {
    /// Opens a file where it is: a container, or a `ParamsKZG` file of raw points.
    ///
    /// # Errors
    /// Those of [`Self::open_container`] and [`Self::open_params_kzg`].
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        let file = workspace.storage.open_unaligned(path)?;
        match begins_with_magic(workspace, &file)? {
            true => Self::open_container(workspace, path),
            false => Self::open_params_kzg(workspace, path, None),
        }
    }

    /// Opens a `ParamsKZG` file of raw points where it is. It has to be there, as it is, as long as the SRS is
    /// used. `format` is found from the length if it is not given.
    ///
    /// # Errors
    /// [`Error::Format`](spillproof_engine::Error::Format) for a file that is no `ParamsKZG`, or over another
    /// curve, or of compressed points; [`Error::File`](spillproof_engine::Error::File),
    /// [`Error::Io`](spillproof_engine::Error::Io) from storage.
    pub fn open_params_kzg(workspace: &Workspace, path: &Path, format: Option<SerdeFormat>) -> Result<Self> {
        E::open_params_kzg(workspace, path, format)
    }
}

pub(super) fn open<E: PairingGroups>(
    workspace: &Workspace,
    path: &Path,
    format: Option<SerdeFormat>,
) -> Result<Srs<E>> {
    workspace.run(|| {
        let stated = Stated {
            format,
            ..Stated::default()
        };
        let file = workspace.storage.open_unaligned(path)?;
        let import = Import::open(workspace, path, file, stated)?;
        let (layout, curve) = (*import.layout(), curve_id::<E>()?);
        let dialect = layout.encoding().dialect;
        if dialect.curve() != curve {
            return Err(import.refuse(FormatError::Field {
                what: "the curve, which length and k show,",
                offset: 0,
                value: format!("{:?}", dialect.curve()),
                remedy: match curve {
                    CurveId::Bls12381 => "parameters over BLS12-381 are needed here",
                    _ => "parameters over BN254 are needed here",
                },
            }));
        }
        if layout.format().is_compressed() {
            return Err(import.refuse(FormatError::Field {
                what: "the format of points",
                offset: layout.offset(Region::G),
                value: layout.format().to_string(),
                remedy: "only raw points can be used where they are: import the file",
            }));
        }
        let pair = import.read_pair::<E>()?;
        let column = |region| points_in_place::<E::G1Config>(workspace, &import, region);
        Srs::from_columns(
            layout.k(),
            Some(column(Region::G)),
            Some(column(Region::GLagrange)),
            pair,
        )
    })
}

fn points_in_place<P: Curve>(workspace: &Workspace, import: &Import, region: Region) -> Column<Point<P>> {
    let layout = *import.layout();
    let check = move |index, bytes: &mut [u8]| {
        to_native::<P>(layout.encoding(), Check::Range, bytes).map_err(|fault| FormatError::Point {
            what: region.name(),
            index,
            offset: layout.point_offset(region, index),
            fault,
            value: hex(bytes),
        })
    };
    let array = ForeignArray {
        file: import.file().clone(),
        offset: layout.offset(region),
        len: layout.points(region),
        zeros: [0, 0],
        check: Arc::new(check),
    };
    Column::foreign(workspace, array)
}

/// Whether a file is a container.
pub(super) fn begins_with_magic(workspace: &Workspace, file: &File) -> Result<bool> {
    if file.len_bytes() < MAGIC.len() as u64 {
        return Ok(false);
    }
    let buffer = workspace.budget.buffer(4096, "SRS")?;
    let buffer = file.read(buffer, [Segment::new(0, 0, MAGIC.len())]).wait()?;
    Ok(buffer[..MAGIC.len()] == MAGIC)
}
