//! Sums against arkworks and halo2curves, over chunks that don't divide n, special scalars and special
//! points.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use ark_ec::short_weierstrass::Projective;
use ark_ec::{CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{UniformRand, Zero};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;
use spillproof_format::Element;

use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point, normalize};
use spillproof_kernels::msm::*;

type Bn = ark_bn254::g1::Config;
type BnG2 = ark_bn254::g2::Config;
type BlsG1 = ark_bls12_381::g1::Config;
type BlsG2 = ark_bls12_381::g2::Config;
type Pallas = ark_pallas::PallasConfig;

/// `n` distinct points, cheaply.
fn points<P: Curve>(n: usize, seed: u64) -> Vec<Point<P>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let step = Projective::<P>::rand(&mut rng);
    let mut point = Projective::<P>::rand(&mut rng);
    let list: Vec<_> = (0..n)
        .map(|_| {
            point += step;
            point
        })
        .collect();
    normalize(&list)
}

fn scalars<F: ark_ff::PrimeField>(n: usize, seed: u64) -> Vec<F> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| F::rand(&mut rng)).collect()
}

/// The sums, after a check that every backend of this machine gives the same.
fn streamed<P: Curve>(
    config: MsmConfig,
    bases: &[Point<P>],
    columns: &[&[P::ScalarField]],
    chunk: usize,
) -> Vec<Projective<P>> {
    let portable = streamed_on(config.on(Backend::Portable), bases, columns, chunk);
    for backend in [Backend::Avx2, Backend::Avx512] {
        if backend.is_supported() {
            let in_lanes = streamed_on(config.on(backend), bases, columns, chunk);
            assert_eq!(in_lanes, portable, "{backend:?}");
        } else {
            crate::skipped(&format!("no {backend:?} on this machine, or in this build"));
        }
    }
    portable
}

fn streamed_on<P: Curve>(
    config: MsmConfig,
    bases: &[Point<P>],
    columns: &[&[P::ScalarField]],
    chunk: usize,
) -> Vec<Projective<P>> {
    let mut msm = Msm::<P>::new(config);
    for first in (0..bases.len()).step_by(chunk) {
        let end = (first + chunk).min(bases.len());
        let columns: Vec<_> = columns.iter().map(|column| &column[first..end]).collect();
        msm.update(&bases[first..end], &columns);
    }
    msm.finish()
}

fn arkworks<P: Curve>(bases: &[Point<P>], scalars: &[P::ScalarField]) -> Projective<P> {
    let bases: Vec<_> = bases.iter().map(|base| base.to_affine::<P>()).collect();
    Projective::msm_unchecked(&bases, scalars)
}

fn check<P: Curve>(n: usize, chunk: usize, window_bits: u32, block: usize, threads: usize) {
    let bases = points::<P>(n, n as u64);
    let scalars = scalars::<P::ScalarField>(n, n as u64 + 1);
    let config = MsmConfig::new(window_bits, block, 1, threads);
    let sum = streamed::<P>(config, &bases, &[&scalars], chunk)[0].into_affine();
    assert_eq!(
        sum,
        arkworks(&bases, &scalars).into_affine(),
        "n = {n}, {config:?}"
    );
}

#[test]
fn equal_to_arkworks_for_all_lengths_and_chunks() {
    for n in [0, 1, 2, 3, 255, 1 << 10] {
        for chunk in [1.max(n / 3), 100, 1 << 20] {
            check::<Bn>(n, chunk, 7, 300, 2);
            check::<Pallas>(n, chunk, 5, 256, 3);
        }
    }
    check::<Bn>((1 << 16) + 1, 10_000, 13, 1 << 14, 2);
    check::<BnG2>(5000, 2000, 9, 1 << 12, 2);
    check::<BlsG1>(5000, 2000, 9, 1 << 12, 2);
    check::<BlsG2>(5000, 2000, 9, 1 << 12, 2);
}

#[test]
fn every_window_size_and_thread_count() {
    for window_bits in 2..=16 {
        for threads in [1, 2, 5] {
            check::<Bn>(700, 500, window_bits, 256, threads);
        }
    }
    for window_bits in [2, 3, 15, 16] {
        check::<Pallas>(300, 299, window_bits, 256, 40);
    }
}

