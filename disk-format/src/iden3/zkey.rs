//! Groth16 proving keys (`.zkey`, version 1).
//!
//! | section | content |
//! |---:|---|
//! | 1 | the proof system, `u32`: 1 is Groth16 |
//! | 2 | the header ([`Header`]) |
//! | 3 | IC: public + 1 points of G1 |
//! | 4 | the number of coefficients, `u32`, then the coefficients ([`Coefficient`]) |
//! | 5, 6, 7 | A, B in G1, B in G2: a point for each signal |
//! | 8 | C: a point of G1 for each private signal |
//! | 9 | H: a point of G1 for each row of the domain |
//! | 10 | hash of the circuit, contributions |
//!
//! Points are in the native form ([`crate::native`]: x, then y; limbs in Montgomery form; infinity is zero
//! bytes). There is no matrix C: its part of a proof follows from A·w and B·w. Coefficients v are held as
//! v·R² mod r, so that one Montgomery product with a canonical witness value w gives v·w in Montgomery form.
//! The entries of A in the rows after the last constraint put the public signals, one in each row, into A
//! alone.
//!
//! The header holds the primes of coordinates and scalars (a `u32` for the length of each, then its bytes),
//! then as `u32` the numbers of signals and of public signals and the size of the domain, then alpha1, beta1,
//! beta2, gamma2, delta1, delta2.

use std::fmt;

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::bytes::{Fields, Prime, check_section_bytes, check_section_bytes_max, write_prime};
use super::{ByteRange, FileKind, LOG_DOMAIN_MAX, PointRange, SCALAR_BYTES, Sections, check_scalar};
use crate::curve::GroupId;
use crate::element::Element;
use crate::error::FormatError;
use crate::header::Curve;
use crate::native::{NativeField, write_point};

/// Id of the section that names the proof system.
pub const PROTOCOL: u32 = 1;
/// Id of the header's section.
pub const HEADER: u32 = 2;
/// Id of the section of IC.
pub const IC: u32 = 3;
/// Id of the section of coefficients.
pub const COEFFICIENTS: u32 = 4;
/// Id of the section of A.
pub const A: u32 = 5;
/// Id of the section of B in G1.
pub const B1: u32 = 6;
/// Id of the section of B in G2.
pub const B2: u32 = 7;
/// Id of the section of C.
pub const C: u32 = 8;
/// Id of the section of H.
pub const H: u32 = 9;
/// Id of the section of the circuit's hash and the contributions.
pub const CONTRIBUTIONS: u32 = 10;

/// Sections of a key.
pub const SECTIONS: u32 = 10;
/// Length of a coefficient in bytes.
pub const COEFFICIENT_BYTES: usize = 12 + SCALAR_BYTES;
/// The number that stands for Groth16 in section 1.
pub const GROTH16: u32 = 1;
/// Length of the points in the header over the curve with the longest ones, in bytes: three of G1, three of
/// G2.
const POINTS_BYTES_MAX: usize = 3 * 96 + 3 * 192;
/// Most bytes of a header. Those of Groth16 keys have 660 (BN254) or 964 (BLS12-381); those of other proof
/// systems may be longer, and are to be refused by the system's name.
pub const HEADER_BYTES_MAX: usize = 2048;

/// What is read before the sections' lengths are known to be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderRanges {
    /// Section 1: 4 bytes.
    pub protocol: ByteRange,
    /// Section 2: at most [`HEADER_BYTES_MAX`].
    pub header: ByteRange,
    /// The first 4 bytes of section 4.
    pub coefficient_count: ByteRange,
}

impl HeaderRanges {
    /// The bytes to read for [`Header::parse`] and [`Layout::new`].
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section that is shorter or
    /// longer than such a section can be.
    pub fn of(sections: &Sections) -> Result<Self, FormatError> {
        sections.check_kind(FileKind::Zkey)?;
        let protocol = sections.range(PROTOCOL)?;
        check_section_bytes(FileKind::Zkey, PROTOCOL, protocol, 4)?;
        let header = sections.range(HEADER)?;
        check_section_bytes_max(FileKind::Zkey, HEADER, header, HEADER_BYTES_MAX)?;
        let coefficients = sections.range(COEFFICIENTS)?;
        check_section_bytes(
            FileKind::Zkey,
            COEFFICIENTS,
            coefficients,
            coefficients.bytes.max(4),
        )?;
        Ok(Self {
            protocol,
            header,
            coefficient_count: ByteRange {
                offset: coefficients.offset,
                bytes: 4,
            },
        })
    }
}

