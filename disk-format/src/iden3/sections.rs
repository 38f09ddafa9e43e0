//! The sections of a file: where each is, from the file's length and 12 bytes for each section.

use super::{ByteRange, PREFIX_BYTES, SECTION_PREFIX_BYTES, SECTIONS_MAX};
use crate::error::{FormatError, hex};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A proving key.
    Zkey,
    /// A witness: the value of every signal.
    Wtns,
    /// A rank-1 constraint system.
    R1cs,
    /// Powers of tau: the first phase of a ceremony.
    Ptau,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Zkey, Self::Wtns, Self::R1cs, Self::Ptau];

    /// The first four bytes.
    #[must_use]
    pub const fn magic(self) -> [u8; 4] {
        match self {
            Self::Zkey => *b"zkey",
            Self::Wtns => *b"wtns",
            Self::R1cs => *b"r1cs",
            Self::Ptau => *b"ptau",
        }
    }

    /// The version that is written, which is the last one that is read. The first one is 1.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::Wtns => 2,
            Self::Zkey | Self::R1cs | Self::Ptau => 1,
        }
    }

    /// The end of the file's name, without a dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Zkey => "zkey",
            Self::Wtns => "wtns",
            Self::R1cs => "r1cs",
            Self::Ptau => "ptau",
        }
    }

    /// The kind of a file that begins with these bytes, if there is one.
    #[must_use]
    pub fn detect(magic: [u8; 4]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.magic() == magic)
    }

    /// What a section holds, in words; `unknown` for an id without a meaning (of a Groth16 key, in a
    /// `.zkey`).
    #[must_use]
    pub const fn section_name(self, id: u32) -> &'static str {
        match (self, id) {
            (Self::Zkey, 1) => "proof system",
            (Self::Zkey, 3) => "IC points",
            (Self::Zkey, 4) => "coefficients",
            (Self::Zkey, 5) => "A points",
            (Self::Zkey, 6) => "B points in G1",
            (Self::Zkey, 7) => "B points in G2",
            (Self::Zkey, 8) => "C points",
            (Self::Zkey, 9) => "H points",
            (Self::Zkey, 10) => "contributions",
            (Self::Wtns, 2) => "values",
            (Self::R1cs, 2) => "constraints",
            (Self::R1cs, 3) => "labels of wires",
            (Self::R1cs, 4) => "custom gates",
            (Self::R1cs, 5) => "uses of custom gates",
            (Self::Ptau, 2) => "powers of tau in G1",
            (Self::Ptau, 3) => "powers of tau in G2",
            (Self::Ptau, 4) => "powers of tau times alpha",
            (Self::Ptau, 5) => "powers of tau times beta",
            (Self::Ptau, 6) => "beta in G2",
            (Self::Ptau, 7) => "contributions",
            (Self::Ptau, 12) => "Lagrange points in G1",
            (Self::Ptau, 13) => "Lagrange points in G2",
            (Self::Ptau, 14) => "Lagrange points times alpha",
            (Self::Ptau, 15) => "Lagrange points times beta",
            (Self::Zkey, 2) | (Self::Wtns | Self::R1cs | Self::Ptau, 1) => "header",
            _ => "unknown",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    id: u32,
    range: ByteRange,
}

/// Finds the sections of a file:
///
/// ```
/// # use spillproof_format::iden3::{FileKind, SectionWalk, Sections};
/// # fn sections(file: &[u8]) -> Result<Sections, spillproof_format::FormatError> {
/// let mut walk = SectionWalk::new(FileKind::Wtns, file.len() as u64);
/// while let Some((offset, bytes)) = walk.next_read() {
///     let at = offset as usize;
///     walk.give(&file[at..at + bytes])?;
/// }
/// walk.finish()
/// # }
/// # assert!(sections(b"wtns").is_err());
/// ```
#[derive(Debug, Clone)]
pub struct SectionWalk {
    kind: FileKind,
    file_bytes: u64,
    /// Offset of the next bytes that are needed.
    next: u64,
    /// From the prefix of the file, when it was read.
    announced: Option<u32>,
    entries: Vec<Entry>,
}

