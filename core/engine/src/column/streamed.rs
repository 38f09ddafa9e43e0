//! A bundle that comes from its start to its end, such as the body of a request, and is nowhere whole.
//!
//! A frame is hashed and written to scratch as it comes: sealed, if the workspace's scratch is. At the end the root over
//! these digests has to be that of the header, and so has the root over the digest table. A digest says nothing of who
//! made the bytes, so every scalar is checked to be below the modulus.
//!
//! No turn is taken: while the next bytes are waited for, other tasks compute. So the workspace should have a ledger of
//! its own ([`Workspace::with_budget`]), of [`STREAM_BYTES`]: what is leased here is not to be missing in the stage of
//! another task.

use std::io::{ErrorKind, Read};
use std::path::Path;

use spillproof_format::native::NativeField;
use spillproof_format::{Content, FormatError, FrameKey, HEADER_BYTES, Header, RootHasher, Section, hex};

use super::bundle::{BundleKind, polynomials_of};
use super::draft::Writer;
use super::tag::DIGEST_BYTES;
use super::{Column, Element, Placement, SCRATCH_FRAME_BYTES, Workspace};
use crate::Error;
use crate::Result;
use crate::budget::Buffer;

/// What reading a bundle leases at most: a frame, its elements, and what a writer has behind it.
pub const STREAM_BYTES: u64 = 256 << 10;

/// A bundle that came, with scalars `F`. Its columns are scratch.
pub struct StreamedBundle<F> {
    name: String,
    bytes: Vec<(Section, Column<[u8; 1]>)>,
    scalars: Vec<(Section, Column<F>)>,
}

impl<F: Element + NativeField> StreamedBundle<F> {
    /// Reads a bundle of a kind, of so many bytes at most, to its end. The name is for errors.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are no bundle, are damaged, end early or go on, and for a scalar that is not
    /// below the modulus; [`Error::Invalid`] for another kind, and for sections that bundles do not have;
    /// [`Error::File`] for an error of the source; [`Error::Io`], [`Error::OverBudget`].
    pub fn read(
        workspace: &Workspace,
        (name, bytes_max): (&Path, u64),
        kind: BundleKind,
        source: &mut dyn Read,
    ) -> Result<Self> {
        let mut from = Frames { name, source, at: 0 };
        let frame_bytes = SCRATCH_FRAME_BYTES;
        let mut frame = workspace.budget.buffer(frame_bytes, "a frame")?;
        let head = &mut frame[..HEADER_BYTES];
        let come = from.come(head)?;
        let header = Header::decode_prefix(&head[..come]).map_err(|source| from.refused(source))?;
        kind.check(&name.display().to_string(), &header)?;
        if header.frame_bytes() as usize != frame_bytes {
            return Err(from.refused(FormatError::Field {
                what: "the frame length",
                offset: 20,
                value: header.frame_bytes().to_string(),
                remedy: "a bundle that is sent has frames of 16384 bytes, as spillproof saves it: save it again",
            }));
        }
        // Before there is scratch of the length that the header says.
        if header.file_bytes() > bytes_max {
            return Err(from.refused(FormatError::Length {
                what: "the bundle, which its header says",
                expected_bytes: bytes_max,
                actual_bytes: header.file_bytes(),
                remedy: "it is longer than it can be: send one that belongs here",
            }));
        }
        let mut digests = Digests {
            key: FrameKey::of(&header),
            root: RootHasher::new(&header),
            frames: 0,
        };
        let (mut bytes, mut scalars) = (Vec::new(), Vec::new());
        for section in header.sections() {
            let mut parts = Parts {
                workspace,
                header: &header,
                section,
                from: &mut from,
                frame: &mut frame,
                digests: &mut digests,
            };
            match section.content {
                Content::Bytes => bytes.push((*section, parts.bytes()?)),
                Content::Scalars => scalars.push((*section, parts.scalars()?)),
                _ => return Err(kind.another(&name.display().to_string(), &header).into()),
            }
        }
        digests
            .root
            .verify(&header)
            .map_err(|source| from.refused(source))?;
        from.table(&header, &mut frame)?;
        Ok(Self {
            name: name.display().to_string(),
            bytes,
            scalars,
        })
    }

    /// A section of bytes; `None` if there is none of this label.
    pub fn bytes(&self, label: &str) -> Option<Column<[u8; 1]>> {
        find(&self.bytes, label).cloned()
    }

    /// As [`super::Bundle::group`].
    ///
    /// # Errors
    /// As there.
    pub fn group(&self, label: &str, polynomials: usize, rows: u64) -> Result<Vec<Column<F>>> {
        polynomials_of(find(&self.scalars, label), (&self.name, label), polynomials, rows)
    }
}

fn find<'s, C>(sections: &'s [(Section, C)], label: &str) -> Option<&'s C> {
    let found = sections
        .iter()
        .find(|(section, _)| section.label.as_str() == label);
    found.map(|(_, column)| column)
}

