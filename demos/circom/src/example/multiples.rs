//! Multiples of a generator by many scalars.
//!
//! A scalar is cut into signed digits, and a table holds what each digit's place may add: a multiple is the sum of some 20 of its points.
//! The scalars of a block take these additions beside each other, affine, with one inversion for many.
//!
//! Memory: the table, and some 600 KiB a thread.

use std::ops::{Range, RangeInclusive};

use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, PrimeField};
use spillproof_format::native::{NativeField, point_bytes, write_point};
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point, normalize};
use spillproof_kernels::msm::BucketAdder;
use spillproof_kernels::parallel::Parallel;

/// Scalars that take their additions beside each other.
const BLOCK_SCALARS: usize = 1 << 12;
/// Bits of a digit at most: a table of 13 has 5 MiB in G1 of BN254, 10 MiB in its G2. A larger one leaves the caches.
const DIGIT_BITS: RangeInclusive<u32> = 4..=13;

/// A table of multiples of a curve's generator.
pub(super) struct Multiples<P: Curve> {
    digit_bits: u32,
    /// For each digit's place, 1 to [`Self::digits`] times the generator times the place's power of two.
    table: Vec<Point<P>>,
}

impl<P: Curve> Multiples<P> {
    /// For about `count` scalars.
    pub fn new(count: usize) -> Self {
        let additions = |bits: &u32| places::<P>(*bits) * (count + digits(*bits));
        let digit_bits = DIGIT_BITS.min_by_key(additions).unwrap_or(*DIGIT_BITS.start());
        let (places, digits) = (places::<P>(digit_bits), digits(digit_bits));
        let mut power = Projective::<P>::generator();
        let powers = (0..places).map(|_| {
            let first = power;
            for _ in 0..digit_bits {
                power.double_in_place();
            }
            first
        });
        let powers = normalize::<P>(&powers.collect::<Vec<_>>());
        let mut table = vec![Point::<P>::INFINITY; places * digits];
        for (first, power) in table.chunks_mut(digits).zip(powers) {
            first[0] = power;
        }
        let mut adder = BucketAdder::<P>::on(Backend::detect());
        let mut known = 1;
        while known < digits {
            // The next as many are those before, and the last of those.
            let last: Vec<_> = table.chunks(digits).map(|of_place| of_place[known - 1]).collect();
            for of_place in table.chunks_mut(digits) {
                of_place.copy_within(..known, known);
            }
            let pairs = (0..places).flat_map(|place| {
                let next = place * digits + known;
                (next..next + known).map(move |at| [at as u32, 2 * place as u32])
            });
            adder.add(&pairs.collect::<Vec<_>>(), &mut table, &last);
            known *= 2;
        }
        Self { digit_bits, table }
    }

    /// Writes the multiples by the scalars of each part of `range`, as they are in files.
    pub fn write(
        &self,
        range: Range<usize>,
        scalars: impl Fn(Range<usize>) -> Vec<P::ScalarField> + Sync,
        out: &mut [u8],
    ) where
        P::BaseField: NativeField,
    {
        let each = point_bytes::<P>();
        let blocks = range.clone().step_by(BLOCK_SCALARS);
        let blocks = blocks.zip(out.chunks_mut(BLOCK_SCALARS * each)).parallel();
        blocks.for_each_init(
            || (BucketAdder::on(Backend::detect()), Vec::new()),
            |(adder, points), (start, out)| {
                let scalars = scalars(start..range.end.min(start + BLOCK_SCALARS));
                self.multiply(adder, &scalars, points);
                for (point, out) in points.iter().zip(out.chunks_exact_mut(each)) {
                    write_point(&point.to_affine::<P>(), out);
                }
            },
        );
    }

    fn multiply(&self, adder: &mut BucketAdder<P>, scalars: &[P::ScalarField], out: &mut Vec<Point<P>>) {
        out.clear();
        out.resize(scalars.len(), Point::<P>::INFINITY);
        let digits = digits(self.digit_bits);
        // What is left of each scalar, and what its last digit left over.
        let mut left: Vec<_> = scalars.iter().map(|scalar| (scalar.into_bigint(), 0)).collect();
        let mut pairs = Vec::with_capacity(scalars.len());
        for place in 0..places::<P>(self.digit_bits) {
            pairs.clear();
            for (at, (scalar, carry)) in left.iter_mut().enumerate() {
                let digit = bits(scalar.as_ref(), place * self.digit_bits as usize, self.digit_bits) + *carry;
                let is_negative = digit > digits;
                *carry = usize::from(is_negative);
                let times = if is_negative { 2 * digits - digit } else { digit };
                if times > 0 {
                    let entry = place * digits + times - 1;
                    pairs.push([at as u32, (2 * entry + usize::from(is_negative)) as u32]);
                }
            }
            adder.add(&pairs, out, &self.table);
        }
    }
}

/// The largest digit, beside its sign.
fn digits(digit_bits: u32) -> usize {
    1 << (digit_bits - 1)
}

/// Digits of a scalar: the last one leaves nothing over.
fn places<P: Curve>(digit_bits: u32) -> usize {
    (P::ScalarField::MODULUS_BIT_SIZE as usize + 1).div_ceil(digit_bits as usize)
}

/// `count` bits of a number from bit `first` on.
fn bits(limbs: &[u64], first: usize, count: u32) -> usize {
    let (limb, shift) = (first / 64, first % 64);
    let low = limbs.get(limb).map_or(0, |low| low >> shift);
    let high = match shift {
        0 => 0,
        _ => limbs.get(limb + 1).map_or(0, |high| high << (64 - shift)),
    };
    ((low | high) & ((1 << count) - 1)) as usize
}
