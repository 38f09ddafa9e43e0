//! The kernels' field arithmetic against arkworks and Plonky3, bit for bit: edges by edges, and random
//! elements.

use ark_ff::{Field, Fp256, MontBackend, MontConfig, PrimeField, UniformRand};
use p3_field::{Field as _, PrimeCharacteristicRing, PrimeField64};
use p3_goldilocks::Goldilocks;
use rand::{Rng, RngCore};

use crate::support::kernels::{Kernels, Words, element, input, output, word, words};
use crate::support::rng;

const RANDOM: usize = 20_000;
const BLOCK: usize = 64;

/// Elements, as words in memory, with unusual carries: around 0, p, powers of 2^32, and words of only ones.
fn edges(modulus: [u64; 4], rng: &mut impl RngCore) -> Vec<Words> {
    let below = |value: &Words| value.iter().rev().lt(modulus.iter().rev());
    let less = |value: Words, by: u64| {
        let mut value = value;
        let mut borrow = by;
        for word in &mut value {
            let (difference, under) = word.overflowing_sub(borrow);
            (*word, borrow) = (difference, u64::from(under));
        }
        value
    };
    let mut all = vec![
        [0; 4],
        [1, 0, 0, 0],
        [2, 0, 0, 0],
        less(modulus, 1),
        less(modulus, 2),
    ];
    // (p - 1) / 2 and its neighbour.
    let mut half = modulus;
    for i in 0..4 {
        half[i] = (modulus[i] >> 1) | modulus.get(i + 1).map_or(0, |word| word << 63);
    }
    all.extend([half, less(half, 1), less(half, 0xffff_ffff)]);
    for bit in (32..256).step_by(32) {
        let mut power = [0; 4];
        power[bit / 64] = 1 << (bit % 64);
        all.extend([power, less(power, 1), less(modulus, 1 << (bit % 64))]);
    }
    // Words of zeros and ones in every pattern of 32-bit words.
    for pattern in 0..256u32 {
        let word = |i: u32| {
            if pattern >> i & 1 == 1 {
                u64::from(u32::MAX)
            } else {
                0
            }
        };
        all.push(std::array::from_fn(|i| {
            word(2 * i as u32) | word(2 * i as u32 + 1) << 32
        }));
        // The top word is limited so that the element is below p.
        let mut lowered = all[all.len() - 1];
        lowered[3] = lowered[3].min(modulus[3].saturating_sub(1));
        all.push(lowered);
    }
    for _ in 0..64 {
        let mut mixed: Words = std::array::from_fn(|_| {
            [0, u64::MAX, u64::from(u32::MAX), u64::MAX << 32, rng.next_u64()][rng.gen_range(0..5)]
        });
        mixed[3] %= modulus[3] + 1;
        all.push(mixed);
    }
    all.retain(below);
    all
}

/// Runs one kernel over pairs.
fn run<T: Copy + Default>(kernels: &Kernels, name: &str, a: &[T], b: &[T], operation: Option<u32>) -> Vec<T> {
    let mut to = vec![T::default(); a.len()];
    let n = a.len() as u32;
    // Fewer threads than elements: the kernels' loops go round more than once.
    let grid = (a.len().div_ceil(BLOCK * 3), 1);
    match operation {
        None => kernels.launch(
            name,
            grid,
            BLOCK,
            0,
            vec![output(&mut to), input(a), input(b), word(n)],
        ),
        Some(which) => {
            kernels.launch(
                name,
                grid,
                BLOCK,
                0,
                vec![output(&mut to), input(a), input(b), word(n), word(which)],
            );
        }
    }
    to
}

