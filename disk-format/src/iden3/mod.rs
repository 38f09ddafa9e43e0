//! Files in iden3's container format, which circom and snarkjs write.
//!
//! ```text
//! [magic: 4 bytes][version: u32][sections: u32] then for each section [id: u32][bytes: u64][content]
//! ```
//!
//! Integers are little-endian, sections are in any order. The story: [`SectionWalk`] finds the sections of a
//! file from its length and the few bytes that it asks for; a module for each kind of file reads what the
//! sections hold:
//!
//! - [`zkey`]: Groth16 proving keys, and the [`contributions`] to them; [`wtns`]: witnesses; [`r1cs`]:
//!   constraint systems; [`ptau`]: powers of tau, and the [`history`] of contributions to them.
//!
//! Nothing in here reads a file: a parser says which bytes it needs ([`ByteRange`]), and the caller hands
//! them in. Offsets are in bytes from the start of the file. A number in a file is compared with the file's
//! length or with limits before it is used, and none drives an allocation: memory is at most [`SECTIONS_MAX`]
//! entries of a table, and the bytes that the caller holds.
//!
//! The facts about the formats are from iden3's description of r1cs (`doc/r1cs_bin_format.md` of
//! iden3/r1csfile) and from files.

mod bytes;
pub mod contributions;
pub mod history;
pub mod ptau;
pub mod r1cs;
mod sections;
pub mod wtns;
pub mod zkey;

pub use sections::{FileKind, SectionWalk, Sections, write_prefix, write_section_prefix};

use crate::error::FormatError;
use crate::header::Curve;

/// Most sections in one file. The files that exist have at most some twenty.
pub const SECTIONS_MAX: u32 = 64;
/// Length of magic, version and number of sections in bytes.
pub const PREFIX_BYTES: usize = 12;
/// Length of a section's id and length in bytes.
pub const SECTION_PREFIX_BYTES: usize = 12;
/// Length of a scalar in bytes, on every curve that is read.
pub const SCALAR_BYTES: usize = 32;
/// The largest log2 of a domain that is read: that of BN254's scalar field.
pub const LOG_DOMAIN_MAX: u32 = 28;

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// Offset of the first one.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

impl ByteRange {
    /// Offset of the first byte after it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// An array of points in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PointRange {
    /// Its name, for errors.
    pub what: &'static str,
    /// Offset of the first point in bytes.
    pub offset: u64,
    /// How many points.
    pub count: u64,
    /// Length of a point in bytes.
    pub point_bytes: u64,
}

impl PointRange {
    /// Its bytes.
    #[must_use]
    pub const fn byte_range(&self) -> ByteRange {
        ByteRange {
            offset: self.offset,
            bytes: self.count.saturating_mul(self.point_bytes),
        }
    }

    /// Offset of a point in bytes, for errors and for reading.
    #[must_use]
    pub const fn point_offset(&self, index: u64) -> u64 {
        self.offset.saturating_add(index.saturating_mul(self.point_bytes))
    }
}

/// A matrix of a rank-1 constraint system, (A·w) o (B·w) = C·w.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Matrix {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The product.
    C,
}

/// Whether the little-endian integer in `bytes` is below the modulus of the curve's scalars: whether it is a
/// canonical scalar (`wtns`, `r1cs`), or a scaled one that is reduced (`zkey`).
#[must_use]
#[inline]
pub fn is_reduced(curve: Curve, bytes: &[u8; SCALAR_BYTES]) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    let limbs = words.iter().rev().map(|word| u64::from_le_bytes(*word));
    limbs.lt(curve.scalar_modulus().iter().rev().copied())
}

/// [`is_reduced`], or an error. `what` names the array, `index` is in it, `offset` is that of the first byte.
///
/// # Errors
/// [`FormatError::Element`].
#[inline]
pub fn check_scalar(
    curve: Curve,
    what: &'static str,
    index: u64,
    offset: u64,
    bytes: &[u8; SCALAR_BYTES],
) -> Result<(), FormatError> {
    if is_reduced(curve, bytes) {
        return Ok(());
    }
    Err(FormatError::Element {
        what,
        index,
        offset,
        value: crate::error::hex(bytes),
    })
}
