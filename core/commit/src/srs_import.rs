//! From a halo2 `ParamsKZG` file to an SRS container: streamed, every point checked, published whole or not
//! at all.
//!
//! 1. The file's length and its `k` give the layout ([`spillproof_format::params_kzg`]).
//! 2. Runs of points are read ahead, decoded on all cores (range, curve equation; square roots if compressed)
//!    and written to the sections of a new container; then g2 and s·g2 (with the subgroup).
//! 3. The sections are read back, so that what the disk holds is what is checked, and compared with each
//!    other ([`super::srs_check`]).
//! 4. Digests and header are written, all is synced, and the file gets its name.
//!
//! Memory, all leased: two read buffers and up to three write buffers of a chunk (1 MiB of points at most), a
//! chunk of points, 32 bytes a frame of digests, and what the check takes after that.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use ark_bn254::{G2Affine, g1};
use spillproof_format::native::{G2_BYTES, write_point};
use spillproof_format::params_kzg::points::{decode_each, decode_points};
use spillproof_format::params_kzg::{Layout, Region, SerdeFormat};
use spillproof_format::srs::sections;
use spillproof_format::{Curve, FormatError, Kind, SRS_FRAME_BYTES_DEFAULT};

use super::srs::{G1, Srs};
use super::srs_check::{SrsProgress, check_srs, chunk_points};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::Buffer;
use spillproof_engine::column::{Column, ContainerWriter, Region as Elements, Workspace};
use spillproof_engine::storage::{File, Pending, Segment};
use spillproof_kernels::parallel::Parallel;

/// Points that one core decodes at a time.
const JOB_POINTS: usize = 256;

/// What was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedSrs {
    /// log2 of the number of points in each basis.
    pub k: u32,
    /// The format that the file was in.
    pub format: SerdeFormat,
    /// The root of the container: 32 bytes that name it.
    pub root: [u8; 32],
}

