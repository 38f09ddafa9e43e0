//! What containers of a Groth16 proving key hold that is dealt to ranks: a container of kind
//! [`Kind::Groth16Dealt`], the key, and for each rank one of kind [`Kind::Groth16Share`].
//!
//! The rows of the domain, n = 2^k, are a matrix of 2^floor(k/2) rows and n2 = 2^ceil(k/2) columns, row by row. A
//! rank has the points of `h` of some neighbouring columns, the coefficients of the same rows of the domain, and
//! the points of some neighbouring signals.
//!
//! The key: `g1`, `g2` and `ic` as in [`crate::groth16`], and `dealt`, bytes that a [`Dealt`] encodes to.
//!
//! A share, with s signals and w columns:
//!
//! | label | content | elements |
//! |---|---|---|
//! | `a`, `b_g1` | G1 | s |
//! | `b_g2` | G2 | s |
//! | `c` | G1 | s |
//! | `h` | G1 | 2^floor(k/2) w: the rank's columns, row by row |
//! | `values` | scalars | the values of the share's coefficients |
//! | `coefficients` | coefficients | as in a whole key, by ascending row, with the indices of `values` here |
//!
//! A share may have no elements in any section. The key names each share by its file and by its root, so shares of
//! two imports are told apart.
//!
//! Memory: a [`Dealt`] has at most [`RANKS_MAX`] entries, which its bytes have to contain.

use std::ops::Range;

use crate::error::{FormatError, hex};
use crate::groth16::{LOG_DOMAIN_MAX, Shape, TABLE_AT, pairing_curve, refuse};
use crate::header::{Basis, Content, Curve, Header, Kind, Label, Section, SectionSpec};

/// Most ranks of a dealt key.
pub const RANKS_MAX: usize = 1 << 12;
/// Longest name of a share in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest section `dealt` in bytes.
pub const DEALT_BYTES_MAX: u64 = (FIXED_BYTES + RANKS_MAX * (ENTRY_BYTES + NAME_BYTES_MAX)) as u64;

const VERSION: u32 = 1;
/// The only cut: by columns of the matrix.
const CUT_LAYOUT: u32 = 1;
/// Before the entries: version, cut, log2 of the rows, ranks, signals.
const FIXED_BYTES: usize = 24;
/// Of an entry before its name.
const ENTRY_BYTES: usize = 7 * 8 + 32 + 2;

/// Labels of the sections of the key, in file order.
const KEY_LABELS: [&str; 4] = ["g1", "g2", "ic", "dealt"];
/// Labels of the sections of a share, in file order.
const SHARE_LABELS: [&str; 7] = ["a", "b_g1", "b_g2", "c", "h", "values", "coefficients"];

/// How a key is dealt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// log2 of the rows of the domain.
    pub log_domain: u32,
    /// Signals, the constant one and the public ones included.
    pub signals: u64,
    /// What each rank has.
    pub shares: Vec<DealtShare>,
}

/// The share of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DealtShare {
    /// Its weight beside those of the others.
    pub weight: u64,
    /// Columns of the domain's matrix.
    pub columns: Range<u64>,
    /// Signals whose points it has.
    pub signals: Range<u64>,
    /// Distinct values of its coefficients.
    pub values: u64,
    /// Its coefficients.
    pub coefficients: u64,
    /// The root of its file.
    pub root: [u8; 32],
    /// The name of its file, in the folder of the key.
    pub name: String,
}

impl Dealt {
    /// The sizes of the whole key, which has so many public signals. Values are those of the share with the most:
    /// how many are in several shares is not known.
    pub fn shape(&self, public: u64) -> Shape {
        let shares = || self.shares.iter();
        Shape {
            signals: self.signals,
            public,
            log_domain: self.log_domain,
            values: shares().map(|share| share.values).max().unwrap_or(0),
            coefficients: shares().fold(0, |sum, share| sum.saturating_add(share.coefficients)),
        }
    }

    /// The sizes of a rank's share.
    pub fn share_shape(&self, rank: usize) -> Option<ShareShape> {
        let share = self.shares.get(rank)?;
        Some(ShareShape {
            signals: share.signals.end - share.signals.start,
            points_of_h: (share.columns.end - share.columns.start) << (self.log_domain / 2),
            values: share.values,
            coefficients: share.coefficients,
        })
    }

