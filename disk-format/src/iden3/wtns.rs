//! Witnesses (`.wtns`, versions 1 and 2, which differ in nothing): the value of every signal.
//!
//! Section 1 is the header: the prime of the scalars (a `u32` for its length, then its bytes), then the
//! number of values as `u32`. Section 2 holds the values, 32 bytes each: canonical integers, little-endian
//! (**not** Montgomery), below the prime. The first one is 1.
//!
//! Read a value with [`crate::native::NativeField::read_standard`], which checks its range.

use super::bytes::{
    Fields, PRIME_BYTES_MAX, Prime, check_section_bytes, check_section_bytes_max, write_prime,
};
use super::{ByteRange, FileKind, SCALAR_BYTES, Sections};
use crate::error::FormatError;
use crate::header::Curve;

/// Id of the header's section.
pub const HEADER: u32 = 1;
/// Id of the section of values.
pub const VALUES: u32 = 2;
/// Most bytes of a header, over whatever field. (Over curves that are read it has 40.)
pub const HEADER_BYTES_MAX: usize = 4 + PRIME_BYTES_MAX + 4;

/// What a witness says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The curve whose scalars the values are.
    pub curve: Curve,
    /// How many values there are: signals, the constant one included.
    pub count: u64,
}

impl Header {
    /// The bytes to read for [`Self::parse`].
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section of more than
    /// [`HEADER_BYTES_MAX`].
    pub fn range(sections: &Sections) -> Result<ByteRange, FormatError> {
        sections.check_kind(FileKind::Wtns)?;
        let range = sections.range(HEADER)?;
        check_section_bytes_max(FileKind::Wtns, HEADER, range, HEADER_BYTES_MAX)?;
        Ok(range)
    }

    /// Reads the header from the bytes of [`Self::range`].
    ///
    /// # Errors
    /// As [`Self::range`]; [`FormatError::Length`] for another number of bytes; [`FormatError::Field`] for
    /// another prime than BN254's and BLS12-381's, and for no values.
    pub fn parse(sections: &Sections, bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new("the header of the .wtns file", Self::range(sections)?, bytes)?;
        let curve = fields.curve(Prime::Scalar)?;
        let offset = fields.offset();
        let count = u64::from(fields.u32()?);
        if count == 0 {
            return Err(FormatError::Field {
                what: "number of values",
                offset,
                value: count.to_string(),
                remedy: "a witness has at least the constant one; make it again",
            });
        }
        fields.finish()?;
        Ok(Self { curve, count })
    }

    /// Where the values are: [`Self::count`] times 32 bytes.
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] unless the section has that length.
    pub fn values(&self, sections: &Sections) -> Result<ByteRange, FormatError> {
        sections.check_kind(FileKind::Wtns)?;
        let range = sections.range(VALUES)?;
        let expected_bytes = self.count.saturating_mul(SCALAR_BYTES as u64);
        check_section_bytes(FileKind::Wtns, VALUES, range, expected_bytes)?;
        Ok(range)
    }

    /// Appends the content of section 1.
    ///
    /// # Errors
    /// [`FormatError::Field`] for more than 2^32 - 1 values.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let count = u32::try_from(self.count).map_err(|_| FormatError::Field {
            what: "number of values",
            offset: out.len() as u64,
            value: self.count.to_string(),
            remedy: "a .wtns file has at most 2^32 - 1",
        })?;
        write_prime(self.curve, Prime::Scalar, out);
        out.extend(count.to_le_bytes());
        Ok(())
    }
}
