//! Files of halo2's `ParamsKZG` over BN254, in the three `SerdeFormat`s of the halo2 forks.
//!
//! ```text
//! [k: u32 LE][g: 2^k points of G1][g_lagrange: 2^k points of G1][g2][s_g2: points of G2]
//! ```
//!
//! `RawBytes` and `RawBytesUnchecked` are the same bytes: 64 B and 128 B points in the native form
//! ([`crate::native`]). `Processed` holds compressed points of 32 B and 64 B ([`points`]). The layout follows
//! from the format and the file's length; the `k` in the file is compared with it and drives nothing.
//!
//! Files are read and written by runs of points of any length ([`Layout::run_offset`],
//! [`points::decode_points`]), so memory is the caller's buffers, whatever k. Runs are independent: decode
//! them on as many threads as there are.

pub mod points;

use ark_bn254::Fr;
use ark_ff::{Field, MontFp};

use crate::error::FormatError;

/// Largest k: the scalar field of BN254 has no domain of more than 2^28 points.
pub const K_MAX: u32 = 28;
/// Length of the `k` at the start of the file, in bytes.
pub const K_BYTES: u64 = 4;

/// halo2curves' root of unity of order 2^28 in the scalar field of BN254: 7^((r-1)/2^28). **Not arkworks'
/// (and iden3's), which is 5^((r-1)/2^28)**: the same points, in another order, are the Lagrange basis there.
pub const ROOT_OF_UNITY: Fr =
    MontFp!("1748695177688661943023146337482803886740723238769601073607632802312037301404");

/// The root of unity w of order 2^k that `g_lagrange` belongs to: its i-th point is L_i(s)·g with
/// L_i(w^i) = 1.
///
/// # Errors
/// [`FormatError::Field`] when k is above [`K_MAX`].
pub fn root_of_unity(k: u32) -> Result<Fr, FormatError> {
    Layout::new(SerdeFormat::RawBytes, k)?;
    Ok(ROOT_OF_UNITY.pow([1u64 << (K_MAX - k)]))
}

/// How points are written; the names are halo2's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SerdeFormat {
    /// Compressed points.
    Processed,
    /// Native points.
    RawBytes,
    /// The same bytes as [`SerdeFormat::RawBytes`]; stock readers skip the range check, we never do.
    RawBytesUnchecked,
}

impl SerdeFormat {
    /// Whether points are compressed.
    pub const fn is_compressed(self) -> bool {
        matches!(self, Self::Processed)
    }

    /// Length of a point of G1 in bytes.
    pub const fn g1_bytes(self) -> u64 {
        if self.is_compressed() { 32 } else { 64 }
    }

    /// Length of a point of G2 in bytes.
    pub const fn g2_bytes(self) -> u64 {
        2 * self.g1_bytes()
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
    format: SerdeFormat,
    k: u32,
}

impl Layout {
    /// The layout of a file for 2^k points.
    ///
    /// # Errors
    /// [`FormatError::Field`] when k is above [`K_MAX`].
    pub fn new(format: SerdeFormat, k: u32) -> Result<Self, FormatError> {
        if k > K_MAX {
            return Err(FormatError::Field {
                what: "k",
                offset: 0,
                value: k.to_string(),
                remedy: "BN254 has domains of at most 2^28 points",
            });
        }
        Ok(Self { format, k })
    }

    /// The layout of a file of this length, when the format is known.
    ///
    /// # Errors
    /// [`FormatError::NoSuchLength`].
    pub fn from_file_bytes(format: SerdeFormat, file_bytes: u64) -> Result<Self, FormatError> {
        (0..=K_MAX)
            .map(|k| Self { format, k })
            .find(|layout| layout.file_bytes() == file_bytes)
            .ok_or(FormatError::NoSuchLength {
                what: if format.is_compressed() {
                    "a ParamsKZG file in the format Processed"
                } else {
                    "a ParamsKZG file in the format RawBytes"
                },
                actual_bytes: file_bytes,
                remedy: if format.is_compressed() {
                    "the length is 2^(k+6) + 132 for k up to 28: the file is cut short, or in another format"
                } else {
                    "the length is 2^(k+7) + 260 for k up to 28: the file is cut short, or in another format"
                },
            })
    }

