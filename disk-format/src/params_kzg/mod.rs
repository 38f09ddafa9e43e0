//! Files of `ParamsKZG`, which halo2's forks have in three `SerdeFormat`s, in two dialects.
//!
//! ```text
//! [k: u32 LE][g: 2^k points of G1][g_lagrange: 2^k points of G1][g2][s_g2: points of G2]
//! ```
//!
//! | dialect | programs | curve | raw points of G1, of G2 | processed |
//! |---|---|---|---|---|
//! | [`Dialect::Halo2`] | halo2-axiom, halo2 of PSE | BN254 | 64, 128 B in the native form ([`crate::native`]) | 32, 64 B ([`halo2`]) |
//! | [`Dialect::Midnight`] | midnight-proofs | BLS12-381 | 96, 192 B, big-endian with flags ([`big_endian`]) | 48, 96 B, the same |
//!
//! `RawBytes` and `RawBytesUnchecked` are the same bytes. Dialect and format follow from the file's length and
//! its `k` together, which no two of them share; neither drives anything else.
//!
//! Files are read and written by runs of points of any length ([`Layout::run_offset`],
//! [`points::decode_points`]), so memory is the caller's buffers, whatever k. Runs are independent: decode
//! them on as many threads as there are.

pub mod big_endian;
pub mod halo2;
pub mod points;

use ark_bn254::Fr;
use ark_ff::{MontFp, PrimeField};

use crate::error::FormatError;
use crate::header::Curve;
use crate::srs::check_k;

/// Length of the `k` at the start of the file, in bytes.
pub const K_BYTES: u64 = 4;

/// halo2curves' root of unity of order 2^28 in the scalar field of BN254: 7^((r-1)/2^28). **Not arkworks'
/// (and iden3's), which is 5^((r-1)/2^28)**: the same points, in another order, are the Lagrange basis there.
pub const ROOT_OF_UNITY: Fr =
    MontFp!("1748695177688661943023146337482803886740723238769601073607632802312037301404");

/// The root of unity w of order 2^k that `g_lagrange` belongs to: its i-th point is L_i(s)·g with
/// L_i(w^i) = 1. It is 7^((r-1)/2^k) over both curves' scalars, which 7 generates.
///
/// # Errors
/// [`FormatError::Field`] when the field has no domain of 2^k points.
pub fn root_of_unity<F: PrimeField>(k: u32) -> Result<F, FormatError> {
    let Some(above) = F::TWO_ADICITY.checked_sub(k) else {
        return Err(FormatError::Field {
            what: "k",
            offset: 0,
            value: k.to_string(),
            remedy: "the scalar field has no domain of 2^k points",
        });
    };
    Ok(F::from(7u64).pow(F::TRACE).pow([1u64 << above]))
}

/// Whose files: the curve, and how its points are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The halo2 forks' over BN254.
    Halo2,
    /// midnight-proofs' over BLS12-381, as its SRS files `bls_midnight_2p{k}` are.
    Midnight,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Halo2, Self::Midnight];

    /// The curve.
    pub const fn curve(self) -> Curve {
        match self {
            Self::Halo2 => Curve::Bn254,
            Self::Midnight => Curve::Bls12381,
        }
    }

    /// That of a curve, if there are such files over it.
    pub const fn of(curve: Curve) -> Option<Self> {
        match curve {
            Curve::Bn254 => Some(Self::Halo2),
            Curve::Bls12381 => Some(Self::Midnight),
            _ => None,
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Halo2 => "ParamsKZG of halo2 over BN254",
            Self::Midnight => "ParamsKZG of midnight-proofs over BLS12-381",
        })
    }
}

/// How points are written; the names are halo2's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SerdeFormat {
    /// Compressed points.
    Processed,
    /// Points with both coordinates.
    RawBytes,
    /// The same bytes as [`SerdeFormat::RawBytes`]; stock readers skip checks, we never do.
    RawBytesUnchecked,
}

impl SerdeFormat {
    /// Whether points are compressed.
    pub const fn is_compressed(self) -> bool {
        matches!(self, Self::Processed)
    }
}

impl std::fmt::Display for SerdeFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Processed => "processed",
            Self::RawBytes => "raw",
            Self::RawBytesUnchecked => "raw-unchecked",
        })
    }
}

/// How the points of a file are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// Whose file.
    pub dialect: Dialect,
    /// Which of its formats.
    pub format: SerdeFormat,
}

impl Encoding {
    /// Those with bytes of their own.
    pub const ALL: [Self; 4] = [
        Self::new(Dialect::Halo2, SerdeFormat::RawBytes),
        Self::new(Dialect::Halo2, SerdeFormat::Processed),
        Self::new(Dialect::Midnight, SerdeFormat::RawBytes),
        Self::new(Dialect::Midnight, SerdeFormat::Processed),
    ];

