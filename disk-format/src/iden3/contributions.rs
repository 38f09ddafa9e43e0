//! The contributions to a Groth16 key: section 10 of a `.zkey` file.
//!
//! ```text
//! [hash of the circuit: 64 bytes][contributions: u32] then for each contribution
//! [delta after it: G1][s: G1][s·x: G1][sp·x: G2][hash of the transcript: 64 bytes][kind: u32][parameters' bytes: u32][parameters]
//! ```
//!
//! x is the contributor's secret, s a random point, sp one that follows from the transcript. A parameter is
//! its id (one byte), then: 1, a name, with its length in one byte before it; 2, the log2 of a beacon's
//! iterations, in one byte; 3, a beacon, with its length in one byte before it. Ids are in ascending order. A
//! contribution of kind 1 is made of a beacon, one of kind 0 of a secret.
//!
//! Points are in the native form ([`crate::native`]).

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::bytes::{Fields, check_section_bytes, check_section_bytes_max};
use super::{ByteRange, FileKind, Sections, zkey};
use crate::error::FormatError;
use crate::native::{NativeField, point_bytes, write_point};

/// Length of a hash in bytes.
pub const HASH_BYTES: usize = 64;
/// Length of the circuit's hash and the number of contributions in bytes.
pub const PREFIX_BYTES: usize = HASH_BYTES + 4;
/// Most bytes of the section: those of some 20,000 contributions.
pub const SECTION_BYTES_MAX: usize = 16 << 20;
/// Most characters (UTF-16 units) of a contributor's name.
pub const NAME_CHARACTERS_MAX: usize = 64;

const NAME: u8 = 1;
const ITERATIONS_LOG: u8 = 2;
const BEACON: u8 = 3;
const OF_SECRET: u32 = 0;
const OF_BEACON: u32 = 1;

/// One contribution, with points of G1 and of G2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution<P1, P2> {
    /// The contributor's name.
    pub name: Option<String>,
    /// The beacon that the secret follows from, if it does.
    pub beacon: Option<Beacon>,
    /// The key's delta after it.
    pub delta_after: P1,
    /// A random point.
    pub s: P1,
    /// The same, times the secret.
    pub sx: P1,
    /// The point that follows from the transcript, times the secret.
    pub spx: P2,
    /// The hash of the circuit's hash, all contributions before, `s` and `sx`.
    pub transcript: [u8; HASH_BYTES],
}

/// A public random value, which hashed often enough gives a contribution that needs no trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beacon {
    /// log2 of the number of times that it is hashed.
    pub iterations_log: u8,
    /// The value: at most 255 bytes.
    pub value: Vec<u8>,
}

/// The section's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributions<P1, P2> {
    /// The hash of the circuit and the powers of tau.
    pub circuit_hash: [u8; HASH_BYTES],
    /// The contributions, each with the offset of its first byte in the file.
    pub list: Vec<(u64, Contribution<P1, P2>)>,
}

/// The bytes to read for [`Contributions::parse`].
///
/// # Errors
/// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section without room for a hash and
/// a number, or of more than [`SECTION_BYTES_MAX`].
pub fn range(sections: &Sections) -> Result<ByteRange, FormatError> {
    range_within(sections, (FileKind::Zkey, zkey::CONTRIBUTIONS), PREFIX_BYTES)
}

/// The bytes of a section of contributions, of `bytes_min` to [`SECTION_BYTES_MAX`].
pub(super) fn range_within(
    sections: &Sections,
    (file, section): (FileKind, u32),
    bytes_min: usize,
) -> Result<ByteRange, FormatError> {
    sections.check_kind(file)?;
    let range = sections.range(section)?;
    check_section_bytes_max(file, section, range, SECTION_BYTES_MAX)?;
    check_section_bytes(file, section, range, range.bytes.max(bytes_min as u64))?;
    Ok(range)
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> Contributions<Affine<G1>, Affine<G2>>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    /// Reads the bytes of [`range`]. Every point is checked: on the curve, in the subgroup of prime order,
    /// not infinity. Whether the contributions follow from one another is not.
    ///
    /// # Errors
    /// [`FormatError::Length`], [`FormatError::Point`]; [`FormatError::Unknown`] for a kind or a parameter
    /// that is none; [`FormatError::Field`] for parameters that contradict the kind, or are in another order.
    pub fn parse(range: ByteRange, bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new("the section of contributions", range, bytes)?;
        let circuit_hash = fields.array()?;
        let list = fields.counted(Contribution::parse)?;
        fields.finish()?;
        Ok(Self { circuit_hash, list })
    }
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> Contribution<Affine<G1>, Affine<G2>>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    fn parse(fields: &mut Fields<'_>, number: u64) -> Result<Self, FormatError> {
        let delta_after = fields.point("delta after a contribution", number)?;
        let s = fields.point("s of a contribution", number)?;
        let sx = fields.point("s·x of a contribution", number)?;
        let spx = fields.point("sp·x of a contribution", number)?;
        let transcript = fields.array()?;
        let Origin { name, beacon } = Origin::parse(fields)?;
        Ok(Self {
            name,
            beacon,
            delta_after,
            s,
            sx,
            spx,
            transcript,
        })
    }

    /// Appends its bytes. A name is cut to [`NAME_CHARACTERS_MAX`], a beacon to 255 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for point in [&self.delta_after, &self.s, &self.sx] {
            push_point(point, out);
        }
        push_point(&self.spx, out);
        out.extend(self.transcript);
        push_origin(self.name.as_deref(), self.beacon.as_ref(), out);
    }
}