fn equal_to_arkworks<T: MontConfig<4>>(field: &str) {
    type F<T> = Fp256<MontBackend<T, 4>>;
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(field);
    let edges = edges(F::<T>::MODULUS.0, &mut rng);
    assert!(edges.len() > 200);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in &edges {
        for y in &edges {
            a.push(*x);
            b.push(*y);
        }
    }
    for _ in 0..RANDOM {
        a.push(words(&F::<T>::rand(&mut rng)));
        b.push(words(&F::<T>::rand(&mut rng)));
    }
    let check = |what: &str, found: Vec<Words>, expected: &dyn Fn(F<T>, F<T>) -> F<T>| {
        for (i, found) in found.iter().enumerate() {
            let expected = words(&expected(element(a[i]), element(b[i])));
            assert_eq!(*found, expected, "{field}: {what} of {:x?} and {:x?}", a[i], b[i]);
        }
    };
    let (mul, each) = (format!("spk_mul_{field}"), format!("spk_elementwise_{field}"));
    check("product", run(&kernels, &mul, &a, &b, None), &|a, b| a * b);
    check("sum", run(&kernels, &each, &a, &b, Some(0)), &|a, b| a + b);
    check("difference", run(&kernels, &each, &a, &b, Some(1)), &|a, b| a - b);
    check("negation", run(&kernels, &each, &a, &b, Some(2)), &|a, _| -a);
    check("square", run(&kernels, &each, &a, &b, Some(3)), &|a, _| {
        a.square()
    });
    let mut few = edges;
    few.extend_from_slice(&a[a.len() - 500..]);
    let inverses = run(&kernels, &each, &few, &few, Some(4));
    for (value, found) in few.iter().zip(inverses) {
        let expected = element::<T>(*value).inverse().unwrap_or_default();
        assert_eq!(found, words(&expected), "{field}: inverse of {value:x?}");
    }
}

#[test]
fn bn254_coordinates() {
    equal_to_arkworks::<ark_bn254::FqConfig>("bn254_fq");
}

#[test]
fn bn254_scalars() {
    equal_to_arkworks::<ark_bn254::FrConfig>("bn254_fr");
}

#[test]
fn pallas_coordinates() {
    equal_to_arkworks::<ark_pallas::FqConfig>("pasta_fp");
}

#[test]
fn vesta_coordinates() {
    equal_to_arkworks::<ark_vesta::FqConfig>("pasta_fq");
}

#[test]
fn goldilocks() {
    const P: u64 = 0xffff_ffff_0000_0001;
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("goldilocks");
    let mut edges: Vec<u64> = vec![0, 1, 2, P - 1, P - 2, (P - 1) / 2, P.div_ceil(2)];
    for bit in 1..64 {
        edges.extend([1u64 << bit, (1 << bit) - 1, (1 << bit) + 1, P - (1u64 << bit)]);
    }
    edges.retain(|value| *value < P);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in &edges {
        for y in &edges {
            a.push(*x);
            b.push(*y);
        }
    }
    for _ in 0..RANDOM {
        a.push(rng.gen_range(0..P));
        b.push(rng.gen_range(0..P));
    }
    type Plain = fn(Goldilocks, Goldilocks) -> Goldilocks;
    let each = "spk_elementwise_goldilocks";
    let cases: [(&str, Option<u32>, Plain); 6] = [
        ("spk_mul_goldilocks", None, |a, b| a * b),
        (each, Some(0), |a, b| a + b),
        (each, Some(1), |a, b| a - b),
        (each, Some(2), |a, _| -a),
        (each, Some(3), |a, _| a.square()),
        (each, Some(4), |a, _| a.try_inverse().unwrap_or_default()),
    ];
    for (name, operation, expected) in cases {
        let found = run(&kernels, name, &a, &b, operation);
        for i in 0..a.len() {
            let expected = expected(Goldilocks::new(a[i]), Goldilocks::new(b[i])).as_canonical_u64();
            assert_eq!(
                found[i], expected,
                "{name} {operation:?} of {:#x} and {:#x}",
                a[i], b[i]
            );
        }
    }
}

/// The tests of this module cover all kernels.
#[test]
fn the_library_lists_its_kernels() {
    let Some(kernels) = Kernels::load() else { return };
    let names = kernels.names();
    assert!(names.iter().any(|name| name == "spk_mul_bn254_fq"));
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    assert!(names.iter().all(|name| name.starts_with("spk_")));
}

/// The text of the `asm` blocks against the host's arithmetic.
#[test]
fn carry_chains_are_what_their_text_says() {
    let Some(kernels) = Kernels::load() else { return };
    let seed = rng("chains").next_u64();
    assert_eq!(kernels.compare_chains(seed, 10_000), None);
}