    /// The layout of a file of this length that begins with these four bytes, format included. Raw files are
    /// taken for [`SerdeFormat::RawBytes`]. (The length alone decides, but for 388 bytes: k = 0 raw and k = 2
    /// processed.)
    ///
    /// # Errors
    /// [`FormatError::NoSuchLength`]; [`FormatError::Field`] when `k` does not agree with the length.
    pub fn detect(file_bytes: u64, k_bytes: [u8; 4]) -> Result<Self, FormatError> {
        let raw = Self::from_file_bytes(SerdeFormat::RawBytes, file_bytes);
        let processed = Self::from_file_bytes(SerdeFormat::Processed, file_bytes);
        let layout = match (raw, processed) {
            (Ok(raw), Ok(processed)) => {
                if raw.check_k(k_bytes).is_ok() {
                    raw
                } else {
                    processed
                }
            }
            (Ok(layout), Err(_)) | (Err(_), Ok(layout)) => layout,
            (Err(_), Err(_)) => {
                return Err(FormatError::NoSuchLength {
                    what: "a ParamsKZG file",
                    actual_bytes: file_bytes,
                    remedy: "the length is 2^(k+7) + 260 (raw) or 2^(k+6) + 132 (processed) for k up to 28: the file \
                             is cut short, or something else",
                });
            }
        };
        layout.check_k(k_bytes)?;
        Ok(layout)
    }

    /// The format.
    pub const fn format(&self) -> SerdeFormat {
        self.format
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
            Region::G | Region::GLagrange => self.format.g1_bytes(),
            Region::G2 | Region::SG2 => self.format.g2_bytes(),
        }
    }

    /// Offset of a region's first point in bytes.
    pub const fn offset(&self, region: Region) -> u64 {
        let half = self.format.g1_bytes() << self.k;
        match region {
            Region::G => K_BYTES,
            Region::GLagrange => K_BYTES + half,
            Region::G2 => K_BYTES + 2 * half,
            Region::SG2 => K_BYTES + 2 * half + self.format.g2_bytes(),
        }
    }

    /// Length of a region in bytes.
    pub const fn region_bytes(&self, region: Region) -> u64 {
        self.points(region) * self.point_bytes(region)
    }

    /// Length of the file in bytes.
    pub const fn file_bytes(&self) -> u64 {
        self.offset(Region::SG2) + self.format.g2_bytes()
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
    use ark_ff::PrimeField as _;
    use stock_halo2_axiom::halo2curves::bn256;
    use stock_halo2_axiom::halo2curves::ff::PrimeField as _;

    use super::*;
    use crate::native::NativeField;

    #[test]
    fn the_root_of_unity_is_halo2s() {
        let mut bytes = [0; 32];
        ROOT_OF_UNITY.write_standard(&mut bytes);
        assert_eq!(bytes, bn256::Fr::ROOT_OF_UNITY.to_bytes());
        // r - 1 over 2^28 is r over 2^28, rounded down.
        assert_eq!(root_of_unity(28), Ok(Fr::from(7u64).pow(Fr::MODULUS >> 28)));
        assert_eq!(root_of_unity(1), Ok(-Fr::ONE));
        assert_eq!(root_of_unity(0), Ok(Fr::ONE));
        assert!(root_of_unity(29).is_err());
    }

    #[test]
    fn lengths_are_as_documented() {
        for k in 0..=K_MAX {
            let raw = Layout::new(SerdeFormat::RawBytes, k).expect("k in range");
            let processed = Layout::new(SerdeFormat::Processed, k).expect("k in range");
            assert_eq!(raw.file_bytes(), (1u64 << (k + 7)) + 260);
            assert_eq!(processed.file_bytes(), (1u64 << (k + 6)) + 132);
            assert_eq!(Layout::detect(raw.file_bytes(), raw.encode_k()), Ok(raw));
            assert_eq!(
                Layout::detect(processed.file_bytes(), processed.encode_k()),
                Ok(processed)
            );
            for layout in [raw, processed] {
                let mut end = K_BYTES;
                for region in Region::ALL {
                    assert_eq!(layout.offset(region), end);
                    end += layout.region_bytes(region);
                }
                assert_eq!(end, layout.file_bytes());
            }
        }
        assert!(Layout::new(SerdeFormat::RawBytes, 29).is_err());
    }

    #[test]
    fn other_lengths_are_refused() {
        for file_bytes in [0, 1, 195, 197, 259, 387, 389, (1 << 36) + 260, u64::MAX] {
            assert!(Layout::detect(file_bytes, [0; 4]).is_err(), "{file_bytes}");
        }
        assert!(Layout::from_file_bytes(SerdeFormat::Processed, 516).is_err());
        // 388 bytes: k = 0 raw or k = 2 processed, nothing else.
        assert!(Layout::detect(388, [1, 0, 0, 0]).is_err());
    }

    #[test]
    fn runs_stay_in_their_region() {
        let layout = Layout::new(SerdeFormat::RawBytes, 4).expect("k in range");
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