/// halo2curves' points and scalars have the same limbs; its `msm_best` is the other oracle.
fn halo2curves_sum(bases: &[Point<Bn>], scalars: &[ark_bn254::Fr]) -> Point<Bn> {
    use ark_ff::{BigInteger, PrimeField};
    use halo2curves::bn256::{Fq, Fr, G1Affine};
    use halo2curves::ff::PrimeField as _;
    use halo2curves::group::Curve as _;
    fn repr<F: PrimeField>(value: &F) -> [u8; 32] {
        value.into_bigint().to_bytes_le().try_into().unwrap()
    }
    let scalars: Vec<Fr> = scalars
        .iter()
        .map(|s| Fr::from_repr(repr(s).into()).unwrap())
        .collect();
    let bases: Vec<G1Affine> = bases
        .iter()
        .map(|p| G1Affine {
            x: Fq::from_repr(repr(&p.x).into()).unwrap(),
            y: Fq::from_repr(repr(&p.y).into()).unwrap(),
        })
        .collect();
    let sum = halo2curves::msm::msm_best(&scalars, &bases).to_affine();
    let back = |value: &Fq| ark_bn254::Fq::from_le_bytes_mod_order(value.to_repr().as_ref());
    Point::<Bn> {
        x: back(&sum.x),
        y: back(&sum.y),
    }
}

fn check_both_peers(n: usize, chunk: usize) {
    let bases = points::<Bn>(n, 11);
    let scalars = scalars::<ark_bn254::Fr>(n, 12);
    let config = MsmConfig::choose::<Bn>(n as u64, 1, 2, 96 << 20).unwrap();
    assert!(config.workspace_bytes::<Bn>() <= 96 << 20);
    let sum = streamed::<Bn>(config, &bases, &[&scalars], chunk)[0];
    assert_eq!(sum.into_affine(), arkworks(&bases, &scalars).into_affine());
    assert_eq!(normalize(&[sum])[0], halo2curves_sum(&bases, &scalars));
}

#[test]
fn equal_to_both_peers() {
    for n in [1, 2, 3, 255, 1 << 10, (1 << 16) + 1] {
        check_both_peers(n, 9_999);
    }
}

#[test]
#[ignore = "a minute in a debug build: run with --release -- --ignored"]
fn equal_to_both_peers_at_two_to_the_20() {
    check_both_peers(1 << 20, 200_001);
}

fn one_bucket<P: Curve>(n: usize) {
    let bases = points::<P>(n, 1);
    let config = MsmConfig::new(8, 1024, 1, 2);
    let one = P::ScalarField::from(1u64);
    for value in [
        one,
        -one,
        one + one,
        P::ScalarField::from(128u64),
        P::ScalarField::zero(),
        one / -(one + one),
    ] {
        let scalars = vec![value; n];
        let sum = streamed::<P>(config, &bases, &[&scalars], 3333)[0];
        assert_eq!(sum, arkworks(&bases, &scalars));
    }
    // The same point again and again: every addition of the tree is a doubling.
    let same = vec![bases[0]; n];
    let sum = streamed::<P>(config, &same, &[&vec![one; n]], 3333)[0];
    assert_eq!(
        sum,
        bases[0].to_projective::<P>() * P::ScalarField::from(n as u64)
    );
    // A point and its negation in turn: everything cancels.
    let both: Vec<_> = (0..n)
        .map(|i| if i % 2 == 0 { bases[7] } else { bases[7].negated() })
        .collect();
    assert!(streamed::<P>(config, &both, &[&vec![one; n]], 3332)[0].is_zero());
    // Multiples of one point: partial sums meet by chance.
    let generator = Projective::<P>::generator();
    let multiples: Vec<_> = (0..200u64)
        .map(|i| generator * P::ScalarField::from(i % 9))
        .collect();
    let multiples = normalize::<P>(&multiples);
    let ones = vec![one; 200];
    assert_eq!(
        streamed::<P>(config, &multiples, &[&ones], 77)[0],
        arkworks(&multiples, &ones)
    );
}

#[test]
fn one_bucket_takes_everything() {
    one_bucket::<Bn>(5000);
    one_bucket::<BnG2>(1500);
    one_bucket::<BlsG1>(1500);
    one_bucket::<BlsG2>(1500);
}

#[test]
fn columns_share_a_pass_and_the_state_can_be_used_again() {
    let n = 1000;
    let bases = points::<Pallas>(n, 5);
    let columns: Vec<Vec<_>> = (0..3).map(|i| scalars(n, i)).collect();
    let columns: Vec<&[_]> = columns.iter().map(Vec::as_slice).collect();
    let mut msm = Msm::<Pallas>::new(MsmConfig::new(6, 256, 3, 2));
    for _ in 0..2 {
        msm.update(&bases, &columns);
        let sums = msm.drain();
        for (sum, column) in sums.iter().zip(&columns) {
            assert_eq!(*sum, arkworks(&bases, column));
        }
    }
    assert!(msm.finish().iter().all(Zero::is_zero));
}

