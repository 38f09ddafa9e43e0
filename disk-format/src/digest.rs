//! Digests: one per frame, bound to its place, and one root that names the file.
//!
//! - key of a file's frames: `BLAKE3-derive-key(context, file_id || epoch)`
//! - digest of frame i: `BLAKE3-keyed(key, frame bytes || i as u64 LE)`. The index comes last, so that the
//!   frame is hashed from an aligned start and at full width.
//! - root: `BLAKE3-derive-key(context, header without its checksum and with a zero root || digests in order)`
//! - content digest: `BLAKE3-derive-key(context, kind || curve || for each section: content || basis ||
//!   count || label || elements)`; it names what a file holds, not the file, and is not kept in it.
//!
//! A flipped bit, a torn write, two swapped frames, and a frame of another file or of an earlier epoch all
//! change a digest; another digest table changes the root. Source: BLAKE3 paper, section 2 (modes).

use crate::error::{FormatError, hex};
use crate::geometry::DIGEST_BYTES;
use crate::header::{CHECKSUM_AT, Header, ROOT_AT, Section};

const FRAME_KEY_CONTEXT: &str = "spillproof-format 2026-11-20 frame digests v1";
const ROOT_CONTEXT: &str = "spillproof-format 2026-11-20 container root v1";
const CONTENT_CONTEXT: &str = "spillproof-format 2026-11-26 content v1";

/// Makes the content digest of a container: feed it each section, in order, and after each its elements.
#[derive(Debug, Clone)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    /// Starts with what the header says of the content: neither the file's id nor the length of its frames.
    pub fn new(header: &Header) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CONTENT_CONTEXT);
        hasher.update(&header.kind().code().to_le_bytes());
        hasher.update(&header.curve().code().to_le_bytes());
        Self(hasher)
    }

    /// The next section.
    pub fn section(&mut self, section: &Section) -> &mut Self {
        self.0.update(&section.content.code().to_le_bytes());
        self.0.update(&section.basis.code().to_le_bytes());
        self.0.update(&section.elements.to_le_bytes());
        let label = section.label.as_str().as_bytes();
        self.0.update(&(label.len() as u64).to_le_bytes()).update(label);
        self
    }

    /// More elements of it.
    pub fn elements(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    /// The digest.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// The key of one file's frame digests, for one epoch.
#[derive(Clone)]
pub struct FrameKey([u8; 32]);

impl FrameKey {
    /// The key for a file's id and epoch.
    pub fn new(file_id: [u8; 16], epoch: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(FRAME_KEY_CONTEXT);
        hasher.update(&file_id).update(&epoch.to_le_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// The key for the file that the header is of.
    pub fn of(header: &Header) -> Self {
        Self::new(header.file_id(), header.epoch())
    }

    /// The digest of a whole frame (padding included) at its index in the file. One thread, no allocation.
    pub fn digest(&self, index: u64, frame: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(frame).update(&index.to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

impl std::fmt::Debug for FrameKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrameKey")
    }
}

/// Makes the root of a container: feed it the digests in frame order.
#[derive(Debug, Clone)]
pub struct RootHasher {
    hasher: blake3::Hasher,
    fed: u64,
    frames: u64,
}

impl RootHasher {
    /// Starts with the header; its `root` field does not matter.
    pub fn new(header: &Header) -> Self {
        let mut bytes = header.encode();
        bytes[ROOT_AT..ROOT_AT + 32].fill(0);
        let mut hasher = blake3::Hasher::new_derive_key(ROOT_CONTEXT);
        hasher.update(&bytes[..CHECKSUM_AT]);
        Self {
            hasher,
            fed: 0,
            frames: header.frames(),
        }
    }

    /// The next frame's digest.
    pub fn update(&mut self, digest: &[u8; 32]) -> &mut Self {
        self.hasher.update(digest);
        self.fed += 1;
        self
    }

    /// The root.
    ///
    /// # Errors
    /// [`FormatError::Length`] unless every frame's digest was fed.
    pub fn finish(&self) -> Result<[u8; 32], FormatError> {
        if self.fed == self.frames {
            return Ok(*self.hasher.finalize().as_bytes());
        }
        Err(FormatError::Length {
            what: "the digest table",
            expected_bytes: self.frames.saturating_mul(DIGEST_BYTES),
            actual_bytes: self.fed.saturating_mul(DIGEST_BYTES),
            remedy: "feed one digest for each frame, in order",
        })
    }

    /// Whether the root is the one in the header.
    ///
    /// # Errors
    /// [`FormatError::RootDiffers`], or as [`RootHasher::finish`].
    pub fn verify(&self, header: &Header) -> Result<(), FormatError> {
        let computed = self.finish()?;
        if computed == header.root {
            return Ok(());
        }
        Err(FormatError::RootDiffers {
            offset: ROOT_AT as u64,
            value: hex(&header.root),
            computed: hex(&computed),
        })
    }
}