pub(super) fn push_point<P: SWCurveConfig>(point: &Affine<P>, out: &mut Vec<u8>)
where
    P::BaseField: NativeField,
{
    let start = out.len();
    out.resize(start + point_bytes::<P>(), 0);
    write_point(point, &mut out[start..]);
}

/// A parameter with its length in one byte.
fn push_with_length(id: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(usize::from(u8::MAX))];
    out.extend([id, bytes.len() as u8]);
    out.extend(bytes);
}

/// The start of a name that has at most [`NAME_CHARACTERS_MAX`] characters.
fn short_name(name: &str) -> &str {
    let mut units = 0;
    let end = name.char_indices().find(|(_, character)| {
        units += character.len_utf16();
        units > NAME_CHARACTERS_MAX
    });
    &name[..end.map_or(name.len(), |(at, _)| at)]
}

/// The end of a contribution: its kind and its parameters.
pub(super) struct Origin {
    pub name: Option<String>,
    pub beacon: Option<Beacon>,
}

impl Origin {
    pub fn parse(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        let kind_offset = fields.offset();
        let kind = fields.u32()?;
        if kind != OF_SECRET && kind != OF_BEACON {
            return Err(FormatError::Unknown {
                what: "kind of a contribution",
                offset: kind_offset,
                value: kind.into(),
                remedy: "0 is one of a secret, 1 of a beacon: the file is damaged, or a newer tool wrote it",
            });
        }
        let offset = fields.offset() + 4;
        let parameters_bytes = fields.u32()? as usize;
        let range = ByteRange {
            offset,
            bytes: parameters_bytes as u64,
        };
        let parameters = Fields::new(
            "the parameters of a contribution",
            range,
            fields.take(parameters_bytes)?,
        )?;
        let parameters = Parameters::parse(parameters)?;
        let beacon = match (kind, parameters.iterations_log, parameters.beacon) {
            (OF_SECRET, None, None) => None,
            (OF_BEACON, Some(iterations_log), Some(value)) => Some(Beacon {
                iterations_log,
                value,
            }),
            _ => {
                return Err(FormatError::Field {
                    what: "kind of a contribution",
                    offset: kind_offset,
                    value: kind.to_string(),
                    remedy: "one of kind 1 has a beacon and a number of iterations, and no other one has: the file is damaged, get it again",
                });
            }
        };
        Ok(Self {
            name: parameters.name,
            beacon,
        })
    }
}

/// What [`Origin::parse`] reads.
pub(super) fn push_origin(name: Option<&str>, beacon: Option<&Beacon>, out: &mut Vec<u8>) {
    let kind = if beacon.is_some() { OF_BEACON } else { OF_SECRET };
    out.extend(kind.to_le_bytes());
    let mut parameters = Vec::new();
    if let Some(name) = name {
        push_with_length(NAME, short_name(name).as_bytes(), &mut parameters);
    }
    if let Some(Beacon {
        iterations_log,
        value,
    }) = beacon
    {
        parameters.extend([ITERATIONS_LOG, *iterations_log]);
        push_with_length(BEACON, value, &mut parameters);
    }
    out.extend((parameters.len() as u32).to_le_bytes());
    out.extend(parameters);
}

/// What a contribution has besides its points.
#[derive(Default)]
struct Parameters {
    name: Option<String>,
    iterations_log: Option<u8>,
    beacon: Option<Vec<u8>>,
}

