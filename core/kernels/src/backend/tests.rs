//! One suite for the lanes of every backend and every field, with arkworks for the values.

use ark_ff::{AdditiveGroup, Field, PrimeField};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_format::Element;

use super::*;
use crate::field::KernelField;

#[test]
fn requests_fall_back_to_portable() {
    let best = Backend::requested(None);
    assert!(best.is_supported());
    assert_eq!(Backend::requested(Some("")), best);
    assert_eq!(Backend::requested(Some("portable")), Backend::Portable);
    assert_eq!(Backend::requested(Some("abacus")), Backend::Portable);
    for (name, backend) in [
        ("words", Backend::Words),
        ("avx2", Backend::Avx2),
        ("avx512", Backend::Avx512),
    ] {
        let wanted = match backend.is_supported() {
            true => backend,
            false => Backend::Portable,
        };
        assert_eq!(Backend::requested(Some(name)), wanted);
    }
}

/// Runs a test on every backend of this machine.
fn on_all<F: CoordinateField, K: Kernel<F>>(test: impl Fn() -> K) {
    for backend in [Backend::Portable, Backend::Words, Backend::Avx2, Backend::Avx512] {
        if backend.is_supported() {
            backend.run(test());
        } else {
            crate::testing::skipped(&format!("no {backend:?} on this machine, or in this build"));
        }
    }
}

/// Values at both ends of the field and of its limbs, and random ones: a multiple of eight.
fn values<F: CoordinateField>(seed: u64) -> Vec<F> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = vec![F::ZERO, F::ONE, -F::ONE, F::ONE.double()];
    // As limbs: 1, 2, p - 1, p - 2, all ones in a limb, one bit above it; in the first component and in the
    // last.
    for component in (0..F::BYTES).step_by(F::Prime::BYTES) {
        let power = |bit: usize| {
            let mut bytes = vec![0; F::BYTES];
            bytes[component + bit / 8] = 1 << (bit % 8);
            F::decode(&bytes)
        };
        let last = F::Prime::MODULUS_BIT_SIZE as usize - 2;
        let bits = [
            0, 1, 27, 28, 29, 51, 52, 53, 57, 58, 63, 64, 103, 104, 127, 128, 155, 156, 191, 192, 207, 208,
            231, 232, last,
        ];
        values.extend(
            bits.iter()
                .flat_map(|&bit| [power(bit), -power(bit), power(bit) - power(0)]),
        );
    }
    values.resize_with(values.len().next_multiple_of(8) + 16, || F::rand(&mut rng));
    values
}

struct AgainstArkworks;

impl<F: CoordinateField> Kernel<F> for AgainstArkworks {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let values = values::<F>(1);
        let small = lanes.shifted(&F::ONE).inverse().unwrap();
        let half = F::from(1u64 << L::SHIFT.div_ceil(2));
        let four = F::from(4u64);
        for by in 0..values.len() {
            let mut others = values.clone();
            others.rotate_left(by);
            for (a, b) in values.chunks(W).zip(others.chunks(W)) {
                let check = |name: &str, value: L::Value, wanted: &dyn Fn(F, F) -> F| {
                    let mut got = [F::ZERO; W];
                    lanes.store(&value, &mut got);
                    for lane in 0..W {
                        let wanted = wanted(a[lane], b[lane]);
                        assert_eq!(got[lane], wanted, "{name} of {} and {}", a[lane], b[lane]);
                    }
                };
                let (a_native, b_native) = (lanes.gather_run(a), lanes.gather_run(b));
                let (x, y) = (lanes.unpack(&a_native), lanes.unpack(&b_native));
                check("itself", x, &|a, _| a);
                let product = lanes.canonical(lanes.product(&lanes.load_shifted(a), &y));
                check("native product", product, &|a, b| a * b);
                check("product", lanes.canonical(lanes.product(&x, &y)), &|a, b| {
                    a * b * small
                });
                check("square", lanes.canonical(lanes.square(&x)), &|a, _| a * a * small);
                let sum = lanes.carried(lanes.sum(&x, &y));
                check("sum", lanes.canonical(sum), &|a, b| a + b);
                let difference = lanes.carried(lanes.difference(&x, &y, 1));
                check("difference", lanes.canonical(difference), &|a, b| a - b);
                // The largest operands of an addition of points.
                let shifted = lanes.half_shifted(&lanes.difference(&x, &y, 1));
                let twice = lanes.sum(&sum, &sum);
                let large = lanes.canonical(lanes.product(&shifted, &lanes.carried(twice)));
                check("large product", large, &|a, b| {
                    (a - b) * (a + b).double() * half * small
                });
                let square =
                    lanes.canonical(lanes.square(&lanes.carried(lanes.sum(&difference, &difference))));
                check("large square", square, &|a, b| (a - b).square() * four * small);
                let mask = 0b1010_0101;
                let signed = lanes.canonical(lanes.carried(lanes.signed(&x, mask)));
                let mut got = [F::ZERO; W];
                lanes.store(&signed, &mut got);
                for (lane, got) in got.iter().enumerate() {
                    assert_eq!(*got, a[lane].signed(mask >> lane & 1 == 1));
                    assert_eq!(lanes.zeros(&a_native) >> lane & 1 == 1, a[lane].is_zero());
                    assert_eq!(
                        lanes.equals(&a_native, &b_native) >> lane & 1 == 1,
                        a[lane] == b[lane]
                    );
                }
                // Loose values from p to 7p.
                for multiple in 2..=6 {
                    let loose = lanes.canonical(lanes.difference(&x, &y, multiple));
                    check("loose difference", loose, &|a, b| a - b);
                }
            }
        }
    }
}