impl SectionWalk {
    /// A walk through a file of this length.
    #[must_use]
    pub const fn new(kind: FileKind, file_bytes: u64) -> Self {
        Self {
            kind,
            file_bytes,
            next: 0,
            announced: None,
            entries: Vec::new(),
        }
    }

    /// Offset and number of the bytes to give next: they are inside the file. `None` when there are no more
    /// to be read, and [`Self::finish`] says what was found.
    #[must_use]
    pub fn next_read(&self) -> Option<(u64, usize)> {
        let bytes = match self.announced {
            None => PREFIX_BYTES,
            Some(announced) if (self.entries.len() as u32) < announced => SECTION_PREFIX_BYTES,
            Some(_) => return None,
        };
        let end = self.next.checked_add(bytes as u64)?;
        (end <= self.file_bytes).then_some((self.next, bytes))
    }

    /// Takes the bytes that [`Self::next_read`] asked for.
    ///
    /// # Errors
    /// [`FormatError::Length`] for another number of bytes; [`FormatError::Field`] for another magic, for no
    /// sections or for more than [`SECTIONS_MAX`]; [`FormatError::Unknown`] for another version;
    /// [`FormatError::DuplicateSection`]; [`FormatError::SectionOverrun`]. After an error the walk has not
    /// moved.
    pub fn give(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let wanted_bytes = self.next_read().map_or(0, |(_, bytes)| bytes);
        let (&[first, second, third], []) = bytes.as_chunks::<4>() else {
            return Err(wrong_number(wanted_bytes, bytes.len()));
        };
        if wanted_bytes != bytes.len() {
            return Err(wrong_number(wanted_bytes, bytes.len()));
        }
        let [second, third] = [second, third].map(u32::from_le_bytes);
        match self.announced {
            None => {
                self.announced = Some(check_prefix(self.kind, first, second, third)?);
                self.next = PREFIX_BYTES as u64;
            }
            Some(_) => {
                let section_bytes = u64::from(third) << 32 | u64::from(second);
                let entry = self.check_section(u32::from_le_bytes(first), section_bytes)?;
                self.next = entry.range.end();
                self.entries.push(entry);
            }
        }
        Ok(())
    }

    fn check_section(&self, id: u32, bytes: u64) -> Result<Entry, FormatError> {
        let (file, name) = (self.kind.extension(), self.kind.section_name(id));
        // The prefix was inside the file.
        let offset = self.next.saturating_add(SECTION_PREFIX_BYTES as u64);
        if let Some(first) = self.entries.iter().find(|entry| entry.id == id) {
            return Err(FormatError::DuplicateSection {
                file,
                section: id,
                name,
                first_offset: first.range.offset,
                offset,
            });
        }
        match offset.checked_add(bytes) {
            Some(end) if end <= self.file_bytes => Ok(Entry {
                id,
                range: ByteRange { offset, bytes },
            }),
            _ => Err(FormatError::SectionOverrun {
                file,
                section: id,
                name,
                offset,
                bytes,
                file_bytes: self.file_bytes,
            }),
        }
    }

    /// What was found.
    ///
    /// # Errors
    /// [`FormatError::Length`] for a file without a whole prefix, or with bytes after its last section;
    /// [`FormatError::SectionCount`] for one that ends, or whose bytes were not given, before its last
    /// section.
    pub fn finish(self) -> Result<Sections, FormatError> {
        let length = |expected_bytes, remedy| FormatError::Length {
            what: "the file",
            expected_bytes,
            actual_bytes: self.file_bytes,
            remedy,
        };
        let Some(announced) = self.announced else {
            return Err(length(
                PREFIX_BYTES as u64,
                "it is too short for a file of this kind, or its first bytes were not given: get it again",
            ));
        };
        if (self.entries.len() as u32) < announced {
            return Err(FormatError::SectionCount {
                file: self.kind.extension(),
                announced,
                found: self.entries.len() as u32,
                offset: self.next,
                file_bytes: self.file_bytes,
            });
        }
        if self.next != self.file_bytes {
            return Err(length(
                self.next,
                "bytes follow its last section: the program that wrote it was stopped, or something was appended; get it again",
            ));
        }
        Ok(Sections {
            kind: self.kind,
            entries: self.entries,
        })
    }
}

