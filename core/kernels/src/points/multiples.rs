//! Multiples of one point by many scalars.
//!
//! In: scalars. Out: affine points, one for each. A scalar is cut into signed digits, and a table holds what
//! each digit's place may add: a multiple is the sum of some 20 points of the table. The scalars of a block
//! take these additions beside each other, with one inversion for many ([`BucketAdder`]). All scalars are
//! taken. Memory: [`Multiples::bytes`], and [`MultiplesWorker::bytes`] for each thread.

use std::ops::RangeInclusive;

use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, PrimeField};

use crate::backend::{Backend, Once};
use crate::curve::{Curve, Point, normalize};
use crate::msm::BucketAdder;

/// Scalars that take their additions beside each other: more share an inversion that costs little by then.
const BLOCK_SCALARS: usize = 1 << 12;
/// Bits of a digit. A table of 13 has 5 MiB in G1 of BN254, 10 MiB in its G2: a larger one leaves the caches.
const DIGIT_BITS: RangeInclusive<u32> = 4..=13;

/// A table of multiples of a point.
pub struct Multiples<P: Curve> {
    backend: Backend,
    digit_bits: u32,
    /// For each digit's place: 1 to [`digits`] times the point times the place's power of two.
    table: Vec<Point<P>>,
}

/// The working memory of one thread that multiplies.
pub struct MultiplesWorker<P: Curve> {
    adder: BucketAdder<P>,
    /// For each scalar of a block: its integer, and the carry into its next digit.
    integers: Vec<(<P::ScalarField as PrimeField>::BigInt, usize)>,
    pairs: Vec<[u32; 2]>,
}

/// Makes a table of multiples.
pub struct NewTable<'a, P: Curve> {
    base: &'a Projective<P>,
    digit_bits: u32,
}

impl<P: Curve> Once for NewTable<'_, P> {
    type Output = Vec<Point<P>>;

    fn run(self, backend: Backend) -> Vec<Point<P>> {
        let (places, digits) = (places::<P>(self.digit_bits), digits(self.digit_bits));
        let mut power = *self.base;
        let powers = (0..places).map(|_| {
            let first = power;
            for _ in 0..self.digit_bits {
                power.double_in_place();
            }
            first
        });
        let powers = normalize::<P>(&powers.collect::<Vec<_>>());
        let mut table = vec![Point::<P>::INFINITY; places * digits];
        for (of_place, power) in table.chunks_mut(digits).zip(powers) {
            of_place[0] = power;
        }
        let mut adder = BucketAdder::<P>::on(backend);
        let mut known = 1;
        while known < digits {
            // The next as many: those before, and the last of those.
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
        table
    }
}

/// Multiples by the scalars of a block.
pub struct MultiplyBlock<'a, P: Curve> {
    of: &'a Multiples<P>,
    worker: &'a mut MultiplesWorker<P>,
    scalars: &'a [P::ScalarField],
    out: &'a mut [Point<P>],
}

impl<P: Curve> Once for MultiplyBlock<'_, P> {
    type Output = ();

    fn run(self, _: Backend) {
        let Multiples {
            digit_bits, table, ..
        } = self.of;
        let MultiplesWorker {
            adder,
            integers,
            pairs,
        } = self.worker;
        self.out.fill(Point::<P>::INFINITY);
        integers.clear();
        integers.extend(self.scalars.iter().map(|scalar| (scalar.into_bigint(), 0)));
        let digits = digits(*digit_bits);
        for place in 0..places::<P>(*digit_bits) {
            pairs.clear();
            for (at, (scalar, carry)) in integers.iter_mut().enumerate() {
                let first = place * *digit_bits as usize;
                let digit = bits(scalar.as_ref(), first, *digit_bits) + *carry;
                let is_negative = digit > digits;
                *carry = usize::from(is_negative);
                let times = if is_negative { 2 * digits - digit } else { digit };
                if times > 0 {
                    let entry = place * digits + times - 1;
                    pairs.push([at as u32, (2 * entry + usize::from(is_negative)) as u32]);
                }
            }
            adder.add(pairs, self.out, table);
        }
    }
}

impl<P: Curve> Multiples<P> {
    /// Of `base`, with digits of so many bits ([`Self::digit_bits`]).
    pub fn new(backend: Backend, base: &Projective<P>, digit_bits: u32) -> Self {
        let digit_bits = digit_bits.clamp(*DIGIT_BITS.start(), *DIGIT_BITS.end());
        Self {
            backend,
            digit_bits,
            table: P::run_new_table(backend, NewTable { base, digit_bits }),
        }
    }

    /// The bits of a digit for which a table of at most `bytes` and `count` multiples take the fewest additions
    /// together. If no table is that small, those of the smallest one.
    pub fn digit_bits(count: u64, bytes: u64) -> u32 {
        let fits = DIGIT_BITS.filter(|bits| Self::bytes(*bits) <= bytes);
        let additions = |bits: &u32| places::<P>(*bits) as u64 * (count + digits(*bits) as u64);
        fits.min_by_key(additions).unwrap_or(*DIGIT_BITS.start())
    }

