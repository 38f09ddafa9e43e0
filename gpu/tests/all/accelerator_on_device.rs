//! Whole jobs on a real device with NVRTC: sums and transforms equal to arkworks.

use std::sync::Arc;

use ark_bn254::{Fr, G1Projective};
use ark_ec::VariableBaseMSM;
use ark_ff::{FftField, Field, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Group;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Placement, Writer};
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::msm::{Msm, MsmPlan, PointSource, columns_of};
use spillproof_gpu::ntt::{MemoryElements, Ntt, NttPlan, NttSlots, NttSpec};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{Caching, Choice, Error, Gpu, Pinned, Vram};
use spillproof_plonk::stages::{Builder, CosetDomain, Source, quotient};

use crate::support::kernels::curves::{Bn254, affine_words, points};
use crate::support::kernels::words;
use crate::support::{bytes_of, rng, skipped, source_of};

fn device() -> Option<(Gpu, Kernels)> {
    let detail = Detail::Timeline { spans_max: 100_000 };
    let gpu = match Choice::Auto.open(detail).unwrap() {
        Ok(gpu) => gpu,
        Err(reason) => {
            skipped(&reason);
            return None;
        }
    };
    match Kernels::built_in(&gpu, None) {
        Ok(kernels) => Some((gpu, kernels)),
        Err(reason @ Error::NoCompiler { .. }) => {
            skipped(&reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn sum(gpu: &Gpu, kernels: &Kernels, plan: MsmPlan, points: &[u8], scalars: &[u8]) -> G1Projective {
    let slot_bytes = plan.slot_bytes() as usize;
    let pinned = Pinned::new(3 * plan.slot_bytes());
    let pool = pinned
        .pool(gpu, 3, slot_bytes, Caching::WriteCombined, "chunks")
        .unwrap();
    let mut upload = Upload::new(pool.take(3).unwrap(), gpu.trace()).unwrap();
    let vram = Vram::new(gpu, plan.vram_bytes());
    let mut msm = Msm::new(&vram, kernels, plan).unwrap();
    let mut source = columns_of(
        vec![(Group::G1, Box::new(source_of(points)))],
        vec![Box::new(source_of(scalars))],
    );
    let start = std::time::Instant::now();
    let sums = msm
        .sum_columns(PointSource::Stream, &mut upload, &mut source)
        .unwrap();
    println!("{plan:?}: {:.3} s", start.elapsed().as_secs_f64());
    sums.g1[0]
}

#[test]
fn sums() {
    let Some((gpu, kernels)) = device() else { return };
    let _turn = gpu.take_turn();
    let mut rng = rng("sums on a device");
    let n = (1 << 16) + 3;
    let points = points::<Bn254>(n, 100, &mut rng);
    let points_bytes = bytes_of(points.iter().map(affine_words::<Bn254>));
    let random: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
    let small: Vec<Fr> = (0..n as u64).map(|i| Fr::from(i % 3)).collect();
    for scalars in [random, small] {
        let expected = G1Projective::msm(&points, &scalars).unwrap();
        let scalars_bytes = bytes_of(scalars.iter().map(|scalar| [words(scalar)]));
        for (vram_bytes, slot_bytes) in [(1 << 20, 1 << 18), (16 << 20, 1 << 20), (1 << 30, 64 << 20)] {
            let plan = MsmPlan::new(n as u64, vram_bytes, slot_bytes).unwrap();
            let found = sum(&gpu, &kernels, plan, &points_bytes, &scalars_bytes);
            assert_eq!(found, expected, "{plan:?}");
        }
    }
    assert!(gpu.release_failures().is_empty());
}

#[test]
fn transforms() {
    let Some((gpu, kernels)) = device() else { return };
    let _turn = gpu.take_turn();
    let mut rng = rng("transforms on a device");
    for log_n in [10, 16, 18] {
        let input: Vec<Fr> = (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect();
        let shift = Fr::rand(&mut rng);
        let domain = Radix2EvaluationDomain::<Fr>::new(input.len()).unwrap();
        let coset = domain.get_coset(shift).unwrap();
        let forward = NttSpec::forward(log_n).unwrap();
        let cases = [
            (forward, domain.fft(&input)),
            (forward.inverse().on_coset(shift).unwrap(), coset.ifft(&input)),
        ];
        for (transform, expected) in cases {
            for (vram_bytes, slot_bytes) in [(256 << 10, 1 << 17), (64 << 20, 1 << 20)] {
                let plan = NttPlan::new(log_n, vram_bytes, slot_bytes).unwrap();
                let pinned = Pinned::new(4 * plan.slot_bytes());
                let slot_bytes = plan.slot_bytes() as usize;
                let pool = pinned
                    .pool(&gpu, 4, slot_bytes, Caching::Cached, "chunks")
                    .unwrap();
                let mut upload = Upload::new(pool.take(2).unwrap(), gpu.trace()).unwrap();
                let mut download = Download::new(pool.take(2).unwrap(), gpu.trace()).unwrap();
                let vram = Vram::new(&gpu, plan.vram_bytes());
                let mut ntt = Ntt::new(&vram, &kernels, plan, transform).unwrap();
                let in_bytes = |elements: &[Fr]| bytes_of(elements.iter().map(|element| [words(element)]));
                let mut from = MemoryElements::of_bn254(in_bytes(&input));
                let (mut between, mut to) = (from.clone(), from.clone());
                let slots = NttSlots {
                    upload: &mut upload,
                    download: &mut download,
                };
                ntt.transform(slots, &mut from, &mut between, &mut to).unwrap();
                assert!(to.bytes() == in_bytes(&expected), "{plan:?}, {transform:?}");
            }
        }
    }
    assert!(gpu.release_failures().is_empty());
}

/// A quotient of a session, whose program NVRTC compiles, against the processor's.
#[test]
fn quotients() {
    if device().is_none() {
        return;
    }
    let (log_n, columns) = (14, 6);
    let extended_omega = Fr::get_root_of_unity(1 << (log_n + 1)).unwrap();
    let domain = CosetDomain {
        log_n,
        omega: extended_omega.square(),
        log_cosets: 1,
        extended_omega,
        shift: Fr::GENERATOR,
        pieces: 2,
    };
    let mut builder = Builder::new();
    let mut parts = vec![builder.query(0, 0), builder.query(1, -3)];
    for column in 2..columns + 2 {
        let (here, far) = (builder.query(column, 0), builder.query(column, 5 - column as i32));
        let square = builder.square(here);
        let product = builder.mul(square, far);
        let last = parts[parts.len() - 1];
        parts.push(builder.sub(product, last));
    }
    let output = builder.fold(&parts, Fr::from(99u64));
    let program = builder.finish(&[output]);
    let run = |accelerator: Option<&Arc<GpuAccelerator>>| -> Vec<Vec<Fr>> {
        let mut session = Session::builder()
            .memory(ByteSize::Bytes(64 << 20))
            .dir(env!("CARGO_TARGET_TMPDIR"));
        if let Some(accelerator) = accelerator {
            session = session
                .accelerator(Arc::clone(accelerator) as Arc<dyn spillproof_engine::accelerator::Accelerator>);
        }
        let (session, mut rng) = (session.build().unwrap(), ChaCha20Rng::seed_from_u64(14));
        let inputs: Vec<Column<Fr>> = (0..columns)
            .map(|_| {
                let values: Vec<Fr> = (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect();
                let mut writer =
                    Writer::scratch(session.workspace(), "of a test", 1 << log_n, Placement::Disk).unwrap();
                writer.push(&values).unwrap();
                writer.finish().unwrap()
            })
            .collect();
        let mut sources = vec![Source::Identity, Source::FirstLagrange];
        sources.extend(inputs.iter().map(Source::Coefficients));
        let pieces = session.run(|| quotient(session.workspace(), &sources, &program, &domain));
        pieces
            .unwrap()
            .iter()
            .map(|piece| piece.to_vec().unwrap())
            .collect()
    };
    let expected = run(None);
    for vram in [ByteSize::Bytes(4 << 20), ByteSize::Auto] {
        let request = Request {
            choice: Choice::Auto,
            vram,
            offload: Offload::Always,
            ..Request::default()
        };
        let accelerator = GpuAccelerator::open(&request).unwrap().unwrap();
        let start = std::time::Instant::now();
        let found = run(Some(&accelerator));
        println!(
            "{vram:?}: {:.3} s, {}",
            start.elapsed().as_secs_f64(),
            accelerator.report()
        );
        assert!(found == expected, "{vram:?}");
        assert_eq!(
            accelerator.report().quotients(),
            2,
            "{vram:?}: {}",
            accelerator.report()
        );
    }
}

/// The seconds of a sum from memory; prints them, and checks the sum.
#[test]
#[ignore = "a measurement: 2^22 points, by arkworks too"]
fn seconds_of_a_sum() {
    let Some((gpu, kernels)) = device() else { return };
    let _turn = gpu.take_turn();
    let mut rng = rng("seconds of a sum");
    let n = 1 << 22;
    let points = points::<Bn254>(n, 1 << 20, &mut rng);
    let points_bytes = bytes_of(points.iter().map(affine_words::<Bn254>));
    let scalars: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
    let scalars_bytes = bytes_of(scalars.iter().map(|scalar| [words(scalar)]));
    let expected = G1Projective::msm(&points, &scalars).unwrap();
    for vram_bytes in [64 << 20, 1u64 << 30, 8 << 30] {
        let plan = MsmPlan::new(n as u64, vram_bytes, 64 << 20).unwrap();
        // The first sum loads the kernels.
        for _ in 0..2 {
            let found = sum(&gpu, &kernels, plan, &points_bytes, &scalars_bytes);
            assert_eq!(found, expected, "{plan:?}");
        }
    }
    println!("{}\n{}", gpu.description(), gpu.trace().table());
}
