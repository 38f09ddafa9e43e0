//! Multiples against arkworks, for points and scalars that are random, special, or chosen so that steps
//! collide.

use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, UniformRand};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::curve::normalize;
use crate::field::KernelField;

fn seed() -> u64 {
    let seed = std::env::var("SPILLPROOF_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(rand::random);
    println!("SPILLPROOF_SEED={seed}");
    seed
}

/// With and without the endomorphism, in lanes where there are any and portable.
fn multipliers<P: Curve>(block_points: usize) -> Vec<Multiplier<P>> {
    let mut all = Vec::new();
    for backend in [Backend::Portable, Backend::Avx2, Backend::Avx512] {
        for recoding in [Recoding::new(), Recoding::without_endomorphism()] {
            all.push(Multiplier {
                recoding,
                block_points,
                ..Multiplier::new(backend, block_points)
            });
        }
    }
    all
}

fn points<P: Curve>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Projective<P>> {
    let generator = Projective::<P>::generator();
    let special = [
        Projective::ZERO,
        generator,
        -generator,
        generator.double(),
        Projective::ZERO,
        generator,
    ];
    (0..len)
        .map(|i| match special.get(i % 11) {
            Some(special) => *special,
            None => Projective::rand(rng),
        })
        .collect()
}

fn edges<F: KernelField>() -> Vec<F> {
    let mut scalars: Vec<F> = (0..40u64).map(F::from).collect();
    scalars.extend((0..40u64).map(|small| -F::from(small)));
    scalars.extend((0..F::MODULUS_BIT_SIZE).map(|bit| F::from(2u64).pow([u64::from(bit)])));
    let half = F::from(F::MODULUS_MINUS_ONE_DIV_TWO.into());
    scalars.extend([half, half + F::ONE, half.double()]);
    scalars
}

/// `by_one`: also every scalar alone, for all points of a block.
fn all_scalars<P: Curve>(by_one: bool) {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut scalars = edges::<P::ScalarField>();
    scalars.extend((0..20).map(|_| P::ScalarField::rand(&mut rng)));
    // Roots of unity, the endomorphism's among them: halves are short, and digits repeat.
    let mut exponent: num_bigint::BigUint = P::ScalarField::MODULUS.into();
    exponent = (exponent - 1u32) / 3u32;
    let root = P::ScalarField::from(5u64).pow(exponent.to_u64_digits());
    scalars.extend([
        root,
        root.square(),
        -root,
        root + P::ScalarField::ONE,
        root - P::ScalarField::ONE,
    ]);

    let given = points::<P>(scalars.len(), &mut rng);
    let each: Vec<_> = given
        .iter()
        .zip(&scalars)
        .map(|(point, scalar)| *point * scalar)
        .collect();
    for multiplier in multipliers::<P>(37) {
        let mut ours = normalize::<P>(&given);
        multiplier.multiply_each(&mut ours, &scalars);
        assert_eq!(
            ours,
            normalize::<P>(&each),
            "seed {seed}, {:?}",
            multiplier.backend
        );
        // One scalar for each block: some are small enough for every edge.
        for scalar in scalars.iter().filter(|_| by_one) {
            let mut ours = normalize::<P>(&given[..19]);
            let wanted: Vec<_> = given[..19].iter().map(|point| *point * scalar).collect();
            multiplier.multiply(&mut ours, scalar);
            assert_eq!(ours, normalize::<P>(&wanted), "seed {seed}, {scalar}");
            let mut ours = normalize::<P>(&given[..19]);
            multiplier.multiply_each(&mut ours, &[*scalar; 19]);
            assert_eq!(ours, normalize::<P>(&wanted), "seed {seed}, {scalar} for each");
        }
    }
}

#[test]
fn multiples_are_arkworks_for_points_and_scalars_of_all_kinds() {
    all_scalars::<ark_bn254::g1::Config>(true);
    all_scalars::<ark_pallas::PallasConfig>(true);
    all_scalars::<ark_bn254::g2::Config>(false);
    all_scalars::<ark_bls12_381::g1::Config>(false);
}

/// `points + sum of scalars * inputs`, for inputs that repeat and cancel each other.
fn combinations<P: Curve>(inputs: usize) {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let len = 50;
    let given: Vec<Vec<Projective<P>>> = (0..=inputs).map(|_| points::<P>(len, &mut rng)).collect();
    let flat: Vec<Vec<Point<P>>> = given.iter().map(|points| normalize::<P>(points)).collect();
    let few = [P::ScalarField::ZERO, P::ScalarField::ONE, -P::ScalarField::ONE];
    let mut choices: Vec<Vec<P::ScalarField>> = few.iter().map(|scalar| vec![*scalar; inputs]).collect();
    choices.extend((0..4).map(|_| (0..inputs).map(|_| P::ScalarField::rand(&mut rng)).collect()));
    choices.push((0..inputs).map(|input| few[input % 3]).collect());
    for scalars in choices {
        let sum = |i: usize| {
            let terms = scalars.iter().zip(&given[1..]);
            terms.fold(given[0][i], |sum, (scalar, points)| sum + points[i] * scalar)
        };
        let wanted: Vec<_> = (0..len).map(sum).collect();
        for backend in [Backend::Portable, Backend::Avx2, Backend::Avx512] {
            for recoding in [Recoding::new(), Recoding::without_endomorphism()] {
                let multiplier = Multiplier {
                    recoding,
                    block_points: 17,
                    ..Multiplier::<P>::for_combinations(backend, 0, inputs)
                };
                let mut ours = flat[0].clone();
                let inputs: Vec<&[Point<P>]> = flat[1..].iter().map(Vec::as_slice).collect();
                multiplier.combine(&mut ours, &inputs, &scalars);
                assert_eq!(
                    ours,
                    normalize::<P>(&wanted),
                    "seed {seed}, {backend:?}, {scalars:?}"
                );
            }
        }
    }
}

#[test]
fn combinations_are_arkworks() {
    combinations::<ark_bn254::g1::Config>(1);
    combinations::<ark_pallas::PallasConfig>(3);
    combinations::<ark_bn254::g2::Config>(2);
    combinations::<ark_bls12_381::g1::Config>(2);
}

#[test]
fn blocks_of_all_lengths_are_right() {
    type P = ark_bn254::g1::Config;
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let scalar = ark_bn254::Fr::rand(&mut rng);
    let given = points::<P>(300, &mut rng);
    let wanted = normalize::<P>(&given.iter().map(|point| *point * scalar).collect::<Vec<_>>());
    let given = normalize::<P>(&given);
    for backend in [Backend::Portable, Backend::Avx2, Backend::Avx512] {
        let multiplier = Multiplier::<P>::new(backend, 128);
        for len in [0usize, 1, 2, 7, 8, 9, 127, 128, 129, 300] {
            let mut ours = given[..len].to_vec();
            multiplier.multiply(&mut ours, &scalar);
            assert_eq!(ours, wanted[..len], "seed {seed}, {len} points");
        }
        assert!(multiplier.idle.lock().unwrap().len() <= rayon::current_num_threads());
    }
}

fn butterflies<P: Curve>() {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let a = Projective::<P>::rand(&mut rng);
    let b = Projective::<P>::rand(&mut rng);
    let zero = Projective::ZERO;
    // Equal, opposite, one or both at infinity; among ordinary ones, or not.
    let mut pairs = vec![(a, a), (a, -a), (zero, a), (a, zero), (zero, zero), (a, b)];
    for ordinary in [0usize, 40] {
        pairs.extend((0..ordinary).map(|_| (Projective::rand(&mut rng), Projective::rand(&mut rng))));
        for multiplier in multipliers::<P>(128) {
            for factors in [0, 1, pairs.len() / 2, pairs.len()] {
                let ones = pairs.len() - factors;
                let scalars: Vec<_> = (0..factors)
                    .map(|i| P::ScalarField::from(1 + i as u64 % 3))
                    .collect();
                let (mut sums, mut differences) = (Vec::new(), Vec::new());
                for (i, (low, high)) in pairs.iter().enumerate() {
                    let high = match i.checked_sub(ones) {
                        None => *high,
                        Some(i) => *high * scalars[i],
                    };
                    sums.push(*low + high);
                    differences.push(*low - high);
                }
                let (low, high): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
                let (mut low, mut high) = (normalize::<P>(&low), normalize::<P>(&high));
                multiplier.butterflies(&mut low, &mut high, &scalars);
                assert_eq!(low, normalize::<P>(&sums), "seed {seed}");
                assert_eq!(high, normalize::<P>(&differences), "seed {seed}");
            }
        }
    }
}

#[test]
fn butterflies_are_sums_and_differences() {
    butterflies::<ark_bn254::g1::Config>();
    butterflies::<ark_pallas::PallasConfig>();
}

/// y^2 = x^3 - 3x + 6 over BN254's base field: no endomorphism, and a is not zero. It stands in for curves of
/// another shape; its order is not known here, so scalars are integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other;

impl ark_ec::CurveConfig for Other {
    type BaseField = ark_bn254::Fq;
    type ScalarField = ark_bn254::Fr;
    const COFACTOR: &'static [u64] = &[3];
    const COFACTOR_INV: ark_bn254::Fr = ark_ff::MontFp!("1");
}

impl ark_ec::short_weierstrass::SWCurveConfig for Other {
    type ZeroFlag = bool;
    const COEFF_A: ark_bn254::Fq = ark_ff::MontFp!("-3");
    // (1, 2) is on it, and so is a point of order two: x = 2 gives 2^3 - 3 * 2 + 6 = 8, and 6 = 4 - 1 + 3.
    const COEFF_B: ark_bn254::Fq = ark_ff::MontFp!("6");
    const GENERATOR: ark_ec::short_weierstrass::Affine<Self> =
        ark_ec::short_weierstrass::Affine::new_unchecked(ark_ff::MontFp!("1"), ark_ff::MontFp!("2"));
}

/// Multiples by plain additions, which know nothing of orders.
fn by_additions<P: Curve>(point: Projective<P>, scalar: &P::ScalarField) -> Projective<P> {
    let mut sum = Projective::ZERO;
    for bit in scalar.into_bigint().to_bits_be() {
        sum.double_in_place();
        if bit {
            sum += point;
        }
    }
    sum
}

#[test]
fn any_curve_will_do_and_scalars_are_integers_without_an_endomorphism() {
    assert_eq!(Recoding::<Other>::new().beta(), ark_bn254::Fq::ONE);
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut scalars = edges::<ark_bn254::Fr>();
    scalars.extend((0..20).map(|_| ark_bn254::Fr::rand(&mut rng)));
    let mut point = Projective::<Other>::generator();
    let given: Vec<_> = scalars
        .iter()
        .map(|_| {
            point += Projective::<Other>::generator();
            point
        })
        .collect();
    let wanted: Vec<_> = given
        .iter()
        .zip(&scalars)
        .map(|(point, scalar)| by_additions(*point, scalar))
        .collect();
    for multiplier in multipliers::<Other>(64) {
        let mut ours = normalize::<Other>(&given);
        multiplier.multiply_each(&mut ours, &scalars);
        assert_eq!(ours, normalize::<Other>(&wanted), "seed {seed}");
        for scalar in &scalars {
            let mut ours = normalize::<Other>(&given[..9]);
            multiplier.multiply(&mut ours, scalar);
            let wanted: Vec<_> = given[..9]
                .iter()
                .map(|point| by_additions(*point, scalar))
                .collect();
            assert_eq!(ours, normalize::<Other>(&wanted), "seed {seed}, {scalar}");
        }
    }
}