    /// Bytes of a table for digits of so many bits.
    pub fn bytes(digit_bits: u32) -> u64 {
        (places::<P>(digit_bits) * digits(digit_bits) * size_of::<Point<P>>()) as u64
    }

    /// For one thread.
    pub fn worker(&self) -> MultiplesWorker<P> {
        MultiplesWorker {
            adder: BucketAdder::on(self.backend),
            integers: Vec::with_capacity(BLOCK_SCALARS),
            pairs: Vec::with_capacity(BLOCK_SCALARS),
        }
    }

    /// `out[i] <- scalars[i] * base`, on this thread. Panics unless there are as many scalars as points.
    pub fn multiply(
        &self,
        worker: &mut MultiplesWorker<P>,
        scalars: &[P::ScalarField],
        out: &mut [Point<P>],
    ) {
        assert_eq!(scalars.len(), out.len(), "a point for each scalar");
        for (scalars, out) in scalars.chunks(BLOCK_SCALARS).zip(out.chunks_mut(BLOCK_SCALARS)) {
            let worker = &mut *worker;
            let of = self;
            P::run_multiply_block(
                self.backend,
                MultiplyBlock {
                    of,
                    worker,
                    scalars,
                    out,
                },
            );
        }
    }
}

impl<P: Curve> MultiplesWorker<P> {
    /// Its bytes, on any backend: about half a MiB.
    pub fn bytes() -> u64 {
        let of_scalar = size_of::<(<P::ScalarField as PrimeField>::BigInt, usize)>() + size_of::<[u32; 2]>();
        BucketAdder::<P>::bytes() + (BLOCK_SCALARS * of_scalar) as u64
    }
}

/// The absolute value of a digit at most.
fn digits(digit_bits: u32) -> usize {
    1 << (digit_bits - 1)
}

/// Digits of a scalar. The last one has a bit to spare, and no carry out.
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

#[cfg(test)]
mod tests {
    use ark_ec::PrimeGroup;
    use ark_ff::{One, UniformRand, Zero};
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn multiplies<P: Curve>(seed: u64) {
        println!("seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let base = Projective::<P>::generator() * P::ScalarField::rand(&mut rng);
        let two = P::ScalarField::from(2u64);
        let mut scalars = vec![
            P::ScalarField::zero(),
            P::ScalarField::one(),
            -P::ScalarField::one(),
            two,
            -two,
        ];
        // Digits on both sides of where signs and carries change.
        for bits in DIGIT_BITS {
            let half = P::ScalarField::from(1u64 << (bits - 1));
            scalars.extend([half, half + P::ScalarField::one(), half.double(), -half]);
        }
        scalars.resize_with(BLOCK_SCALARS + 100, || P::ScalarField::rand(&mut rng));
        for digit_bits in [4, 7, 13] {
            let multiples = Multiples::<P>::new(Backend::detect(), &base, digit_bits);
            let mut out = vec![Point::<P>::INFINITY; scalars.len()];
            multiples.multiply(&mut multiples.worker(), &scalars, &mut out);
            let looked_at = (0..100).chain(BLOCK_SCALARS - 50..scalars.len());
            for at in looked_at {
                assert_eq!(
                    out[at].to_projective::<P>(),
                    base * scalars[at],
                    "{digit_bits} {at}"
                );
            }
            // Of infinity.
            let none = Multiples::<P>::new(Backend::detect(), &Projective::zero(), digit_bits);
            none.multiply(&mut none.worker(), &scalars[..100], &mut out[..100]);
            assert!(out[..100].iter().all(|point| point.is_infinity()));
        }
    }

    #[test]
    fn multiples_are_those_of_arkworks() {
        multiplies::<ark_bn254::g1::Config>(rand::random());
        multiplies::<ark_bn254::g2::Config>(rand::random());
        multiplies::<ark_bls12_381::g1::Config>(rand::random());
        multiplies::<ark_vesta::VestaConfig>(rand::random());
    }

    #[test]
    fn more_multiples_have_longer_digits_as_far_as_a_table_has_room() {
        type Of = Multiples<ark_bn254::g1::Config>;
        let bits = [1, 1 << 10, 1 << 16, 1 << 24].map(|count| Of::digit_bits(count, u64::MAX));
        assert!(bits.is_sorted() && bits[0] < bits[3], "{bits:?}");
        assert_eq!(bits[3], *DIGIT_BITS.end());
        let bytes = Of::bytes(9);
        assert_eq!(
            [bytes, bytes - 1].map(|bytes| Of::digit_bits(1 << 24, bytes)),
            [9, 8]
        );
        assert_eq!(Of::digit_bits(1 << 24, 0), *DIGIT_BITS.start());
    }
}
