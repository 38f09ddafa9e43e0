//! The kernels beside their peers, in one run: `cargo bench -p spillproof-benches --bench kernels`.
//!
//! MSM against halo2curves' `msm_best` (assembly) and arkworks' `VariableBaseMSM`, bases in chunks of 2^18;
//! transforms against halo2curves' `best_fft` and ark-poly; a constraint program against the same gate, row
//! by row, in halo2curves' arithmetic. What bounds all of them on one core is the Montgomery multiplication:
//! six an addition, one a butterfly.
#![allow(clippy::expect_used)]

use std::hint::black_box;

use ark_bn254::{Fq, Fr, g1::Config as Bn};
use ark_ec::VariableBaseMSM;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{BigInteger, FftField, PrimeField, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use halo2curves::bn256;
use halo2curves::ff::{Field as _, PrimeField as _};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_kernels::curve::{Point, normalize};
use spillproof_kernels::msm::{BucketAdder, Msm, MsmConfig};
use spillproof_kernels::ntt::Domain;
use spillproof_kernels::vector;
use spillproof_plonk::stages::Builder;

const CHUNK: usize = 1 << 18;
const LEASE_BYTES: u64 = 96 << 20;

fn bytes<F: PrimeField>(value: &F) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(&value.into_bigint().to_bytes_le());
    bytes
}

fn peer_scalar(value: &Fr) -> bn256::Fr {
    bn256::Fr::from_repr(bytes(value).into()).expect("a reduced scalar")
}

fn peer_coordinate(value: &Fq) -> bn256::Fq {
    bn256::Fq::from_repr(bytes(value).into()).expect("a reduced coordinate")
}

fn peer_point(point: &Point<Bn>) -> bn256::G1Affine {
    bn256::G1Affine {
        x: peer_coordinate(&point.x),
        y: peer_coordinate(&point.y),
    }
}

/// `n` points P + i Q: as good as random ones, and cheap to make.
fn random_bases(n: usize, rng: &mut ChaCha8Rng) -> Vec<Point<Bn>> {
    let (mut point, step) = (Projective::<Bn>::rand(rng), Projective::<Bn>::rand(rng));
    let points: Vec<_> = (0..n)
        .map(|_| {
            point += step;
            point
        })
        .collect();
    normalize(&points)
}

fn msm(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("msm");
    group.sample_size(10);
    for log_n in [16, 18, 20] {
        let n = 1usize << log_n;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let scalars: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        let bases = random_bases(n, &mut rng);
        let threads = rayon::current_num_threads();
        let config = MsmConfig::choose::<Bn>(n as u64, 1, threads, LEASE_BYTES).expect("96 MiB are enough");
        let mut state = Msm::<Bn>::new(config);
        group.bench_function(BenchmarkId::new("spillproof", log_n), |bencher| {
            bencher.iter(|| {
                for (bases, scalars) in bases.chunks(CHUNK).zip(scalars.chunks(CHUNK)) {
                    state.update(bases, &[scalars]);
                }
                state.drain()
            });
        });
        let peer_scalars: Vec<_> = scalars.iter().map(peer_scalar).collect();
        let peer_bases: Vec<_> = bases.iter().map(peer_point).collect();
        group.bench_function(BenchmarkId::new("halo2curves msm_best", log_n), |bencher| {
            bencher.iter(|| halo2curves::msm::msm_best(&peer_scalars, &peer_bases));
        });
        let affine: Vec<_> = bases.iter().map(|base| base.to_affine::<Bn>()).collect();
        group.bench_function(BenchmarkId::new("arkworks", log_n), |bencher| {
            bencher.iter(|| Projective::<Bn>::msm_unchecked(&affine, &scalars));
        });
    }
    group.finish();
}

