//! Columns that outlive the process: one file, one header, one or more columns, one root that names the file.
//!
//! A container is written beside its final name, digests and header last, synced, then renamed: a file that
//! opens was written whole. Opening reads the header and the digest table (32 bytes a frame) and checks the
//! root over both; each frame is checked when it is read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

pub use spillproof_format::SectionSpec;
use spillproof_format::{
    ContentHasher, Curve, FormatError, FrameKey, HEADER_BYTES, Header, Kind, RootHasher, Section,
};

use super::draft::Draft;
use super::frames::{Digests, Frames};
use super::tag::DIGEST_BYTES;
use super::{Column, Element, Workspace};
use crate::Error;
use crate::Result;
use crate::budget::Buffer;
use crate::error::Invalid;
use crate::storage::{File, Publish, Segment, Storage};

/// Bytes of the digest table that move at a time.
const TABLE_BYTES: usize = 256 * 1024;

/// A file of columns, opened for reading.
#[derive(Clone)]
pub struct Container {
    header: Header,
    path: PathBuf,
    frames: Arc<Frames>,
    workspace: Workspace,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("path", &self.path)
            .field("header", &self.header)
            .finish()
    }
}

impl Container {
    /// Opens `path`, and checks its header, its length and its root. No frame is read.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a file that is no container, is of a later version, or is
    /// damaged; [`Error::OverBudget`] for 32 bytes a frame.
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        let format = |source| Error::Format {
            file: path.to_path_buf(),
            source,
        };
        let file = workspace.storage.open(path)?;
        let file_bytes = file.len_bytes();
        if file_bytes < HEADER_BYTES as u64 {
            // Words it as the format does, without reading past the end.
            Header::decode_prefix(&[0; HEADER_BYTES][..file_bytes as usize]).map_err(format)?;
        }
        let mut buffer = read_at(
            &file,
            workspace.budget.buffer(HEADER_BYTES, "container header")?,
            0,
        )?;
        let header = Header::decode_prefix(&buffer).map_err(format)?;
        header.geometry().check_file_bytes(file_bytes).map_err(format)?;