/// That another number of bytes came than was asked for.
fn wrong_number(wanted_bytes: usize, given_bytes: usize) -> FormatError {
    FormatError::Length {
        what: "the part of the file that was asked for",
        expected_bytes: wanted_bytes as u64,
        actual_bytes: given_bytes as u64,
        remedy: "give the bytes that the walk asks for, while it asks",
    }
}

/// The number of sections.
fn check_prefix(kind: FileKind, magic: [u8; 4], version: u32, sections: u32) -> Result<u32, FormatError> {
    if magic != kind.magic() {
        let remedy = match kind {
            FileKind::Zkey => "a .zkey file begins with 7a6b6579: is it another kind of file?",
            FileKind::Wtns => "a .wtns file begins with 77746e73: is it another kind of file?",
            FileKind::R1cs => "a .r1cs file begins with 72316373: is it another kind of file?",
            FileKind::Ptau => "a .ptau file begins with 70746175: is it another kind of file?",
        };
        return Err(FormatError::Field {
            what: "the magic",
            offset: 0,
            value: hex(&magic),
            remedy,
        });
    }
    if !(1..=kind.version()).contains(&version) {
        return Err(FormatError::Unknown {
            what: "version",
            offset: 4,
            value: u64::from(version),
            remedy: match kind {
                FileKind::Wtns => "versions 1 and 2 of .wtns files are read",
                _ => "version 1 of .zkey, .r1cs and .ptau files is read",
            },
        });
    }
    if sections == 0 || sections > SECTIONS_MAX {
        return Err(FormatError::Field {
            what: "number of sections",
            offset: 8,
            value: sections.to_string(),
            remedy: "files have 1 to 64 sections: the file is damaged, get it again",
        });
    }
    Ok(sections)
}

/// The sections of a file: none overlaps another one or the end of the file, and none is there twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sections {
    kind: FileKind,
    entries: Vec<Entry>,
}

impl Sections {
    /// What the file is.
    #[must_use]
    pub const fn kind(&self) -> FileKind {
        self.kind
    }

    /// Where a section's content is, if there is such a section.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<ByteRange> {
        let entry = self.entries.iter().find(|entry| entry.id == id)?;
        Some(entry.range)
    }

    /// Where a section's content is.
    ///
    /// # Errors
    /// [`FormatError::MissingSection`].
    pub fn range(&self, id: u32) -> Result<ByteRange, FormatError> {
        self.find(id).ok_or(FormatError::MissingSection {
            file: self.kind.extension(),
            section: id,
            name: self.kind.section_name(id),
        })
    }

    /// Ids and ranges in file order, those of unknown sections included.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, ByteRange)> + '_ {
        self.entries.iter().map(|entry| (entry.id, entry.range))
    }

    /// That the caller took these for sections of such a file.
    pub(super) fn check_kind(&self, kind: FileKind) -> Result<(), FormatError> {
        if self.kind == kind {
            return Ok(());
        }
        Err(FormatError::Field {
            what: "the kind of file",
            offset: 0,
            value: self.kind.extension().to_owned(),
            remedy: "give the sections of a file of the kind that is read",
        })
    }
}

/// Appends magic, version and number of sections.
pub fn write_prefix(kind: FileKind, sections: u32, out: &mut Vec<u8>) {
    out.extend(kind.magic());
    out.extend(kind.version().to_le_bytes());
    out.extend(sections.to_le_bytes());
}

/// Appends what stands before a section's content.
pub fn write_section_prefix(id: u32, section_bytes: u64, out: &mut Vec<u8>) {
    out.extend(id.to_le_bytes());
    out.extend(section_bytes.to_le_bytes());
}