/// What a key says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    curve: Curve,
    signals: u64,
    public: u64,
    log_domain: u32,
    /// Offset in the file of the first of the points.
    points_offset: u64,
    /// alpha1, beta1, beta2, gamma2, delta1, delta2, as they are in the file; then zero.
    points: [u8; POINTS_BYTES_MAX],
}

impl Header {
    /// A header for a new key over the curve of `G1` and `G2`.
    ///
    /// # Errors
    /// [`FormatError::Field`] for groups that are not those of one such curve, and for numbers that no key
    /// has, as in [`Self::parse`].
    pub fn new<G1: SWCurveConfig, G2: SWCurveConfig>(
        signals: u64,
        public: u64,
        log_domain: u32,
        points: &VerifyingPoints<G1, G2>,
    ) -> Result<Self, FormatError>
    where
        G1::BaseField: NativeField,
        G2::BaseField: NativeField,
    {
        let mut header = Self {
            curve: curve_of::<G1, G2>()?,
            signals,
            public,
            log_domain,
            points_offset: 0,
            points: [0; POINTS_BYTES_MAX],
        };
        header.check_numbers(0)?;
        let [g1, g2] = header.point_bytes().map(|bytes| bytes as usize);
        let (beta2_at, delta1_at) = (2 * g1, 2 * g1 + 2 * g2);
        write_point(&points.alpha1, &mut header.points);
        write_point(&points.beta1, &mut header.points[g1..]);
        write_point(&points.beta2, &mut header.points[beta2_at..]);
        write_point(&points.gamma2, &mut header.points[beta2_at + g2..]);
        write_point(&points.delta1, &mut header.points[delta1_at..]);
        write_point(&points.delta2, &mut header.points[delta1_at + g1..]);
        Ok(header)
    }

    /// Reads the header from the bytes of [`HeaderRanges::protocol`] and [`HeaderRanges::header`]. Whether
    /// the points are points is [`Self::verifying_points`].
    ///
    /// # Errors
    /// As [`HeaderRanges::of`]; [`FormatError::Length`] for another number of bytes; [`FormatError::Unknown`]
    /// for a key of PLONK, FFLONK or another proof system; [`FormatError::Field`] for other primes than
    /// BN254's and BLS12-381's, a domain that is no power of two or has more than 2^28 rows, or not more
    /// signals and rows than public signals.
    pub fn parse(sections: &Sections, protocol: &[u8], header: &[u8]) -> Result<Self, FormatError> {
        let ranges = HeaderRanges::of(sections)?;
        let mut fields = Fields::new("the section of the proof system", ranges.protocol, protocol)?;
        check_protocol(ranges.protocol.offset, fields.u32()?)?;
        fields.finish()?;

        let mut fields = Fields::new("the header of the .zkey file", ranges.header, header)?;
        let curve = fields.curve(Prime::Base)?;
        let scalars_offset = fields.offset();
        let scalars = fields.curve(Prime::Scalar)?;
        if scalars != curve {
            return Err(FormatError::Field {
                what: "the prime of the scalars",
                offset: scalars_offset,
                value: format!("that of {scalars:?}"),
                remedy: "it belongs to another curve than the prime of the coordinates: the file is damaged, get it again",
            });
        }
        let numbers_offset = fields.offset();
        let [signals, public] = [u64::from(fields.u32()?), u64::from(fields.u32()?)];
        let domain_offset = fields.offset();
        let log_domain = log_domain(domain_offset, fields.u32()?)?;
        let mut header = Self {
            curve,
            signals,
            public,
            log_domain,
            points_offset: fields.offset(),
            points: [0; POINTS_BYTES_MAX],
        };
        header.check_numbers(numbers_offset)?;
        let points = fields.take(header.points().len())?;
        header.points[..points.len()].copy_from_slice(points);
        fields.finish()?;
        Ok(header)
    }

    /// The curve: BN254 or BLS12-381.
    #[must_use]
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// Signals, the constant one (the first) and the public ones (after it) included: at least one more than
    /// [`Self::public`].
    #[must_use]
    pub const fn signals(&self) -> u64 {
        self.signals
    }

    /// Public signals, without the constant one.
    #[must_use]
    pub const fn public(&self) -> u64 {
        self.public
    }