/// A sum of `columns` by [`Msm::run`] over slices, with a parallel part in each filling, on a pool of
/// `threads`.
fn in_a_pipeline<P: Curve>(
    config: MsmConfig,
    fillings: Fillings,
    (slots, threads): (usize, usize),
    bases: &[Point<P>],
    columns: &[Vec<P::ScalarField>],
) -> Vec<Projective<P>> {
    let chunk = config.block_points();
    let chunks: Vec<&[Point<P>]> = bases.chunks(chunk).collect();
    let mut msm = Msm::<P>::new(config.in_chunks(slots));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| {
        let mut slots = vec![Vec::new(); slots];
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let fill = |index: usize, slot: &mut Vec<Point<P>>, digits: &mut [Digits]| {
            let before = begun.fetch_add(1, SeqCst);
            if fillings == Fillings::InOrder {
                assert_eq!((before, ended.load(SeqCst)), (index, index), "one at a time");
            }
            *slot = chunks[index].par_iter().map(|point| *point).collect();
            for (digits, column) in digits.iter_mut().zip(columns) {
                digits.fill(&column[index * chunk..][..slot.len()]);
            }
            ended.fetch_add(1, SeqCst);
            Ok::<_, ()>(())
        };
        msm.run((chunks.len(), fillings), &mut slots, fill, |slot| slot)
            .unwrap();
    });
    msm.finish()
}

#[test]
fn a_pipeline_gives_the_same_sums() {
    let (n, most) = (3000, 3);
    let bases = points::<Pallas>(n, 6);
    let columns: Vec<Vec<_>> = (0..most).map(|i| scalars(n, 20 + i)).collect();
    let wanted: Vec<_> = columns.iter().map(|column| arkworks(&bases, column)).collect();
    for (threads, slots) in [(1, 1), (1, 2), (2, 1), (2, 2), (5, 3), (64, 4)] {
        for (columns_count, window_bits, n) in [(1, 7, n), (3, 5, n), (2, 9, 1), (1, 4, 257)] {
            let config = MsmConfig::new(window_bits, 256, columns_count, threads);
            let columns = &columns[..columns_count];
            let run =
                |fillings| in_a_pipeline::<Pallas>(config, fillings, (slots, threads), &bases[..n], columns);
            let short: Vec<_> = (columns.iter())
                .map(|column| arkworks(&bases[..n], &column[..n]))
                .collect();
            let wanted = if n == 3000 {
                &wanted[..columns_count]
            } else {
                &short[..]
            };
            for fillings in [Fillings::SideBySide, Fillings::InOrder] {
                let label = format!("{threads} threads, {slots} slots, {window_bits} bits, {fillings:?}");
                assert!(run(fillings) == wanted, "{label}");
            }
        }
    }
    let config = MsmConfig::new(4, 256, 1, 2);
    assert!(in_a_pipeline::<Pallas>(config, Fillings::SideBySide, (2, 2), &[], &[vec![]])[0].is_zero());
}

/// A filling whose parallel part meets the loops of other threads: this never ended while loops waited, since
/// one could wait above a part of the filling that it waited for.
#[test]
fn fillings_and_loops_do_not_wait_for_each_other() {
    let n = 4096;
    let bases = points::<Pallas>(n, 7);
    let columns = vec![scalars(n, 30)];
    let wanted = arkworks(&bases, &columns[0]);
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for round in 0..200 {
            let config = MsmConfig::new(6, 256, 1, 16);
            let fillings = [Fillings::SideBySide, Fillings::InOrder][round / 4 % 2];
            let sums = in_a_pipeline::<Pallas>(config, fillings, (1 + round % 4, 16), &bases, &columns);
            assert_eq!(sums[0], wanted);
        }
        done.send(()).unwrap();
    });
    let limit = std::time::Duration::from_secs(120);
    ended.recv_timeout(limit).expect("all rounds end, and are right");
}

#[test]
fn a_pipeline_stops_at_an_error_and_at_a_panic() {
    let mut msm = Msm::<Pallas>::new(MsmConfig::new(6, 256, 1, 4).in_chunks(2));
    let mut slots = [0, 1].map(|seed| points::<Pallas>(256, seed));
    let fill = |index: usize, _: &mut Vec<Point<Pallas>>, digits: &mut [Digits]| {
        digits[0].fill(&scalars::<ark_pallas::Fr>(256, 1));
        if index == 3 { Err("the third") } else { Ok(()) }
    };
    assert_eq!(
        msm.run((8, Fillings::SideBySide), &mut slots, fill, |slot| slot),
        Err("the third")
    );
    let panicking = |index: usize, slot: &mut Vec<Point<Pallas>>, digits: &mut [Digits]| {
        assert!(index != 2, "a panic on purpose");
        fill(index, slot, digits)
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        msm.run((8, Fillings::SideBySide), &mut slots, panicking, |slot| slot)
    }));
    assert!(result.is_err());
}

