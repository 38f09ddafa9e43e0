//! A proving key or a witness as a container: bytes that say what it is, and groups of polynomials of equal
//! length.
//!
//! ```text
//!   "key", ..  bytes, in the proof system's own form
//!   a label    scalars: the group's polynomials one after the other, each from the start of a frame
//! ```
//!
//! A group is one section, since a container has 64 at most and a key may have hundreds of polynomials:
//! polynomial `i` of `n` scalars starts at element `i * stride`, where the stride is `n` in whole frames.
//! Opening copies nothing: what comes out are columns of the file. Memory: that of the container; a writer's
//! buffers, and a chunk.

use std::path::Path;

use spillproof_format::{Basis, Content, Curve, HEADER_BYTES, Header, Kind, Label, SectionSpec};

use super::draft::Writer;
use super::tag::DIGEST_BYTES;
use super::{Column, Container, ContainerWriter, Element, SCRATCH_FRAME_BYTES, Workspace};
use crate::Error;
use crate::Result;
use crate::error::Invalid;

/// Label of the bytes of a proving key.
const KEY_LABEL: &str = "key";
/// Bytes of a scalar.
const SCALAR_BYTES: u64 = 32;

/// What a bundle has, and over which curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleKind {
    /// A key or a witness.
    pub kind: Kind,
    /// The curve whose scalars it has.
    pub curve: Curve,
}

impl BundleKind {
    /// Whether a container is one.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another kind or curve.
    pub(super) fn check(self, file: &str, header: &Header) -> Result<()> {
        match header.kind() == self.kind && header.curve() == self.curve {
            true => Ok(()),
            false => Err(self.another(file, header).into()),
        }
    }

    /// The error of a container that is none.
    pub(super) fn another(self, file: &str, header: &Header) -> Invalid {
        Invalid::AnotherKind {
            file: file.to_owned(),
            expected: format!("{:?} over {:?}", self.kind, self.curve),
            kind: format!("{:?}", header.kind()),
            curve: format!("{:?}", header.curve()),
        }
    }
}

/// A proving key over BN254.
const BN254_KEY: BundleKind = BundleKind {
    kind: Kind::ProvingKeyBundle,
    curve: Curve::Bn254,
};

/// Polynomials that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The section's name: at most 16 printable ASCII characters.
    pub label: &'static str,
    /// Are they values on the domain, and not coefficients?
    pub lagrange: bool,
    /// How many.
    pub polynomials: usize,
}

/// A section of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The section's name, as that of a [`Group`].
    pub label: &'static str,
    /// How many.
    pub bytes: u64,
}

/// A bundle that is being written. Dropping it leaves nothing behind.
pub struct BundleWriter {
    writer: ContainerWriter,
    bytes: Vec<Bytes>,
    groups: Vec<Group>,
    rows: u64,
}

/// A bundle that was written.
#[derive(Debug)]
pub struct Bundle {
    container: Container,
}

/// Elements from the start of one polynomial to that of the next.
fn stride(rows: u64) -> u64 {
    rows.next_multiple_of(SCRATCH_FRAME_BYTES as u64 / SCALAR_BYTES)
}

/// Bytes of a bundle of one section of bytes and one group of polynomials of `rows` scalars.
pub fn bundle_bytes(bytes: u64, polynomials: u64, rows: u64) -> u64 {
    let frame_bytes = SCRATCH_FRAME_BYTES as u64;
    let frames = bytes.div_ceil(frame_bytes) + polynomials * (stride(rows) * SCALAR_BYTES / frame_bytes);
    let page_bytes = HEADER_BYTES as u64;
    page_bytes + frames * frame_bytes + (frames * DIGEST_BYTES as u64).next_multiple_of(page_bytes)
}

/// The `polynomials` polynomials of the section `label` of a file, `rows` scalars each.
pub(super) fn polynomials_of<E: Element>(
    all: Option<&Column<E>>,
    (file, label): (&str, &str),
    polynomials: usize,
    rows: u64,
) -> Result<Vec<Column<E>>> {
    let stride = stride(rows);
    let expected = (polynomials as u64).saturating_mul(stride);
    let len = all.map_or(0, Column::len);
    if len != expected {
        return Err(Invalid::Length {
            what: format!("{file}: scalars of section \"{label}\""),
            given: len,
            expected,
        }
        .into());
    }
    let part = |(all, index): (&Column<E>, usize)| all.part(index as u64 * stride, rows);
    all.into_iter()
        .flat_map(|all| (0..polynomials).map(move |index| (all, index)))
        .map(part)
        .collect()
}

impl BundleWriter {
    /// Starts a proving key over BN254 that will be `path`: `key_bytes` bytes, and polynomials of `rows`
    /// scalars.
    ///
    /// # Errors
    /// As [`Self::of_kind`].
    pub fn create(
        workspace: &Workspace,
        path: &Path,
        key_bytes: u64,
        rows: u64,
        groups: &[Group],
    ) -> Result<Self> {
        let key = Bytes {
            label: KEY_LABEL,
            bytes: key_bytes,
        };
        Self::of_kind(workspace, path, BN254_KEY, &[key], rows, groups)
    }