        let frames = header.frames() as usize;
        let mut digests = workspace
            .budget
            .vec(frames, [0u8; DIGEST_BYTES], "frame digests")?;
        let table_bytes = header.geometry().digest_table_bytes();
        let mut root = RootHasher::new(&header);
        let mut at = 0u64;
        while at < table_bytes {
            let bytes = (table_bytes - at).min(TABLE_BYTES as u64) as usize;
            if buffer.len() != bytes {
                buffer = workspace.budget.buffer(bytes, "digest table")?;
            }
            buffer = read_at(&file, buffer, header.geometry().digest_table_offset() + at)?;
            let first = at as usize / DIGEST_BYTES;
            let (table, padding) = split_digests(&buffer, frames - first);
            for (digest, bytes) in digests[first..].iter_mut().zip(table.chunks_exact(DIGEST_BYTES)) {
                digest.copy_from_slice(bytes);
                root.update(digest);
            }
            if let Some(i) = padding.iter().position(|&byte| byte != 0) {
                return Err(format(FormatError::Field {
                    what: "padding of the digest table",
                    offset: header.geometry().digest_table_offset() + at + (table.len() + i) as u64,
                    value: padding[i].to_string(),
                    remedy: "it is zero; the file is damaged, restore it or import it again",
                }));
            }
            at += bytes as u64;
        }
        root.verify(&header).map_err(format)?;
        let key = FrameKey::of(&header);
        let frame_bytes = header.frame_bytes() as usize;
        let frames = Arc::new(Frames::in_file(
            workspace,
            (file, HEADER_BYTES as u64),
            (header.frames(), frame_bytes),
            key,
            Digests::Table(RwLock::new(digests)),
        ));
        Ok(Self {
            header,
            path: path.to_path_buf(),
            frames,
            workspace: workspace.clone(),
        })
    }

    /// What the file says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root: 32 bytes that name this file, its random id and all of its content.
    pub fn root(&self) -> [u8; 32] {
        self.header.root
    }

    /// A section as a column of `E`; `None` if there is no such section or its elements have another size.
    pub fn column<E: Element>(&self, section: &Section) -> Option<Column<E>> {
        let known = self.header.sections().contains(section);
        (known && section.element_bytes() as usize == E::BYTES).then(|| Column {
            frames: Arc::clone(&self.frames),
            first_frame: section.first_frame,
            len: section.elements,
            workspace: self.workspace.clone(),
            element: std::marker::PhantomData,
        })
    }

    /// Reads every frame and checks it; calls `progress` with the bytes checked so far.
    ///
    /// # Errors
    /// [`Error::Damaged`] for the first frame that differs,
    /// [`Error::Io`].
    pub fn verify(&self, progress: impl FnMut(u64) + Send) -> Result<()> {
        self.workspace.run(|| self.check_frames(progress))
    }

    /// The digest of the content: the same for any two files with the same elements, whereas the root names
    /// one file. Reads and checks every frame, as [`Self::verify`].
    ///
    /// # Errors
    /// As [`Self::verify`]; of a budget without room for a chunk.
    pub fn content_digest(&self, progress: impl FnMut(u64) + Send) -> Result<[u8; 32]> {
        self.workspace.run(|| self.hash_content(progress))
    }

    fn hash_content(&self, mut progress: impl FnMut(u64)) -> Result<[u8; 32]> {
        let (mut hasher, mut hashed) = (ContentHasher::new(&self.header), 0);
        for section in self.header.sections() {
            hasher.section(section);
            let bytes = self.bytes_of(section);
            let chunk = bytes.sequential_chunk();
            let mut tile = self
                .workspace
                .budget
                .vec(chunk as usize, [0u8; 1], "content of a section")?;
            let mut reader = bytes.read_ascending(chunk)?;
            while let Some(region) = reader.next_into(&mut tile)? {
                hasher.elements(tile[..region.len() as usize].as_flattened());
                hashed += region.len();
                progress(hashed);
            }
        }
        Ok(hasher.finish())
    }

    /// A section as bytes.
    fn bytes_of(&self, section: &Section) -> Column<[u8; 1]> {
        Column {
            frames: Arc::clone(&self.frames),
            first_frame: section.first_frame,
            len: section.elements * u64::from(section.element_bytes()),
            workspace: self.workspace.clone(),
            element: std::marker::PhantomData,
        }
    }

    fn check_frames(&self, mut progress: impl FnMut(u64)) -> Result<()> {
        let mut checked = 0;
        for section in self.header.sections() {
            let bytes = self.bytes_of(section);
            let mut reader = bytes.read_ascending(bytes.sequential_chunk())?;
            while let Some(region) = reader.next_checked()? {
                checked += region.len();
                progress(checked);
            }
        }
        Ok(())
    }
}

/// A container that is being written. Dropping it leaves nothing behind.
pub struct ContainerWriter {
    header: Header,
    publish: Publish,
    frames: Arc<Frames>,
    workspace: Workspace,
}

impl ContainerWriter {
    /// Starts a container that will be `path`; `parent` is the root of what it is made from, or zero.
    ///
    /// # Errors
    /// [`Error::Format`] for sections that exceed the format's limits, [`Error::Io`], [`Error::OverBudget`].
    pub fn create(
        workspace: &Workspace,
        path: &Path,
        kind: Kind,
        curve: Curve,
        frame_bytes: u32,
        parent: [u8; 32],
        sections: &[SectionSpec],
    ) -> Result<Self> {
        let mut header =
            Header::new(kind, curve, frame_bytes, rand::random(), 0, sections).map_err(|source| {
                Error::Format {
                    file: path.to_path_buf(),
                    source,
                }
            })?;
        header.parent = parent;
        let digests = Digests::in_memory(workspace, header.frames())?;
        let publish = match kind {
            Kind::Witness => workspace.storage.publish_private(path)?,
            _ => workspace.storage.publish(path)?,
        };
        Storage::check_room_for(path, header.file_bytes())?;
        publish.file().set_len(header.file_bytes())?;
        let key = FrameKey::of(&header);
        let frames = Frames::in_file(
            workspace,
            (publish.file().clone(), HEADER_BYTES as u64),
            (header.frames(), frame_bytes as usize),
            key,
            digests,
        );
        Ok(Self {
            header,
            publish,
            frames: Arc::new(frames),
            workspace: workspace.clone(),
        })
    }