#[test]
fn the_choice_respects_the_lease() {
    let mut last = u64::MAX;
    for lease_mib in [256, 96, 64, 32, 16, 8, 4, 3] {
        let config = MsmConfig::choose::<Bn>(1 << 24, 1, 2, lease_mib << 20).unwrap();
        let bytes = config.workspace_bytes::<Bn>();
        assert!(bytes <= lease_mib << 20 && bytes <= last);
        last = bytes;
    }
    let refused = MsmConfig::choose::<Bn>(1 << 24, 1, 2, 1 << 10)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("needs at least"), "{refused}");
    assert!(MsmConfig::choose::<Bn>(0, 1, 2, 64 << 20).is_ok());
}

/// A scalar of every kind that real witnesses hold.
fn special_scalar<F: ark_ff::PrimeField>(rng: &mut ChaCha8Rng, repeated: F) -> F {
    let small = F::from(rng.next_u64() % 300);
    match rng.next_u32() % 8 {
        0 => F::ZERO,
        1 => F::ONE,
        2 => -F::ONE,
        3 => small,
        4 => -small,
        5 => repeated,
        6 => F::from(2u64).pow([rng.next_u64() % 254]),
        _ => F::rand(rng),
    }
}

fn special_case<P: Curve>(
    n: usize,
    chunk: usize,
    window_bits: u32,
    threads: usize,
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let repeated = P::ScalarField::rand(&mut rng);
    let scalars: Vec<_> = (0..n).map(|_| special_scalar(&mut rng, repeated)).collect();
    let mut bases = points::<P>(n, seed);
    for i in 0..n {
        let other = bases[rng.next_u32() as usize % n];
        bases[i] = match rng.next_u32() % 6 {
            0 => Point::<P>::INFINITY,
            1 => other,
            2 => other.negated(),
            _ => bases[i],
        };
    }
    let config = MsmConfig::new(window_bits, 256, 1, threads);
    let sum = streamed::<P>(config, &bases, &[&scalars], chunk)[0];
    prop_assert_eq!(sum.into_affine(), arkworks(&bases, &scalars).into_affine());
    Ok(())
}

/// Elements of any bits: all ones, zeros in the second half (a point's y), and random ones.
fn of_any_bits<E: Element>(n: usize, rng: &mut ChaCha8Rng) -> Vec<E> {
    let mut bytes = vec![0; E::BYTES];
    let element = |_| {
        rng.fill_bytes(&mut bytes);
        match rng.next_u32() % 4 {
            0 => bytes.fill(0xff),
            1 => bytes[E::BYTES / 2..].fill(0),
            2 => bytes[..E::BYTES / 2].fill(0),
            _ => {}
        }
        E::decode(&bytes)
    };
    (0..n).map(element).collect()
}

fn odd_case<P: Curve<ScalarField: Element>>(seed: u64)
where
    Point<P>: Element,
{
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for (n, window_bits, threads) in [(1, 3, 1), (40, 5, 1), (700, 8, 2), (3000, 11, 3)] {
        let bases = of_any_bits::<Point<P>>(n, &mut rng);
        let odd = of_any_bits::<P::ScalarField>(n, &mut rng);
        let usual = scalars::<P::ScalarField>(n, seed);
        for backend in [Backend::Portable, Backend::Words, Backend::Avx2, Backend::Avx512] {
            let config = MsmConfig::new(window_bits, 256, 2, threads).on(backend);
            if backend.is_supported() {
                let sums = streamed_on::<P>(config, &bases, &[&odd, &usual], 97);
                assert_eq!(sums.len(), 2, "{backend:?}");
            }
        }
    }
}

/// Coordinates and scalars above the modulus, and points off the curve, which no file that was checked holds:
/// a sum of them means nothing, but every backend ends with one.
#[test]
fn odd_limbs_end_in_a_sum() {
    let seed = rand::random();
    println!("seed {seed}");
    odd_case::<Bn>(seed);
    odd_case::<BnG2>(seed);
    odd_case::<BlsG1>(seed);
    odd_case::<Pallas>(seed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn special_scalars_and_points(
        n in 0usize..700, chunk in 1usize..300, window_bits in 2u32..=16, threads in 1usize..4, seed in any::<u64>(),
    ) {
        match seed % 8 {
            0 => special_case::<BnG2>(n / 2, chunk, window_bits, threads, seed)?,
            1 => special_case::<BlsG1>(n / 2, chunk, window_bits, threads, seed)?,
            2 => special_case::<BlsG2>(n / 2, chunk, window_bits, threads, seed)?,
            _ => special_case::<Bn>(n, chunk, window_bits, threads, seed)?,
        }
    }
}
