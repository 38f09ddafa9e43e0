//! Bytes on disk and what they mean: containers, frames, digests, importers. No syscalls, no unsafe.
//!
//! The story, top-down:
//!
//! - [`header`]: one 4 KiB block at the start of a container says what it holds: a table of sections.
//! - [`geometry`]: where each frame, the digest table and the end of the file are. All of it follows from the
//!   header.
//! - [`curve`]: the curves by their fields.
//! - [`digest`]: each frame has a keyed digest bound to its place; one root over header and digests names the
//!   file.
//! - [`element`]: values with a fixed number of bytes; [`native`]: field elements and points as checked
//!   bytes, the same as in the memory of arkworks and halo2curves.
//! - [`srs`]: the sections of a KZG SRS; [`ipa`]: those of the parameters of inner-product
//!   commitments; [`groth16`]: those of a Groth16 proving key; [`groth16_dealt`]: those of one that is dealt
//!   to ranks.
//! - [`params_kzg`]: files of parameters that halo2 and midnight-proofs write; [`iden3`]: files that circom and
//!   snarkjs write.
//!
//! `FORMAT.md`, beside this crate's manifest, describes the container to readers in other languages.
//!
//! **Invariant**: nothing in here opens, reads or writes a file, and no length found in bytes is ever used to
//! allocate: arithmetic is checked, and limits ([`header::SECTIONS_MAX`], [`header::FILE_BYTES_MAX`]) are
//! hard.

#![warn(missing_docs)]

pub mod curve;
pub mod digest;
pub mod element;
mod error;
pub mod geometry;
pub mod groth16;
pub mod groth16_dealt;
pub mod header;
pub mod iden3;
pub mod ipa;
pub mod native;
pub mod params_kzg;
pub mod srs;

pub use curve::GroupId;
pub use digest::{ContentHasher, FrameKey, RootHasher};
pub use element::{Element, SpareBits};
pub use error::{FormatError, PointFault, hex};
pub use geometry::Geometry;
pub use header::{
    Basis, Content, Curve, HEADER_BYTES, Header, Kind, Label, Section, SectionSpec, frame_bytes_for,
};

/// Default length of a frame in bytes for columns of field elements: 512 scalars of 32 bytes. See
/// [`frame_bytes_for`].
pub const FRAME_BYTES_DEFAULT: u32 = 16384;
/// Default length of a frame in bytes for an SRS: 1024 points of 64 bytes. See [`frame_bytes_for`].
pub const SRS_FRAME_BYTES_DEFAULT: u32 = 65536;
