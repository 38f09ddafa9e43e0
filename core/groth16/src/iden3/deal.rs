//! A `.zkey` file as a key that is dealt to ranks: each writes the container of its share, and rank 0 the key that
//! names them ([`spillproof_format::groth16_dealt`]).
//!
//! A rank reads the points that it keeps and no others: those of its signals are one run of an array, those of its
//! columns of the domain a run in each row. It reads all coefficients once and keeps its own.
//!
//! Names: a share has the name of the key, a random number of this import, and its rank. So the files of an earlier
//! import stay whole until the new key takes its name, which is the last step, of rank 0; its shares are removed
//! then. A rank that fails before, or learns that rank 0 did, leaves no new share.
//!
//! Memory: that of a copy of coefficients; then two runs of points, a tile and a writer.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};

use spillproof_format::groth16_dealt::{Dealt, DealtShare, is_file_name, key_sections, share_sections};
use spillproof_format::iden3::{FileKind, PointRange, zkey};
use spillproof_format::srs::frame_bytes;
use spillproof_format::{FormatError, Kind, SectionSpec};

use super::key::{ImportedKey, Target, ToContainer, Zkey, decode_points};
use super::source::{Source, curve_of};
use super::subgroup;
use crate::dealt::{names_share, share_frame_bytes, shares_named};
use crate::{Constraints, Cut, OfRank, PairingCurve, Shape, Shares, over_curve};
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Container, ContainerWriter, Scratch, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::Segment;
use spillproof_engine::{Error, Result};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_ranks::{RankError, Ranks};

/// Runs of points on their way.
const READ_AHEAD: usize = 2;
/// Bytes of the number in the names of an import's shares.
const NUMBER_BYTES: usize = 4;
/// Bytes that a rank tells rank 0: two numbers and a root.
const RECORD_BYTES: usize = 2 * 8 + 32;

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DealtImport {
    /// The key, whose root is that of the file that names the shares.
    pub key: ImportedKey,
    /// The file of this rank's share.
    pub share: PathBuf,
}

/// A `.zkey` file as a dealt key, by several ranks together: all of them call it with the same files and weights, of
/// which there is one for each rank. The key's file appears when all of it is whole.
///
/// # Errors
/// As [`super::import_zkey`]; [`Error::Ranks`] for what another rank does. An error of one rank is one of all: then
/// no new file is left, and a key that had the name is as it was.
pub fn deal_zkey(
    workspace: &Workspace,
    ranks: &Ranks,
    weights: &[u64],
    files: [&Path; 2],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<DealtImport> {
    let mut dealt = || {
        let curve = curve_of(workspace, files[0], FileKind::Zkey)?;
        over_curve!(curve, E => deal_over::<E>(workspace, ranks, weights, files, progress))
    };
    dealt().inspect_err(|error| ranks.give_up(error))
}

fn deal_over<E: PairingCurve>(
    workspace: &Workspace,
    ranks: &Ranks,
    weights: &[u64],
    [path, target]: [&Path; 2],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<DealtImport> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    Invalid::unless_equal("ranks of an import", ranks.size() as u64, weights.len() as u64)?;
    let _phase = ranks.phase("import");
    let zkey = workspace.run(|| Zkey::<E>::open(&workspace, path))?;
    let (rank, shape) = (ranks.rank(), zkey.shape());
    let of = OfRank {
        rank,
        weights,
        cut: Cut::Layout,
    };
    let shares = of.shares(&shape)?;
    check_same(&zkey, ranks)?;
    let mut number = rand::random::<[u8; NUMBER_BYTES]>();
    ranks.broadcast(0, &mut number)?;
    let deal = Deal {
        workspace: &workspace,
        ranks,
        weights,
        shares,
        zkey: &zkey,
        target,
        number: u32::from_le_bytes(number),
    };
    let before = shares_named(&workspace, target);
    let constraints = zkey.constraints_of_copy(deal.shares.evaluated(&shape, rank), &mut *progress)?;
    let share = deal.path_of(rank)?;
    workspace.run(|| {
        let counts = [constraints.values().len(), constraints.len()];
        let container = deal.write_share(&share, constraints, progress)?;
        // All that takes long is done on every rank.
        ranks.barrier()?;
        let root = container.publish()?;
        let key = deal.finish(&share, counts, root, progress)?;
        deal.remove(&before);
        Ok(DealtImport { key, share })
    })
}

/// That all ranks have the same key, as far as its points that are known by themselves say: of two contributions they
/// are not the same.
fn check_same<E: PairingCurve>(zkey: &Zkey<E>, ranks: &Ranks) -> Result<()> {
    let source = &zkey.source;
    let range = source
        .sections
        .range(zkey::HEADER)
        .map_err(|error| source.refuse(error))?;
    let digest = blake3::hash(&source.small(range)?);
    let digests = ranks.gather(0, digest.as_bytes())?.unwrap_or_default();
    if digests.iter().all(|other| other[..] == digest.as_bytes()[..]) {
        return Ok(());
    }
    Err(source.refuse(FormatError::Inconsistent {
        what: "headers of the key's file on two ranks",
        remedy: "they are of other keys: give all ranks the same file",
    }))
}

/// One rank's part in an import.
struct Deal<'a, E: PairingCurve> {
    workspace: &'a Workspace,
    ranks: &'a Ranks,
    weights: &'a [u64],
    shares: Shares,
    zkey: &'a Zkey<E>,
    /// The key's file.
    target: &'a Path,
    /// Of this import.
    number: u32,
}