    /// log2 of the rows of the domain: at most 28.
    #[must_use]
    pub const fn log_domain(&self) -> u32 {
        self.log_domain
    }

    /// Rows of the domain.
    #[must_use]
    pub const fn domain(&self) -> u64 {
        1 << self.log_domain
    }

    /// Signals that are neither public nor the constant one.
    #[must_use]
    pub const fn private(&self) -> u64 {
        // Checked when it was made.
        self.signals - self.public - 1
    }

    /// Lengths of a point of G1 and of one of G2 in bytes.
    #[must_use]
    pub const fn point_bytes(&self) -> [u64; 2] {
        let coordinate_bytes = self.curve.coordinate_bytes() as u64;
        [2 * coordinate_bytes, 4 * coordinate_bytes]
    }

    /// The points that a verifying key has, checked: on the curve, in the subgroup of prime order, and not
    /// infinity.
    ///
    /// # Errors
    /// [`FormatError::Point`] for the first that is not; [`FormatError::Field`] unless `G1` and `G2` are the
    /// groups of [`Self::curve`].
    pub fn verifying_points<G1: SWCurveConfig, G2: SWCurveConfig>(
        &self,
    ) -> Result<VerifyingPoints<G1, G2>, FormatError>
    where
        G1::BaseField: NativeField,
        G2::BaseField: NativeField,
    {
        let curve = curve_of::<G1, G2>()?;
        if curve != self.curve {
            return Err(FormatError::Field {
                what: "the curve",
                offset: 0,
                value: format!("{:?}", self.curve),
                remedy: "read the key with the types of its curve",
            });
        }
        let bytes = self.points();
        let range = ByteRange {
            offset: self.points_offset,
            bytes: bytes.len() as u64,
        };
        let mut fields = Fields::new("the points of the header", range, bytes)?;
        Ok(VerifyingPoints {
            alpha1: fields.point("alpha1", 0)?,
            beta1: fields.point("beta1", 0)?,
            beta2: fields.point("beta2", 0)?,
            gamma2: fields.point("gamma2", 0)?,
            delta1: fields.point("delta1", 0)?,
            delta2: fields.point("delta2", 0)?,
        })
    }

    /// Appends the content of section 2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_prime(self.curve, Prime::Base, out);
        write_prime(self.curve, Prime::Scalar, out);
        for number in [self.signals, self.public, self.domain()] {
            // Checked when it was made.
            out.extend((number as u32).to_le_bytes());
        }
        out.extend(self.points());
    }

    /// The bytes of the six points.
    fn points(&self) -> &[u8] {
        let [g1, g2] = self.point_bytes();
        &self.points[..3 * (g1 + g2) as usize]
    }

    /// `offset` is that of the number of signals, which the number of public signals follows.
    fn check_numbers(&self, offset: u64) -> Result<(), FormatError> {
        let refuse = |what, at, value: u64, remedy| {
            Err(FormatError::Field {
                what,
                offset: offset.saturating_add(at),
                value: value.to_string(),
                remedy,
            })
        };
        if self.log_domain > LOG_DOMAIN_MAX {
            return refuse("log2 of the domain", 8, self.log_domain.into(), DOMAIN_REMEDY);
        }
        if self.signals > u64::from(u32::MAX) {
            return refuse(
                "number of signals",
                0,
                self.signals,
                "a .zkey file has at most 2^32 - 1",
            );
        }
        if self.public >= self.signals {
            return refuse(
                "number of public signals",
                4,
                self.public,
                "there are fewer than signals, as one signal is the constant one: the file is damaged, get it again",
            );
        }
        if self.public >= self.domain() {
            return refuse(
                "number of public signals",
                4,
                self.public,
                "there are fewer than rows of the domain: the file is damaged, get it again",
            );
        }
        Ok(())
    }
}

const DOMAIN_REMEDY: &str = "it is a power of two of at most 2^28: the file is damaged, get it again";

/// The curve that has these two groups.
fn curve_of<G1: SWCurveConfig, G2: SWCurveConfig>() -> Result<Curve, FormatError> {
    match (GroupId::of::<G1>(), GroupId::of::<G2>()) {
        (Some(g1), Some(g2))
            if matches!(g1.curve, Curve::Bn254 | Curve::Bls12381)
                && (g1.curve, g1.degree, g2.degree) == (g2.curve, 1, 2) =>
        {
            Ok(g1.curve)
        }
        groups => Err(FormatError::Field {
            what: "the groups of points",
            offset: 0,
            value: format!("{groups:?}"),
            remedy: "G1 and G2 of BN254, or those of BLS12-381, are needed here",
        }),
    }
}

