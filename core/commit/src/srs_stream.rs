//! `ParamsKZG` bytes from a reader to an SRS in scratch, and from an SRS to a writer: what `read_custom` and
//! `write_custom` of halo2's forks and midnight-proofs do, by chunks. The reader or writer is the caller's
//! thread's; points are decoded and encoded by the workspace's.
//!
//! Frames are checked by digest as they are read. Memory, all leased: a chunk of points and of encoded bytes;
//! two read buffers, or the writer of a column.

use std::io;

use ark_ec::short_weierstrass::Affine;
use spillproof_format::params_kzg::points::{Check, decode_each, encode_points, write as write_point};
use spillproof_format::params_kzg::{Dialect, Encoding, K_BYTES, Layout, Region, SerdeFormat};

use super::chunks::{chunk_points, points_frame_bytes};
use super::compiled::KzgCurve;
use super::reading::PointsInFlight;
use super::srs::{Srs, curve_id};
use super::srs_check::{SrsProgress, check_region};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Draft, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::pairing::PairingGroups;
use spillproof_kernels::parallel::Parallel;

/// Points that one core encodes or decodes at a time.
const JOB_POINTS: usize = 1024;
/// Points that are read at a time at most.
const CHUNK_POINTS_MAX: u64 = 1 << 14;
/// What bytes of a reader are called in errors.
const READ: &str = "parameters that are read";
/// What bytes of a writer are called in errors.
const WRITTEN: &str = "parameters that are written";

impl<E: KzgCurve> Srs<E> {
    /// Reads `ParamsKZG` bytes from a reader, as far as they go, to scratch columns. Points are checked as far
    /// as stock's readers do: of [`SerdeFormat::RawBytesUnchecked`] that they are on their curve, of the
    /// others that they are in the subgroup, too. Whether the parts belong together is for
    /// [`check_srs`](super::check_srs) to say.
    ///
    /// # Errors
    /// [`Error::Format`] for what is no such bytes; [`Error::File`] of the reader; what writing columns may
    /// give.
    pub fn read_params_kzg(
        workspace: &Workspace,
        reader: &mut dyn io::Read,
        format: SerdeFormat,
    ) -> Result<Self> {
        E::read_params_kzg(workspace, reader, format)
    }

    /// Writes both bases and the pair as `ParamsKZG` bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the SRS lacks one of the bases; [`Error::File`] of the writer; what reading
    /// columns may give.
    pub fn write_params_kzg(&self, format: SerdeFormat, writer: &mut dyn io::Write) -> Result<()> {
        E::write_params_kzg(self, format, writer, &mut |_| ())
    }
}

/// How the points of a curve's files are encoded.
pub(super) fn encoding_of<E: PairingGroups>(format: SerdeFormat) -> Result<Encoding> {
    let dialect = Dialect::of(curve_id::<E>()?).ok_or_else(|| Invalid::ProofSystem {
        what: "a ParamsKZG file",
        reason: "there is none over this curve".to_owned(),
    })?;
    Ok(Encoding::new(dialect, format))
}

pub(super) fn read<E: PairingGroups>(
    workspace: &Workspace,
    reader: &mut dyn io::Read,
    format: SerdeFormat,
) -> Result<Srs<E>> {
    let mut k_bytes = [0; K_BYTES as usize];
    fill(reader, &mut k_bytes)?;
    let encoding = encoding_of::<E>(format)?;
    let layout = Layout::new(encoding, u32::from_le_bytes(k_bytes)).map_err(refuse)?;
    let stream = Stream { workspace, layout };
    let g = stream.points::<E::G1Config>(reader, Region::G)?;
    let g_lagrange = stream.points::<E::G1Config>(reader, Region::GLagrange)?;
    let mut pair = [Affine::<E::G2Config>::identity(); 2];
    for (region, point) in [Region::G2, Region::SG2].into_iter().zip(&mut pair) {
        let mut bytes = vec![0; layout.point_bytes(region) as usize];
        fill(reader, &mut bytes)?;
        decode_each(&layout, region, 0, stream.check(), &bytes, |_, read| {
            *point = read
        })
        .map_err(refuse)?;
    }
    Srs::from_columns(layout.k(), Some(g), Some(g_lagrange), pair)
}

fn refuse(source: spillproof_format::FormatError) -> Error {
    Error::Format {
        file: READ.into(),
        source,
    }
}

fn fill(reader: &mut dyn io::Read, bytes: &mut [u8]) -> Result<()> {
    reader
        .read_exact(bytes)
        .map_err(|source| of_stream("read", READ, source))
}

/// The engine's own error, if the reader or the writer is one of its own.
fn of_stream(operation: &'static str, what: &str, source: io::Error) -> Error {
    source.downcast::<Error>().unwrap_or_else(|source| Error::File {
        operation,
        file: what.to_owned(),
        source,
    })
}

/// Bytes that are being read.
struct Stream<'a> {
    workspace: &'a Workspace,
    layout: Layout,
}