    /// The bytes of the section `dealt`.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [VERSION, CUT_LAYOUT, self.log_domain, self.shares.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.signals.to_le_bytes());
        for share in &self.shares {
            let numbers = [
                share.weight,
                share.columns.start,
                share.columns.end,
                share.signals.start,
                share.signals.end,
                share.values,
                share.coefficients,
            ];
            numbers
                .iter()
                .for_each(|number| bytes.extend(number.to_le_bytes()));
            bytes.extend(share.root);
            bytes.extend((share.name.len() as u16).to_le_bytes());
            bytes.extend(share.name.as_bytes());
        }
        bytes
    }

    /// Reads the section `dealt`, which begins at `offset` of its file.
    ///
    /// # Errors
    /// [`FormatError::Unknown`] for a later version, or another cut; [`FormatError::Field`] for anything that
    /// [`Self::encode`] does not give of shares that cover columns and signals in the order of ranks.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Self, FormatError> {
        let mut parts = Parts { bytes, at: 0, offset };
        let known = [
            ("version of a dealt key", VERSION),
            ("cut of a dealt key", CUT_LAYOUT),
        ];
        for (what, expected) in known {
            let at = parts.here();
            let value = u32::from_le_bytes(parts.take()?);
            if value != expected {
                return Err(FormatError::Unknown {
                    what,
                    offset: at,
                    value: u64::from(value),
                    remedy: "a newer spillproof wrote this file; read it with that one",
                });
            }
        }
        let at = parts.here();
        let log_domain = u32::from_le_bytes(parts.take()?);
        if log_domain > LOG_DOMAIN_MAX {
            let value = log_domain.to_string();
            return Err(refuse(
                "log2 of the domain",
                at,
                value,
                "keys have domains of at most 2^28 rows",
            ));
        }
        let at = parts.here();
        let ranks = u32::from_le_bytes(parts.take()?) as usize;
        if ranks == 0 || ranks > RANKS_MAX {
            let value = ranks.to_string();
            return Err(refuse(
                "number of ranks",
                at,
                value,
                "a key is dealt to 1 to 4096 ranks",
            ));
        }
        let signals = u64::from_le_bytes(parts.take()?);
        let row_len = 1u64 << (log_domain - log_domain / 2);
        let (mut columns_end, mut signals_end) = (0, 0);
        let mut shares = Vec::new();
        for _ in 0..ranks {
            let share = parts.share()?;
            for (what, range, end, limit) in [
                ("columns of a share", &share.columns, &mut columns_end, row_len),
                ("signals of a share", &share.signals, &mut signals_end, signals),
            ] {
                if range.start != *end || range.end < range.start || range.end > limit {
                    let value = format!("{}..{}", range.start, range.end);
                    return Err(refuse(
                        what,
                        parts.here(),
                        value,
                        "shares follow each other without a gap",
                    ));
                }
                *end = range.end;
            }
            shares.push(share);
        }
        if (columns_end, signals_end) != (row_len, signals) {
            let value = format!("{columns_end} columns, {signals_end} signals");
            return Err(refuse(
                "the end of all shares",
                parts.here(),
                value,
                "shares cover the whole key",
            ));
        }
        if parts.at != bytes.len() {
            let value = format!("{} bytes", bytes.len());
            return Err(refuse(
                "the section `dealt`",
                parts.here(),
                value,
                "it ends after the last share",
            ));
        }
        Ok(Self {
            log_domain,
            signals,
            shares,
        })
    }
}

/// Bytes that are taken from the front.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Of the first byte in the file.
    offset: u64,
}

impl<'a> Parts<'a> {
    fn here(&self) -> u64 {
        self.offset.saturating_add(self.at as u64)
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let slice = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let Some(slice) = slice else {
            let value = format!("{} bytes", self.bytes.len());
            return Err(refuse(
                "the section `dealt`",
                self.here(),
                value,
                "it ends inside of a share",
            ));
        };
        self.at += len;
        Ok(slice)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(N)?);
        Ok(array)
    }

    fn number(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn share(&mut self) -> Result<DealtShare, FormatError> {
        let weight = self.number()?;
        let columns = self.number()?..self.number()?;
        let signals = self.number()?..self.number()?;
        let (values, coefficients) = (self.number()?, self.number()?);
        let root = self.take()?;
        let len = usize::from(u16::from_le_bytes(self.take()?));
        let at = self.here();
        let bytes = self.slice(len)?;
        let name = std::str::from_utf8(bytes).ok().filter(|name| is_file_name(name));
        let Some(name) = name else {
            let value = hex(&bytes[..len.min(NAME_BYTES_MAX)]);
            return Err(refuse(
                "the name of a share",
                at,
                value,
                "it is a file's name of at most 255 bytes",
            ));
        };
        Ok(DealtShare {
            weight,
            columns,
            signals,
            values,
            coefficients,
            root,
            name: name.to_owned(),
        })
    }
}

/// Whether it names a file of the same folder, and nothing else.
pub fn is_file_name(name: &str) -> bool {
    let is_short = (1..=NAME_BYTES_MAX).contains(&name.len());
    is_short && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// The numbers that decide how long the sections of a share are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareShape {
    /// Signals.
    pub signals: u64,
    /// Points of `h`.
    pub points_of_h: u64,
    /// Values of coefficients.
    pub values: u64,
    /// Coefficients.
    pub coefficients: u64,
}