/// Sums of as many products as columns hold, and differences of columns.
struct SumsOfProducts;

impl<F: CoordinateField> Kernel<F> for SumsOfProducts {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let values = values::<F>(2);
        let (mut columns, mut wanted) = (lanes.no_columns(), [F::ZERO; W]);
        for i in 0..64 {
            let run = &values[i * W % (values.len() - W)..][..W];
            // Both operands are below p: 64 products of an unreduced shifted one are more than `canonical`
            // takes.
            let factor = lanes.splat(&lanes.shifted(&run[0]));
            lanes.add_product(&mut columns, &factor, &lanes.load(run));
            wanted.iter_mut().zip(run).for_each(|(sum, b)| *sum += run[0] * b);
        }
        let mut got = [F::ZERO; W];
        if !L::EXTENSION {
            lanes.store(&lanes.canonical(lanes.reduced(&columns)), &mut got);
            assert_eq!(got, wanted);
        }
        let a = lanes.load(&values[4..]);
        let mut more = lanes.no_columns();
        lanes.add_product(&mut more, &a, &a);
        let (mut less, unit) = (lanes.no_columns(), lanes.load_shifted(&[F::ONE]));
        lanes.add_product(&mut less, &unit, &a);
        let difference = lanes.columns_difference(&less, &more);
        lanes.store(&lanes.canonical(lanes.reduced_above(&difference, 2)), &mut got);
        let small = lanes.shifted(&F::ONE).inverse().unwrap();
        for (lane, got) in got.iter().enumerate() {
            let a = values[4 + lane];
            assert_eq!(*got, a - a * a * small);
        }
    }
}

/// Norms, and inverses from theirs.
struct Norms;

impl<F: CoordinateField> Kernel<F> for Norms {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let prime = lanes.prime();
        for run in values::<F>(3).chunks(W) {
            let value = lanes.load(run);
            let (mut norms, mut got) = ([F::Prime::ZERO; W], [F::ZERO; W]);
            prime.store(&prime.canonical(lanes.norm(&value)), &mut norms);
            let shift = prime.shifted(&F::Prime::ONE);
            for (norm, value) in norms.iter_mut().zip(run) {
                // Of an extension it is a product in lanes.
                let scale = if L::EXTENSION { shift } else { F::Prime::ONE };
                assert_eq!(*norm * scale, value.norm());
                *norm = (*norm * scale).inverse().unwrap_or(F::Prime::ZERO);
                *norm *= scale;
            }
            lanes.store(
                &lanes.canonical(lanes.over_norm(&value, &prime.load(&norms))),
                &mut got,
            );
            for (got, value) in got.iter().zip(run) {
                assert_eq!(*got, value.inverse().unwrap_or(F::ZERO));
            }
        }
    }
}

/// Lanes that are exchanged and replaced.
struct Places;

impl<F: CoordinateField> Kernel<F> for Places {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let values = values::<F>(4);
        let run = &values[values.len() - W..];
        let mut value = lanes.load(run);
        let mut got = [F::ZERO; W];
        for step in [1, 2, 4].into_iter().filter(|step| *step < W) {
            lanes.store(&lanes.exchanged(&value, step), &mut got);
            for (lane, got) in got.iter().enumerate() {
                assert_eq!(*got, run[lane ^ step]);
            }
        }
        let (replaced, of_unit) = (W / 2, W - 1);
        lanes.replace(&mut value, replaced, &values[2]);
        if of_unit != replaced {
            lanes.replace_by_unit(&mut value, 1 << of_unit);
        }
        lanes.store(&value, &mut got);
        for (lane, got) in got.iter().enumerate() {
            match lane {
                _ if lane == replaced => assert_eq!(*got, values[2]),
                _ if lane == of_unit => assert!(!got.is_zero()),
                _ => assert_eq!(*got, run[lane]),
            }
        }
        // A short run.
        let mut short = [F::ONE; 3];
        let from = &values[4..][..W.min(3)];
        lanes.store(&lanes.load(from), &mut short[..W.min(3)]);
        assert_eq!(short[..W.min(3)], *from);
    }
}

