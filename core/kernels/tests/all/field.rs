//! Fields against arkworks, and lazy butterflies within their bounds.

use ark_ff::{Field, Zero};
use rand_chacha::rand_core::SeedableRng;
use spillproof_kernels::field::*;
use spillproof_kernels::ntt::NttElement;

fn against_arkworks<F: CoordinateField>() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let minus_one = -F::ONE;
    let edges = [
        F::ZERO,
        F::ONE,
        minus_one,
        minus_one.double(),
        F::from(2u64),
        F::ONE / F::from(2u64),
    ];
    let mut values: Vec<F> = edges.to_vec();
    values.extend((0..200).map(|_| F::rand(&mut rng)));
    for a in &values {
        assert_eq!(a.squared(), a.square());
        assert_eq!(a.negated(), -*a);
        assert_eq!(a.doubled(), a.double());
        assert_eq!(a.signed(true), -*a);
        assert_eq!(a.signed(false), *a);
        assert_eq!(a.inverted(), a.inverse());
        assert_eq!(a.norm().is_zero(), a.is_zero());
        if let Some(inverse) = a.norm().inverse() {
            assert_eq!(Some(a.over_norm(&inverse)), a.inverse());
        }
        for b in &values {
            assert_eq!(a.plus(b), *a + b);
            assert_eq!(a.minus(b), *a - b);
            assert_eq!(a.times(b), *a * b);
        }
    }
}

/// Chains of butterflies keep their bounds: values stay right after many layers without reduction.
fn lazy_chain<F: KernelField>() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
    let minus_one = -F::ONE;
    for start in [minus_one, F::rand(&mut rng), F::ZERO] {
        let (mut low, mut high) = (start, minus_one);
        let (mut want_low, mut want_high) = (low, high);
        for layer in 0..500 {
            let factor = if layer % 3 == 0 {
                minus_one
            } else {
                F::rand(&mut rng)
            };
            if layer % 5 == 0 {
                F::butterfly_one(&mut low, &mut high);
                (want_low, want_high) = (want_low + want_high, want_low - want_high);
            } else {
                F::butterfly(&mut low, &mut high, &factor);
                (want_low, want_high) = (want_low + want_high * factor, want_low - want_high * factor);
            }
            let (mut reduced_low, mut reduced_high, mut scaled) = (low, high, low);
            reduced_low.reduce();
            reduced_high.reduce();
            scaled.scale(&factor);
            assert_eq!((reduced_low, reduced_high), (want_low, want_high));
            assert_eq!(scaled, want_low * factor);
        }
    }
}

/// Runs, which lanes may take, mean what single values mean; after many layers without reduction, too.
fn runs_are_their_elements<F: KernelField>(lazy: bool) {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
    let minus_one = -F::ONE;
    let edges = [F::ZERO, F::ONE, minus_one, minus_one.double()];
    for len in [3usize, 8, 17, 64] {
        let mut random = |i: usize| *edges.get(i % 7).unwrap_or(&F::rand(&mut rng));
        let mut low: Vec<F> = (0..len).map(&mut random).collect();
        let mut high: Vec<F> = (0..len).map(|i| random(i + 2)).collect();
        let (mut want_low, mut want_high) = (low.clone(), high.clone());
        for layer in 0..100 {
            let factor = random(layer);
            F::butterflies(&mut low, &mut high, &factor);
            for (low, high) in want_low.iter_mut().zip(&mut want_high) {
                (*low, *high) = (*low + *high * factor, *low - *high * factor);
            }
            let below = |value: &F| {
                value.montgomery_limbs()[3] <= F::MODULUS.as_ref()[3] * if lazy { 4 } else { 1 } + 3
            };
            assert!(low.iter().chain(&high).all(below), "lazy values are below 4p");
            let (mut run, mut each) = (low.clone(), high.clone());
            let factors: Vec<F> = (0..len).map(&mut random).collect();
            F::scale_run(&mut run, &factor);
            F::scale_each(&mut each, &factors);
            for i in 0..len {
                let (mut reduced_low, mut reduced_high) = (low[i], high[i]);
                reduced_low.reduce();
                reduced_high.reduce();
                assert_eq!((reduced_low, reduced_high), (want_low[i], want_high[i]));
                assert_eq!(run[i], want_low[i] * factor);
                assert_eq!(each[i], want_high[i] * factors[i]);
            }
        }
    }
}

#[test]
fn equal_to_arkworks_on_edges_and_random_values() {
    against_arkworks::<ark_bn254::Fq>();
    against_arkworks::<ark_bn254::Fr>();
    against_arkworks::<ark_pallas::Fq>();
    against_arkworks::<ark_pallas::Fr>();
    against_arkworks::<ark_bls12_381::Fq>();
    against_arkworks::<ark_bls12_381::Fr>();
    against_arkworks::<ark_bn254::Fq2>();
    against_arkworks::<ark_bls12_381::Fq2>();
}

#[test]
fn lazy_butterflies_never_overflow() {
    lazy_chain::<ark_bn254::Fr>();
    lazy_chain::<ark_pallas::Fq>();
}

#[test]
fn runs_of_butterflies_and_products_are_their_elements() {
    runs_are_their_elements::<ark_bn254::Fr>(true);
    runs_are_their_elements::<ark_bls12_381::Fr>(false);
    runs_are_their_elements::<ark_pallas::Fr>(false);
    runs_are_their_elements::<ark_vesta::Fr>(false);
}
