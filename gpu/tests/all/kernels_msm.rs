//! MSMs by the kernels, in chunks with buckets that stay, against arkworks.

use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field, One, UniformRand, Zero};
use rand::Rng;

use crate::support::kernels::Kernels;
use crate::support::kernels::curves::{Bn254, Bn254G2, Curve, Fp, Pallas, Point, Sum, Vesta, points};
use crate::support::kernels::msm::{Msm, Pairs};
use crate::support::rng;

fn check<C: Curve>(
    kernels: &Kernels,
    what: &str,
    (window_bits, split, segment, chunk): (u32, usize, usize, usize),
    points: &[Point<C>],
    scalars: &[Fp<C::Scalar>],
) {
    let expected = Sum::<C>::msm(points, scalars).unwrap().into_affine();
    let mut msm = Msm::<C>::new(kernels, window_bits, split);
    for (points, scalars) in points.chunks(chunk).zip(scalars.chunks(chunk)) {
        msm.add(points, scalars);
    }
    let ones = scalars
        .iter()
        .filter(|scalar| scalar.is_one() || (-**scalar).is_one());
    let zeros = scalars.iter().filter(|scalar| scalar.is_zero());
    assert_eq!(msm.ones, ones.count(), "{what}");
    assert_eq!(msm.others + msm.ones, scalars.len() - zeros.count(), "{what}");
    let found = msm.finish(segment);
    assert_eq!(
        found,
        expected,
        "{}: {what}, n = {}, {window_bits} bits, runs of {split}, segments of {segment}, chunks of {chunk}",
        C::NAME,
        points.len()
    );
}

/// Scalars of every kind that a prover uses.
fn kinds<C: Curve>(n: usize, rng: &mut impl Rng) -> Vec<(&'static str, Vec<Fp<C::Scalar>>)> {
    type F<C> = Fp<<C as Curve>::Scalar>;
    let few: Vec<_> = (0..3).map(|_| F::<C>::rand(rng)).collect();
    let mut each = |of: &mut dyn FnMut(&mut _, usize) -> F<C>| (0..n).map(|i| of(rng, i)).collect::<Vec<_>>();
    vec![
        ("random", each(&mut |rng, _| F::<C>::rand(rng))),
        ("zeros", each(&mut |_, _| F::<C>::ZERO)),
        ("ones", each(&mut |_, _| F::<C>::ONE)),
        ("minus ones", each(&mut |_, _| -F::<C>::ONE)),
        (
            "three values",
            each(&mut |rng, _| few[rng.gen_range(0..few.len())]),
        ),
        ("bits", each(&mut |rng, _| F::<C>::from(rng.gen_range(0..2u64)))),
        (
            "small",
            each(&mut |rng, _| F::<C>::from(rng.gen_range(0..1u64 << 20))),
        ),
        (
            "small, either sign",
            each(&mut |rng, i| {
                let value = F::<C>::from(rng.gen_range(0..1000u64));
                if i % 2 == 0 { value } else { -value }
            }),
        ),
        (
            "mostly zero",
            each(&mut |rng, i| {
                if i % 50 == 7 {
                    F::<C>::rand(rng)
                } else {
                    F::<C>::ZERO
                }
            }),
        ),
        (
            "powers of two and their neighbours",
            each(&mut |rng, i| {
                F::<C>::from(2u64).pow([i as u64 % 254]) + F::<C>::from(rng.gen_range(0..3u64)) - F::<C>::ONE
            }),
        ),
    ]
}

fn equal_to_arkworks<C: Curve>(n: usize) {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(C::NAME);
    let points = points::<C>(n, 40, &mut rng);
    // Window bits, longest run, buckets of a segment, points of a chunk: none divides another.
    let shapes = [
        (7, 5, 9, n / 3 + 1),
        (10, 255, 64, n),
        (8, 16, 1, n / 2 + 7),
        (4, 3, 100, n / 5),
    ];
    for (i, (what, scalars)) in kinds::<C>(n, &mut rng).into_iter().enumerate() {
        check::<C>(&kernels, what, shapes[i % shapes.len()], &points, &scalars);
        check::<C>(&kernels, what, shapes[(i + 1) % shapes.len()], &points, &scalars);
    }
}