fn suite<F: CoordinateField>() {
    on_all::<F, _>(|| AgainstArkworks);
    on_all::<F, _>(|| SumsOfProducts);
    on_all::<F, _>(|| Norms);
    on_all::<F, _>(|| Places);
}

#[test]
fn primes_of_four_limbs() {
    suite::<ark_bn254::Fq>();
    suite::<ark_pallas::Fq>();
    suite::<ark_bls12_381::Fr>();
}

#[test]
fn primes_of_six_limbs() {
    suite::<ark_bls12_381::Fq>();
}

#[test]
fn quadratic_extensions() {
    suite::<ark_bn254::Fq2>();
    suite::<ark_bls12_381::Fq2>();
}

/// Sums and differences that are lowered, and products with a factor.
struct Lowered;

impl<F: KernelField> WideKernel<F> for Lowered {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) {
        let values = values::<F>(5);
        let (mut saved, mut got) = (vec![F::ZERO; L::SAVED_ELEMENTS], [F::ZERO; W]);
        for (a, b) in values.chunks(W).zip(values.chunks(W).rev()) {
            let (x, y) = (lanes.load(a), lanes.load(b));
            type Reference<'a, F> = &'a dyn Fn(F, F) -> F;
            let results: [(L::Value, Reference<'_, F>); 4] = [
                (lanes.sum_lowered(&x, &y), &|a, b| a + b),
                (lanes.difference_lowered(&x, &y), &|a, b| a - b),
                (lanes.negative_lowered(&x), &|a, _| -a),
                (lanes.scaled(&x, &lanes.factor(&b[0])), &|a, _| a * b[0]),
            ];
            for (value, wanted) in results {
                lanes.save(&value, &mut saved);
                let value = lanes.canonical(lanes.lowered(&lanes.restore(&saved)));
                lanes.store(&value, &mut got);
                for lane in 0..W {
                    assert_eq!(got[lane], wanted(a[lane], b[lane]));
                }
            }
        }
    }
}

/// Butterflies, two layers at a time, again and again: values grow to their bounds.
struct Butterflies;

impl<F: KernelField> WideKernel<F> for Butterflies {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) {
        let values = values::<F>(6);
        let factors: Vec<F> = values.iter().rev().copied().collect();
        for first in 0..values.len() - W {
            let at = |i: usize| (first + i * 7) % (values.len() - W);
            let mut wanted: [Vec<F>; 4] = std::array::from_fn(|i| values[at(i)..][..W].to_vec());
            let mut kept: [L::Kept; 4] =
                std::array::from_fn(|i| lanes.keep(&lanes.load(&values[at(i)..][..W])));
            for round in 0..8 {
                let chosen: [F; 3] = std::array::from_fn(|i| factors[(first + round + i) % factors.len()]);
                let factor = chosen.map(|factor| lanes.factor(&factor));
                let [v0, v1, v2, v3] = &mut kept;
                let mut both = |low: usize, high: usize, factor: F| {
                    let (below, above) = wanted.split_at_mut(high);
                    for (low, high) in below[low].iter_mut().zip(&mut above[0]) {
                        let (a, b) = (*low, *high * factor);
                        (*low, *high) = (a + b, a - b);
                    }
                };
                match round % 4 {
                    0 => {
                        lanes.butterfly_one(v0, v2);
                        both(0, 2, F::ONE);
                    }
                    1 => {
                        lanes.two_layers_one([v0, v1, v2, v3], &factor[2]);
                        both(0, 2, F::ONE);
                        both(1, 3, F::ONE);
                        both(0, 1, F::ONE);
                        both(2, 3, chosen[2]);
                    }
                    _ => {
                        lanes.two_layers([v0, v1, v2, v3], factor.each_ref());
                        both(0, 2, chosen[0]);
                        both(1, 3, chosen[0]);
                        both(0, 1, chosen[1]);
                        both(2, 3, chosen[2]);
                    }
                }
                for (kept, wanted) in kept.iter().zip(&wanted) {
                    let mut got = vec![F::ZERO; W];
                    let value = lanes.canonical(lanes.lowered(&lanes.kept(kept)));
                    lanes.store(&value, &mut got);
                    assert_eq!(got, *wanted, "from value {first}, round {round}");
                }
            }
        }
    }
}

#[test]
fn wide_lanes_lower_and_scale() {
    fn on_all<F: KernelField>() {
        for backend in [Backend::Avx2, Backend::Avx512] {
            let lowered = backend.run_wide::<F, _>(Lowered);
            if lowered.and(backend.run_wide::<F, _>(Butterflies)).is_none() {
                crate::testing::skipped(&format!(
                    "no wide lanes of {backend:?} on this machine, or in this build"
                ));
            }
        }
    }
    on_all::<ark_bn254::Fr>();
    on_all::<ark_pallas::Fr>();
    on_all::<ark_bls12_381::Fr>();
}