    /// Starts a bundle that will be `path`, with these sections of bytes, and polynomials of
    /// `rows` scalars.
    ///
    /// # Errors
    /// [`Error::Format`] for a bad label or more than a container can hold; [`Error::Io`],
    /// [`Error::OverBudget`].
    pub fn of_kind(
        workspace: &Workspace,
        path: &Path,
        BundleKind { kind, curve }: BundleKind,
        bytes: &[Bytes],
        rows: u64,
        groups: &[Group],
    ) -> Result<Self> {
        let format = |source| Error::Format {
            file: path.to_path_buf(),
            source,
        };
        let groups: Vec<Group> = groups
            .iter()
            .copied()
            .filter(|group| group.polynomials > 0)
            .collect();
        let mut sections = Vec::with_capacity(bytes.len() + groups.len());
        for section in bytes {
            sections.push(SectionSpec {
                content: Content::Bytes,
                basis: Basis::None,
                elements: section.bytes,
                label: Label::new(section.label).map_err(format)?,
            });
        }
        for group in &groups {
            sections.push(SectionSpec {
                content: Content::Scalars,
                basis: if group.lagrange {
                    Basis::Lagrange
                } else {
                    Basis::Monomial
                },
                elements: (group.polynomials as u64).saturating_mul(stride(rows)),
                label: Label::new(group.label).map_err(format)?,
            });
        }
        let writer = ContainerWriter::create(
            workspace,
            path,
            kind,
            curve,
            SCRATCH_FRAME_BYTES as u32,
            [0; 32],
            &sections,
        )?;
        Ok(Self {
            writer,
            bytes: bytes.to_vec(),
            groups,
            rows,
        })
    }

    /// A writer of the key's bytes; finish it before [`Self::publish`].
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn key(&self) -> Result<Writer<[u8; 1]>> {
        self.bytes(KEY_LABEL)
    }

    /// A writer of a section of bytes; take each once, and finish it before [`Self::publish`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a section that was not announced.
    pub fn bytes(&self, label: &str) -> Result<Writer<[u8; 1]>> {
        match self.bytes.iter().position(|section| section.label == label) {
            Some(index) => Ok(Writer::new(self.writer.draft(index)?)),
            None => Err(Invalid::UnknownGroup { group: label.into() }.into()),
        }
    }

    /// Writes all polynomials of a group, in order. Shorter ones are padded with zeros.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a group that was not announced, another number of polynomials, or one that is
    /// too long; [`Error::Io`], [`Error::OverBudget`], [`Error::Damaged`].
    pub fn write<E: Element>(
        &self,
        label: &str,
        polynomials: impl IntoIterator<Item = Result<Column<E>>>,
    ) -> Result<()> {
        let mut polynomials = polynomials.into_iter();
        let Some(index) = self.groups.iter().position(|group| group.label == label) else {
            return match polynomials.next() {
                None => Ok(()),
                Some(_) => Err(Invalid::UnknownGroup { group: label.into() }.into()),
            };
        };
        let expected = self.groups[index].polynomials;
        let mut writer = Writer::new(self.writer.draft::<E>(self.bytes.len() + index)?);
        let wrong_count = |given| Invalid::Length {
            what: format!("polynomials of the group {label}"),
            given: given as u64,
            expected: expected as u64,
        };
        let mut count = 0;
        for polynomial in polynomials {
            let polynomial = polynomial?;
            if count == expected {
                return Err(wrong_count(count + 1).into());
            }
            Invalid::unless_at_most(
                format!("scalars of polynomial {count} of the group {label}"),
                polynomial.len(),
                self.rows,
            )?;
            writer.push_column(&polynomial)?;
            writer.push_zeros(stride(self.rows) - polynomial.len())?;
            count += 1;
        }
        if count < expected {
            return Err(wrong_count(count).into());
        }
        writer.finish()?;
        Ok(())
    }

    /// Gives the file its name. The root it returns names the content.
    ///
    /// # Errors
    /// As [`ContainerWriter::publish`].
    pub fn publish(self) -> Result<[u8; 32]> {
        self.writer.publish()
    }
}

impl Bundle {
    /// Opens a proving key over BN254, as [`Container::open`]. No frame is read.
    ///
    /// # Errors
    /// As [`Self::open_kind`].
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        Self::open_kind(workspace, path, BN254_KEY)
    }

    /// Opens a bundle of a kind, as [`Container::open`]. No frame is read.
    ///
    /// # Errors
    /// Those of [`Container::open`]; [`Error::Invalid`] for a container of another kind or curve.
    pub fn open_kind(workspace: &Workspace, path: &Path, kind: BundleKind) -> Result<Self> {
        let container = Container::open(workspace, path)?;
        kind.check(&path.display().to_string(), container.header())?;
        Ok(Self { container })
    }

    /// The key's bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file has none.
    pub fn key(&self) -> Result<Column<[u8; 1]>> {
        self.section(KEY_LABEL)?.ok_or_else(|| {
            Invalid::MissingSection {
                file: self.file(),
                section: KEY_LABEL.into(),
            }
            .into()
        })
    }

    /// A section of bytes; `None` if the file has none of this label.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a section of another content.
    pub fn bytes(&self, label: &str) -> Result<Option<Column<[u8; 1]>>> {
        self.section(label)
    }

    /// The `polynomials` polynomials of a group, `rows` scalars each, as columns of the file.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file has another number of scalars there.
    pub fn group<E: Element>(&self, label: &str, polynomials: usize, rows: u64) -> Result<Vec<Column<E>>> {
        let all = self.section::<E>(label)?;
        polynomials_of(all.as_ref(), (&self.file(), label), polynomials, rows)
    }

    /// The root: 32 bytes that name the file.
    pub fn root(&self) -> [u8; 32] {
        self.container.root()
    }

    fn section<E: Element>(&self, label: &str) -> Result<Option<Column<E>>> {
        let sections = self.container.header().sections();
        let Some(section) = sections.iter().find(|section| section.label.as_str() == label) else {
            return Ok(None);
        };
        let column = self.container.column(section);
        column.map(Some).ok_or_else(|| {
            Invalid::ElementBytes {
                what: format!("{}: section \"{label}\"", self.file()),
                given: section.element_bytes() as usize,
                expected: E::BYTES,
            }
            .into()
        })
    }

    fn file(&self) -> String {
        self.container.path().display().to_string()
    }
}
