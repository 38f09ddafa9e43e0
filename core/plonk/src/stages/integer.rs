//! Field elements as the integers that they stand for: what values are sorted by.
//!
//! An [`Integer`] is 256 bits. It holds a value's canonical form (below p, not Montgomery) while values are
//! compared, and the Montgomery form on the way from and to columns of the field; the bytes are four
//! little-endian limbs either way, so a column of one casts to the other. One multiplication takes a value
//! from one form to the other. Memory: none.

use spillproof_format::SpareBits;
use spillproof_format::element::{limbs_from_bytes, limbs_to_bytes};

use spillproof_engine::column::Element;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::PIECE;

/// 256 bits, the highest limb first: arrays are ordered as numbers are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Integer(pub [u64; 4]);

impl Integer {
    pub const ZERO: Self = Self([0; 4]);

    /// The limbs of the Montgomery form, as they are.
    pub fn native<F: KernelField>(value: &F) -> Self {
        let [a, b, c, d] = *value.montgomery_limbs();
        Self([d, c, b, a])
    }

    /// The field's value with these Montgomery limbs.
    fn as_native<F: KernelField>(&self) -> F {
        let [d, c, b, a] = self.0;
        let mut value = F::ZERO;
        *value.montgomery_limbs_mut() = [a, b, c, d];
        value
    }

    /// Whether it is below 2^64.
    pub fn is_word(&self) -> bool {
        self.0[0] | self.0[1] | self.0[2] == 0
    }
}

impl Element for Integer {
    const BYTES: usize = 32;
    // All fields of four limbs are below 2^255.
    const SPARE: Option<SpareBits> = SpareBits::above(255, 32);

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let [a, b, c, d] = limbs_from_bytes(bytes);
        Self([d, c, b, a])
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let [d, c, b, a] = self.0;
        limbs_to_bytes(&[a, b, c, d], out);
    }
}

/// From Montgomery form to canonical form, in place.
pub(super) fn to_canonical<F: KernelField>(values: &mut [Integer]) {
    // The Montgomery product with the plain integer 1 takes the factor 2^256 away.
    scale::<F>(values, Integer([0, 0, 0, 1]).as_native());
}

/// From canonical form to Montgomery form, in place.
pub(super) fn to_native<F: KernelField>(values: &mut [Integer]) {
    // 2^256 in Montgomery form is 2^512, of which the product takes 2^256 away.
    scale::<F>(values, F::from(2u64).pow([256]));
}

fn scale<F: KernelField>(values: &mut [Integer], factor: F) {
    values.chunks_mut(PIECE).parallel().for_each(|values| {
        for value in values {
            *value = Integer::native(&value.as_native::<F>().times(&factor));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::BigInteger;
    use rand_chacha::rand_core::SeedableRng;

    fn there_and_back<F: KernelField + Element>() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut values = vec![F::ZERO, F::from(1u64), -F::from(1u64), F::from(2u64).double()];
        values.extend((0..100).map(|_| F::rand(&mut rng)));
        let native: Vec<Integer> = values.iter().map(Integer::native).collect();
        let mut integers = native.clone();
        to_canonical::<F>(&mut integers);
        for (value, integer) in values.iter().zip(&integers) {
            let mut bytes = [0; 32];
            integer.encode(&mut bytes);
            assert_eq!(bytes[..], value.into_bigint().to_bytes_le()[..]);
            assert_eq!(Integer::decode(&bytes), *integer);
        }
        for (a, x) in values.iter().zip(&integers) {
            for (b, y) in values.iter().zip(&integers) {
                assert_eq!(a.into_bigint().cmp(&b.into_bigint()), x.cmp(y));
            }
        }
        to_native::<F>(&mut integers);
        assert_eq!(integers, native);
    }

    #[test]
    fn integers_are_arkworks_and_so_is_their_order() {
        there_and_back::<ark_bn254::Fr>();
        there_and_back::<ark_pallas::Fq>();
    }
}
