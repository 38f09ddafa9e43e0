//! The kernels beside their peers, in one run: `cargo bench -p spillproof --bench kernels`.
//!
//! MSM against halo2curves' `msm_best` (assembly) and arkworks' `VariableBaseMSM`, bases in chunks of 2^18; transforms against
//! halo2curves' `best_fft` and ark-poly. What bounds all of them on one core is the Montgomery multiplication: six an
//! addition, one a butterfly.
#![allow(clippy::expect_used)]

use ark_bn254::{Fq, Fr, g1::Config as Bn};
use ark_ec::VariableBaseMSM;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{BigInteger, FftField, PrimeField, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use halo2curves::bn256;
use halo2curves::ff::PrimeField as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof::kernels::curve::{Point, normalize};
use spillproof::kernels::msm::{Msm, MsmConfig};
use spillproof::kernels::ntt::Domain;

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

fn msm(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("msm");
    group.sample_size(10);
    for log_n in [16, 18, 20] {
        let n = 1usize << log_n;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let scalars: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        let (mut point, step) = (Projective::<Bn>::rand(&mut rng), Projective::<Bn>::rand(&mut rng));
        let points: Vec<_> = (0..n)
            .map(|_| {
                point += step;
                point
            })
            .collect();
        let bases: Vec<Point<Bn>> = normalize(&points);
        drop(points);

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
        let peer_bases: Vec<_> = bases
            .iter()
            .map(|base| bn256::G1Affine {
                x: peer_coordinate(&base.x),
                y: peer_coordinate(&base.y),
            })
            .collect();
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

fn ntt(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ntt");
    group.sample_size(10);
    for log_n in [12, 16, 20] {
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

criterion_group!(benches, msm, ntt);
criterion_main!(benches);
