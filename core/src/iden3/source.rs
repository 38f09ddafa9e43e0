//! Reading such a file: its sections, small parts of it, and arrays in runs.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use spillproof_format::iden3::{
    ByteRange, FileKind, PointRange, SectionWalk, Sections, ptau, r1cs, wtns, zkey,
};
use spillproof_format::{Curve, Element, FormatError};

use crate::budget::PAGE_BYTES;
use crate::column::{Column, ForeignArray, ForeignCheck, SEQUENTIAL_BYTES, Workspace};
use crate::storage::{File, Pending, Segment};
use crate::{Error, Result};

/// Runs of an array on their way.
const READ_AHEAD: usize = 2;
/// Runs take at most this part of what the budget has left.
const SHARE: u64 = 16;

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The array that is read.
    pub what: &'static str,
    /// Elements of it that were read.
    pub done: u64,
    /// Elements of it.
    pub total: u64,
}

/// A file that is being read.
pub(super) struct Source {
    pub workspace: Workspace,
    pub sections: Sections,
    file: File,
    path: PathBuf,
}

/// A run of an array on its way.
struct Run {
    first: u64,
    count: u64,
    pending: Pending,
}

/// An array of a file.
#[derive(Clone, Copy)]
pub(super) struct Array {
    pub what: &'static str,
    pub offset: u64,
    pub count: u64,
    pub element_bytes: u64,
}

impl Source {
    /// # Errors
    /// [`Error::Format`] for a file of another kind, or whose sections do not add up; [`Error::File`], [`Error::Io`], [`Error::OverBudget`].
    pub fn open(workspace: &Workspace, path: &Path, kind: FileKind) -> Result<Self> {
        let format = |source| Error::Format {
            file: path.to_path_buf(),
            source,
        };
        let file = workspace.storage.open_unaligned(path)?;
        let mut walk = SectionWalk::new(kind, file.len_bytes());
        while let Some((offset, bytes)) = walk.next_read() {
            walk.give(&read(workspace, &file, offset, bytes)?)
                .map_err(format)?;
        }
        let sections = walk.finish().map_err(format)?;
        Ok(Self {
            workspace: workspace.clone(),
            sections,
            file,
            path: path.to_path_buf(),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error of this file.
    pub fn refuse(&self, source: FormatError) -> Error {
        Error::Format {
            file: self.path.clone(),
            source,
        }
    }

    /// Elements of an array where they are, with zeros before and after them.
    pub fn column<E: Element>(&self, range: &PointRange, zeros: [u64; 2], check: ForeignCheck) -> Column<E> {
        let array = ForeignArray {
            file: self.file.clone(),
            offset: range.offset,
            len: range.count,
            zeros,
            check,
        };
        Column::foreign(&self.workspace, array)
    }

    /// A part of at most a few KiB.
    pub fn small(&self, range: ByteRange) -> Result<Vec<u8>> {
        read(&self.workspace, &self.file, range.offset, range.bytes as usize)
    }

    /// At most so many bytes from an offset on: fewer where the file ends.
    pub fn up_to(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let there = self.file.len_bytes().saturating_sub(offset).min(bytes as u64);
        if there == 0 {
            return Ok(Vec::new());
        }
        read(&self.workspace, &self.file, offset, there as usize)
    }

    /// Elements of a run.
    pub fn run_elements(&self, array: &Array) -> u64 {
        let share_bytes = self.workspace.budget.available_bytes() / SHARE;
        let run_bytes = share_bytes.clamp(PAGE_BYTES as u64, SEQUENTIAL_BYTES as u64);
        (run_bytes / array.element_bytes.max(1)).clamp(1, array.count.max(1))
    }

    /// Hands the runs of an array to `each` in order, each with the index of its first element; the next ones are on their way meanwhile.
    pub fn each_run(
        &self,
        array: &Array,
        progress: &mut dyn FnMut(Progress),
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let run_elements = self.run_elements(array);
        let run_bytes = (run_elements * array.element_bytes) as usize;
        let mut next = 0;
        let mut flying: VecDeque<Run> = VecDeque::with_capacity(READ_AHEAD);
        let mut launch = |buffer| {
            let count = run_elements.min(array.count - next);
            let offset = array.offset + next * array.element_bytes;
            let bytes = (count * array.element_bytes) as usize;
            let run = Run {
                first: next,
                count,
                pending: self.file.read(buffer, [Segment::new(offset, 0, bytes)]),
            };
            next += count;
            (run, next < array.count)
        };
        let mut is_more = array.count > 0;
        while is_more && flying.len() < READ_AHEAD {
            let buffer = self.workspace.budget.buffer(run_bytes, "import")?;
            let (run, more) = launch(buffer);
            flying.push_back(run);
            is_more = more;
        }
        while let Some(run) = flying.pop_front() {
            let buffer = run.pending.wait()?;
            each(run.first, &buffer[..(run.count * array.element_bytes) as usize])?;
            progress(Progress {
                what: array.what,
                done: run.first + run.count,
                total: array.count,
            });
            if is_more {
                let (run, more) = launch(buffer);
                flying.push_back(run);
                is_more = more;
            }
        }
        Ok(())
    }
}

fn read(workspace: &Workspace, file: &File, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    let buffer = workspace.budget.buffer(bytes.max(PAGE_BYTES), "import")?;
    let buffer = file.read(buffer, [Segment::new(offset, 0, bytes)]).wait()?;
    Ok(buffer[..bytes].to_vec())
}

/// The curve that a file names, of whichever kind it has to be.
///
/// # Errors
/// [`Error::Format`] for a file of another kind, or a damaged one; [`Error::File`], [`Error::Io`], [`Error::OverBudget`].
pub fn curve_of(workspace: &Workspace, path: &Path, kind: FileKind) -> Result<Curve> {
    let source = Source::open(workspace, path, kind)?;
    let sections = &source.sections;
    let refuse = |error| source.refuse(error);
    match kind {
        FileKind::Wtns => {
            let bytes = source.small(wtns::Header::range(sections).map_err(refuse)?)?;
            return Ok(wtns::Header::parse(sections, &bytes).map_err(refuse)?.curve);
        }
        FileKind::R1cs => {
            let bytes = source.small(r1cs::Header::range(sections).map_err(refuse)?)?;
            return Ok(r1cs::Header::parse(sections, &bytes).map_err(refuse)?.curve);
        }
        FileKind::Ptau => {
            let bytes = source.small(ptau::Header::range(sections).map_err(refuse)?)?;
            return Ok(ptau::Header::parse(sections, &bytes).map_err(refuse)?.curve);
        }
        FileKind::Zkey => (),
    }
    let ranges = zkey::HeaderRanges::of(sections).map_err(refuse)?;
    let (protocol, header) = (source.small(ranges.protocol)?, source.small(ranges.header)?);
    let header = zkey::Header::parse(sections, &protocol, &header).map_err(refuse)?;
    Ok(header.curve())
}
