//! From a `ParamsKZG` file, of halo2 or of midnight-proofs, to an SRS container: streamed, every point checked,
//! published whole or not at all.
//!
//! 1. The file's length and its `k` give curve and layout ([`spillproof_format::params_kzg`]).
//! 2. Runs of points are read ahead, decoded on all cores (range, curve equation; square roots if compressed)
//!    and written to the sections of a new container; then g2 and s·g2 (with the subgroup).
//! 3. The sections are read back, so that what the disk holds is what is checked: that points of G1 are in the
//!    subgroup, where there is another one ([`super::subgroup`]), and that the parts belong together
//!    ([`super::srs_check`]).
//! 4. Digests and header are written, all is synced, and the file gets its name.
//!
//! Memory, all leased: two read buffers and up to three write buffers of a chunk (1 MiB of points at most), a
//! chunk of points, 32 bytes a frame of digests, and what the check takes after that.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use ark_ec::short_weierstrass::Affine;
use spillproof_format::params_kzg::points::{Check, decode_each, decode_points};
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, Stated};
use spillproof_format::srs::{frame_bytes, sections};
use spillproof_format::{FormatError, Kind};

use super::chunks::chunk_points;
use super::srs::Srs;
use super::srs_check::{SrsProgress, check_parts, check_region};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::Buffer;
use spillproof_engine::column::{Column, ContainerWriter, Region as Elements, Workspace};
use spillproof_engine::storage::{File, Pending, Segment};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::pairing::{G2Point, PairingGroups};
use spillproof_kernels::parallel::Parallel;

/// Points that one core decodes at a time.
const JOB_POINTS: usize = 256;

/// What was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedSrs {
    /// log2 of the number of points in each basis.
    pub k: u32,
    /// Whose file it was, and how its points were written.
    pub encoding: Encoding,
    /// The root of the container: 32 bytes that name it.
    pub root: [u8; 32],
}

