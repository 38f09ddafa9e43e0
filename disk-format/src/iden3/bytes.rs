//! Reading the fields of a header in order, with errors that know where; and the primes that name a curve.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::{ByteRange, FileKind};
use crate::error::{FormatError, PointFault, hex};
use crate::header::Curve;
use crate::native::{NativeField, point_bytes, read_point};

/// The bytes of a section, read from the start on.
pub(super) struct Fields<'a> {
    what: &'static str,
    range: ByteRange,
    bytes: &'a [u8],
    at: usize,
}

/// Which of a curve's primes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prime {
    /// Of the coordinates of points.
    Base,
    /// Of the scalars.
    Scalar,
}

impl Prime {
    const fn of(self, curve: Curve) -> &'static [u64] {
        match self {
            Self::Base => curve.base_modulus(),
            Self::Scalar => curve.scalar_modulus(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Base => "the prime of the coordinates",
            Self::Scalar => "the prime of the scalars",
        }
    }
}

/// The curves that these files are read for.
const CURVES: [Curve; 2] = [Curve::Bn254, Curve::Bls12381];
/// The longest prime that an error shows, in bytes.
pub(super) const PRIME_BYTES_MAX: usize = 96;

impl<'a> Fields<'a> {
    /// `bytes` are those of `range`. `what` is for errors.
    pub(super) fn new(what: &'static str, range: ByteRange, bytes: &'a [u8]) -> Result<Self, FormatError> {
        if bytes.len() as u64 != range.bytes {
            return Err(FormatError::Length {
                what,
                expected_bytes: range.bytes,
                actual_bytes: bytes.len() as u64,
                remedy: "give the bytes of its range in the file",
            });
        }
        Ok(Self {
            what,
            range,
            bytes,
            at: 0,
        })
    }

    /// Offset in the file of the next field.
    pub(super) const fn offset(&self) -> u64 {
        self.range.offset.saturating_add(self.at as u64)
    }

    /// The next bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let rest = &self.bytes[self.at..];
        let Some((taken, _)) = rest.split_at_checked(count) else {
            return Err(FormatError::Length {
                what: self.what,
                expected_bytes: (self.at as u64).saturating_add(count as u64),
                actual_bytes: self.range.bytes,
                remedy: "it is cut short: the file is damaged, get it again",
            });
        };
        self.at += count;
        Ok(taken)
    }

    /// As many of the next bytes as there are in the array.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn u8(&mut self) -> Result<u8, FormatError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// A number, and so many parts, each with its offset. `part` gets the part's own number, from 1 on.
    pub(super) fn counted<T>(
        &mut self,
        part: impl Fn(&mut Self, u64) -> Result<T, FormatError>,
    ) -> Result<Vec<(u64, T)>, FormatError> {
        let count = self.u32()?;
        // No room is made for a number that is in the file.
        let mut parts = Vec::new();
        for number in 1..=u64::from(count) {
            let offset = self.offset();
            parts.push((offset, part(self, number)?));
        }
        Ok(parts)
    }

    /// A point that is on the curve, in the subgroup of prime order and not infinity. `what` and `index` are
    /// for errors.
    pub(super) fn point<P: SWCurveConfig>(
        &mut self,
        what: &'static str,
        index: u64,
    ) -> Result<Affine<P>, FormatError>
    where
        P::BaseField: NativeField,
    {
        let offset = self.offset();
        let bytes = self.take(point_bytes::<P>())?;
        let refuse = |fault| FormatError::Point {
            what,
            index,
            offset,
            fault,
            value: hex(bytes),
        };
        let point = read_point::<P>(bytes).map_err(refuse)?;
        if point.is_zero() {
            return Err(refuse(PointFault::Infinity));
        }
        if !point.is_in_correct_subgroup_assuming_on_curve() {
            return Err(refuse(PointFault::NotInSubgroup));
        }
        Ok(point)
    }

    /// A prime with its length before it, and the first curve that has it. Two curves that are read have no
    /// prime in common.
    pub(super) fn curve(&mut self, prime: Prime) -> Result<Curve, FormatError> {
        let offset = self.offset();
        let prime_bytes = self.u32()? as usize;
        let refuse = |value| FormatError::Field {
            what: prime.name(),
            offset,
            value,
            remedy: "files over BN254 and BLS12-381 are read; make it for one of these curves",
        };
        if prime_bytes > PRIME_BYTES_MAX {
            return Err(refuse(format!("{prime_bytes} bytes long")));
        }
        let value = self.take(prime_bytes)?;
        let is_same = |curve: &Curve| value == prime_bytes_of(*curve, prime);
        CURVES.into_iter().find(is_same).ok_or_else(|| {
            let big_endian: Vec<u8> = value.iter().rev().copied().collect();
            refuse(format!("0x{}", hex(&big_endian)))
        })
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// That nothing is left.
    pub(super) fn finish(self) -> Result<(), FormatError> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(FormatError::Length {
            what: self.what,
            expected_bytes: self.at as u64,
            actual_bytes: self.range.bytes,
            remedy: "bytes follow its last field: the file is damaged, or of another proof system",
        })
    }
}

fn prime_bytes_of(curve: Curve, prime: Prime) -> Vec<u8> {
    let limbs = prime.of(curve);
    limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// Writes a prime with its length before it.
pub(super) fn write_prime(curve: Curve, prime: Prime, out: &mut Vec<u8>) {
    let bytes = prime_bytes_of(curve, prime);
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// That a section has the length that the header gives.
pub(super) fn check_section_bytes(
    file: FileKind,
    section: u32,
    range: ByteRange,
    expected_bytes: u64,
) -> Result<(), FormatError> {
    if range.bytes == expected_bytes {
        return Ok(());
    }
    Err(FormatError::SectionLength {
        file: file.extension(),
        section,
        name: file.section_name(section),
        offset: range.offset,
        expected_bytes,
        actual_bytes: range.bytes,
        remedy: "the section does not belong to the file's header; the file is damaged or incomplete, get it again",
    })
}

/// That a section that is read at once has at most this many bytes.
pub(super) fn check_section_bytes_max(
    file: FileKind,
    section: u32,
    range: ByteRange,
    bytes_max: usize,
) -> Result<(), FormatError> {
    check_section_bytes(file, section, range, range.bytes.min(bytes_max as u64))
}
