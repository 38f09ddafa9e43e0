//! Scalars to signed digits of `window_bits` bits.
//!
//! A scalar s above r/2 is replaced by r - s with all its digits negated, so that its size is at most (r -
//! 1)/2. Digits lie in -2^(c-1) ..= 2^(c-1) - 1 and are kept in 16 bits. Layout: pieces of [`PIECE`] scalars;
//! in a piece, window after window. A piece has the windows that its largest scalar needs; those above are
//! neither made nor sorted: most scalars of a circuit over bits are zero or one. Memory: 2 bytes per scalar of
//! the block and window, and for each piece.

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
    /// For each piece, how many windows it has: the first ones.
    used: Vec<u16>,
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
            used: vec![0; block.div_ceil(PIECE)],
        }
    }

    pub(super) fn bytes(windows: usize, block: usize) -> u64 {
        let pieces = block.div_ceil(PIECE);
        (windows * pieces * PIECE * size_of::<i16>() + pieces * size_of::<u16>()) as u64
    }

    /// Recodes one block of scalars, on the rayon pool.
    pub fn fill<F: KernelField>(&mut self, scalars: &[F]) {
        self.len = scalars.len();
        let (windows, window_bits) = (self.windows, self.window_bits);
        (self.digits.chunks_mut(windows * PIECE).zip(&mut self.used))
            .zip(scalars.chunks(PIECE))
            .parallel()
            .for_each(|((digits, used), scalars)| {
                *used = recode_piece(scalars, window_bits, windows, digits) as u16;
            });
    }

    /// The digits of one window, as (index of the first scalar, its piece's digits), of the pieces that have it.
    pub(super) fn pieces(&self, window: usize) -> impl Iterator<Item = (usize, &[i16])> + Clone {
        let len = self.len;
        (self.digits.chunks(self.windows * PIECE).zip(&self.used))
            .take(len.div_ceil(PIECE))
            .enumerate()
            .filter(move |(_, (_, used))| window < usize::from(**used))
            .map(move |(i, (piece, _))| {
                let count = PIECE.min(len - i * PIECE);
                (i * PIECE, &piece[window * PIECE..window * PIECE + count])
            })
    }
}

/// Recodes the scalars of one piece; how many windows they have.
fn recode_piece<F: KernelField>(
    scalars: &[F],
    window_bits: u32,
    windows: usize,
    digits: &mut [i16],
) -> usize {
    let mut used = 0;
    for (i, scalar) in scalars.iter().enumerate() {
        recode(scalar, window_bits, windows, |window, digit| {
            // Of a window that is new, all other digits are zero so far.
            if window == used {
                digits[window * PIECE..][..scalars.len()].fill(0);
                used += 1;
            }
            digits[window * PIECE + i] = digit;
        });
    }
    used
}

/// Hands the digits to `put`, the lowest first; none above the highest that may be something else than zero.
#[inline(always)]
fn recode<F: KernelField>(scalar: &F, window_bits: u32, windows: usize, mut put: impl FnMut(usize, i16)) {
    if scalar.is_zero() {
        return;
    }
    if *scalar == F::ONE {
        return put(0, 1);
    }
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
    // Digits of w windows reach beyond 2^(w * window_bits - 2).
    let windows = windows.min((value.num_bits() + 2).div_ceil(window_bits) as usize);
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

    /// Also in a place where longer ones were before.
    fn have_few_windows<F: KernelField>() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let count = windows::<F>(12);
        let mut digits = Digits::new(count, 12, 3 * PIECE);
        let full: Vec<F> = (0..3 * PIECE).map(|_| F::rand(&mut rng)).collect();
        digits.fill(&full);
        assert_eq!(digits.used, [count as u16; 3]);
        let bits = (0..PIECE).map(|i| match i % 3 {
            0 => F::ZERO,
            1 => F::ONE,
            _ => -F::ONE,
        });
        let bytes = (0..PIECE as u64 / 2).map(|i| F::from(i % 256));
        let zeros = std::iter::repeat_n(F::ZERO, PIECE);
        let scalars: Vec<F> = zeros.chain(bits).chain(bytes).collect();
        digits.fill(&scalars);
        assert_eq!(digits.used, [0, 1, 1]);
        let pieces: Vec<_> = digits.pieces(0).collect();
        assert_eq!(pieces.len(), 2);
        for (first, piece) in pieces {
            for (digit, scalar) in piece.iter().zip(&scalars[first..]) {
                assert_eq!(
                    F::from(u64::from(digit.unsigned_abs())).signed(*digit < 0),
                    *scalar
                );
            }
        }
        assert_eq!(digits.pieces(1).count(), 0);
        digits.fill(&[F::from((1u64 << 11) - 1), F::from(1u64 << 11)]);
        assert_eq!(digits.used[0], 2, "12 bits and a sign");
    }

    #[test]
    fn small_scalars_have_few_windows() {
        have_few_windows::<ark_bn254::Fr>();
        have_few_windows::<ark_pallas::Fq>();
    }

    #[test]
    fn digits_sum_to_the_scalar_for_every_window_size() {
        digits_sum_to_the_scalar::<ark_bn254::Fr>();
        digits_sum_to_the_scalar::<ark_pallas::Fr>();
        digits_sum_to_the_scalar::<ark_pallas::Fq>();
    }
}
