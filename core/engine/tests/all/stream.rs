//! Streamed transforms, sums and scans against libraries that we did not write, bit for bit.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::common::{converted, omega, on_one_and_two_threads, place, scalars};
use ark_bn254::{Fr, G1Projective, g1};
use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{G1, lagrange_from_monomial};
use spillproof_engine::Error;
use spillproof_engine::column::{Column, Element, Placement};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{
    self, NttPlan, Scalars, Transform, group_ntt_in_tiles, ntt, ntt_in_tiles, transform_twice,
};
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::normalize;
use spillproof_kernels::points::{BLOCK_POINTS_MAX, Multiplier};
use stock_halo2_axiom::halo2curves::bn256 as stock;
use stock_halo2_axiom::poly::EvaluationDomain;

/// The same limbs in stock's type.
fn to_stock(values: &[Fr]) -> Vec<stock::Fr> {
    values.iter().map(converted).collect()
}

fn tiles(log_n: u32) -> Vec<u32> {
    let smallest = NttPlan::log_tile_min(log_n, 32);
    (smallest..=log_n).collect()
}

#[test]
fn transforms_are_halo2_s_for_every_tile() {
    let place = place(64 << 20);
    for log_n in [0, 1, 2, 5, 8, 11, 14] {
        let values = scalars(1 << log_n, u64::from(log_n));
        let domain = EvaluationDomain::<stock::Fr>::new(5, log_n);
        let input = place.column(&values);
        let (w, extended_w) = (omega(log_n), omega(domain.extended_k()));
        assert_eq!(
            to_stock(&[w, extended_w]),
            [domain.get_omega(), domain.get_extended_omega()]
        );
        let zeta = ark_of(domain.g_coset);

        let lagrange = domain.lagrange_from_vec(to_stock(&values));
        let coefficients = domain.lagrange_to_coeff(lagrange);
        let extended = domain.coeff_to_extended(&domain.coeff_from_vec(to_stock(&values)));
        let part_shift = extended_w * extended_w * extended_w;
        let part = domain.coeff_to_extended_part(
            domain.coeff_from_vec(to_stock(&values)),
            to_stock(&[part_shift])[0],
        );

        for log_tile in tiles(log_n) {
            let inverse = Transform::inverse(log_n, w).expect("a root");
            let ours = ntt_in_tiles(&input, &inverse, Placement::Disk, log_tile).expect("transform");
            assert_stock(&ours, coefficients.values(), "lagrange_to_coeff", log_tile);

            let forward = Transform::forward(log_n, w);
            let back = ntt_in_tiles(&ours, &forward, Placement::Auto, log_tile).expect("transform");
            assert_eq!(back.to_vec().expect("readable"), values, "there and back");

            let coset = Transform::coset_forward(log_n, w, zeta * part_shift);
            let ours = ntt_in_tiles(&input, &coset, Placement::Disk, log_tile).expect("transform");
            assert_stock(&ours, part.values(), "coeff_to_extended_part", log_tile);
        }
        let log_extended = domain.extended_k();
        for log_tile in tiles(log_extended) {
            let coset = Transform::coset_forward(log_extended, extended_w, zeta);
            let ours = ntt_in_tiles(&input, &coset, Placement::Disk, log_tile).expect("transform");
            assert_stock(&ours, extended.values(), "coeff_to_extended", log_tile);

            let coset = Transform::coset_inverse(log_extended, extended_w, zeta).expect("a root");
            let back = ntt_in_tiles(&ours, &coset, Placement::Disk, log_tile).expect("transform");
            let wanted = domain.extended_to_coeff(extended.clone());
            let back = back.prefix(wanted.len() as u64).expect("shorter");
            assert_stock(&back, &wanted, "extended_to_coeff", log_tile);
        }
    }
    assert_eq!(place.workspace.budget.held_bytes(), 0);
}

fn ark_of(value: stock::Fr) -> Fr {
    let mut bytes = [0; 32];
    value.encode(&mut bytes);
    Fr::decode(&bytes)
}

fn assert_stock(ours: &Column<Fr>, wanted: &[stock::Fr], what: &str, log_tile: u32) {
    let ours = ours
        .cast::<stock::Fr>()
        .and_then(|column| column.to_vec())
        .expect("readable");
    assert!(ours == wanted, "{what} in tiles of 2^{log_tile}");
}

#[test]
fn an_input_of_any_length_counts_as_padded() {
    let place = place(64 << 20);
    let log_n = 13;
    for len in [1, 300, 4096, 5000, (1 << log_n) - 1] {
        let values = scalars(len, len as u64);
        let mut padded = values.clone();
        padded.resize(1 << log_n, Fr::ZERO);
        let (short, long) = (place.column(&values), place.column(&padded));
        let transform = Transform::coset_forward(log_n, omega(log_n), Fr::from(11u64));
        let wanted = ntt_in_tiles(&long, &transform, Placement::Disk, log_n).expect("transform");
        for log_tile in tiles(log_n) {
            let ours = ntt_in_tiles(&short, &transform, Placement::Disk, log_tile).expect("transform");
            assert!(
                ours.to_vec().expect("readable") == wanted.to_vec().expect("readable"),
                "{len}"
            );
        }
    }
}

