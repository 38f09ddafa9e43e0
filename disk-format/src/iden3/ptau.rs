//! Powers of tau (`.ptau`, version 1): what the first phase of a ceremony makes.
//!
//! With p = [`Header::power`], points in the native form ([`crate::native`]):
//!
//! | section | points | what they are |
//! |---:|---|---|
//! | 1 | | the header: the prime of the coordinates (a `u32` for its length, then its bytes), p and the ceremony's p as `u32` |
//! | 2 | 2^(p+1) - 1 of G1 | tau^i |
//! | 3 | 2^p of G2 | tau^i |
//! | 4 | 2^p of G1 | alpha·tau^i |
//! | 5 | 2^p of G1 | beta·tau^i |
//! | 6 | 1 of G2 | beta |
//! | 7 | | the contributions |
//! | 12 | 2^(p+2) - 1 of G1 | Lagrange bases of 2^0, 2^1, ..., 2^(p+1) points, one after the other |
//! | 13, 14, 15 | 2^(p+1) - 1 of G2, G1, G1 | those of 2^0, ..., 2^p points, of the points in sections 3, 4 and 5 |
//!
//! Sections 12 to 15 are in files that were prepared for the second phase only: all four, or none. The basis
//! of 2^k points starts at point 2^k - 1 of its section.

use super::bytes::{
    Fields, PRIME_BYTES_MAX, Prime, check_section_bytes, check_section_bytes_max, write_prime,
};
use super::{ByteRange, FileKind, LOG_DOMAIN_MAX, PointRange, Sections};
use crate::error::FormatError;
use crate::header::Curve;

/// Id of the header's section.
pub const HEADER: u32 = 1;
/// Id of the section of powers of tau in G1.
pub const TAU_G1: u32 = 2;
/// Id of the section of powers of tau in G2.
pub const TAU_G2: u32 = 3;
/// Id of the section of alpha times powers of tau.
pub const ALPHA_TAU_G1: u32 = 4;
/// Id of the section of beta times powers of tau.
pub const BETA_TAU_G1: u32 = 5;
/// Id of the section of beta in G2.
pub const BETA_G2: u32 = 6;
/// Id of the section of contributions.
pub const CONTRIBUTIONS: u32 = 7;
/// Id of the section of Lagrange bases in G1.
pub const LAGRANGE_G1: u32 = 12;
/// Id of the section of Lagrange bases in G2.
pub const LAGRANGE_G2: u32 = 13;
/// Id of the section of alpha times Lagrange bases.
pub const ALPHA_LAGRANGE_G1: u32 = 14;
/// Id of the section of beta times Lagrange bases.
pub const BETA_LAGRANGE_G1: u32 = 15;

/// Most bytes of a header, over whatever field. (Over BN254 it has 44, over BLS12-381 60.)
pub const HEADER_BYTES_MAX: usize = 4 + PRIME_BYTES_MAX + 8;

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The curve.
    pub curve: Curve,
    /// log2 of the largest circuit's rows: 1 to 28.
    pub power: u32,
    /// The same for the ceremony's file, which this one may be a shortened copy of: at least [`Self::power`].
    pub ceremony_power: u32,
}

impl Header {
    /// The bytes to read for [`Self::parse`].
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section of more than
    /// [`HEADER_BYTES_MAX`].
    pub fn range(sections: &Sections) -> Result<ByteRange, FormatError> {
        sections.check_kind(FileKind::Ptau)?;
        let range = sections.range(HEADER)?;
        check_section_bytes_max(FileKind::Ptau, HEADER, range, HEADER_BYTES_MAX)?;
        Ok(range)
    }

    /// Reads the header from the bytes of [`Self::range`].
    ///
    /// # Errors
    /// As [`Self::range`]; [`FormatError::Length`] for another number of bytes; [`FormatError::Field`] for
    /// another prime than BN254's and BLS12-381's, a power of 0 or above 28, or a ceremony of fewer points
    /// than the file.
    pub fn parse(sections: &Sections, bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new("the header of the .ptau file", Self::range(sections)?, bytes)?;
        let curve = fields.curve(Prime::Base)?;
        let power_offset = fields.offset();
        let power = fields.u32()?;
        let ceremony_offset = fields.offset();
        let ceremony_power = fields.u32()?;
        fields.finish()?;
        let refuse = |what, offset, value: u32, remedy| FormatError::Field {
            what,
            offset,
            value: value.to_string(),
            remedy,
        };
        if power == 0 || power > LOG_DOMAIN_MAX {
            return Err(refuse(
                "log2 of the rows",
                power_offset,
                power,
                "it is from 1 to 28: the file is damaged, get it again",
            ));
        }
        if ceremony_power < power {
            return Err(refuse(
                "log2 of the ceremony's rows",
                ceremony_offset,
                ceremony_power,
                "it is at least that of the file: the file is damaged, get it again",
            ));
        }
        Ok(Self {
            curve,
            power,
            ceremony_power,
        })
    }