impl Stream<'_> {
    fn check(&self) -> Check {
        match self.layout.format() {
            SerdeFormat::RawBytesUnchecked => Check::Curve,
            SerdeFormat::RawBytes | SerdeFormat::Processed => Check::Subgroup,
        }
    }

    fn points<P: Curve>(&self, reader: &mut dyn io::Read, region: Region) -> Result<Column<Point<P>>> {
        let (budget, total) = (&self.workspace.budget, self.layout.points(region));
        let item_bytes = self.layout.point_bytes(region);
        let point_bytes = item_bytes + size_of::<Point<P>>() as u64;
        let lease = || PointsInFlight::new::<Point<P>>(budget, total, point_bytes, CHUNK_POINTS_MAX);
        let in_flight = self.workspace.run(lease)?;
        let chunk = in_flight.points();
        let frame_bytes = points_frame_bytes::<Point<P>>();
        let draft =
            Draft::scratch_with_frames(self.workspace, region.name(), total, Placement::Disk, frame_bytes)?;
        let mut writer = Writer::new(draft);
        let mut points = vec![Point::<P>::INFINITY; chunk as usize];
        let mut bytes = vec![0; (chunk * item_bytes) as usize];
        for first in (0..total).step_by(chunk as usize) {
            let count = chunk.min(total - first) as usize;
            let (points, bytes) = (&mut points[..count], &mut bytes[..count * item_bytes as usize]);
            fill(reader, bytes)?;
            self.workspace.run(|| {
                let jobs = points
                    .chunks_mut(JOB_POINTS)
                    .zip(bytes.chunks(JOB_POINTS * item_bytes as usize));
                let refused = jobs.enumerate().parallel().find_map_first(|(job, (out, bytes))| {
                    let first = first + (job * JOB_POINTS) as u64;
                    let take = |i: usize, point: Affine<P>| out[i] = Point::<P>::from_affine(&point);
                    decode_each::<P>(&self.layout, region, first, Check::Curve, bytes, take).err()
                });
                refused.map_or(Ok(()), |error| Err(refuse(error)))
            })?;
            writer.push(points)?;
        }
        drop((points, bytes, in_flight));
        let column = writer.finish()?;
        if self.check() == Check::Subgroup {
            let place = |index| (index, self.layout.point_offset(region, index));
            self.workspace
                .run(|| check_region::<P>(&column, region, (READ.as_ref(), &place)))?;
        }
        Ok(column)
    }
}

pub(super) fn write<E: PairingGroups>(
    srs: &Srs<E>,
    format: SerdeFormat,
    writer: &mut dyn io::Write,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<()> {
    let (monomial, lagrange) = (srs.monomial()?, srs.lagrange()?);
    let encoding = encoding_of::<E>(format)?;
    let failed = |source| Error::Format {
        file: WRITTEN.into(),
        source,
    };
    let layout = Layout::new(encoding, srs.k()).map_err(failed)?;
    push(writer, &layout.encode_k())?;
    for (region, column) in [(Region::G, monomial), (Region::GLagrange, lagrange)] {
        write_points::<E::G1Config>(&layout, (region, column), writer, progress)?;
    }
    let mut bytes = vec![0; 2 * layout.point_bytes(Region::G2) as usize];
    encode_points(encoding, &srs.pair(), &mut bytes).map_err(failed)?;
    push(writer, &bytes)
}

fn push(writer: &mut dyn io::Write, bytes: &[u8]) -> Result<()> {
    writer
        .write_all(bytes)
        .map_err(|source| of_stream("write", WRITTEN, source))
}

fn write_points<P: Curve>(
    layout: &Layout,
    (region, column): (Region, &Column<Point<P>>),
    writer: &mut dyn io::Write,
    progress: &mut dyn FnMut(SrsProgress),
) -> Result<()> {
    let (workspace, total) = (column.workspace(), column.len());
    let item_bytes = layout.point_bytes(region) as usize;
    let chunk = chunk_points(workspace, column.frame_elements()).min(total);
    let budget = &workspace.budget;
    let mut points = budget.vec(chunk as usize, Point::<P>::INFINITY, "points being exported")?;
    let mut encoded = budget.vec(chunk as usize * item_bytes, 0u8, "encoded points")?;
    let mut reader = column.read_ascending(chunk)?;
    let mut done = 0;
    while let Some(elements) = reader.next_into(&mut points)? {
        let len = elements.len() as usize;
        let encoded = &mut encoded[..len * item_bytes];
        let jobs = points[..len]
            .chunks(JOB_POINTS)
            .zip(encoded.chunks_mut(JOB_POINTS * item_bytes));
        workspace.run(|| {
            jobs.parallel().for_each(|(points, bytes)| {
                for (point, bytes) in points.iter().zip(bytes.chunks_exact_mut(item_bytes)) {
                    write_point(layout.encoding(), &point.to_affine::<P>(), bytes);
                }
            });
            Ok(())
        })?;
        push(writer, encoded)?;
        done += len as u64;
        progress(SrsProgress {
            phase: region.name(),
            points: done,
            points_total: total,
        });
    }
    Ok(())
}
