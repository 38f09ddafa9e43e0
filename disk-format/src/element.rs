//! Values with a fixed number of bytes on disk.
//!
//! A field element is its limbs as 64-bit little-endian words in Montgomery form, lowest first; an element of
//! a quadratic extension is c0, then c1; an affine point is x, then y (`FORMAT.md`). arkworks and halo2curves
//! keep the same limbs in memory, so reading is a copy and never a conversion.

use std::array::from_fn;

use ark_ff::{BigInt, Fp, MontBackend, MontConfig, QuadExtConfig, QuadExtField};

/// The bits that values leave free: each word of `word_bytes` bytes, little-endian, is below
/// `2^(8 * word_bytes - bits)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareBits {
    /// Bytes of a word, which divide the bytes of a value.
    pub word_bytes: usize,
    /// Bits at the top of a word that are zero.
    pub bits: u32,
}

impl SpareBits {
    /// Those above an integer of `used_bits` in words of `word_bytes`.
    #[must_use]
    pub const fn above(used_bits: u32, word_bytes: usize) -> Option<Self> {
        match (8 * word_bytes as u32).checked_sub(used_bits) {
            None | Some(0) => None,
            Some(bits) => Some(Self { word_bytes, bits }),
        }
    }
}

/// A value with a fixed number of bytes on disk.
///
/// `decode` does not check ranges: bytes reach it after the digest of their frame was checked, and values
/// were checked when they were imported. [`crate::native::NativeField::read_native`] checks them.
pub trait Element: Copy + Send + Sync + 'static {
    /// Bytes of one value.
    const BYTES: usize;

    /// Bits of those bytes that are zero in every value, if there are such bits.
    const SPARE: Option<SpareBits> = None;

    /// The value of `bytes`, which has [`Self::BYTES`] bytes.
    fn decode(bytes: &[u8]) -> Self;

    /// Writes the value to the first [`Self::BYTES`] bytes of `out`.
    fn encode(&self, out: &mut [u8]);
}

/// `N` limbs from the first 8 N little-endian bytes. Panics if there are fewer.
#[inline]
pub fn limbs_from_bytes<const N: usize>(bytes: &[u8]) -> [u64; N] {
    // The length is known before the loop: so it is one copy.
    let Some(chunks) = bytes.as_chunks::<8>().0.first_chunk::<N>() else {
        panic!("{} bytes are fewer than {N} limbs", bytes.len());
    };
    from_fn(|limb| u64::from_le_bytes(chunks[limb]))
}

/// 8 N little-endian bytes of `N` limbs.
#[inline]
pub fn limbs_to_bytes<const N: usize>(limbs: &[u64; N], out: &mut [u8]) {
    for (limb, chunk) in limbs.iter().zip(out.as_chunks_mut::<8>().0) {
        *chunk = limb.to_le_bytes();
    }
}

impl<T: MontConfig<N>, const N: usize> Element for Fp<MontBackend<T, N>, N> {
    const BYTES: usize = 8 * N;
    const SPARE: Option<SpareBits> = SpareBits::above(T::MODULUS.const_num_bits(), 8 * N);

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        Self::new_unchecked(BigInt::new(limbs_from_bytes(bytes)))
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        limbs_to_bytes(&self.0.0, out);
    }
}

impl<P: QuadExtConfig<BaseField: Element>> Element for QuadExtField<P> {
    const BYTES: usize = 2 * P::BaseField::BYTES;
    const SPARE: Option<SpareBits> = P::BaseField::SPARE;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let (c0, c1) = bytes.split_at(P::BaseField::BYTES);
        Self::new(P::BaseField::decode(c0), P::BaseField::decode(c1))
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let (c0, c1) = out.split_at_mut(P::BaseField::BYTES);
        self.c0.encode(c0);
        self.c1.encode(c1);
    }
}

/// Bytes without a meaning of their own: for copying and checking, and for values that are decoded with
/// checks.
impl<const N: usize> Element for [u8; N] {
    const BYTES: usize = N;

    fn decode(bytes: &[u8]) -> Self {
        let mut value = [0; N];
        value.copy_from_slice(bytes);
        value
    }

    fn encode(&self, out: &mut [u8]) {
        out.copy_from_slice(self);
    }
}

/// [`Element`] for a number, little-endian.
macro_rules! number_elements {
    ($($number:ty),*) => {
        $(impl Element for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                let Some(bytes) = bytes.first_chunk() else {
                    panic!("{} bytes are fewer than a number has", bytes.len());
                };
                Self::from_le_bytes(*bytes)
            }

            #[inline]
            fn encode(&self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

number_elements!(u8, u32, u64);

/// [`Element`] for the scalars and G1 points of a halo2curves release.
#[cfg(any(feature = "halo2curves", feature = "halo2curves-axiom"))]
macro_rules! halo2curves_elements {
    ($library:ident: $($bytes:literal: $($element:path),*);*) => {
        $($(impl Element for $element {
            const BYTES: usize = $bytes;
            // Scalars and coordinates of BN254.
            const SPARE: Option<SpareBits> = SpareBits::above(254, 32);

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                <Self as $library::serde::SerdeObject>::from_raw_bytes_unchecked(bytes)
            }

            #[inline]
            fn encode(&self, mut out: &mut [u8]) {
                let written = <Self as $library::serde::SerdeObject>::write_raw(self, &mut out);
                debug_assert!(written.is_ok(), "the bytes of an element hold it");
            }
        })*)*
    };
}

#[cfg(feature = "halo2curves")]
halo2curves_elements!(halo2curves: 32: halo2curves::bn256::Fr, halo2curves::bn256::Fq; 64: halo2curves::bn256::G1Affine);
#[cfg(feature = "halo2curves-axiom")]
halo2curves_elements!(
    halo2curves_axiom: 32: halo2curves_axiom::bn256::Fr, halo2curves_axiom::bn256::Fq; 64: halo2curves_axiom::bn256::G1Affine
);