    /// Marks the container: a secret behind its content is known, and proofs can be forged.
    pub fn mark_insecure(&mut self) {
        self.header.is_insecure = true;
    }

    /// The draft of the section at `index`; take each once, and finish it before [`Self::publish`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such section, or its elements have another size than `E`.
    pub fn draft<E: Element>(&self, index: usize) -> Result<Draft<E>> {
        let sections = self.header.sections();
        let section = sections.get(index).ok_or(Invalid::Index {
            what: "section",
            index: index as u64,
            count: sections.len() as u64,
        })?;
        let element_bytes = section.element_bytes() as usize;
        if element_bytes != E::BYTES {
            return Err(Invalid::ElementBytes {
                what: format!("section {index} of {}", self.frames.name()),
                given: E::BYTES,
                expected: element_bytes,
            }
            .into());
        }
        Ok(Draft::over(
            &self.workspace,
            Arc::clone(&self.frames),
            section.first_frame,
            section.elements,
        ))
    }

    /// Writes digests and header, syncs, and gives the file its name. The root it returns names the content.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a frame was never written; [`Error::Io`], after which no file of that name was
    /// made or changed.
    pub fn publish(mut self) -> Result<[u8; 32]> {
        let frames = self.header.frames() as usize;
        let table_offset = self.header.geometry().digest_table_offset();
        let table_bytes = self.header.geometry().digest_table_bytes() as usize;
        let mut root = RootHasher::new(&self.header);
        let mut buffer = self
            .workspace
            .budget
            .buffer(table_bytes.clamp(HEADER_BYTES, TABLE_BYTES), "digest table")?;
        let mut digests = [[0u8; DIGEST_BYTES]; HEADER_BYTES / DIGEST_BYTES];
        let mut at = 0usize;
        while at < table_bytes {
            let bytes = (table_bytes - at).min(buffer.len());
            buffer.fill(0);
            // The table is copied by pages: a page of digests fits the stack.
            for page in 0..bytes / HEADER_BYTES {
                let first = (at + page * HEADER_BYTES) / DIGEST_BYTES;
                let take = (frames - first).min(digests.len());
                self.frames.copy_digests(first as u64, &mut digests[..take]);
                for (i, digest) in digests[..take].iter().enumerate() {
                    if *digest == [0u8; DIGEST_BYTES] {
                        return Err(Invalid::UnwrittenFrame {
                            container: self.frames.name().to_owned(),
                            frame: (first + i) as u64,
                            frames: frames as u64,
                        }
                        .into());
                    }
                    root.update(digest);
                    let to = page * HEADER_BYTES + i * DIGEST_BYTES;
                    buffer[to..to + DIGEST_BYTES].copy_from_slice(digest);
                }
            }
            buffer = write_at(self.publish.file(), buffer, bytes, table_offset + at as u64)?;
            at += bytes;
        }
        let format = |source| Error::Format {
            file: PathBuf::from(self.publish.file().name()),
            source,
        };
        self.header.root = root.finish().map_err(format)?;
        buffer[..HEADER_BYTES].copy_from_slice(&self.header.encode());
        write_at(self.publish.file(), buffer, HEADER_BYTES, 0)?;
        self.publish.commit()?;
        Ok(self.header.root)
    }
}

fn split_digests(buffer: &[u8], digests: usize) -> (&[u8], &[u8]) {
    buffer.split_at((digests * DIGEST_BYTES).min(buffer.len()))
}

fn read_at(file: &File, buffer: Buffer, offset: u64) -> Result<Buffer> {
    let bytes = buffer.len();
    file.read(
        buffer,
        vec![Segment {
            file_offset: offset,
            buffer_offset: 0,
            bytes,
        }],
    )
    .wait()
}

fn write_at(file: &File, buffer: Buffer, bytes: usize, offset: u64) -> Result<Buffer> {
    file.write(
        buffer,
        vec![Segment {
            file_offset: offset,
            buffer_offset: 0,
            bytes,
        }],
    )
    .wait()
}