    /// A dialect's format.
    pub const fn new(dialect: Dialect, format: SerdeFormat) -> Self {
        Self { dialect, format }
    }

    /// Length of a point of G1 in bytes.
    pub const fn g1_bytes(self) -> u64 {
        let coordinate_bytes = self.dialect.curve().coordinate_bytes() as u64;
        if self.format.is_compressed() {
            coordinate_bytes
        } else {
            2 * coordinate_bytes
        }
    }

    /// Length of a point of G2 in bytes.
    pub const fn g2_bytes(self) -> u64 {
        2 * self.g1_bytes()
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} points", self.dialect, self.format)
    }
}

/// What is known of a file before it is looked at. The rest is found from its length and its k.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Stated {
    /// Whose file it is.
    pub dialect: Option<Dialect>,
    /// How its points are written.
    pub format: Option<SerdeFormat>,
}

impl Stated {
    /// A file of this dialect.
    pub const fn of(dialect: Dialect) -> Self {
        Self {
            dialect: Some(dialect),
            format: None,
        }
    }

    /// The encoding, if dialect and format allow it. Without a format, raw points are
    /// [`SerdeFormat::RawBytes`].
    fn narrowed(self, encoding: Encoding) -> Option<Encoding> {
        let format = self.format.unwrap_or(encoding.format);
        let fits = self.dialect.is_none_or(|dialect| dialect == encoding.dialect)
            && format.is_compressed() == encoding.format.is_compressed();
        fits.then_some(Encoding { format, ..encoding })
    }

    /// No such file has this length.
    fn no_such_length(self, actual_bytes: u64) -> FormatError {
        FormatError::NoSuchLength {
            what: match self.format.map(SerdeFormat::is_compressed) {
                None => "a ParamsKZG file",
                Some(true) => "a ParamsKZG file in the format Processed",
                Some(false) => "a ParamsKZG file in the format RawBytes",
            },
            actual_bytes,
            remedy: match self.dialect {
                Some(Dialect::Halo2) => {
                    "over BN254 the length is 2^(k+7) + 260 (raw) or 2^(k+6) + 132 (processed) for k up to 28: \
                     the file is cut short, has bytes behind its end, or is something else"
                }
                Some(Dialect::Midnight) => {
                    "over BLS12-381 the length is 3*2^(k+6) + 388 (raw) or 3*2^(k+5) + 196 (processed) for k up to 32: \
                     the file is cut short, has bytes behind its end, or is something else"
                }
                None => {
                    "the length is 2^(k+7) + 260 (raw) or 2^(k+6) + 132 (processed) over BN254, 3*2^(k+6) + 388 or \
                     3*2^(k+5) + 196 over BLS12-381: the file is cut short, has bytes behind its end, or is something else"
                }
            },
        }
    }
}

/// The arrays of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Region {
    /// s^i·g for i below 2^k.
    G,
    /// L_i(s)·g for i below 2^k.
    GLagrange,
    /// The generator of G2.
    G2,
    /// s times it.
    SG2,
}

impl Region {
    /// In file order.
    pub const ALL: [Self; 4] = [Self::G, Self::GLagrange, Self::G2, Self::SG2];

    /// halo2's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::G => "g",
            Self::GLagrange => "g_lagrange",
            Self::G2 => "g2",
            Self::SG2 => "s_g2",
        }
    }
}

/// Where everything in one file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    encoding: Encoding,
    k: u32,
}

impl Layout {
    /// The layout of a file for 2^k points.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the curve's scalars have no domain of 2^k points.
    pub fn new(encoding: Encoding, k: u32) -> Result<Self, FormatError> {
        check_k(encoding.dialect.curve(), k, 0)?;
        Ok(Self { encoding, k })
    }

    /// The layout of a file of this length, if there is one in this encoding.
    pub fn from_file_bytes(encoding: Encoding, file_bytes: u64) -> Option<Self> {
        (0..=encoding.dialect.curve().two_adicity())
            .map(|k| Self { encoding, k })
            .find(|layout| layout.file_bytes() == file_bytes)
    }