#[test]
fn a_transform_that_cannot_fit_says_what_would() {
    let place = place(1 << 20);
    let values = scalars(1 << 16, 1);
    let input = place.column(&values);
    let transform = Transform::forward(16, omega(16));
    let inside = ntt(&input, &transform, Placement::Disk).expect("fits a mebibyte");
    assert!(place.workspace.budget.peak_bytes() <= 1 << 20);
    drop(inside);
    let _held = place
        .workspace
        .budget
        .lease(900 << 10, "something else")
        .expect("room");
    match ntt(&input, &transform, Placement::Disk) {
        Err(Error::BudgetTooSmall { needed_bytes, .. }) => assert!(needed_bytes > 1 << 20),
        other => panic!("{other:?}"),
    }
}

/// Values on a domain to values on a coset, and `a * b - c` of three columns of them.
#[test]
fn columns_transformed_twice_are_arkworks_in_every_way() {
    // How often a column's bytes are written: at once in memory, one column after the other, in three passes,
    // in four.
    let mut written = BTreeSet::new();
    for (log_n, budgets_mib) in [
        (0, vec![64]),
        (9, vec![64]),
        (14, vec![2]),
        // With fewer rows a column fits the budget before three passes do.
        (19, vec![64, 24, 12, 6]),
    ] {
        let n = 1usize << log_n;
        let domain = Radix2EvaluationDomain::<Fr>::new(n).expect("a domain");
        let shift = scalars(1, 7)[0];
        let coset = domain.get_coset(shift).expect("a coset");
        // The last one is padded.
        let values = [0, 1, 2].map(|seed| scalars(n - n / 3 * (seed as usize / 2), seed));
        let moved = values.clone().map(|mut values| {
            values.resize(n, Fr::ZERO);
            domain.ifft_in_place(&mut values);
            coset.fft_in_place(&mut values);
            values
        });
        let wanted: Vec<Fr> = (0..n).map(|i| moved[0][i] * moved[1][i] - moved[2][i]).collect();
        let to_coefficients = Transform {
            after: shift,
            ..Transform::inverse(log_n, domain.group_gen).expect("a root")
        };
        let to_values = Transform::forward(log_n, domain.group_gen);
        let less = |a: &mut [Fr], others: &[&[Fr]]| {
            for (i, a) in a.iter_mut().enumerate() {
                *a = *a * others[0][i] - others[1][i];
            }
        };
        for budget_mib in budgets_mib {
            let written_columns = || {
                let place = place(budget_mib << 20);
                let inputs = [0, 1, 2].map(|i| place.column(&values[i]));
                let before = place.workspace.storage.stats().bytes_written;
                let transforms = [&to_coefficients, &to_values];
                let ours = transform_twice(inputs, transforms, &less, Placement::Disk).expect("transforms");
                let bytes = place.workspace.storage.stats().bytes_written - before;
                assert!(
                    ours.to_vec().expect("read") == wanted,
                    "2^{log_n} in {budget_mib} MiB"
                );
                bytes / (n as u64 * 32)
            };
            if log_n == 19 {
                written.insert(written_columns());
            } else {
                on_one_and_two_threads(|| {
                    written_columns();
                });
            }
        }
    }
    assert_eq!(written, BTreeSet::from([1, 4, 7, 13]));
}

fn points(len: usize, seed: u64) -> Vec<G1> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let first = G1Projective::rand(&mut rng);
    let step = G1Projective::rand(&mut rng);
    let mut sum = first;
    let mut all = Vec::with_capacity(len);
    for _ in 0..len {
        all.push(sum);
        sum += step;
    }
    normalize::<g1::Config>(&all)
}