/// What comes.
struct Frames<'a> {
    name: &'a Path,
    source: &'a mut dyn Read,
    /// The offset of the next byte.
    at: u64,
}

impl Frames<'_> {
    fn refused(&self, source: FormatError) -> Error {
        Error::Format {
            file: self.name.to_owned(),
            source,
        }
    }

    /// Fills `out` as far as there are bytes; how many there were.
    fn come(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut come = 0;
        while come < out.len() {
            match self.source.read(&mut out[come..]) {
                Ok(0) => break,
                Ok(bytes) => come += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::File {
                        operation: "read",
                        file: self.name.display().to_string(),
                        source,
                    });
                }
            }
        }
        self.at += come as u64;
        Ok(come)
    }

    /// Fills `out`.
    fn all(&mut self, header: &Header, out: &mut [u8]) -> Result<()> {
        match self.come(out)? == out.len() {
            true => Ok(()),
            false => self.whole(header),
        }
    }

    /// Whether as many bytes came as the header says.
    fn whole(&self, header: &Header) -> Result<()> {
        let whole = header.geometry().check_file_bytes(self.at);
        whole.map_err(|source| self.refused(source))
    }

    /// The digest table, and the end.
    fn table(&mut self, header: &Header, buffer: &mut Buffer) -> Result<()> {
        let mut root = RootHasher::new(header);
        let mut left_frames = header.frames() as usize;
        let mut left_bytes = header.geometry().digest_table_bytes() as usize;
        while left_bytes > 0 {
            let bytes = left_bytes.min(buffer.len());
            self.all(header, &mut buffer[..bytes])?;
            let digests = left_frames.min(bytes / DIGEST_BYTES);
            let (digests_of, padding) = buffer[..bytes].split_at(digests * DIGEST_BYTES);
            for digest in digests_of.as_chunks::<DIGEST_BYTES>().0 {
                root.update(digest);
            }
            left_frames -= digests;
            left_bytes -= bytes;
            if left_bytes == 0 {
                let padding = header.geometry().check_table_padding(padding);
                padding.map_err(|source| self.refused(source))?;
            }
        }
        root.verify(header).map_err(|source| self.refused(source))?;
        self.come(&mut [0])?;
        self.whole(header)
    }
}

/// Digests of the frames that came.
struct Digests {
    key: FrameKey,
    root: RootHasher,
    frames: u64,
}

/// A section on its way.
struct Parts<'a, 's> {
    workspace: &'a Workspace,
    header: &'a Header,
    section: &'a Section,
    from: &'a mut Frames<'s>,
    frame: &'a mut Buffer,
    digests: &'a mut Digests,
}

impl Parts<'_, '_> {
    fn writer<E: Element>(&self) -> Result<Writer<E>> {
        let what = self.section.label.as_str();
        Writer::scratch(self.workspace, what, self.section.elements, Placement::Disk)
    }

    /// The elements of the next frame, whose first is at `first`, as bytes; where they begin.
    fn next(&mut self, first: u64) -> Result<(u64, usize)> {
        let offset = self.from.at;
        self.from.all(self.header, self.frame)?;
        let digest = self.digests.key.digest(self.digests.frames, self.frame);
        self.digests.root.update(&digest);
        self.digests.frames += 1;
        let element_bytes = u64::from(self.section.element_bytes());
        let left_bytes = (self.section.elements - first) * element_bytes;
        Ok((offset, left_bytes.min(self.frame.len() as u64) as usize))
    }

    fn bytes(&mut self) -> Result<Column<[u8; 1]>> {
        let mut writer = self.writer::<[u8; 1]>()?;
        let mut first = 0;
        while first < self.section.elements {
            let (_, bytes) = self.next(first)?;
            writer.push(self.frame[..bytes].as_chunks().0)?;
            first += bytes as u64;
        }
        writer.finish()
    }

    fn scalars<F: Element + NativeField>(&mut self) -> Result<Column<F>> {
        let mut writer = self.writer::<F>()?;
        let in_frame = self.frame.len() / F::BYTES;
        let mut tile = self
            .workspace
            .budget
            .vec(in_frame, F::ZERO, "scalars of a frame")?;
        let mut first = 0;
        while first < self.section.elements {
            let (offset, bytes) = self.next(first)?;
            let values = &mut tile[..bytes / F::BYTES];
            for (at, (value, bytes)) in values
                .iter_mut()
                .zip(self.frame.chunks_exact(F::BYTES))
                .enumerate()
            {
                *value = F::read_native(bytes).ok_or_else(|| {
                    self.from.refused(FormatError::Element {
                        what: "values",
                        index: first + at as u64,
                        offset: offset + (at * F::BYTES) as u64,
                        value: hex(bytes),
                    })
                })?;
            }
            writer.push(values)?;
            first += values.len() as u64;
        }
        writer.finish()
    }
}
