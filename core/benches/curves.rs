//! Sums over every curve beside arkworks': `cargo bench -p spillproof-benches --bench curves -- 18` (log2 of
//! the points, 18 if left out).
//!
//! Runs of both alternate; the table has the medians of five and their ratio. `SPILLPROOF_CPU` forces a
//! backend. Six products of the coordinates' field an addition are what bounds a sum; arkworks' buckets take
//! ten.
#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use ark_ec::VariableBaseMSM;
use ark_ec::short_weierstrass::Projective;
use ark_ff::UniformRand;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, normalize};
use spillproof_kernels::msm::{Msm, MsmConfig};

const RUNS: usize = 5;
const LEASE_BYTES: u64 = 256 << 20;

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let log_n = numbers.next().unwrap_or(18);
    println!(
        "2^{log_n} points, {} threads, {:?}",
        rayon::current_num_threads(),
        Backend::detect()
    );
    println!(
        "{:<14} {:>12} {:>12} {:>7}",
        "", "spillproof", "arkworks", "ratio"
    );
    compare::<ark_bn254::g1::Config>("BN254 G1", log_n);
    compare::<ark_bn254::g2::Config>("BN254 G2", log_n);
    compare::<ark_pallas::PallasConfig>("Pallas", log_n);
    compare::<ark_bls12_381::g1::Config>("BLS12-381 G1", log_n);
    compare::<ark_bls12_381::g2::Config>("BLS12-381 G2", log_n);
}

fn compare<P: Curve>(name: &str, log_n: u32) {
    let n = 1usize << log_n;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let scalars: Vec<P::ScalarField> = (0..n).map(|_| P::ScalarField::rand(&mut rng)).collect();
    let (mut point, step) = (Projective::<P>::rand(&mut rng), Projective::<P>::rand(&mut rng));
    let points: Vec<_> = (0..n)
        .map(|_| {
            point += step;
            point
        })
        .collect();
    let bases = normalize(&points);
    let affine: Vec<_> = bases.iter().map(|base| base.to_affine::<P>()).collect();
    let threads = rayon::current_num_threads();
    let config = MsmConfig::choose::<P>(n as u64, 1, threads, LEASE_BYTES).expect("256 MiB are enough");
    let mut state = Msm::<P>::new(config);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (sum, time) = timed(|| {
            state.update(&bases, &[&scalars]);
            state.drain()[0]
        });
        ours.push(time);
        let (wanted, time) = timed(|| Projective::<P>::msm_unchecked(&affine, &scalars));
        theirs.push(time);
        assert_eq!(sum, wanted, "the same sum on {name}");
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{name:<14} {ours:>12.1?} {theirs:>12.1?} {ratio:>7.2}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
