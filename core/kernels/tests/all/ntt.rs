//! Transforms against the naive sum, ark-poly and halo2curves' `best_fft`, over every size up to 2^15 and
//! every split.

use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, FftField, Field};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

use spillproof_kernels::ntt::*;
use std::sync::atomic::{AtomicU64, Ordering};

use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, normalize};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly::scale_powers;

fn random<F: KernelField>(n: usize, seed: u64) -> Vec<F> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| F::rand(&mut rng)).collect()
}

fn root<F: KernelField>(log_n: u32) -> F {
    F::get_root_of_unity(1 << log_n).unwrap()
}

fn naive<F: KernelField>(values: &[F], omega: F) -> Vec<F> {
    (0..values.len() as u64)
        .map(|k| {
            (0u64..)
                .zip(values)
                .map(|(i, value)| *value * omega.pow([i * k]))
                .sum()
        })
        .collect()
}

fn check<F: KernelField>(log_n: u32, seed: u64) {
    let n = 1usize << log_n;
    let omega = root::<F>(log_n);
    let domain = Domain::new(log_n, omega).unwrap();
    let peer = Radix2EvaluationDomain::<F>::new(n).unwrap();
    assert_eq!(peer.group_gen, omega);
    let coefficients: Vec<F> = random(n, seed);

    let mut values = coefficients.clone();
    domain.forward(&mut values);
    assert_eq!(values, peer.fft(&coefficients), "forward, 2^{log_n}");
    if n <= 64 {
        assert_eq!(values, naive(&coefficients, omega));
    }
    domain.inverse(&mut values);
    assert_eq!(values, coefficients, "inverse, 2^{log_n}");

    let shift = F::GENERATOR;
    let coset = peer.get_coset(shift).unwrap();
    domain.coset_forward(&mut values, &shift);
    assert_eq!(values, coset.fft(&coefficients), "coset, 2^{log_n}");
    domain.coset_inverse(&mut values, &shift);
    assert_eq!(values, coefficients, "coset inverse, 2^{log_n}");
}

#[test]
fn every_size_equals_the_peer() {
    for log_n in 0..=15 {
        check::<ark_bn254::Fr>(log_n, u64::from(log_n));
        check::<ark_pallas::Fr>(log_n, u64::from(log_n));
    }
    check::<ark_pallas::Fq>(13, 1);
}

/// Extreme values: lazy arithmetic has its least room there.
#[test]
fn extreme_values_equal_the_peer() {
    for log_n in [4, 11, 12, 13] {
        let n = 1usize << log_n;
        let domain = Domain::new(log_n, root::<ark_bn254::Fr>(log_n)).unwrap();
        for value in [-ark_bn254::Fr::from(1u64), ark_bn254::Fr::from(0u64)] {
            let mut values = vec![value; n];
            domain.forward(&mut values);
            assert_eq!(
                values,
                Radix2EvaluationDomain::<ark_bn254::Fr>::new(n)
                    .unwrap()
                    .fft(&vec![value; n])
            );
        }
    }
}

/// halo2curves' BN254 root of unity is another one than arkworks': the root is a parameter.
#[test]
fn equal_to_best_fft_with_halo2curves_root() {
    use halo2curves::bn256::Fr as Peer;
    use halo2curves::ff::{Field as _, PrimeField as _};
    let ours = |value: &Peer| ark_bn254::Fr::from_le_bytes_mod_order(value.to_repr().as_ref());
    use ark_ff::PrimeField as _;
    for log_n in [1u32, 5, 11, 12, 15] {
        let omega = Peer::ROOT_OF_UNITY.pow_vartime([1u64 << (Peer::S - log_n)]);
        let mut peer: Vec<Peer> = (0..1u64 << log_n)
            .map(|i| Peer::from(i * i + 7).square())
            .collect();
        let mut values: Vec<_> = peer.iter().map(ours).collect();
        halo2curves::fft::best_fft(&mut peer, omega, log_n);
        Domain::new(log_n, ours(&omega)).unwrap().forward(&mut values);
        assert_eq!(values, peer.iter().map(ours).collect::<Vec<_>>());
    }
}

/// A matrix transform over panels of any width, as it is run over a matrix on disk.
fn four_step(log_rows: u32, log_columns: u32, panel_width: usize, seed: u64) {
    type F = ark_bn254::Fr;
    let (height, width) = (1usize << log_rows, 1usize << log_columns);
    let omega = root::<F>(log_rows + log_columns);
    let coefficients: Vec<F> = random(height * width, seed);
    let mut matrix = coefficients.clone();
    // To a coset, or not.
    let shift = F::from([1u64, 5][seed as usize % 3 / 2]);
    let before = shift.pow([width as u64]);
    let down = Twiddles::new(log_rows, root::<F>(log_rows)).unwrap();
    for first in (0..width).step_by(panel_width) {
        let t = panel_width.min(width - first);
        let mut panel: Vec<F> = matrix
            .chunks(width)
            .flat_map(|row| &row[first..first + t])
            .copied()
            .collect();
        let factors = Twist {
            root: omega,
            first_row: 0,
            first_column: first as u64,
            scale: F::from(1u64),
            base: shift,
            row: F::from(1u64),
        };
        if seed.is_multiple_of(2) {
            columns(&mut panel, t, &down, &before, Some(&factors));
        } else {
            columns(&mut panel, t, &down, &before, None);
            // The twist alone, in two bands of rows.
            let (above, below) = panel.split_at_mut(height / 2 * t);
            twist(above, t, &factors);
            twist(
                below,
                t,
                &Twist {
                    first_row: height as u64 / 2,
                    ..factors
                },
            );
        }
        for (row, from) in matrix.chunks_mut(width).zip(panel.chunks(t)) {
            row[first..first + t].copy_from_slice(from);
        }
    }
    rows(
        &mut matrix,
        &Twiddles::new(log_columns, root::<F>(log_columns)).unwrap(),
    );
    let mut values = vec![F::from(0u64); matrix.len()];
    transpose_block(&matrix, width, height, width, &mut values);
    let peer = Radix2EvaluationDomain::<F>::new(height * width).unwrap();
    let peer = peer.get_coset(shift).unwrap();
    assert_eq!(
        values,
        peer.fft(&coefficients),
        "{height} x {width}, panels of {panel_width}"
    );
}

