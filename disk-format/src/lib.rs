//! Bytes on disk and what they mean: containers, frames, digests, importers. No syscalls, no unsafe.
//!
//! The story, top-down:
//!
//! - [`header`]: one 4 KiB block at the start of a container says what it holds: a table of sections.
//! - [`geometry`]: where each frame, the digest table and the end of the file are. All of it follows from the header.
//! - [`digest`]: each frame has a keyed digest bound to its place; one root over header and digests names the file.
//! - [`native`]: field elements and points as bytes, the same as in the memory of arkworks and halo2curves.
//! - [`srs`]: the sections of a KZG SRS.
//! - [`params_kzg`]: the files that halo2 users already have.
//!
//! `FORMAT.md`, beside this crate's manifest, describes the container to readers in other languages.
//!
//! **Invariant**: nothing in here opens, reads or writes a file, and no length found in bytes is ever used to allocate:
//! arithmetic is checked, and limits ([`header::SECTIONS_MAX`], [`header::FILE_BYTES_MAX`]) are hard.

#![warn(missing_docs)]

pub mod digest;
mod error;
pub mod geometry;
pub mod header;
pub mod native;
pub mod params_kzg;
pub mod srs;

pub use digest::{FrameKey, RootHasher};
pub use error::{FormatError, PointFault};
pub use geometry::Geometry;
pub use header::{Basis, Content, Curve, HEADER_BYTES, Header, Kind, Label, Section, SectionSpec};

/// Default length of a frame in bytes for columns of field elements: 512 scalars of 32 bytes.
pub const FRAME_BYTES_DEFAULT: u32 = 16384;
/// Default length of a frame in bytes for an SRS: 1024 points of 64 bytes.
pub const SRS_FRAME_BYTES_DEFAULT: u32 = 65536;