/// A product, and an addition of points to buckets in any order: 2^16 buckets, 2^18 points.
fn arithmetic(criterion: &mut Criterion) {
    const PRODUCTS: usize = 1 << 10;
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut random = || -> Vec<Fr> { (0..PRODUCTS).map(|_| Fr::rand(&mut rng)).collect() };
    let (a, b) = (random(), random());
    let mut group = criterion.benchmark_group("products");
    group.throughput(Throughput::Elements(PRODUCTS as u64));
    let mut products = a.clone();
    group.bench_function("spillproof", |bencher| {
        bencher.iter(|| vector::product(black_box(&mut products), &a, &b));
    });
    let peer = |values: &[Fr]| -> Vec<_> { values.iter().map(peer_scalar).collect() };
    let (peer_a, peer_b) = (peer(&a), peer(&b));
    let mut peer_products = peer_a.clone();
    group.bench_function("halo2curves", |bencher| {
        bencher.iter(|| {
            let operands = peer_a.iter().zip(&peer_b);
            for (product, (a, b)) in black_box(&mut peer_products).iter_mut().zip(operands) {
                *product = a * b;
            }
        });
    });
    assert_eq!(peer(&products), peer_products, "the same products");
    group.finish();

    let (buckets, points) = (random_bases(1 << 16, &mut rng), random_bases(1 << 18, &mut rng));
    let mut pairs: Vec<[u32; 2]> = (0..buckets.len() as u32)
        .map(|bucket| [bucket, (rng.next_u32() % points.len() as u32) << 1])
        .collect();
    pairs.sort_unstable_by_key(|pair| pair[0].wrapping_mul(0x9e37_79b1));
    let mut group = criterion.benchmark_group("additions to buckets");
    group.sample_size(20);
    group.throughput(Throughput::Elements(pairs.len() as u64));
    let config = MsmConfig::new(2, 0, 1, 1);
    let mut adder = BucketAdder::<Bn>::new(&config);
    group.bench_function("spillproof", |bencher| {
        bencher.iter_batched_ref(
            || buckets.clone(),
            |buckets| adder.add(&pairs, buckets, &points),
            BatchSize::LargeInput,
        );
    });
    let peer_points: Vec<_> = points.iter().map(peer_point).collect();
    let peer_buckets: Vec<_> = buckets.iter().map(peer_point).collect();
    let mut entries = Vec::with_capacity(pairs.len());
    group.bench_function("halo2curves' arithmetic", |bencher| {
        bencher.iter_batched_ref(
            || peer_buckets.clone(),
            |buckets| peer_additions(&pairs, buckets, &peer_points, &mut entries),
            BatchSize::LargeInput,
        );
    });
    let (mut ours, mut theirs) = (buckets.clone(), peer_buckets.clone());
    adder.add(&pairs, &mut ours, &points);
    peer_additions(&pairs, &mut theirs, &peer_points, &mut entries);
    assert!(ours.iter().map(peer_point).eq(theirs), "the same sums");
    group.finish();
}

/// The textbook's batched affine additions, 4096 to an inversion; entries are a denominator and the product
/// of those before.
fn peer_additions(
    pairs: &[[u32; 2]],
    buckets: &mut [bn256::G1Affine],
    points: &[bn256::G1Affine],
    entries: &mut Vec<(bn256::Fq, bn256::Fq)>,
) {
    for pairs in pairs.chunks(4096) {
        entries.clear();
        let mut product = bn256::Fq::ONE;
        for pair in pairs {
            let denominator = points[pair[1] as usize >> 1].x - buckets[pair[0] as usize].x;
            entries.push((denominator, product));
            product *= denominator;
        }
        let mut inverse = product.invert().expect("points differ");
        for (pair, (denominator, before)) in pairs.iter().zip(&*entries).rev() {
            let (point, bucket) = (points[pair[1] as usize >> 1], &mut buckets[pair[0] as usize]);
            let slope = (point.y - bucket.y) * (inverse * before);
            inverse *= denominator;
            let x = slope.square() - bucket.x - point.x;
            let y = slope * (bucket.x - x) - bucket.y;
            (bucket.x, bucket.y) = (x, y);
        }
    }
}

/// Draws a scalar.
type Draw<'a> = &'a dyn Fn(&mut ChaCha8Rng) -> Fr;