impl Parameters {
    fn parse(mut fields: Fields<'_>) -> Result<Self, FormatError> {
        let mut parameters = Self::default();
        let mut id_before = 0;
        while !fields.is_at_end() {
            let offset = fields.offset();
            let id = fields.u8()?;
            if id <= id_before {
                return Err(FormatError::Field {
                    what: "id of a parameter of a contribution",
                    offset,
                    value: id.to_string(),
                    remedy: "ids are in ascending order, from 1 on: the file is damaged, get it again",
                });
            }
            id_before = id;
            match id {
                NAME => {
                    let length = fields.u8()?.into();
                    // Names of other tools may be cut within a character.
                    parameters.name = Some(String::from_utf8_lossy(fields.take(length)?).into_owned());
                }
                ITERATIONS_LOG => parameters.iterations_log = Some(fields.u8()?),
                BEACON => {
                    let length = fields.u8()?.into();
                    parameters.beacon = Some(fields.take(length)?.to_vec());
                }
                _ => {
                    return Err(FormatError::Unknown {
                        what: "parameter of a contribution",
                        offset,
                        value: id.into(),
                        remedy: "1 to 3 are known: the file is damaged, or a newer tool wrote it",
                    });
                }
            }
        }
        Ok(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{G1Affine, G2Affine};
    use ark_ec::{AffineRepr, CurveGroup};

    type OfBn254 = Contribution<G1Affine, G2Affine>;

    fn contribution(name: Option<&str>, beacon: Option<Beacon>) -> OfBn254 {
        let g1 = G1Affine::generator();
        Contribution {
            name: name.map(str::to_owned),
            beacon,
            delta_after: g1,
            s: (g1 + g1).into_affine(),
            sx: (g1 + g1 + g1).into_affine(),
            spx: G2Affine::generator(),
            transcript: [7; HASH_BYTES],
        }
    }

    fn section(contributions: &[OfBn254]) -> Vec<u8> {
        let mut bytes = vec![9; HASH_BYTES];
        bytes.extend((contributions.len() as u32).to_le_bytes());
        for contribution in contributions {
            contribution.encode(&mut bytes);
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Contributions<G1Affine, G2Affine>, FormatError> {
        let range = ByteRange {
            offset: 100,
            bytes: bytes.len() as u64,
        };
        Contributions::parse(range, bytes)
    }

    fn all() -> [OfBn254; 4] {
        let beacon = || Beacon {
            iterations_log: 10,
            value: vec![1, 2, 3],
        };
        [
            contribution(None, None),
            contribution(Some("first"), None),
            contribution(None, Some(beacon())),
            contribution(Some("last"), Some(beacon())),
        ]
    }

    #[test]
    fn contributions_are_read_back() {
        let bytes = section(&all());
        let read = parse(&bytes).expect("what was written");
        assert_eq!(read.circuit_hash, [9; HASH_BYTES]);
        let (offsets, list): (Vec<_>, Vec<_>) = read.list.into_iter().unzip();
        assert_eq!(list, all());
        let first_bytes = 3 * 64 + 128 + HASH_BYTES as u64 + 8;
        assert_eq!(offsets[..2], [168, 168 + first_bytes]);
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        // The 64th unit is the first of a pair.
        let long = "𝄞é".repeat(40);
        let bytes = section(&[contribution(Some(&long), None)]);
        let read = parse(&bytes).expect("what was written");
        let name = read.list[0].1.name.clone().expect("a name");
        assert_eq!(name.encode_utf16().count(), 64 - 1);
        assert!(long.starts_with(&name));
    }

    #[test]
    fn damaged_sections_are_refused() {
        let bytes = section(&all());
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end]).is_err(), "cut at {end}");
        }
        // A kind that does not belong to the parameters, an unknown one, ids that descend or are unknown, a
        // point that is none.
        let kind_at = PREFIX_BYTES + 3 * 64 + 128 + HASH_BYTES;
        for (at, value) in [(kind_at, 1), (kind_at, 2), (PREFIX_BYTES, 0xff)] {
            let mut changed = bytes.clone();
            changed[at] = value;
            assert!(parse(&changed).is_err(), "{value} at {at}");
        }
        let named = section(&all()[1..2]);
        for id in [0, 2, 4] {
            let mut changed = named.clone();
            changed[kind_at + 8] = id;
            assert!(parse(&changed).is_err(), "parameter {id}");
        }
        let mut more = bytes;
        more.push(0);
        assert!(parse(&more).is_err(), "a byte more");
    }
}
