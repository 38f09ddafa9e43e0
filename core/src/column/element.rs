//! What a column may hold, and its bytes.
//!
//! Native bytes are the field's: four `u64` little-endian limbs in Montgomery form (`R = 2^256`) a scalar, `x` then `y`
//! an affine point, all zero bytes the point at infinity (no curve here has `b = 0`, so `(0, 0)` is never on it).
//! arkworks and halo2curves keep the same limbs in memory, so reading is a copy, never a conversion.

use ark_ff::{BigInt, Fp, FpConfig, MontBackend, MontConfig};

/// A value with a fixed number of bytes on disk.
///
/// `decode` does not check ranges: bytes reach it after their frame's digest was checked, and values were checked when
/// they came in.
pub trait Element: Copy + Send + Sync + 'static {
    /// Bytes of one value; divides 4096.
    const BYTES: usize;

    /// The value of `bytes`, which has [`Self::BYTES`] bytes.
    fn decode(bytes: &[u8]) -> Self;

    /// Writes the value to `out`, which has [`Self::BYTES`] bytes.
    fn encode(&self, out: &mut [u8]);
}

/// Four limbs from 32 little-endian bytes.
#[inline]
pub fn limbs_from_bytes(bytes: &[u8]) -> [u64; 4] {
    let mut limbs = [0u64; 4];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut eight = [0u8; 8];
        eight.copy_from_slice(chunk);
        *limb = u64::from_le_bytes(eight);
    }
    limbs
}

/// 32 little-endian bytes of four limbs.
#[inline]
pub fn limbs_to_bytes(limbs: &[u64; 4], out: &mut [u8]) {
    for (limb, chunk) in limbs.iter().zip(out.chunks_exact_mut(8)) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
}

impl<T: MontConfig<4>> Element for Fp<MontBackend<T, 4>, 4>
where
    MontBackend<T, 4>: FpConfig<4>,
{
    const BYTES: usize = 32;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        Self::new_unchecked(BigInt::new(limbs_from_bytes(bytes)))
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        limbs_to_bytes(&self.0.0, out);
    }
}

/// [`Element`] for the scalars and G1 points of a halo2curves release.
#[cfg(any(feature = "halo2curves", feature = "halo2curves-axiom"))]
macro_rules! halo2curves_elements {
    ($library:ident: $($scalar:path),*; $($point:path),*) => {
        $(impl Element for $scalar {
            const BYTES: usize = 32;

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                <Self as $library::serde::SerdeObject>::from_raw_bytes_unchecked(bytes)
            }

            #[inline]
            fn encode(&self, mut out: &mut [u8]) {
                let written = <Self as $library::serde::SerdeObject>::write_raw(self, &mut out);
                debug_assert!(written.is_ok(), "32 bytes hold a scalar");
            }
        })*
        $(impl Element for $point {
            const BYTES: usize = 64;

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                <Self as $library::serde::SerdeObject>::from_raw_bytes_unchecked(bytes)
            }

            #[inline]
            fn encode(&self, mut out: &mut [u8]) {
                let written = <Self as $library::serde::SerdeObject>::write_raw(self, &mut out);
                debug_assert!(written.is_ok(), "64 bytes hold a point");
            }
        })*
    };
}

#[cfg(feature = "halo2curves")]
halo2curves_elements!(halo2curves: halo2curves::bn256::Fr, halo2curves::bn256::Fq; halo2curves::bn256::G1Affine);
#[cfg(feature = "halo2curves-axiom")]
halo2curves_elements!(halo2curves_axiom: halo2curves_axiom::bn256::Fr, halo2curves_axiom::bn256::Fq; halo2curves_axiom::bn256::G1Affine);

/// Bytes without a meaning of their own: for copying and checking, and for what is decoded with checks. `N` divides 4096.
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
