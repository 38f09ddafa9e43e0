//! Scalars to signed digits of `window_bits` bits.
//!
//! A scalar s above r/2 is replaced by r - s with all its digits negated, so that its size is at most (r -
//! 1)/2. Digits lie in -2^(c-1) ..= 2^(c-1) - 1 and are kept in 16 bits. Layout: pieces of [`PIECE`] scalars;
//! in a piece, window after window. Memory: 2 bytes per scalar of the block and window.

use ark_ff::{BigInteger, PrimeField};

use crate::field::KernelField;
use crate::parallel::Parallel;

/// Scalars that are recoded together.
const PIECE: usize = 1024;

/// The digits of one block of scalars.
pub struct Digits {
    windows: usize,
    window_bits: u32,
    len: usize,
    digits: Vec<i16>,
}

/// Windows that signed digits of `window_bits` bits need for scalars up to (r - 1)/2.
pub(super) fn windows<F: PrimeField>(window_bits: u32) -> usize {
    let bits = F::MODULUS_BIT_SIZE;
    let windows = bits.div_ceil(window_bits);
    // The top digit takes a carry: it must stay below half of its range.
    let mut largest = F::MODULUS_MINUS_ONE_DIV_TWO;
    largest >>= window_bits * (windows - 1);
    let top = largest.as_ref()[0];
    windows as usize + usize::from(top + 1 >= 1 << (window_bits - 1))
}

impl Digits {
    pub(super) fn new(windows: usize, window_bits: u32, block: usize) -> Self {
        Self {
            windows,
            window_bits,
            len: 0,
            digits: vec![0; windows * block.next_multiple_of(PIECE)],
        }
    }

    pub(super) fn bytes(windows: usize, block: usize) -> u64 {
        (windows * block.next_multiple_of(PIECE) * size_of::<i16>()) as u64
    }

    /// Recodes one block of scalars, on the rayon pool.
    pub fn fill<F: KernelField>(&mut self, scalars: &[F]) {
        self.len = scalars.len();
        let window_bits = self.window_bits;
        self.digits
            .chunks_mut(self.windows * PIECE)
            .zip(scalars.chunks(PIECE))
            .parallel()
            .for_each(|(digits, scalars)| {
                for (i, scalar) in scalars.iter().enumerate() {
                    recode(
                        scalar,
                        window_bits,
                        |window, digit| digits[window * PIECE + i] = digit,
                        self.windows,
                    );
                }
            });
    }

    /// The digits of one window, as (index of the first scalar, its piece's digits).
    pub(super) fn pieces(&self, window: usize) -> impl Iterator<Item = (usize, &[i16])> + Clone {
        let len = self.len;
        self.digits
            .chunks(self.windows * PIECE)
            .take(len.div_ceil(PIECE))
            .enumerate()
            .map(move |(i, piece)| {
                let count = PIECE.min(len - i * PIECE);
                (i * PIECE, &piece[window * PIECE..window * PIECE + count])
            })
    }
}

#[inline(always)]
fn recode<F: KernelField>(scalar: &F, window_bits: u32, mut put: impl FnMut(usize, i16), windows: usize) {
    let mut value = scalar.into_bigint();
    let negative = value > F::MODULUS_MINUS_ONE_DIV_TWO;
    if negative {
        let mut complement = F::MODULUS;
        complement.sub_with_borrow(&value);
        value = complement;
    }
    let limbs = value.as_ref();
    let sign = if negative { -1i32 } else { 1 };
    // The tie goes to the side that fits 16 bits after the sign is applied.
    let limit = (1i32 << (window_bits - 1)) + i32::from(negative);
    let mask = (1u64 << window_bits) - 1;
    let mut carry = 0i32;
    for window in 0..windows {
        let bit = window * window_bits as usize;
        let (limb, shift) = (bit / 64, bit % 64);
        let low = limbs.get(limb).map_or(0, |word| word >> shift);
        let high = if shift + window_bits as usize > 64 {
            limbs.get(limb + 1).map_or(0, |word| word << (64 - shift))
        } else {
            0
        };
        let digit = ((low | high) & mask) as i32 + carry;
        carry = i32::from(digit >= limit);
        put(window, (sign * (digit - (carry << window_bits))) as i16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    fn digits_sum_to_the_scalar<F: KernelField>() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let half = F::from(F::MODULUS_MINUS_ONE_DIV_TWO.into());
        let mut scalars = vec![F::ZERO, F::ONE, -F::ONE, half, half + F::ONE, F::from(0x8000u64)];
        scalars.extend([
            F::from(0x7fff_ffffu64),
            -F::from(0x8000u64),
            -F::from(0x8000_8000u64),
        ]);
        scalars.extend((0..2000).map(|_| F::rand(&mut rng)));
        for window_bits in 2..=16 {
            let count = windows::<F>(window_bits);
            let mut digits = Digits::new(count, window_bits, scalars.len());
            digits.fill(&scalars);
            let mut sums = vec![F::ZERO; scalars.len()];
            for window in (0..count).rev() {
                for (first, piece) in digits.pieces(window) {
                    for (i, digit) in piece.iter().enumerate() {
                        let magnitude = F::from(u64::from(digit.unsigned_abs()));
                        assert!(digit.unsigned_abs() <= 1 << (window_bits - 1));
                        let sum = &mut sums[first + i];
                        for _ in 0..window_bits {
                            *sum = sum.doubled();
                        }
                        *sum += magnitude.signed(*digit < 0);
                    }
                }
            }
            assert_eq!(sums, scalars, "{window_bits} bits");
        }
    }

    #[test]
    fn digits_sum_to_the_scalar_for_every_window_size() {
        digits_sum_to_the_scalar::<ark_bn254::Fr>();
        digits_sum_to_the_scalar::<ark_pallas::Fr>();
        digits_sum_to_the_scalar::<ark_pallas::Fq>();
    }
}
