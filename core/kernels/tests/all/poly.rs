//! Each scan against a naive twin, over chunk sizes that do not divide the length.

use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly::*;

fn random<F: KernelField>(n: usize, seed: u64) -> Vec<F> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    (0..n)
        .map(|i| {
            if (seed + i as u64).is_multiple_of(7) {
                F::ZERO
            } else {
                F::rand(&mut rng)
            }
        })
        .collect()
}

fn naive_value<F: KernelField>(values: &[F], point: F) -> F {
    values
        .iter()
        .enumerate()
        .map(|(i, value)| *value * point.pow([i as u64]))
        .sum()
}

fn check_all<F: KernelField>(n: usize, chunk: usize, seed: u64) {
    let values: Vec<F> = random(n, seed);
    let points: Vec<F> = [random(1, seed + 1).as_slice(), &[F::ZERO, F::ONE]].concat();

    for point in &points {
        let mut quotient = values.clone();
        let remainder = quotient
            .chunks_mut(chunk)
            .rev()
            .fold(F::ZERO, |carry, chunk| divide_chunk(chunk, point, carry));
        assert_eq!(remainder, naive_value(&values, *point));
        // quotient * (X - point) + remainder is the polynomial again.
        if n > 0 {
            assert!(quotient[n - 1].is_zero());
            for i in 0..n {
                let shifted = if i == 0 { remainder } else { quotient[i - 1] };
                assert_eq!(values[i], shifted - quotient[i] * point);
            }
        }
    }
    let mut carries = vec![F::ZERO; points.len()];
    values
        .chunks(chunk)
        .rev()
        .for_each(|chunk| evaluate_chunk_many(chunk, &points, &mut carries));
    for (carry, point) in carries.iter().zip(&points) {
        assert_eq!(*carry, naive_value(&values, *point));
    }

    // Fractions, among them zeros, and a few over zero.
    let factors: Vec<F> = values.iter().map(|value| *value + F::ONE).collect();
    let mut fractions: Vec<F> = factors.clone();
    let mut denominators: Vec<F> = random(n, seed + 4);
    let spare = (seed % 3) as usize;
    for (i, denominator) in denominators.iter_mut().enumerate() {
        if i % 5 != spare || i < n / 2 {
            *denominator += F::ONE;
        }
    }
    let wanted = denominators.clone();
    let last = fractions
        .chunks_mut(chunk)
        .zip(denominators.chunks_mut(chunk))
        .fold(points[0], |carry, (numerators, denominators)| {
            fraction_product_chunk(numerators, denominators, carry, |_, _, _| {})
        });
    let mut running = points[0];
    for ((product, factor), denominator) in fractions.iter().zip(&factors).zip(&wanted) {
        assert_eq!(*product, running);
        running *= *factor * denominator.inverse().unwrap_or(F::ZERO);
    }
    assert_eq!(last, running);

    let mut inverses = values.clone();
    inverses.chunks_mut(chunk).for_each(invert_chunk);
    for (inverse, value) in inverses.iter().zip(&values) {
        assert_eq!(*inverse, value.inverse().unwrap_or(F::ZERO));
    }

    // Whole numbers, fractions, and fractions over 0.
    let cells: Vec<(F, Option<F>)> = (values.iter().zip(random(n, seed + 3)))
        .enumerate()
        .map(|(i, (numerator, denominator))| (*numerator, (i % 3 != 0).then_some(denominator)))
        .collect();
    let mut fractions = vec![F::ONE; n];
    fractions
        .chunks_mut(chunk)
        .zip(cells.chunks(chunk))
        .for_each(|(output, cells)| quotients(cells, |cell| *cell, output));
    for (fraction, (numerator, denominator)) in fractions.iter().zip(&cells) {
        let inverse = denominator.map_or(F::ONE, |value| value.inverse().unwrap_or(F::ZERO));
        assert_eq!(*fraction, *numerator * inverse);
    }

    check_factors(&values, &factors, &points);

    let other: Vec<F> = random(n / 2, seed + 2);
    let mut sum = vec![F::ONE; n];
    linear_combination(&mut sum, &[(points[0], &values), (F::from(3u64), &other)]);
    let mut twin = vec![F::ZERO; n];
    add_scaled(&mut twin, &F::from(3u64), &other);
    add_scaled(&mut twin, &points[0], &values);
    for i in 0..n {
        let want = values[i] * points[0] + other.get(i).copied().unwrap_or(F::ZERO) * F::from(3u64);
        assert_eq!((sum[i], twin[i]), (want, want));
    }
    let mut nothing = values.clone();
    linear_combination(&mut nothing, &[]);
    assert!(nothing.iter().all(F::is_zero));

    let mut scaled = values.clone();
    for (i, chunk_values) in scaled.chunks_mut(chunk).enumerate() {
        scale_powers(chunk_values, (i * chunk) as u64, &points[0]);
    }
    let mut sequence = vec![F::ZERO; n];
    powers(&mut sequence, &points[0], &points[0]);
    for i in 0..n {
        let power = points[0].pow([i as u64]);
        assert_eq!(scaled[i], values[i] * power);
        assert_eq!(sequence[i], power * points[0]);
    }
}

fn check_factors<F: KernelField>(values: &[F], others: &[F], points: &[F]) {
    let n = values.len();
    let challenges = PermutationChallenges {
        beta: points[0],
        gamma: points[0] + points[2],
        delta: F::from(7u64),
    };
    let PermutationChallenges { beta, gamma, delta } = challenges;
    let mut names: Vec<F> = others.iter().rev().copied().collect();
    let (before, mut numerators, mut denominators) = (names.clone(), values.to_vec(), others.to_vec());
    multiply_permutation_factors(
        &challenges,
        values,
        others,
        &mut names,
        &mut numerators,
        &mut denominators,
    );
    let mut shifted = vec![F::ONE; n];
    multiply_shifted((values, &beta), (others, &gamma), &mut shifted);
    let mut gathered = vec![F::ONE; n];
    let third = |i: usize| i.is_multiple_of(3).then_some(&values[n - 1 - i]);
    gathered_products(&mut gathered, |i| {
        (&values[i * 5 % n], &others[n - 1 - i], third(i / 16))
    });
    for i in 0..n {
        assert_eq!(numerators[i], values[i] * (values[i] + before[i] + gamma));
        assert_eq!(
            denominators[i],
            others[i] * (values[i] + beta * others[i] + gamma)
        );
        assert_eq!(names[i], before[i] * delta);
        assert_eq!(shifted[i], (values[i] + beta) * (others[i] + gamma));
        let product = values[i * 5 % n] * others[n - 1 - i];
        assert_eq!(gathered[i], product * third(i / 16).unwrap_or(&F::ONE));
    }
}

#[test]
fn scans_equal_their_naive_twins_at_piece_borders() {
    for n in [0, 1, 2, 3, 4, 5, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 3] {
        for chunk in [1.max(n / 3), PIECE, 2 * PIECE + 7] {
            check_all::<ark_bn254::Fr>(n, chunk, n as u64);
        }
    }
    check_all::<ark_pallas::Fr>(PIECE + 17, 700, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn scans_equal_their_naive_twins(n in 0usize..600, chunk in 1usize..200, seed in 0u64..u64::MAX / 2) {
        check_all::<ark_bn254::Fr>(n, chunk, seed);
    }
}