    /// Appends the content of section 1.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_prime(self.curve, Prime::Base, out);
        out.extend(self.power.to_le_bytes());
        out.extend(self.ceremony_power.to_le_bytes());
    }
}

/// Where everything in one file is: every section has the length that the header gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// tau^i, up to i = 2^(p+1) - 2.
    pub tau_g1: PointRange,
    /// tau^i in G2.
    pub tau_g2: PointRange,
    /// alpha·tau^i.
    pub alpha_tau_g1: PointRange,
    /// beta·tau^i.
    pub beta_tau_g1: PointRange,
    /// beta in G2.
    pub beta_g2: PointRange,
    /// Contributions, of any length, if the file has them.
    pub contributions: Option<ByteRange>,
    /// The Lagrange bases of a file that was prepared for the second phase.
    pub prepared: Option<Prepared>,
}

/// Where the Lagrange bases are: that of 1 point, of 2, of 4 and so on, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// Of [`Layout::tau_g1`], up to 2^(p+1) points.
    pub lagrange_g1: PointRange,
    /// Of [`Layout::tau_g2`], up to 2^p points.
    pub lagrange_g2: PointRange,
    /// Of [`Layout::alpha_tau_g1`], up to 2^p points.
    pub alpha_lagrange_g1: PointRange,
    /// Of [`Layout::beta_tau_g1`], up to 2^p points.
    pub beta_lagrange_g1: PointRange,
}

/// The basis of 2^k points in a section of Lagrange bases.
///
/// # Errors
/// [`FormatError::OutOfRange`] when the section has none of so many points.
pub fn basis(bases: &PointRange, k: u32) -> Result<PointRange, FormatError> {
    let points = 1u64.checked_shl(k).unwrap_or(u64::MAX);
    match points.checked_mul(2) {
        Some(end) if end - 1 <= bases.count => Ok(PointRange {
            offset: bases.point_offset(points - 1),
            count: points,
            ..*bases
        }),
        _ => Err(FormatError::OutOfRange {
            what: "Lagrange basis for log2 of the points",
            index: u64::from(k),
            count: u64::from(bases.count.saturating_add(1).checked_ilog2().unwrap_or(0)),
        }),
    }
}

impl Layout {
    /// Finds everything.
    ///
    /// # Errors
    /// [`FormatError::MissingSection`], also for one of 12 to 15 when another of them is there;
    /// [`FormatError::SectionLength`] for the first section that does not have the length that the header
    /// gives.
    pub fn new(sections: &Sections, header: &Header) -> Result<Self, FormatError> {
        sections.check_kind(FileKind::Ptau)?;
        let coordinate_bytes = u64::from(header.curve.coordinate_bytes());
        let [g1, g2] = [2 * coordinate_bytes, 4 * coordinate_bytes];
        let points = |section, what, count: u64, point_bytes| {
            let range = sections.range(section)?;
            check_section_bytes(FileKind::Ptau, section, range, count.saturating_mul(point_bytes))?;
            Ok(PointRange {
                what,
                offset: range.offset,
                count,
                point_bytes,
            })
        };
        // `power` is a public field: a larger one gives lengths that no section has.
        let domain = 1u64.checked_shl(header.power).unwrap_or(u64::MAX);
        let bases = domain.saturating_mul(2).saturating_sub(1);
        let is_prepared = (LAGRANGE_G1..=BETA_LAGRANGE_G1).any(|section| sections.find(section).is_some());
        let prepared = match is_prepared {
            false => None,
            true => Some(Prepared {
                lagrange_g1: points(
                    LAGRANGE_G1,
                    "Lagrange points in G1",
                    domain.saturating_mul(4).saturating_sub(1),
                    g1,
                )?,
                lagrange_g2: points(LAGRANGE_G2, "Lagrange points in G2", bases, g2)?,
                alpha_lagrange_g1: points(ALPHA_LAGRANGE_G1, "alpha times Lagrange points", bases, g1)?,
                beta_lagrange_g1: points(BETA_LAGRANGE_G1, "beta times Lagrange points", bases, g1)?,
            }),
        };
        Ok(Self {
            tau_g1: points(TAU_G1, "powers of tau in G1", bases, g1)?,
            tau_g2: points(TAU_G2, "powers of tau in G2", domain, g2)?,
            alpha_tau_g1: points(ALPHA_TAU_G1, "alpha times powers of tau", domain, g1)?,
            beta_tau_g1: points(BETA_TAU_G1, "beta times powers of tau", domain, g1)?,
            beta_g2: points(BETA_G2, "beta in G2", 1, g2)?,
            contributions: sections.find(CONTRIBUTIONS),
            prepared,
        })
    }
}