    /// The layout of a file of this length that begins with these four bytes. Files of several encodings
    /// have a length in common (388, 580, 772 and 1156 bytes), but then not their k.
    ///
    /// # Errors
    /// [`FormatError::NoSuchLength`]; [`FormatError::Field`] when `k` does not agree with the length.
    pub fn detect(stated: Stated, file_bytes: u64, k_bytes: [u8; 4]) -> Result<Self, FormatError> {
        let encodings = Encoding::ALL.into_iter();
        let mut layouts =
            encodings.filter_map(|encoding| Self::from_file_bytes(stated.narrowed(encoding)?, file_bytes));
        let Some(first) = layouts.next() else {
            return Err(stated.no_such_length(file_bytes));
        };
        let agrees = |layout: &Self| layout.check_k(k_bytes).is_ok();
        match agrees(&first) {
            true => Ok(first),
            false => match layouts.find(agrees) {
                Some(layout) => Ok(layout),
                None => first.check_k(k_bytes).map(|()| first),
            },
        }
    }

    /// How points are encoded.
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The format.
    pub const fn format(&self) -> SerdeFormat {
        self.encoding.format
    }

    /// log2 of the number of points in `g`, and in `g_lagrange`.
    pub const fn k(&self) -> u32 {
        self.k
    }

    /// Number of points in a region.
    pub const fn points(&self, region: Region) -> u64 {
        match region {
            Region::G | Region::GLagrange => 1 << self.k,
            Region::G2 | Region::SG2 => 1,
        }
    }

    /// Length of one point of a region in bytes.
    pub const fn point_bytes(&self, region: Region) -> u64 {
        match region {
            Region::G | Region::GLagrange => self.encoding.g1_bytes(),
            Region::G2 | Region::SG2 => self.encoding.g2_bytes(),
        }
    }

    /// Offset of a region's first point in bytes.
    pub const fn offset(&self, region: Region) -> u64 {
        let half = self.encoding.g1_bytes() << self.k;
        match region {
            Region::G => K_BYTES,
            Region::GLagrange => K_BYTES + half,
            Region::G2 => K_BYTES + 2 * half,
            Region::SG2 => K_BYTES + 2 * half + self.encoding.g2_bytes(),
        }
    }

    /// Offset in bytes of a point of a region, whether there is one at this index or not.
    pub const fn point_offset(&self, region: Region, index: u64) -> u64 {
        self.offset(region)
            .saturating_add(index.saturating_mul(self.point_bytes(region)))
    }

    /// Length of a region in bytes.
    pub const fn region_bytes(&self, region: Region) -> u64 {
        self.points(region) * self.point_bytes(region)
    }

    /// Length of the file in bytes.
    pub const fn file_bytes(&self) -> u64 {
        self.offset(Region::SG2) + self.encoding.g2_bytes()
    }

    /// Offset in bytes of a run of `count` points that begins with the `first`; the run may be empty.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] when it goes past the region.
    pub fn run_offset(&self, region: Region, first: u64, count: u64) -> Result<u64, FormatError> {
        let points = self.points(region);
        match first.checked_add(count) {
            Some(end) if end <= points => Ok(self.offset(region) + first * self.point_bytes(region)),
            end => {
                let index = end.unwrap_or(u64::MAX).saturating_sub(1);
                Err(FormatError::OutOfRange {
                    what: "point",
                    index,
                    count: points,
                })
            }
        }
    }

    /// The first four bytes of the file.
    pub const fn encode_k(&self) -> [u8; 4] {
        self.k.to_le_bytes()
    }