fn specs(contents: &[(Content, u64)], labels: &[&str]) -> Result<Vec<SectionSpec>, FormatError> {
    let specs = contents.iter().zip(labels);
    specs
        .map(|((content, elements), label)| {
            Ok(SectionSpec {
                content: *content,
                basis: Basis::None,
                elements: *elements,
                label: Label::new(label)?,
            })
        })
        .collect()
}

/// The sections of a dealt key, in file order.
///
/// # Errors
/// [`FormatError::Field`] as in [`Shape::check`].
pub fn key_sections(shape: &Shape, dealt_bytes: u64) -> Result<Vec<SectionSpec>, FormatError> {
    shape.check()?;
    let contents = [
        (Content::G1, 3),
        (Content::G2, 3),
        (Content::G1, shape.public.saturating_add(1)),
        (Content::Bytes, dealt_bytes),
    ];
    specs(&contents, &KEY_LABELS)
}

/// The sections of a share, in file order.
///
/// # Errors
/// As [`Label::new`].
pub fn share_sections(shape: &ShareShape) -> Result<Vec<SectionSpec>, FormatError> {
    let contents = [
        (Content::G1, shape.signals),
        (Content::G1, shape.signals),
        (Content::G2, shape.signals),
        (Content::G1, shape.signals),
        (Content::G1, shape.points_of_h),
        (Content::Scalars, shape.values),
        (Content::Coefficients, shape.coefficients),
    ];
    specs(&contents, &SHARE_LABELS)
}

/// The sections of a dealt key, found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DealtKey<'a> {
    /// The curve: BN254 or BLS12-381.
    pub curve: Curve,
    /// alpha, beta, delta.
    pub g1: &'a Section,
    /// beta, gamma, delta.
    pub g2: &'a Section,
    /// For the constant one and the public signals.
    pub ic: &'a Section,
    /// How it is dealt: see [`Dealt::decode`].
    pub dealt: &'a Section,
}

impl<'a> DealtKey<'a> {
    /// Finds the sections of a dealt key.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the container is of another kind, or of a curve without pairing, or has other
    /// sections.
    pub fn of(header: &'a Header) -> Result<Self, FormatError> {
        check_kind(
            header,
            Kind::Groth16Dealt,
            "a Groth16 key that is dealt to ranks is needed here",
        )?;
        let found = header.sections();
        let [g1, g2, ic, dealt] = found else {
            return Err(refuse(
                "number of sections",
                24,
                found.len().to_string(),
                "a dealt key has four",
            ));
        };
        let contents = [
            (Content::G1, 3),
            (Content::G2, 3),
            (Content::G1, ic.elements.max(1)),
            (Content::Bytes, dealt.elements.min(DEALT_BYTES_MAX)),
        ];
        check_sections(
            found,
            &specs(&contents, &KEY_LABELS)?,
            "sections of a dealt key are g1 (3), g2 (3), ic (public signals + 1), dealt",
        )?;
        Ok(Self {
            curve: header.curve(),
            g1,
            g2,
            ic,
            dealt,
        })
    }
}

/// The sections of a share, found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShare<'a> {
    /// The curve: BN254 or BLS12-381.
    pub curve: Curve,
    /// For its signals, as in A.
    pub a: &'a Section,
    /// For its signals, as in B.
    pub b_g1: &'a Section,
    /// The same in G2.
    pub b_g2: &'a Section,
    /// For its private signals.
    pub c: &'a Section,
    /// For its columns, row by row.
    pub h: &'a Section,
    /// What its coefficients are.
    pub values: &'a Section,
    /// Entries of A and B.
    pub coefficients: &'a Section,
}

impl<'a> KeyShare<'a> {
    /// Finds the sections of a share of these sizes.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the container is of another kind, or of a curve without pairing, or has other
    /// sections.
    pub fn of(header: &'a Header, shape: &ShareShape) -> Result<Self, FormatError> {
        check_kind(
            header,
            Kind::Groth16Share,
            "a share of a dealt Groth16 key is needed here",
        )?;
        let found = header.sections();
        let [a, b_g1, b_g2, c, h, values, coefficients] = found else {
            return Err(refuse(
                "number of sections",
                24,
                found.len().to_string(),
                "a share has seven",
            ));
        };
        check_sections(
            found,
            &share_sections(shape)?,
            "sections of a share are a, b_g1, b_g2, c, h, values, coefficients, each as long as the key says",
        )?;
        Ok(Self {
            curve: header.curve(),
            a,
            b_g1,
            b_g2,
            c,
            h,
            values,
            coefficients,
        })
    }
}