fn log_domain(offset: u64, domain: u32) -> Result<u32, FormatError> {
    match domain.checked_ilog2() {
        Some(log_domain) if domain.is_power_of_two() && log_domain <= LOG_DOMAIN_MAX => Ok(log_domain),
        _ => Err(FormatError::Field {
            what: "size of the domain",
            offset,
            value: domain.to_string(),
            remedy: DOMAIN_REMEDY,
        }),
    }
}

fn check_protocol(offset: u64, protocol: u32) -> Result<(), FormatError> {
    let remedy = match protocol {
        GROTH16 => return Ok(()),
        2 => {
            "this is a key of PLONK; keys of Groth16 (1) are read: make one with a Groth16 setup of the circuit"
        }
        10 => {
            "this is a key of FFLONK; keys of Groth16 (1) are read: make one with a Groth16 setup of the circuit"
        }
        _ => "keys of Groth16 (1) are read: the file is damaged, or a newer tool wrote it",
    };
    Err(FormatError::Unknown {
        what: "proof system",
        offset,
        value: u64::from(protocol),
        remedy,
    })
}

/// The points of a key that its verifying key has as well (but for beta1 and delta1, which only the prover
/// needs), without IC.
pub struct VerifyingPoints<G1: SWCurveConfig, G2: SWCurveConfig> {
    /// alpha in G1.
    pub alpha1: Affine<G1>,
    /// beta in G1.
    pub beta1: Affine<G1>,
    /// beta in G2.
    pub beta2: Affine<G2>,
    /// gamma in G2.
    pub gamma2: Affine<G2>,
    /// delta in G1.
    pub delta1: Affine<G1>,
    /// delta in G2.
    pub delta2: Affine<G2>,
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> VerifyingPoints<G1, G2> {
    /// Whether gamma and delta are the same, as in every key without a contribution: proofs can be forged
    /// with such a key. A caller warns of it.
    #[must_use]
    pub fn is_without_contribution(&self) -> bool {
        self.gamma2 == self.delta2
    }
}

// Derives would ask for the same traits on the curves' types, which have none of them.
impl<G1: SWCurveConfig, G2: SWCurveConfig> Clone for VerifyingPoints<G1, G2> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> Copy for VerifyingPoints<G1, G2> {}

impl<G1: SWCurveConfig, G2: SWCurveConfig> PartialEq for VerifyingPoints<G1, G2> {
    fn eq(&self, other: &Self) -> bool {
        let g1 = |points: &Self| [points.alpha1, points.beta1, points.delta1];
        let g2 = |points: &Self| [points.beta2, points.gamma2, points.delta2];
        g1(self) == g1(other) && g2(self) == g2(other)
    }
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> Eq for VerifyingPoints<G1, G2> {}

impl<G1: SWCurveConfig, G2: SWCurveConfig> fmt::Debug for VerifyingPoints<G1, G2> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingPoints")
            .field("alpha1", &self.alpha1)
            .field("beta1", &self.beta1)
            .field("beta2", &self.beta2)
            .field("gamma2", &self.gamma2)
            .field("delta1", &self.delta1)
            .field("delta2", &self.delta2)
            .finish()
    }
}

/// The coefficients of A and B in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoefficientRange {
    /// Offset of the first one in bytes.
    pub offset: u64,
    /// How many, of [`COEFFICIENT_BYTES`] each.
    pub count: u64,
}

impl CoefficientRange {
    /// Its bytes.
    #[must_use]
    pub const fn byte_range(&self) -> ByteRange {
        ByteRange {
            offset: self.offset,
            bytes: self.count.saturating_mul(COEFFICIENT_BYTES as u64),
        }
    }

    /// Offset of a coefficient in bytes.
    #[must_use]
    pub const fn coefficient_offset(&self, index: u64) -> u64 {
        self.offset
            .saturating_add(index.saturating_mul(COEFFICIENT_BYTES as u64))
    }
}