#[test]
fn the_streamed_msm_is_arkworks_for_every_budget_and_several_columns() {
    for (budget_bytes, n) in [
        (64 << 20, 0usize),
        (64 << 20, 1),
        (2 << 20, 3),
        (3 << 20, 1000),
        (4 << 20, 70_000),
    ] {
        let place = place(budget_bytes);
        let bases = points(n, 5);
        let affine: Vec<_> = bases
            .iter()
            .map(|point| point.to_affine::<g1::Config>())
            .collect();
        let mut vectors = [scalars(n, 1), scalars(n / 2, 2), vec![Fr::from(3u64); n]];
        // Real witnesses are full of these.
        for (i, value) in vectors[0].iter_mut().enumerate() {
            match i % 5 {
                0 => *value = Fr::ZERO,
                1 => *value = -Fr::ONE,
                _ => (),
            }
        }
        let on_disk = place.column(&bases);
        let columns: Vec<_> = vectors.iter().map(|values| place.column(values)).collect();
        let mixed = [
            Scalars::Column(&columns[0]),
            Scalars::Slice(&vectors[1]),
            Scalars::Column(&columns[2]),
        ];
        let sums = stream::msm::<g1::Config>(&on_disk, &mixed).expect("sums");
        for (values, sum) in vectors.iter().zip(sums) {
            let wanted = G1Projective::msm_unchecked(&affine[..values.len()], values);
            assert_eq!(
                sum.into_affine(),
                wanted.into_affine(),
                "{n} points in {budget_bytes} bytes"
            );
        }
        assert!(place.workspace.budget.peak_bytes() <= budget_bytes);
        if n > 0 {
            let short = on_disk.prefix(n as u64 - 1).expect("shorter");
            let refused = stream::msm::<g1::Config>(&short, &mixed);
            assert!(
                matches!(refused, Err(Error::Invalid(Invalid::TooLong { .. }))),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn the_lagrange_form_is_halo2_s() {
    let place = place(64 << 20);
    for k in [0u32, 1, 4, 9] {
        let mut monomial = points(1 << k, 7);
        monomial[0] = G1::INFINITY;
        let on_disk = place.column(&monomial);
        let stock_points = on_disk
            .cast::<stock::G1Affine>()
            .and_then(|c| c.to_vec())
            .expect("readable");
        let projective = stock_points.iter().map(|point| (*point).into()).collect();
        let wanted = stock_halo2_axiom::arithmetic::g_to_lagrange::<stock::G1Affine>(projective, k);
        let inverse = Transform::inverse(k, omega(k)).expect("a root");
        for log_tile in NttPlan::log_tile_min(k, 64)..=k {
            let ours = group_ntt_in_tiles::<g1::Config>(&on_disk, &inverse, Placement::Disk, log_tile)
                .expect("transform");
            let ours = ours
                .cast::<stock::G1Affine>()
                .and_then(|c| c.to_vec())
                .expect("readable");
            assert!(ours == wanted, "k = {k} in tiles of 2^{log_tile}");
        }
        let ours =
            lagrange_from_monomial::<ark_bn254::Bn254>(&on_disk, omega(k), Placement::Auto, &mut |_| ())
                .expect("transform");
        assert!(
            ours.cast::<stock::G1Affine>()
                .and_then(|c| c.to_vec())
                .expect("readable")
                == wanted
        );
    }
}

/// The figures of multiples and of the group transform, and the latter's result, at 2^18 points.
#[test]
#[ignore = "minutes: halo2 transforms 2^18 points in memory; run in release, alone, for the figures"]
fn the_lagrange_form_of_2_18_points_is_halo2_s_and_takes_so_long() {
    const K: u32 = 18;
    let monomial = points(1 << K, 7);
    let micros_a_point = |started: Instant| started.elapsed().as_secs_f64() * 1e6 / monomial.len() as f64;

    let multiplier = Multiplier::<g1::Config>::new(Backend::detect(), BLOCK_POINTS_MAX);
    let factors = scalars(1 << K, 3);
    let (mut by_one, mut by_each) = (monomial.clone(), monomial.clone());
    let started = Instant::now();
    multiplier.multiply(&mut by_one, &factors[0]);
    let one = micros_a_point(started);
    let started = Instant::now();
    multiplier.multiply_each(&mut by_each, &factors);
    let each = micros_a_point(started);
    assert_eq!(by_one[0], by_each[0]);

    let place = place(256 << 20);
    let on_disk = place.column(&monomial);
    let started = Instant::now();
    let ours = lagrange_from_monomial::<ark_bn254::Bn254>(&on_disk, omega(K), Placement::Disk, &mut |_| ())
        .expect("transform");
    println!(
        "{} threads: {one:.2} us a point by one scalar, {each:.2} us by one each; group NTT of 2^{K} points {:.2} s",
        rayon::current_num_threads(),
        started.elapsed().as_secs_f64()
    );

    let to_stock_points = |column: &Column<G1>| {
        let column = column.cast::<stock::G1Affine>().expect("the same bytes");
        column.to_vec().expect("readable")
    };
    let projective = to_stock_points(&on_disk)
        .iter()
        .map(|point| (*point).into())
        .collect();
    let wanted = stock_halo2_axiom::arithmetic::g_to_lagrange::<stock::G1Affine>(projective, K);
    assert!(to_stock_points(&ours) == wanted);
}

#[test]
fn scans_are_what_a_vector_would_give() {
    let place = place(16 << 20);
    for len in [0usize, 1, 512, 1000, 100_000] {
        let mut values = scalars(len, 3);
        if len > 2 {
            values[1] = Fr::ZERO;
        }
        let on_disk = place.column(&values);
        let point = Fr::from(12_345u64);

        let horner = values
            .iter()
            .rev()
            .fold(Fr::ZERO, |sum, value| sum * point + value);
        assert_eq!(stream::evaluate(&on_disk, point).expect("value"), horner);

        let other = scalars(len / 2, 4);
        let short = place.column(&other);
        let terms = [(Fr::from(2u64), &on_disk), (-Fr::ONE, &short)];
        let sum = stream::linear_combination(&terms, Placement::Disk).expect("sum");
        for (i, value) in sum.to_vec().expect("readable").into_iter().enumerate() {
            let wanted = values[i].double() - other.get(i).copied().unwrap_or(Fr::ZERO);
            assert_eq!(value, wanted);
        }
    }
    assert!(stream::linear_combination::<Fr>(&[], Placement::Disk).is_err());
}
