//! The kernels that measure a device compute the right results, by arkworks: the compiler must not shorten a
//! chain.

use ark_bn254::{FqConfig, FrConfig};
use ark_ff::{Field, Fp256, MontBackend, MontConfig, UniformRand};

use crate::support::kernels::curves::{Bn254, XyzzWords, affine_words, point_of, points};
use crate::support::kernels::{Kernels, Words, element, input, output, word, words};
use crate::support::rng;

const BLOCKS: usize = 3;
const THREADS: usize = 32;
const ALL: usize = BLOCKS * THREADS;

fn products<C: MontConfig<4>>(name: &str) {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(name);
    for (n, times) in [(1, 1), (7, 0), (50, 13), (500, 64)] {
        let a: Vec<Fp256<MontBackend<C, 4>>> = (0..n).map(|_| Fp256::rand(&mut rng)).collect();
        let from: Vec<Words> = a.iter().map(words).collect();
        let mut to: Vec<Words> = vec![[0; 4]; ALL];
        let arguments = vec![output(&mut to), input(&from), word(n as u32), word(times)];
        kernels.launch(name, (BLOCKS, 1), THREADS, 0, arguments);
        for (t, found) in to.iter().enumerate() {
            let four: Fp256<MontBackend<C, 4>> = (0..4).map(|i| a[(4 * t + i) % n]).sum();
            let expected = a[t % n].pow([u64::from(times)]) * four;
            assert_eq!(element::<C>(*found), expected, "thread {t} of {n}, {times}");
        }
    }
}

#[test]
fn products_of_fq() {
    products::<FqConfig>("spk_rate_mul_bn254_fq");
}

#[test]
fn products_of_fr() {
    products::<FrConfig>("spk_rate_mul_bn254_fr");
}

#[test]
fn additions() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("additions");
    for (n, times) in [(1, 1), (2, 0), (50, 13), (500, 64)] {
        let p = points::<Bn254>(n, 10, &mut rng);
        let from: Vec<_> = p.iter().map(affine_words::<Bn254>).collect();
        let mut to: Vec<XyzzWords<Bn254>> = vec![[[0; 4]; 4]; ALL];
        let arguments = vec![output(&mut to), input(&from), word(n as u32), word(times)];
        kernels.launch("spk_rate_add_bn254", (BLOCKS, 1), THREADS, 0, arguments);
        for (t, found) in to.iter().enumerate() {
            let expected = p[t % n] + p[(t + 1) % n] * ark_bn254::Fr::from(times);
            assert_eq!(
                point_of::<Bn254>(found),
                ark_ec::CurveGroup::into_affine(expected),
                "thread {t} of {n}, {times}"
            );
        }
    }
}