/// Imports the `ParamsKZG` file `source` as the container `target`, which appears only when it is whole and
/// checked. What is not `stated` of the file is found from its length and its k.
///
/// # Errors
/// [`Error::Format`] for a file that is no `ParamsKZG`, a point that is none (with its index, offset and
/// bytes), or parts that do not belong together; [`Error::Io`], [`Error::File`], [`Error::Damaged`] from
/// storage; [`Error::OverBudget`], [`Error::BudgetTooSmall`].
pub fn import_params_kzg(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    stated: Stated,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<ImportedSrs> {
    workspace.run(|| {
        let file = workspace.storage.open_unaligned(source)?;
        let import = Import::open(workspace, source, file, stated)?;
        match import.layout.encoding().dialect {
            Dialect::Halo2 => import_over::<ark_bn254::Bn254>(&import, target, progress),
            Dialect::Midnight => import_over::<ark_bls12_381::Bls12_381>(&import, target, progress),
        }
    })
}

fn import_over<E: PairingGroups>(
    import: &Import,
    target: &Path,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<ImportedSrs> {
    let (layout, workspace) = (import.layout, &import.workspace);
    let curve = layout.encoding().dialect.curve();
    let sections = sections(curve, layout.k(), true, true).map_err(|error| import.refuse(error))?;
    let writer = ContainerWriter::create(
        workspace,
        target,
        Kind::Srs,
        curve,
        frame_bytes(curve),
        [0; 32],
        &sections,
    )?;
    let n = 1 << layout.k();
    let g = import.points::<E::G1Config>(&writer, 0, Region::G, n, progress)?;
    let g_lagrange = import.points::<E::G1Config>(&writer, 1, Region::GLagrange, n, progress)?;
    let pair = import.pair::<E>(&writer, 2)?;
    let srs = Srs::<E>::from_columns(layout.k(), Some(g), Some(g_lagrange), pair)?;
    check_parts(workspace, &srs, progress).map_err(|error| match error {
        // What does not belong together came from the source; the target has no name yet.
        Error::Format { source, .. } => import.refuse(source),
        other => other,
    })?;
    drop(srs);
    let root = writer.publish()?;
    Ok(ImportedSrs {
        k: layout.k(),
        encoding: layout.encoding(),
        root,
    })
}

enum LayoutError {
    Format(FormatError),
    Other(Error),
}

fn read_layout(workspace: &Workspace, file: &File, stated: Stated) -> Result<Layout, LayoutError> {
    let mut k_bytes = [0xff; 4];
    if file.len_bytes() >= 4 {
        let buffer = workspace
            .budget
            .buffer(4096, "import")
            .map_err(LayoutError::Other)?;
        let buffer = file
            .read(buffer, [Segment::new(0, 0, 4)])
            .wait()
            .map_err(LayoutError::Other)?;
        k_bytes.copy_from_slice(&buffer[..4]);
    }
    Layout::detect(stated, file.len_bytes(), k_bytes).map_err(LayoutError::Format)
}

/// A `ParamsKZG` file that is being read.
pub(super) struct Import {
    workspace: Workspace,
    file: File,
    source: PathBuf,
    layout: Layout,
}

/// A run of points on its way from the file.
struct Run {
    first: u64,
    count: u64,
    pending: Pending,
}

impl Import {
    /// Of `file`, which is `source`.
    pub(super) fn open(workspace: &Workspace, source: &Path, file: File, stated: Stated) -> Result<Self> {
        let layout = read_layout(workspace, &file, stated).map_err(|error| match error {
            LayoutError::Format(error) => Error::Format {
                file: source.to_path_buf(),
                source: error,
            },
            LayoutError::Other(error) => error,
        })?;
        Ok(Self {
            workspace: workspace.clone(),
            file,
            source: source.to_path_buf(),
            layout,
        })
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn refuse(&self, source: FormatError) -> Error {
        Error::Format {
            file: self.source.clone(),
            source,
        }
    }

    fn read(&self, buffer: Buffer, region: Region, first: u64, count: u64) -> Result<Run> {
        let offset = self
            .layout
            .run_offset(region, first, count)
            .map_err(|error| self.refuse(error))?;
        let bytes = (count * self.layout.point_bytes(region)) as usize;
        let pending = self.file.read(buffer, [Segment::new(offset, 0, bytes)]);
        Ok(Run {
            first,
            count,
            pending,
        })
    }

    /// The first `total` points of a region of G1 to the section at `index`, checked.
    pub(super) fn points<P: Curve>(
        &self,
        writer: &ContainerWriter,
        index: usize,
        region: Region,
        total: u64,
        progress: &mut dyn FnMut(SrsProgress),
    ) -> Result<Column<Point<P>>> {
        let budget = &self.workspace.budget;
        let mut draft = writer.draft::<Point<P>>(index)?;
        let chunk = chunk_points(&self.workspace, draft.frame_elements());
        let held = chunk.min(total) as usize;
        let mut points = budget.vec(held, Point::<P>::INFINITY, "points being imported")?;
        let item_bytes = self.layout.point_bytes(region) as usize;
        let mut next = 0;
        let mut flying = VecDeque::with_capacity(2);
        while flying.len() < 2 && next < total {
            let count = chunk.min(total - next);
            let buffer = budget.buffer(held * item_bytes, "import")?;
            flying.push_back(self.read(buffer, region, next, count)?);
            next += count;
        }
        while let Some(Run {
            first,
            count,
            pending,
        }) = flying.pop_front()
        {
            let buffer = pending.wait()?;
            let run = &buffer[..count as usize * item_bytes];
            let points = &mut points[..count as usize];
            self.decode::<P>(region, first, run, points)
                .map_err(|error| self.refuse(error))?;
            if next < total {
                let count = chunk.min(total - next);
                flying.push_back(self.read(buffer, region, next, count)?);
                next += count;
            }
            draft.write(
                Elements::Span {
                    start: first,
                    len: count,
                },
                points,
            )?;
            progress(SrsProgress {
                phase: region.name(),
                points: first + count,
                points_total: total,
            });
        }
        drop(points);
        let points = draft.finish()?;
        let place = |index| (index, self.layout.point_offset(region, index));
        check_region::<P>(&points, region, (&self.source, &place))?;
        Ok(points)
    }

    /// A run on all cores; of several bad points, the first is named.
    fn decode<P: Curve>(
        &self,
        region: Region,
        first: u64,
        bytes: &[u8],
        out: &mut [Point<P>],
    ) -> Result<(), FormatError> {
        let item_bytes = self.layout.point_bytes(region) as usize;
        let refused = out
            .chunks_mut(JOB_POINTS)
            .zip(bytes.chunks(JOB_POINTS * item_bytes))
            .enumerate()
            .parallel()
            .find_map_first(|(job, (out, bytes))| {
                let first = first + (job * JOB_POINTS) as u64;
                decode_each::<P>(&self.layout, region, first, Check::Curve, bytes, |i, point| {
                    out[i] = Point::<P>::from_affine(&point);
                })
                .err()
            });
        refused.map_or(Ok(()), Err)
    }

    /// g2 and s·g2 to the section at `index`, and back from it.
    pub(super) fn pair<E: PairingGroups>(
        &self,
        writer: &ContainerWriter,
        index: usize,
    ) -> Result<[Affine<E::G2Config>; 2]> {
        write_pair::<E>(writer, index, self.read_pair::<E>()?)
    }

    /// g2 and s·g2, checked.
    pub(super) fn read_pair<E: PairingGroups>(&self) -> Result<[Affine<E::G2Config>; 2]> {
        let item_bytes = self.layout.point_bytes(Region::G2) as usize;
        let buffer = self.workspace.budget.buffer(2 * item_bytes, "import")?;
        let segment = Segment::new(self.layout.offset(Region::G2), 0, 2 * item_bytes);
        let buffer = self.file.read(buffer, [segment]).wait()?;
        let mut pair = [Affine::identity(); 2];
        for ((region, bytes), point) in [Region::G2, Region::SG2]
            .into_iter()
            .zip(buffer.chunks_exact(item_bytes))
            .zip(pair.chunks_mut(1))
        {
            decode_points(&self.layout, region, 0, bytes, point).map_err(|error| self.refuse(error))?;
        }
        Ok(pair)
    }
}

/// g2 and s·g2 to the section at `index`, and back from it.
pub(super) fn write_pair<E: PairingGroups>(
    writer: &ContainerWriter,
    index: usize,
    pair: [Affine<E::G2Config>; 2],
) -> Result<[Affine<E::G2Config>; 2]> {
    let span = Elements::Span { start: 0, len: 2 };
    let mut draft = writer.draft::<G2Point<E>>(index)?;
    draft.write(span, &pair.map(|point| G2Point::<E>::from_affine(&point)))?;
    // The frame's digest says that it came back as it was.
    draft.finish()?.read(span, &mut [G2Point::<E>::INFINITY; 2])?;
    Ok(pair)
}