/// What witnesses are full of, beside random scalars: no kind may cost more than these.
fn skewed_msm(criterion: &mut Criterion) {
    const LOG_N: u32 = 18;
    let n = 1usize << LOG_N;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let bases = random_bases(n, &mut rng);
    let repeated = Fr::rand(&mut rng);
    let kinds: [(&str, Draw<'_>); 7] = [
        ("random", &|rng| Fr::rand(rng)),
        ("zero", &|_| Fr::from(0u64)),
        ("one", &|_| Fr::from(1u64)),
        ("minus one", &|_| -Fr::from(1u64)),
        ("a byte", &|rng| Fr::from(u8::rand(rng))),
        ("64 bits", &|rng| Fr::from(u64::rand(rng))),
        ("all the same", &|_| repeated),
    ];
    let threads = rayon::current_num_threads();
    let config = MsmConfig::choose::<Bn>(n as u64, 1, threads, LEASE_BYTES).expect("96 MiB are enough");
    let mut state = Msm::<Bn>::new(config);
    let mut group = criterion.benchmark_group(format!("msm of 2^{LOG_N} scalars"));
    group.sample_size(10);
    for (kind, scalar) in kinds {
        let scalars: Vec<Fr> = (0..n).map(|_| scalar(&mut rng)).collect();
        group.bench_function(kind, |bencher| {
            bencher.iter(|| {
                state.update(&bases, &[&scalars]);
                state.drain()
            });
        });
    }
    group.finish();
}

fn ntt(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ntt");
    group.sample_size(10);
    for log_n in [12, 16, 20, 22] {
        let n = 1usize << log_n;
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let values: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        let omega = Fr::get_root_of_unity(n as u64).expect("a root of this order");
        let domain = Domain::new(log_n, omega).expect("a root of this order");
        group.bench_function(BenchmarkId::new("spillproof", log_n), |bencher| {
            bencher.iter_batched_ref(|| values.clone(), |v| domain.forward(v), BatchSize::LargeInput);
        });
        let peer_values: Vec<_> = values.iter().map(peer_scalar).collect();
        let peer_omega = peer_scalar(&omega);
        group.bench_function(BenchmarkId::new("halo2curves best_fft", log_n), |bencher| {
            bencher.iter_batched_ref(
                || peer_values.clone(),
                |v| halo2curves::fft::best_fft(v, peer_omega, log_n),
                BatchSize::LargeInput,
            );
        });
        let peer = Radix2EvaluationDomain::<Fr>::new(n).expect("a domain of this size");
        group.bench_function(BenchmarkId::new("ark-poly", log_n), |bencher| {
            bencher.iter_batched_ref(|| values.clone(), |v| peer.fft_in_place(v), BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// A gate of degree 5 over 16 columns, row by row: `q (next_j - s_j^2 s_(j+1)^2 - s_(j+7) - (j + 1) c)`,
/// folded with a challenge.
fn program(criterion: &mut Criterion) {
    const WIDTH: usize = 16;
    const ROWS: usize = 1 << 13;
    let mut group = criterion.benchmark_group("program");
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let challenge = Fr::rand(&mut rng);
    let mut builder = Builder::new();
    let (q, c) = (builder.query(WIDTH, 0), builder.query(WIDTH + 1, 0));
    let parts: Vec<_> = (0..WIDTH)
        .map(|j| {
            let state = |builder: &mut Builder<Fr>, i: usize| builder.query(i % WIDTH, 0);
            let (s, near, far) = (
                state(&mut builder, j),
                state(&mut builder, j + 1),
                state(&mut builder, j + 7),
            );
            let next = builder.query(j, 1);
            let (s, near) = (builder.square(s), builder.square(near));
            let product = builder.mul(s, near);
            let mixed = builder.add(product, far);
            let constant = builder.scale(c, Fr::from(j as u64 + 1));
            let mixed = builder.add(mixed, constant);
            let difference = builder.sub(next, mixed);
            builder.mul(q, difference)
        })
        .collect();
    let output = builder.fold(&parts, challenge);
    let program = builder.finish(&[output]);
    let columns: Vec<Vec<Fr>> = (0..WIDTH + 2)
        .map(|_| (0..=ROWS).map(|_| Fr::rand(&mut rng)).collect())
        .collect();
    let inputs: Vec<&[Fr]> = program
        .queries()
        .iter()
        .map(|&(column, rotation)| &columns[column][rotation as usize..][..ROWS])
        .collect();
    let mut values = vec![Fr::from(0u64); ROWS];
    let mut registers = vec![Fr::from(0u64); program.registers() * 320];
    group.bench_function(BenchmarkId::new("spillproof", ROWS), |bencher| {
        bencher.iter(|| program.evaluate(&inputs, &mut [&mut values], &mut registers));
    });

    let peer: Vec<Vec<bn256::Fr>> = columns
        .iter()
        .map(|column| column.iter().map(peer_scalar).collect())
        .collect();
    let challenge = peer_scalar(&challenge);
    let mut peer_values = vec![bn256::Fr::zero(); ROWS];
    let row_by_row = |values: &mut [bn256::Fr]| {
        for (row, value) in values.iter_mut().enumerate() {
            let (q, c) = (peer[WIDTH][row], peer[WIDTH + 1][row]);
            let squares: [bn256::Fr; WIDTH] = std::array::from_fn(|j| peer[j][row].square());
            let (mut sum, mut constant) = (bn256::Fr::zero(), bn256::Fr::zero());
            for j in 0..WIDTH {
                constant += c;
                let mixed = squares[j] * squares[(j + 1) % WIDTH] + peer[(j + 7) % WIDTH][row] + constant;
                sum = sum * challenge + q * (peer[j][row + 1] - mixed);
            }
            *value = sum;
        }
    };
    row_by_row(&mut peer_values);
    program.evaluate(&inputs, &mut [&mut values], &mut registers);
    let mut both = values.iter().zip(&peer_values);
    assert!(
        both.all(|(ours, theirs)| peer_scalar(ours) == *theirs),
        "the same gate"
    );
    group.bench_function(BenchmarkId::new("halo2curves, row by row", ROWS), |bencher| {
        bencher.iter(|| row_by_row(&mut peer_values));
    });
    group.finish();
}

criterion_group!(benches, arithmetic, msm, skewed_msm, ntt, program);
criterion_main!(benches);
