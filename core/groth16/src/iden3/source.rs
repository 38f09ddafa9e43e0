//! Reading such a file: its sections, small parts of it, and arrays.

use std::path::Path;

use spillproof_format::iden3::{
    ByteRange, FileKind, PointRange, SectionWalk, Sections, ptau, r1cs, wtns, zkey,
};
use spillproof_format::{Curve, Element, FormatError};

use spillproof_engine::Result;
use spillproof_engine::budget::Lease;
use spillproof_engine::column::runs::ForeignFile;
use spillproof_engine::column::{Column, ForeignArray, ForeignCheck, Workspace};

/// A file that is being read.
pub(super) struct Source {
    pub workspace: Workspace,
    pub sections: Sections,
    pub file: ForeignFile,
}

impl Source {
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for a file of another kind, or whose sections do not add up;
    /// those of [`ForeignFile::open`] and [`ForeignFile::read`].
    pub fn open(workspace: &Workspace, path: &Path, kind: FileKind) -> Result<Self> {
        let file = ForeignFile::open(workspace, path)?;
        let mut walk = SectionWalk::new(kind, file.len_bytes());
        while let Some((offset, bytes)) = walk.next_read() {
            walk.give(&file.read(offset, bytes)?)
                .map_err(|error| file.refuse(error))?;
        }
        let sections = walk.finish().map_err(|error| file.refuse(error))?;
        Ok(Self {
            workspace: workspace.clone(),
            sections,
            file,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The error of this file.
    pub fn refuse(&self, source: FormatError) -> spillproof_engine::Error {
        self.file.refuse(source)
    }

    /// Elements of an array where they are, with zeros before and after them.
    pub fn column<E: Element>(&self, range: &PointRange, zeros: [u64; 2], check: ForeignCheck) -> Column<E> {
        let array = ForeignArray {
            file: self.file.file().clone(),
            offset: range.offset,
            len: range.count,
            zeros,
            check,
        };
        Column::foreign(&self.workspace, array)
    }

    /// A part of at most a few KiB.
    pub fn small(&self, range: ByteRange) -> Result<Vec<u8>> {
        self.file.read(range.offset, range.bytes as usize)
    }

    /// A section of contributions, and a lease for its bytes and for the points that they are.
    pub fn contributions(&self, range: ByteRange) -> Result<(Vec<u8>, Lease)> {
        let lease = self.workspace.budget.lease(3 * range.bytes, "contributions")?;
        Ok((self.small(range)?, lease))
    }

    /// At most so many bytes from an offset on: fewer where the file ends.
    pub fn up_to(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let there = self.file.len_bytes().saturating_sub(offset).min(bytes as u64);
        if there == 0 {
            return Ok(Vec::new());
        }
        self.file.read(offset, there as usize)
    }
}

/// The curve that a file names, of whichever kind it has to be.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] for a file of another kind, or a damaged one;
/// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`],
/// [`spillproof_engine::Error::OverBudget`].
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