impl<E: PairingCurve> Deal<'_, E> {
    /// The file of a rank's share.
    fn path_of(&self, rank: usize) -> Result<PathBuf> {
        let (ranks, number) = (self.shares.ranks(), self.number);
        let name = self.target.file_name().and_then(|name| name.to_str());
        let name = name.map(|name| format!("{name}.{number:08x}.{rank}-of-{ranks}"));
        match name.filter(|name| is_file_name(name)) {
            Some(name) => Ok(self.target.with_file_name(name)),
            None => Err(Invalid::NotAFileName {
                path: self.target.display().to_string(),
            }
            .into()),
        }
    }

    /// This rank's share, whole but for its name.
    fn write_share(
        &self,
        path: &Path,
        constraints: Constraints<E::Scalar>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ContainerWriter> {
        let (rank, layout) = (self.ranks.rank(), &self.zkey.layout);
        let mut shape = self.shares.share_shape(rank);
        shape.values = constraints.values().len();
        shape.coefficients = constraints.len();
        let sections = share_sections(&shape).map_err(|source| refuse(path, source))?;
        let place = (path, Kind::Groth16Share, share_frame_bytes(self.zkey.curve));
        let container = self.container(place, &sections)?;
        let signals = Strided::run(self.shares.signals_of(rank), 0);
        let private = Strided::run(self.shares.signals_of(rank), self.zkey.header.public() + 1);
        let columns = self.columns();
        self.copy::<E::G1Config>(&container, (0, &layout.a, signals), progress)?;
        self.copy::<E::G1Config>(&container, (1, &layout.b1, signals), progress)?;
        self.copy::<E::G2Config>(&container, (2, &layout.b2, signals), progress)?;
        self.copy::<E::G1Config>(&container, (3, &layout.c, private), progress)?;
        self.copy::<E::G1Config>(&container, (4, &layout.h, columns), progress)?;
        let mut values = Writer::new(container.draft(5)?);
        values.push_column(constraints.values())?;
        values.finish()?;
        let mut coefficients = Writer::new(container.draft(6)?);
        coefficients.push_column(constraints.coefficients())?;
        coefficients.finish()?;
        Ok(container)
    }

    fn columns(&self) -> Strided {
        let (columns, row_len) = self.shares.columns_of_h(self.ranks.rank());
        Strided {
            lead: 0,
            first: columns.start,
            width: columns.end - columns.start,
            step: row_len,
            len: self.shares.share_shape(self.ranks.rank()).points_of_h,
        }
    }

    fn container(
        &self,
        (path, kind, frame_bytes): (&Path, Kind, u32),
        sections: &[SectionSpec],
    ) -> Result<ContainerWriter> {
        let curve = self.zkey.curve;
        ContainerWriter::create(self.workspace, path, kind, curve, frame_bytes, [0; 32], sections)
    }

    /// Checks points of an array and writes them to a section.
    fn copy<P: Curve>(
        &self,
        container: &ContainerWriter,
        (section, range, part): (usize, &PointRange, Strided),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let (source, budget) = (&self.zkey.source, &self.workspace.budget);
        let array = Array {
            what: range.what,
            offset: range.offset,
            count: part.len,
            element_bytes: range.point_bytes,
        };
        let run_elements = array.run_elements(budget);
        let mut tile = budget.vec(
            run_elements as usize,
            Point::<P>::INFINITY,
            "points being imported",
        )?;
        let mut writer = Writer::new(container.draft::<Point<P>>(section)?);
        writer.push_zeros(part.lead)?;
        each_run(source, (range, part), run_elements, progress, |start, bytes| {
            let tile = &mut tile[..bytes.len() / range.point_bytes as usize];
            let decoded = decode_points::<P>(range, &|at| part.index_of(start + at), bytes, tile);
            decoded.map_err(|error| source.refuse(error))?;
            writer.push(tile)
        })?;
        let points = writer.finish()?;
        let index_of = move |at: u64| part.index_of(at.saturating_sub(part.lead));
        subgroup::check_at::<P>(source, &points, range, &index_of)
    }

    /// From the moment on that this rank's share has its name: what it becomes a part of. Rank 0 decides whether the
    /// key gets its name; another rank that does not hear of it keeps its share, since a key may name it.
    fn finish(
        &self,
        share: &Path,
        counts: [u64; 2],
        root: [u8; 32],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportedKey> {
        let mut record = counts.map(u64::to_le_bytes).concat();
        record.extend(root);
        let rank = self.ranks.rank();
        let (mut key_root, mut shape) = ([0; 32], self.zkey.shape());
        if rank == 0 {
            let mut published = || -> Result<_> {
                let records = self.ranks.gather(0, &record)?.unwrap_or_default();
                let (key, shape) = self.write_key(&records, progress)?;
                Ok((key.publish()?, shape))
            };
            (key_root, shape) = published().inspect_err(|_| self.take_back(share))?;
            self.ranks.broadcast(0, &mut key_root)?;
        } else {
            let mut told = || -> Result<_, RankError> {
                self.ranks.gather(0, &record)?;
                self.ranks.broadcast(0, &mut key_root)
            };
            told().inspect_err(|error| match error {
                _ if names_share(self.workspace, self.target, rank, &root) => {}
                RankError::GaveUp { peer: 0, .. } => self.take_back(share),
                _ => tracing::warn!(
                    file = %share.display(),
                    "the share is left, since rank 0 has not said whether a key names it"
                ),
            })?;
        }
        Ok(ImportedKey {
            shape,
            curve: self.zkey.curve,
            is_without_contribution: self.zkey.points.is_without_contribution(),
            root: key_root,
        })
    }

    /// Removes the share of an import that failed.
    fn take_back(&self, share: &Path) {
        if let Err(kept) = self.workspace.storage.remove(share) {
            tracing::warn!(file = %share.display(), %kept, "the share of an import that failed is left");
        }
    }

    /// The key, whole but for its name, and its sizes.
    fn write_key(
        &self,
        records: &[Vec<u8>],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(ContainerWriter, Shape)> {
        let mut shares = Vec::with_capacity(records.len());
        for (rank, record) in records.iter().enumerate() {
            shares.push(self.entry(rank, record)?);
        }
        let shape = self.zkey.shape();
        let dealt = Dealt {
            log_domain: shape.log_domain,
            signals: shape.signals,
            shares,
        };
        let (bytes, shape) = (dealt.encode(), dealt.shape(shape.public));
        let _text = (self.workspace.budget).lease(bytes.len() as u64, "names of shares")?;
        let sections =
            key_sections(&shape, bytes.len() as u64).map_err(|source| refuse(self.target, source))?;
        let curve = self.zkey.curve;
        let place = (self.target, Kind::Groth16Dealt, frame_bytes(curve));
        let mut key = ToContainer(self.container(place, &sections)?);
        self.zkey.write_few(&mut key)?;
        let (source, ic) = (&self.zkey.source, &self.zkey.layout.ic);
        let points = key.points::<E::G1Config>(2, (source, ic, 0), progress)?;
        subgroup::check::<E::G1Config>(source, &points, (ic, 0))?;
        let mut writer = Writer::new(key.0.draft::<[u8; 1]>(3)?);
        writer.push(bytes.as_chunks::<1>().0)?;
        writer.finish()?;
        Ok((key.0, shape))
    }

    /// What a rank has told of its share.
    fn entry(&self, rank: usize, record: &[u8]) -> Result<DealtShare> {
        Invalid::unless_equal(
            "bytes that a rank tells of its share",
            record.len() as u64,
            RECORD_BYTES as u64,
        )?;
        let (numbers, root) = record.as_chunks::<8>().0.split_at(2);
        let mut whole = [0; 32];
        whole.copy_from_slice(root.as_flattened());
        let path = self.path_of(rank)?;
        let name = path.file_name().and_then(|name| name.to_str());
        Ok(DealtShare {
            weight: self.weights[rank],
            columns: self.shares.columns_of_h(rank).0,
            signals: self.shares.signals_of(rank),
            values: u64::from_le_bytes(numbers[0]),
            coefficients: u64::from_le_bytes(numbers[1]),
            root: whole,
            name: name.unwrap_or_default().to_owned(),
        })
    }

    /// Removes the shares that an earlier key of this name has named, where they are on this machine.
    fn remove(&self, before: &[(PathBuf, [u8; 32])]) {
        for (share, root) in before {
            let found = Container::open(self.workspace, share);
            if found.is_ok_and(|found| found.root() == *root)
                && let Err(kept) = self.workspace.storage.remove(share)
            {
                tracing::warn!(file = %share.display(), %kept, "a share that no key names any more is left");
            }
        }
    }
}

fn refuse(path: &Path, source: FormatError) -> Error {
    Error::Format {
        file: path.to_path_buf(),
        source,
    }
}

/// Elements of an array: the same run of each row of a matrix, behind some points at infinity.
#[derive(Clone, Copy)]
struct Strided {
    lead: u64,
    /// The first element of the first run.
    first: u64,
    /// Elements of a run.
    width: u64,
    /// From the start of a run to that of the next one.
    step: u64,
    /// Elements of all runs.
    len: u64,
}

impl Strided {
    /// One run: of an array that begins with the element `start` of a longer one, whose first elements are points at
    /// infinity.
    fn run(elements: Range<u64>, start: u64) -> Self {
        let first = elements.start.max(start).min(elements.end);
        let len = elements.end - first;
        Self {
            lead: first - elements.start,
            first: first.saturating_sub(start),
            width: len.max(1),
            step: 0,
            len,
        }
    }

    /// Where an element is in the array.
    fn index_of(&self, at: u64) -> u64 {
        self.first + at / self.width.max(1) * self.step + at % self.width.max(1)
    }

    /// The transfers of some elements.
    fn segments(&self, range: &PointRange, elements: Range<u64>) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut at = elements.start;
        while at < elements.end {
            let run_end = (at / self.width + 1) * self.width;
            let end = run_end.min(elements.end);
            let buffer_offset = (at - elements.start) * range.point_bytes;
            let bytes = (end - at) * range.point_bytes;
            let offset = range.point_offset(self.index_of(at));
            segments.push(Segment::new(offset, buffer_offset as usize, bytes as usize));
            at = end;
        }
        segments
    }
}

/// Hands elements of an array to `each`, in order, each time with the number of the first; the next ones are on
/// their way meanwhile.
fn each_run(
    source: &Source,
    (range, part): (&PointRange, Strided),
    run_elements: u64,
    progress: &mut dyn FnMut(Progress),
    mut each: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut flying = VecDeque::with_capacity(READ_AHEAD);
    let mut starts = (0..part.len).step_by(run_elements as usize);
    let elements = |start: u64| start..(start + run_elements).min(part.len);
    let launch = |start, buffer| {
        let segments = part.segments(range, elements(start));
        (start, source.file.file().read(buffer, segments))
    };
    for start in starts.by_ref().take(READ_AHEAD) {
        let bytes = (run_elements * range.point_bytes) as usize;
        flying.push_back(launch(start, source.workspace.budget.buffer(bytes, "import")?));
    }
    while let Some((start, pending)) = flying.pop_front() {
        let (buffer, end) = (pending.wait()?, elements(start).end);
        each(start, &buffer[..((end - start) * range.point_bytes) as usize])?;
        progress(Progress {
            what: range.what,
            done: end,
            total: part.len,
        });
        if let Some(next) = starts.next() {
            flying.push_back(launch(next, buffer));
        }
    }
    Ok(())
}