fn check_kind(header: &Header, kind: Kind, remedy: &'static str) -> Result<(), FormatError> {
    if header.kind() != kind {
        return Err(refuse("kind", 12, format!("{:?}", header.kind()), remedy));
    }
    pairing_curve(header).map(drop)
}

fn check_sections(
    found: &[Section],
    expected: &[SectionSpec],
    remedy: &'static str,
) -> Result<(), FormatError> {
    for (i, (spec, section)) in expected.iter().zip(found).enumerate() {
        let is_same = (spec.content, spec.basis, spec.elements, spec.label)
            == (section.content, section.basis, section.elements, section.label);
        if !is_same {
            let value = format!("{} {:?} {}", section.elements, section.content, section.label);
            return Err(refuse(
                "a section of a dealt Groth16 key",
                TABLE_AT + 48 * i as u64,
                value,
                remedy,
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::frame_bytes;

    fn dealt() -> Dealt {
        let share = |weight, columns, signals, name: &str| DealtShare {
            weight,
            columns,
            signals,
            values: 3,
            coefficients: 70,
            root: [weight as u8; 32],
            name: name.to_owned(),
        };
        Dealt {
            log_domain: 9,
            signals: 40,
            shares: vec![
                share(2, 0..16, 0..30, "key.0-of-3"),
                share(0, 16..16, 30..30, "key.1-of-3"),
                share(1, 16..32, 30..40, "key.2-of-3"),
            ],
        }
    }

    #[test]
    fn what_is_dealt_is_found_again() {
        let dealt = dealt();
        let bytes = dealt.encode();
        assert_eq!(Dealt::decode(&bytes, 0).as_ref(), Ok(&dealt));
        let shape = dealt.shape(3);
        assert_eq!((shape.coefficients, shape.signals, shape.public), (210, 40, 3));
        for curve in [Curve::Bn254, Curve::Bls12381] {
            let sections = key_sections(&shape, bytes.len() as u64).expect("a shape");
            let header = Header::new(
                Kind::Groth16Dealt,
                curve,
                frame_bytes(curve),
                [0; 16],
                0,
                &sections,
            )
            .expect("within limits");
            let key = DealtKey::of(&header).expect("a key");
            assert_eq!(
                (key.curve, key.ic.elements, key.dealt.elements),
                (curve, 4, bytes.len() as u64)
            );
            assert!(crate::groth16::Groth16Key::of(&header).is_err());
            for rank in 0..3 {
                let shape = dealt.share_shape(rank).expect("a rank");
                let sections = share_sections(&shape).expect("sections");
                let header = Header::new(
                    Kind::Groth16Share,
                    curve,
                    frame_bytes(curve),
                    [0; 16],
                    0,
                    &sections,
                )
                .expect("within limits");
                let share = KeyShare::of(&header, &shape).expect("a share");
                assert_eq!(
                    (share.a.elements, share.h.elements),
                    (shape.signals, shape.points_of_h)
                );
                assert!(DealtKey::of(&header).is_err());
                for i in 0..sections.len() {
                    let mut other = sections.clone();
                    other[i].elements += 1;
                    let header =
                        Header::new(Kind::Groth16Share, curve, frame_bytes(curve), [0; 16], 0, &other)
                            .expect("within limits");
                    assert!(KeyShare::of(&header, &shape).is_err(), "section {i}");
                }
            }
        }
        assert_eq!(dealt.share_shape(0).map(|shape| shape.points_of_h), Some(16 * 16));
        assert_eq!(dealt.share_shape(3), None);
    }

    /// Each byte is changed, and each prefix taken: an error, or other shares that encode to the same bytes.
    #[test]
    fn other_bytes_are_refused_or_canonical() {
        let bytes = dealt().encode();
        for len in 0..bytes.len() {
            assert!(Dealt::decode(&bytes[..len], 0).is_err(), "{len} bytes");
        }
        let more = [&bytes[..], &[0]].concat();
        assert!(Dealt::decode(&more, 0).is_err());
        for at in 0..bytes.len() {
            for flip in [1, 0x20, 0x80, 0xff] {
                let mut other = bytes.clone();
                other[at] ^= flip;
                if let Ok(dealt) = Dealt::decode(&other, 0) {
                    assert_eq!(dealt.encode(), other, "byte {at}");
                    assert!(dealt.shares.iter().all(|share| is_file_name(&share.name)));
                }
            }
        }
        for name in ["", ".", "..", "../key", "a/b", "a\0b", &"x".repeat(256)] {
            let mut other = dealt();
            other.shares[1].name = name.into();
            assert!(Dealt::decode(&other.encode(), 0).is_err(), "{name:?}");
        }
    }
}