#[test]
fn bn254() {
    equal_to_arkworks::<Bn254>(1000);
}

#[test]
fn bn254_g2() {
    equal_to_arkworks::<Bn254G2>(300);
}

#[test]
fn pallas() {
    equal_to_arkworks::<Pallas>(300);
}

#[test]
fn vesta() {
    equal_to_arkworks::<Vesta>(300);
}

/// 2^15 points, uneven chunks, windows as wide as on a device.
#[test]
#[ignore = "a minute"]
fn large() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("large");
    let n = 1 << 15;
    let points = points::<Bn254>(n, 1000, &mut rng);
    let scalars: Vec<_> = (0..n)
        .map(|i| match i % 4 {
            0 => ark_bn254::Fr::ONE,
            1 => ark_bn254::Fr::from(rng.gen_range(0..3u64)),
            _ => ark_bn254::Fr::rand(&mut rng),
        })
        .collect();
    check::<Bn254>(&kernels, "mixed", (12, 255, 32, 10_000), &points, &scalars);
    check::<Bn254>(&kernels, "mixed", (15, 31, 64, n), &points, &scalars);
}

fn short_sums<C: Curve>() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("short");
    let points = points::<C>(40, 7, &mut rng);
    let scalars: Vec<_> = (0..40).map(|_| Fp::<C::Scalar>::rand(&mut rng)).collect();
    for n in [1, 2, 3, 39, 40] {
        check::<C>(&kernels, "short", (5, 2, 3, 16), &points[..n], &scalars[..n]);
    }
}

/// One point many times with one scalar and its negative: sums double and cancel everywhere.
fn sums_of_one_point<C: Curve>() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("one point");
    let point = Sum::<C>::rand(&mut rng).into_affine();
    let scalar = Fp::<C::Scalar>::rand(&mut rng);
    for n in [64, 333] {
        let scalars: Vec<_> = (0..n)
            .map(|i| if i % 3 == 0 { -scalar } else { scalar })
            .collect();
        for shape in [(6, 4, 5, 100), (9, 100, 16, 1000), (3, 1, 2, 50)] {
            check::<C>(&kernels, "one point", shape, &vec![point; n], &scalars);
        }
    }
}

#[test]
fn short_ones() {
    short_sums::<Bn254>();
    short_sums::<Bn254G2>();
}

#[test]
fn one_point() {
    sums_of_one_point::<Bn254>();
    sums_of_one_point::<Bn254G2>();
}

#[test]
fn sorts_are_stable() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("sort");
    for (n, rows, bits) in [
        (1, 1, 4),
        (255, 2, 5),
        (256, 3, 8),
        (257, 1, 12),
        (640, 1, 9),
        (641, 2, 8),
        (5000, 2, 17),
        (3000, 1, 1),
    ] {
        let mut pairs = Pairs::new(n * rows);
        for i in 0..n * rows {
            pairs.keys[i] = rng.gen_range(0..1 << bits);
            pairs.values[i] = (i % n) as u32;
        }
        let before = Pairs {
            keys: pairs.keys.clone(),
            values: pairs.values.clone(),
        };
        pairs.sort(&kernels, n, rows, bits);
        for row in 0..rows {
            let of = |pairs: &Pairs| -> Vec<(u32, u32)> {
                let range = row * n..(row + 1) * n;
                pairs.keys[range.clone()]
                    .iter()
                    .copied()
                    .zip(pairs.values[range].iter().copied())
                    .collect()
            };
            let mut expected = of(&before);
            expected.sort_by_key(|pair| pair.0);
            assert_eq!(
                of(&pairs),
                expected,
                "{n} pairs, row {row} of {rows}, {bits} bits"
            );
        }
    }
}