/// Where everything in one key is: every section has the length that the header gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// For the constant one and each public signal.
    pub ic: PointRange,
    /// The entries of A and B that are not zero.
    pub coefficients: CoefficientRange,
    /// For each signal.
    pub a: PointRange,
    /// For each signal, in G1.
    pub b1: PointRange,
    /// For each signal, in G2.
    pub b2: PointRange,
    /// For each private signal.
    pub c: PointRange,
    /// For each row of the domain.
    pub h: PointRange,
    /// Hash of the circuit and contributions, of any length, if the file has them.
    pub contributions: Option<ByteRange>,
}

impl Layout {
    /// Finds everything. `coefficient_count` are the bytes of [`HeaderRanges::coefficient_count`].
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for the first section that does not
    /// have the length that the header, or the number of coefficients, gives.
    pub fn new(
        sections: &Sections,
        header: &Header,
        coefficient_count: [u8; 4],
    ) -> Result<Self, FormatError> {
        sections.check_kind(FileKind::Zkey)?;
        let [g1, g2] = header.point_bytes();
        let points = |section, what, count: u64, point_bytes| {
            let range = sections.range(section)?;
            // Below 2^32 points of at most 192 bytes.
            check_section_bytes(FileKind::Zkey, section, range, count.saturating_mul(point_bytes))?;
            Ok(PointRange {
                what,
                offset: range.offset,
                count,
                point_bytes,
            })
        };
        let coefficients = sections.range(COEFFICIENTS)?;
        let count = u64::from(u32::from_le_bytes(coefficient_count));
        let coefficients_bytes = 4 + count * COEFFICIENT_BYTES as u64;
        check_section_bytes(FileKind::Zkey, COEFFICIENTS, coefficients, coefficients_bytes)?;
        Ok(Self {
            ic: points(IC, "IC", header.public().saturating_add(1), g1)?,
            coefficients: CoefficientRange {
                offset: coefficients.offset.saturating_add(4),
                count,
            },
            a: points(A, "A", header.signals(), g1)?,
            b1: points(B1, "B1", header.signals(), g1)?,
            b2: points(B2, "B2", header.signals(), g2)?,
            c: points(C, "C", header.private(), g1)?,
            h: points(H, "H", header.domain(), g1)?,
            contributions: sections.find(CONTRIBUTIONS),
        })
    }
}

/// One entry of A or B as a key holds it: three `u32`, then the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coefficient {
    /// 0 for A, 1 for B.
    pub matrix: u32,
    /// The row.
    pub constraint: u32,
    /// The column.
    pub signal: u32,
    /// The value times R² modulo r, as an integer, little-endian.
    pub value: [u8; SCALAR_BYTES],
}

impl Coefficient {
    /// Whether matrix, row and column exist and the value is below the modulus. `index` in the section and
    /// `offset` of the first byte in the file are for errors.
    ///
    /// # Errors
    /// [`FormatError::Coefficient`]; [`FormatError::Element`] for the value.
    #[inline]
    pub fn check(&self, index: u64, offset: u64, header: &Header) -> Result<(), FormatError> {
        let fields = [
            ("matrix", self.matrix, 2, 0),
            ("row", self.constraint, header.domain(), 4),
            ("signal", self.signal, header.signals(), 8),
        ];
        for (what, value, limit, at) in fields {
            if u64::from(value) >= limit {
                return Err(FormatError::Coefficient {
                    what,
                    index,
                    offset: offset.saturating_add(at),
                    value: u64::from(value),
                    limit,
                });
            }
        }
        let value_offset = offset.saturating_add(12);
        check_scalar(header.curve(), "coefficients", index, value_offset, &self.value)
    }
}

impl Element for Coefficient {
    const BYTES: usize = COEFFICIENT_BYTES;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let Some((&[matrix, constraint, signal], value)) =
            bytes.split_first_chunk::<12>().and_then(|(numbers, value)| {
                Some((numbers.as_chunks::<4>().0.first_chunk()?, value.first_chunk()?))
            })
        else {
            panic!("{} bytes are fewer than a coefficient has", bytes.len());
        };
        Self {
            matrix: u32::from_le_bytes(matrix),
            constraint: u32::from_le_bytes(constraint),
            signal: u32::from_le_bytes(signal),
            value: *value,
        }
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let numbers = [self.matrix, self.constraint, self.signal];
        let (numbers_out, value_out) = out[..COEFFICIENT_BYTES].split_at_mut(12);
        for (number, place) in numbers.iter().zip(numbers_out.as_chunks_mut::<4>().0) {
            *place = number.to_le_bytes();
        }
        value_out.copy_from_slice(&self.value);
    }
}