    /// Whether the first four bytes of the file agree with its length.
    ///
    /// # Errors
    /// [`FormatError::Field`].
    pub fn check_k(&self, bytes: [u8; 4]) -> Result<(), FormatError> {
        let k = u32::from_le_bytes(bytes);
        if k == self.k {
            return Ok(());
        }
        Err(FormatError::Field {
            what: "k",
            offset: 0,
            value: k.to_string(),
            remedy: "the file's length belongs to another k: it is cut short, or something else",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ark_ff::{FftField, Field};
    use stock_halo2_axiom::halo2curves::bn256;
    use stock_halo2_axiom::halo2curves::ff::PrimeField as _;

    use super::*;
    use crate::native::NativeField;

    const RAW: Encoding = Encoding::ALL[0];

    #[test]
    fn the_root_of_unity_is_halo2s() {
        let mut bytes = [0; 32];
        ROOT_OF_UNITY.write_standard(&mut bytes);
        assert_eq!(bytes, bn256::Fr::ROOT_OF_UNITY.to_bytes());
        assert_eq!(root_of_unity(28), Ok(ROOT_OF_UNITY));
        // r - 1 over 2^28 is r over 2^28, rounded down.
        assert_eq!(root_of_unity(28), Ok(Fr::from(7u64).pow(Fr::MODULUS >> 28)));
        assert_eq!(root_of_unity(1), Ok(-Fr::ONE));
        assert_eq!(root_of_unity(0), Ok(Fr::ONE));
        assert!(root_of_unity::<Fr>(29).is_err());
        // arkworks' over BLS12-381 is of the same generator.
        let root = ark_bls12_381::Fr::TWO_ADIC_ROOT_OF_UNITY;
        assert_eq!(root_of_unity(32), Ok(root));
        assert!(root_of_unity::<ark_bls12_381::Fr>(33).is_err());
    }

    #[test]
    fn lengths_are_as_documented() {
        for encoding in Encoding::ALL {
            for k in 0..=encoding.dialect.curve().two_adicity() {
                let layout = Layout::new(encoding, k).expect("k in range");
                let file_bytes = match (encoding.dialect, encoding.format.is_compressed()) {
                    (Dialect::Halo2, false) => (1u64 << (k + 7)) + 260,
                    (Dialect::Halo2, true) => (1u64 << (k + 6)) + 132,
                    (Dialect::Midnight, false) => (3u64 << (k + 6)) + 388,
                    (Dialect::Midnight, true) => (3u64 << (k + 5)) + 196,
                };
                assert_eq!(layout.file_bytes(), file_bytes);
                let mut end = K_BYTES;
                for region in Region::ALL {
                    assert_eq!(layout.offset(region), end);
                    end += layout.region_bytes(region);
                }
                assert_eq!(end, layout.file_bytes());
            }
        }
        assert!(Layout::new(RAW, 29).is_err());
        assert!(Layout::new(Encoding::ALL[2], 33).is_err());
    }

    #[test]
    fn length_and_k_tell_every_file_from_every_other() {
        let mut lengths = BTreeSet::new();
        let mut shared = BTreeSet::new();
        for encoding in Encoding::ALL {
            for k in 0..=encoding.dialect.curve().two_adicity() {
                let layout = Layout::new(encoding, k).expect("k in range");
                let (file_bytes, k_bytes) = (layout.file_bytes(), layout.encode_k());
                assert_eq!(Layout::detect(Stated::default(), file_bytes, k_bytes), Ok(layout));
                assert_eq!(
                    Layout::detect(Stated::of(encoding.dialect), file_bytes, k_bytes),
                    Ok(layout)
                );
                if !lengths.insert(file_bytes) {
                    shared.insert(file_bytes);
                }
            }
        }
        assert_eq!(Vec::from_iter(shared), [388, 580, 772, 1156]);
    }

    #[test]
    fn other_lengths_are_refused() {
        let any = Stated::default();
        for file_bytes in [0, 1, 195, 197, 259, 387, 389, (1 << 36) + 260, u64::MAX] {
            assert!(Layout::detect(any, file_bytes, [0; 4]).is_err(), "{file_bytes}");
        }
        let processed = Encoding::new(Dialect::Halo2, SerdeFormat::Processed);
        assert_eq!(Layout::from_file_bytes(processed, 516), None);
        // 388 bytes: k = 0 raw or k = 2 processed over BN254, k = 1 processed over BLS12-381, nothing else.
        let k_of =
            |stated, k: u32| Layout::detect(stated, 388, k.to_le_bytes()).map(|layout| layout.encoding());
        let midnight = Encoding::new(Dialect::Midnight, SerdeFormat::Processed);
        assert_eq!(k_of(any, 0), Ok(RAW));
        assert_eq!(k_of(any, 1), Ok(midnight));
        assert_eq!(k_of(any, 2), Ok(processed));
        assert!(k_of(any, 3).is_err());
        assert!(k_of(Stated::of(Dialect::Halo2), 1).is_err());
        let unchecked = Stated {
            format: Some(SerdeFormat::RawBytesUnchecked),
            ..any
        };
        let format = Layout::detect(unchecked, 388, [0; 4]).map(|layout| layout.format());
        assert_eq!(format, Ok(SerdeFormat::RawBytesUnchecked));
        assert!(k_of(unchecked, 1).is_err());
    }

    #[test]
    fn runs_stay_in_their_region() {
        let layout = Layout::new(RAW, 4).expect("k in range");
        assert_eq!(
            layout.run_offset(Region::GLagrange, 3, 13),
            Ok(4 + 16 * 64 + 3 * 64)
        );
        assert_eq!(layout.run_offset(Region::G, 16, 0), Ok(4 + 16 * 64));
        assert!(layout.run_offset(Region::G, 16, 1).is_err());
        assert!(layout.run_offset(Region::G, u64::MAX, u64::MAX).is_err());
        assert!(layout.run_offset(Region::SG2, 1, 1).is_err());
        assert!(layout.check_k([4, 0, 0, 0]).is_ok());
        assert!(layout.check_k([5, 0, 0, 0]).is_err());
    }
}
