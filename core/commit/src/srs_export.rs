//! From an SRS container to a halo2 `ParamsKZG` file, in any of its formats: the bytes that stock
//! `write_custom` gives.
//!
//! Frames are checked by digest as they are read; points are encoded on all cores; the file is written
//! beside, synced and renamed. A `ParamsKZG` file begins with four bytes, so nothing in it is aligned: bytes
//! are packed into aligned buffers.
//!
//! Memory, all leased: two read buffers, a chunk of points and of encoded bytes, and three write buffers of 1
//! MiB.

use std::path::Path;

use ark_bn254::g1;
use spillproof_format::params_kzg::points::{encode_points, write_format};
use spillproof_format::params_kzg::{Layout, Region, SerdeFormat};

use super::srs::{G1, Srs};
use super::srs_check::{SrsProgress, chunk_points};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Workspace};
use spillproof_engine::storage::Packed;
use spillproof_kernels::parallel::Parallel;

/// Points that one core encodes at a time.
const JOB_POINTS: usize = 1024;

/// Exports the SRS container `source` as the `ParamsKZG` file `target`, which appears only when it is whole.
/// Gives k.
///
/// # Errors
/// [`Error::Invalid`] when the SRS lacks one of the bases; [`Error::Format`], [`Error::Damaged`] when it is
/// damaged; [`Error::Io`], [`Error::File`], [`Error::OverBudget`].
pub fn export_params_kzg(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    format: SerdeFormat,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<u32> {
    workspace.run(|| export_in_turn(workspace, source, target, format, progress))
}

fn export_in_turn(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    format: SerdeFormat,
    progress: &mut dyn FnMut(SrsProgress),
) -> Result<u32> {
    let srs = Srs::open_container(workspace, source)?;
    let refuse = |error| Error::Format {
        file: source.to_path_buf(),
        source: error,
    };
    let layout = Layout::new(format, srs.k()).map_err(refuse)?;
    let (monomial, lagrange) = (srs.monomial()?, srs.lagrange()?);

    let publish = workspace.storage.publish(target)?;
    let mut out = Packed::new(&workspace.budget, publish.file().clone())?;
    out.push(&layout.encode_k())?;
    for (region, column) in [(Region::G, monomial), (Region::GLagrange, lagrange)] {
        export_points(workspace, &layout, region, column, &mut out, progress)?;
    }
    let mut bytes = [0; 256];
    let bytes = &mut bytes[..2 * layout.point_bytes(Region::G2) as usize];
    encode_points(format, &srs.pair(), bytes).map_err(refuse)?;
    out.push(bytes)?;
    out.finish()?;
    publish.commit()?;
    Ok(srs.k())
}

fn export_points(
    workspace: &Workspace,
    layout: &Layout,
    region: Region,
    column: &Column<G1>,
    out: &mut Packed,
    progress: &mut dyn FnMut(SrsProgress),
) -> Result<()> {
    let total = column.len();
    let item_bytes = layout.point_bytes(region) as usize;
    let chunk = chunk_points(workspace, column.frame_elements()).min(total);
    let mut points = workspace
        .budget
        .vec(chunk as usize, G1::INFINITY, "points being exported")?;
    let mut encoded = workspace
        .budget
        .vec(chunk as usize * item_bytes, 0u8, "encoded points")?;
    let mut reader = column.read_ascending(chunk)?;
    let mut done = 0;
    while let Some(elements) = reader.next_into(&mut points)? {
        let len = elements.len() as usize;
        let encoded = &mut encoded[..len * item_bytes];
        points[..len]
            .chunks(JOB_POINTS)
            .zip(encoded.chunks_mut(JOB_POINTS * item_bytes))
            .parallel()
            .for_each(|(points, bytes)| {
                for (point, bytes) in points.iter().zip(bytes.chunks_exact_mut(item_bytes)) {
                    write_format(layout.format(), &point.to_affine::<g1::Config>(), bytes);
                }
            });
        out.push(encoded)?;
        done += len as u64;
        progress(SrsProgress {
            phase: region.name(),
            points: done,
            points_total: total,
        });
    }
    Ok(())
}