/// Imports the `ParamsKZG` file `source` as the container `target`, which appears only when it is whole and
/// checked. `format` is found from the length if it is not given.
///
/// # Errors
/// [`Error::Format`] for a file that is no `ParamsKZG`, a point that is none (with its index, offset and
/// bytes), or parts that do not belong together; [`Error::Io`], [`Error::File`], [`Error::Damaged`] from
/// storage; [`Error::OverBudget`], [`Error::BudgetTooSmall`].
pub fn import_params_kzg(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    format: Option<SerdeFormat>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<ImportedSrs> {
    workspace.run(|| import_in_turn(workspace, source, target, format, progress))
}

fn import_in_turn(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    format: Option<SerdeFormat>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<ImportedSrs> {
    let refuse = |error| Error::Format {
        file: source.to_path_buf(),
        source: error,
    };
    let file = workspace.storage.open_unaligned(source)?;
    let import = Import::open(workspace, source, file, format)?;
    let layout = import.layout;
    let sections = sections(layout.k(), true, true).map_err(refuse)?;
    let writer = ContainerWriter::create(
        workspace,
        target,
        Kind::Srs,
        Curve::Bn254,
        SRS_FRAME_BYTES_DEFAULT,
        [0; 32],
        &sections,
    )?;
    let n = 1 << layout.k();
    let g = import.points(&writer, 0, Region::G, n, progress)?;
    let g_lagrange = import.points(&writer, 1, Region::GLagrange, n, progress)?;
    let pair = import.pair(&writer, 2)?;
    let srs = Srs::from_columns(layout.k(), Some(g), Some(g_lagrange), pair)?;
    check_srs(workspace, &srs, progress).map_err(|error| match error {
        // What does not belong together came from the source; the target has no name yet.
        Error::Format { source, .. } => refuse(source),
        other => other,
    })?;
    drop(srs);
    let root = writer.publish()?;
    Ok(ImportedSrs {
        k: layout.k(),
        format: layout.format(),
        root,
    })
}

enum LayoutError {
    Format(FormatError),
    Other(Error),
}

fn read_layout(
    workspace: &Workspace,
    file: &File,
    format: Option<SerdeFormat>,
) -> Result<Layout, LayoutError> {
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
    let layout = match format {
        None => Layout::detect(file.len_bytes(), k_bytes).map_err(LayoutError::Format)?,
        Some(format) => Layout::from_file_bytes(format, file.len_bytes()).map_err(LayoutError::Format)?,
    };
    layout.check_k(k_bytes).map_err(LayoutError::Format)?;
    Ok(layout)
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
    /// Of `file`, which is `source`; `format` is found from the length if it is not given.
    pub(super) fn open(
        workspace: &Workspace,
        source: &Path,
        file: File,
        format: Option<SerdeFormat>,
    ) -> Result<Self> {
        let layout = read_layout(workspace, &file, format).map_err(|error| match error {
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

    pub(super) fn k(&self) -> u32 {
        self.layout.k()
    }

    fn refuse(&self, source: FormatError) -> Error {
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

    /// The first `total` points of a region of G1 to the section at `index`.
    pub(super) fn points(
        &self,
        writer: &ContainerWriter,
        index: usize,
        region: Region,
        total: u64,
        progress: &mut dyn FnMut(SrsProgress),
    ) -> Result<Column<G1>> {
        let budget = &self.workspace.budget;
        let mut draft = writer.draft::<G1>(index)?;
        let chunk = chunk_points(&self.workspace, draft.frame_elements());
        let held = chunk.min(total) as usize;
        let mut points = budget.vec(held, G1::INFINITY, "points being imported")?;
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
            self.decode(region, first, run, points)
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
        draft.finish()
    }

    /// A run on all cores; of several bad points, the first is named.
    fn decode(&self, region: Region, first: u64, bytes: &[u8], out: &mut [G1]) -> Result<(), FormatError> {
        let item_bytes = self.layout.point_bytes(region) as usize;
        let refused = out
            .chunks_mut(JOB_POINTS)
            .zip(bytes.chunks(JOB_POINTS * item_bytes))
            .enumerate()
            .parallel()
            .find_map_first(|(job, (out, bytes))| {
                let first = first + (job * JOB_POINTS) as u64;
                decode_each::<g1::Config>(&self.layout, region, first, out.len(), bytes, |i, point| {
                    out[i] = G1::from_affine(&point);
                })
                .err()
            });
        refused.map_or(Ok(()), Err)
    }

    /// g2 and s·g2 to the section at `index`, and back from it.
    pub(super) fn pair(&self, writer: &ContainerWriter, index: usize) -> Result<[G2Affine; 2]> {
        let item_bytes = self.layout.point_bytes(Region::G2) as usize;
        let buffer = self.workspace.budget.buffer(2 * item_bytes, "import")?;
        let segment = Segment::new(self.layout.offset(Region::G2), 0, 2 * item_bytes);
        let buffer = self.file.read(buffer, [segment]).wait()?;
        let mut pair = [G2Affine::default(); 2];
        for ((region, bytes), point) in [Region::G2, Region::SG2]
            .into_iter()
            .zip(buffer.chunks_exact(item_bytes))
            .zip(pair.chunks_mut(1))
        {
            decode_points(&self.layout, region, 0, bytes, point).map_err(|error| self.refuse(error))?;
        }
        write_pair(writer, index, pair)
    }
}

/// g2 and s·g2 to the section at `index`, and back from it.
pub(super) fn write_pair(
    writer: &ContainerWriter,
    index: usize,
    pair: [G2Affine; 2],
) -> Result<[G2Affine; 2]> {
    let native = pair.map(|point| {
        let mut bytes = [0; G2_BYTES];
        write_point(&point, &mut bytes);
        bytes
    });
    let span = Elements::Span { start: 0, len: 2 };
    let mut draft = writer.draft::<[u8; G2_BYTES]>(index)?;
    draft.write(span, &native)?;
    // The frame's digest says that it came back as it was.
    draft.finish()?.read(span, &mut [[0; G2_BYTES]; 2])?;
    Ok(pair)
}
