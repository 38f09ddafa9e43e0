//! Points between columns and programs that hold them in three coordinates, as blst and what stands on it do.
//!
//! Memory, leased: a chunk of points; a column as a slice is page cache (`MappedColumn`).

use ark_ec::short_weierstrass::Projective;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Draft, MappedColumn, Placement, Plain, Workspace, Writer};
use spillproof_kernels::curve::{Curve, Jacobian, Point, normalize};
use spillproof_kernels::pairing::G1Point;
use spillproof_kernels::parallel::Parallel;

use super::chunks::points_frame_bytes;
use super::compiled::{CoordinateOf, KzgCurve};

/// Points that one thread brings to two coordinates, with one inversion.
const JOB_POINTS: usize = 1024;
/// Points that are brought to two coordinates at a time.
const CHUNK_POINTS: usize = 16 * JOB_POINTS;

/// Points as a slice of three coordinates each, the last of which is one, in a mapped scratch file.
///
/// # Errors
/// Those of [`Column::map_with`].
pub fn map_jacobian<E: KzgCurve>(
    points: &Column<G1Point<E>>,
) -> Result<MappedColumn<Jacobian<CoordinateOf<E>>>> {
    E::map_jacobian(points)
}

pub(super) fn map<P: Curve>(points: &Column<Point<P>>) -> Result<MappedColumn<Jacobian<P::BaseField>>>
where
    Jacobian<P::BaseField>: Plain,
{
    points.map_with(|point| Jacobian::from(point))
}

/// A column, in scratch, of points in three coordinates. Whether they are on the curve is not checked.
///
/// # Errors
/// What writing columns may give.
pub fn from_jacobian<E: KzgCurve>(
    workspace: &Workspace,
    what: &'static str,
    points: &[Jacobian<CoordinateOf<E>>],
) -> Result<Column<G1Point<E>>> {
    E::from_jacobian(workspace, what, points)
}

pub(super) fn normalized<P: Curve>(
    workspace: &Workspace,
    what: &'static str,
    points: &[Jacobian<P::BaseField>],
) -> Result<Column<Point<P>>> {
    workspace.run(|| {
        let draft = Draft::scratch_with_frames(
            workspace,
            what,
            points.len() as u64,
            Placement::Disk,
            points_frame_bytes::<Point<P>>(),
        )?;
        let mut writer = Writer::new(draft);
        let chunk = CHUNK_POINTS.min(points.len());
        let mut tile = workspace.budget.vec(chunk, Point::<P>::INFINITY, what)?;
        // What a thread holds besides.
        let each = size_of::<Projective<P>>() + 2 * size_of::<Point<P>>();
        let jobs = rayon::current_num_threads() * JOB_POINTS.min(chunk);
        let _lease = workspace.budget.lease((jobs * each) as u64, what)?;
        for points in points.chunks(CHUNK_POINTS) {
            let tile = &mut tile[..points.len()];
            let jobs = points.chunks(JOB_POINTS).zip(tile.chunks_mut(JOB_POINTS));
            jobs.parallel().for_each(|(points, out)| {
                let points: Vec<_> = points.iter().map(Jacobian::to_projective::<P>).collect();
                out.copy_from_slice(&normalize::<P>(&points));
            });
            writer.push(tile)?;
        }
        writer.finish()
    })
}