#[test]
fn not_a_root_is_refused() {
    let three = ark_bn254::Fr::from(3u64);
    assert!(Domain::new(4, three).is_err());
    assert!(Twiddles::new(3, root::<ark_bn254::Fr>(4)).is_err());
    assert!(Twiddles::new(4, root::<ark_bn254::Fr>(3)).is_err());
    assert!(Domain::new(0, three).is_err());
    assert!(Domain::new(200, three).is_err());
}

/// Transforms of points against the same transforms of their logarithms, whole and by columns.
fn points_transform_like_their_logarithms<P: Curve>() {
    for backend in [Backend::Portable, Backend::Avx2, Backend::Avx512] {
        for log_n in 0..=9u32 {
            let n = 1usize << log_n;
            let omega = root::<P::ScalarField>(log_n);
            let domain = Domain::new(log_n, omega).unwrap();
            let mut scalars: Vec<P::ScalarField> = random(n, u64::from(log_n));
            // A transform that is padded, with the same point twice.
            scalars[n / 2..n - n / 8].fill(P::ScalarField::ZERO);
            let base = Projective::<P>::generator();
            let points = |scalars: &[P::ScalarField]| {
                normalize(&scalars.iter().map(|scalar| base * scalar).collect::<Vec<_>>())
            };
            let given = points(&scalars);

            let done = AtomicU64::new(0);
            let progress = |points| {
                done.fetch_add(points, Ordering::Relaxed);
            };
            let transforms = PointTransforms::<P>::new(backend, 128, &progress);
            let (one, shift) = (P::ScalarField::ONE, P::ScalarField::GENERATOR);
            let mut ours = given.clone();
            transforms.transform(&mut ours, omega, &shift, &one, one).unwrap();
            let mut wanted = scalars.clone();
            domain.coset_forward(&mut wanted, &shift);
            assert_eq!(ours, points(&wanted), "forward, 2^{log_n}");
            assert_eq!(done.load(Ordering::Relaxed), (n as u64) * u64::from(log_n));

            let scale = P::ScalarField::from(n as u64).inverse().unwrap();
            let (omega_inverse, shift_inverse) = (omega.inverse().unwrap(), shift.inverse().unwrap());
            transforms
                .transform(&mut ours, omega_inverse, &one, &shift_inverse, scale)
                .unwrap();
            assert_eq!(ours, given, "there and back, 2^{log_n}");

            for log_width in 0..=log_n {
                let twiddles =
                    Twiddles::new(log_n - log_width, root::<P::ScalarField>(log_n - log_width)).unwrap();
                let factors = Twist {
                    root: omega,
                    first_row: 3,
                    first_column: 5,
                    scale: shift,
                    base: shift_inverse,
                    row: -one,
                };
                for twist in [None, Some(&factors)] {
                    let (mut ours, mut wanted) = (given.clone(), scalars.clone());
                    transforms.columns(&mut ours, 1 << log_width, &twiddles, &shift, twist);
                    columns(&mut wanted, 1 << log_width, &twiddles, &shift, twist);
                    assert_eq!(ours, points(&wanted), "columns, 2^{log_n}, 2^{log_width} wide");
                }
            }
            assert!(
                transforms
                    .transform(&mut vec![given[0]; 2 * n], omega, &one, &one, one)
                    .is_err()
            );
        }
    }
}

#[test]
fn points_transform_like_scalars() {
    points_transform_like_their_logarithms::<ark_bn254::g1::Config>();
    points_transform_like_their_logarithms::<ark_pallas::PallasConfig>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn four_step_over_panels_equals_the_peer(
        log_rows in 1u32..9, log_columns in 0u32..7, panel_width in 1usize..70, seed in 0u64..1000,
    ) {
        four_step(log_rows, log_columns, panel_width, seed);
    }

    #[test]
    fn coset_scaling_may_be_chunked(chunk in 1usize..300, start in 0u64..5000) {
        let values: Vec<ark_bn254::Fr> = random(257, start);
        let g = ark_bn254::Fr::GENERATOR;
        let mut scaled = values.clone();
        for (i, part) in scaled.chunks_mut(chunk).enumerate() {
            scale_powers(part, start + (i * chunk) as u64, &g);
        }
        for (i, (scaled, value)) in scaled.iter().zip(&values).enumerate() {
            prop_assert_eq!(*scaled, *value * g.pow([start + i as u64]));
        }
    }
}
