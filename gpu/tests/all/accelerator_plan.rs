//! Plans of `GpuAccelerator` under the fake driver: they match the jobs that follow, and planning does none
//! of the jobs.

use ark_bn254::{Fr, g1};
use ark_ff::FftField;
use spillproof_engine::Session;
use spillproof_engine::accelerator::{self, Groups, Input, RowSource};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Element, Placement};
use spillproof_engine::plan::{Job as Offered, Offer};
use spillproof_engine::stream::{Scalars, Transform, msm, ntt};
use spillproof_fake_driver::Code;
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::{
    CosetProgram, Cut, Executor, GpuAccelerator, JobPlan, JobPlans, Offload, Request,
};
use spillproof_gpu::ntt::NttMethod;
use spillproof_plonk::stages::{Builder, Program};

use crate::sessions::{TestJob, accelerator, all_is_given_back, column, name_the_image, open, session};
use crate::support::with_kernels;

const LOG_N: u32 = 11;
const N: u64 = 1 << LOG_N;

/// A product of two columns.
fn numerator() -> (Program<Fr>, Vec<Input>) {
    let mut builder = Builder::new();
    let [a, b] = [builder.query(0, 0), builder.query(1, 1)];
    let product = builder.mul(a, b);
    let input = |column: usize, at: i32| Input {
        column,
        rotations: (at, at),
        rows: RowSource::Read,
    };
    (builder.finish(&[product]), vec![input(0, 0), input(1, 1)])
}

pub fn planned(accelerator: &GpuAccelerator, session: &Session, offers: &[Offer]) -> JobPlans {
    let (program, inputs) = numerator();
    let program = accelerator::Program {
        queries: program.queries(),
        instructions: program.code(),
        registers: program.registers(),
    };
    let numerator = CosetProgram {
        program,
        inputs: &inputs,
    };
    let before = session.budget().available_bytes();
    let planned = session
        .run(|| accelerator.plan(offers, Some(numerator), session.budget()))
        .unwrap();
    // The slots of the measurements are spare.
    assert_eq!(session.budget().available_bytes(), before);
    assert!(!accelerator.report().is_any_of_a_device() && accelerator.report().by_the_processor() == 0);
    planned
}

pub fn offer(job: Offered, available_bytes: u64) -> Offer {
    Offer {
        job,
        count: 1,
        available_bytes,
    }
}

fn why(job: &JobPlan) -> &str {
    match &job.by {
        Executor::Processor { why } => why,
        Executor::Devices { .. } => panic!("{job:?}"),
    }
}

/// Two sums of `N` terms, with or without shares.
fn sums(of: &TestJob, step: Option<u64>) -> Offered {
    let chunk_bytes =
        |chunk: u64, element_bytes: usize, frame: u64| (chunk * element_bytes as u64).max(frame);
    let scalars = &of.scalars[0];
    let frame = scalars.frame_elements() * Fr::BYTES as u64;
    Offered::Sums {
        points: N,
        bases: Groups { g1: 1, g2: 0 },
        columns: 2,
        step,
        bases_bytes: 3 * chunk_bytes(of.bases.sequential_chunk(), 64, frame),
        scalars_bytes: 3 * chunk_bytes(scalars.sequential_chunk(), Fr::BYTES, frame),
    }
}

#[test]
fn jobs_are_cut_as_planned() {
    const TEST: &str = "jobs_are_cut_as_planned";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut ways = Vec::new();
        for (vram, memory_bytes) in [
            (ByteSize::Bytes(48 << 10), 8 << 20),
            (ByteSize::Bytes(300 << 10), 8 << 20),
            (ByteSize::Bytes(300 << 10), 2 << 20),
            (ByteSize::Bytes(8 << 20), 8 << 20),
        ] {
            let what = format!("{vram:?}, {memory_bytes} bytes");
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(vram, Offload::Always);
            let session = session(Some(&accelerator), memory_bytes);
            let job = TestJob::new(&session, N as usize);
            let available_bytes = session.budget().available_bytes();
            let offers = [sums(&job, Some(512)), Offered::Transform { log_n: LOG_N }]
                .map(|job| offer(job, available_bytes));
            let planned = planned(&accelerator, &session, &offers);
            let omega = Fr::get_root_of_unity(N).unwrap();
            let made = session.run(|| {
                let scalars = [0, 1].map(|at| Scalars::Column(&job.scalars[at]));
                msm::<g1::Config>(&job.bases, &scalars)?;
                ntt(
                    &job.scalars[0],
                    &Transform::forward(LOG_N, omega),
                    Placement::Auto,
                )
            });
            made.unwrap_or_else(|error| panic!("{what}: {error}"));
            let report = accelerator.report();
            assert_eq!(planned.report, report, "{what}");
            // The last pass of a sum has fewer columns.
            if let (Executor::Devices { cut, .. }, (Some(plan), _)) =
                (&planned.jobs[0].by, accelerator.last_plans())
            {
                let Cut::Sums {
                    chunk_points,
                    window_bits,
                    columns,
                    ..
                } = *cut
                else {
                    panic!("{cut:?}");
                };
                let shape = plan.shape();
                assert_eq!(
                    (chunk_points, window_bits),
                    (shape.chunk_points, shape.window_bits),
                    "{what}"
                );
                assert_eq!(plan.columns(), (2 - 1) % columns + 1, "{what}");
            }
            let (Executor::Devices { cut, vram_bytes, .. }, (_, Some(plan))) =
                (&planned.jobs[1].by, accelerator.last_plans())
            else {
                panic!("{what}: {:?}", planned.jobs[1]);
            };
            let cut_of_job = Cut::Transform {
                method: plan.method(),
                chunk_elements: plan.chunk_elements(),
            };
            assert_eq!(*cut, cut_of_job, "{what}");
            // The output stays beside the job.
            let ByteSize::Bytes(limit_bytes) = vram else {
                panic!("{vram:?}");
            };
            let output_bytes = 32 * N;
            let stays =
                plan.method() == NttMethod::InDeviceMemory && plan.vram_bytes() + output_bytes <= limit_bytes;
            let kept_bytes = if stays { output_bytes } else { 0 };
            assert_eq!(*vram_bytes, plan.vram_bytes() + kept_bytes, "{what}");
            ways.push((report.sums(), plan.method()));
            drop(job);
            all_is_given_back(session, accelerator, driver, &what);
        }
        let sums: Vec<u64> = ways.iter().map(|(sums, _)| *sums).collect();
        assert_eq!(sums, [0, 2, 2, 2]);
        assert!(ways[0].1 != ways[3].1, "whole, and in two steps: {ways:?}");
    });
}

#[test]
fn what_the_host_has_no_room_for_is_planned_for_the_processor() {
    const TEST: &str = "what_the_host_has_no_room_for_is_planned_for_the_processor";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(48 << 10), Offload::Always);
        let session = session(Some(&accelerator), 4 << 20);
        let coset = Offered::Coset {
            log_rows: 5,
            log_columns: 6,
            columns: 2,
            ends_bytes: 64 << 10,
        };
        let transform = Offered::Transform { log_n: LOG_N };
        // The tile of the transform, 64 KiB, beside the slots; the ends of the coset.
        let offers = [
            offer(transform, 1 << 20),
            offer(transform, 64 << 10),
            offer(coset, 1 << 20),
            offer(coset, 72 << 10),
            offer(coset, 64 << 10),
        ];
        let planned = planned(&accelerator, &session, &offers);
        let [roomy, tight, roomy_coset, tight_coset, no_coset] = &planned.jobs[..] else {
            panic!("{planned:?}");
        };
        for job in [roomy, roomy_coset] {
            assert!(matches!(job.by, Executor::Devices { .. }), "{job:?}");
            assert_eq!(job.seconds, None, "small jobs have no rates");
        }
        assert!(why(tight).starts_with("the host lacks memory: "), "{tight:?}");
        assert!(
            why(tight_coset).contains("of a pinned slot: it needs 2048"),
            "{tight_coset:?}"
        );
        assert!(
            why(no_coset).contains("of a pinned slot: it needs 2048"),
            "{no_coset:?}"
        );
        let JobPlans { report, .. } = planned;
        assert_eq!(
            (report.transforms(), report.quotients(), report.by_the_processor()),
            (1, 1, 3)
        );
        // With this much memory left the accelerator declines, whatever the processor then does.
        let input = column(&session, &vec![Fr::GENERATOR; N as usize]);
        let rest_bytes = session.budget().available_bytes() - (64 << 10);
        let held = session.budget().lease(rest_bytes, "somebody else").unwrap();
        let omega = Fr::get_root_of_unity(N).unwrap();
        let _ = session.run(|| ntt(&input, &Transform::forward(LOG_N, omega), Placement::Auto));
        let report = accelerator.report();
        assert!(
            report.reasons()[0].0.starts_with("the host lacks memory: "),
            "{report}"
        );
        drop((held, input));
        all_is_given_back(session, accelerator, driver, TEST);
    });
}

#[test]
fn shares_and_failures_are_planned_as_they_come() {
    const TEST: &str = "shares_and_failures_are_planned_as_they_come";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let request = |offload| Request {
            choice: Choice::All,
            offload,
            ..Request::default()
        };
        driver.reset(2, 64 << 20);
        let accelerator = open(&request(Offload::Always));
        let session_of = session(Some(&accelerator), 8 << 20);
        let job = TestJob::new(&session_of, N as usize);
        let available_bytes = session_of.budget().available_bytes();
        let both = [sums(&job, Some(512)), sums(&job, None), sums(&job, Some(N))];
        let shared = planned(
            &accelerator,
            &session_of,
            &both.map(|job| offer(job, available_bytes)),
        );
        let of: Vec<usize> = (shared.jobs.iter())
            .map(|job| match &job.by {
                Executor::Devices { devices, .. } => devices.len(),
                Executor::Processor { why } => panic!("{why}"),
            })
            .collect();
        assert_eq!(of, [2, 1, 1], "{shared:?}");
        let points: u64 = shared.report.devices().iter().map(|device| device.points()).sum();
        assert_eq!((shared.report.sums(), points), (6, N));
        drop(job);
        all_is_given_back(session_of, accelerator, driver, "shared");

        // The first device is lost while its rates are measured; the second one's rates are measured.
        driver.reset(2, 256 << 20);
        let accelerator = open(&request(Offload::Measured));
        let session_of = session(Some(&accelerator), 64 << 20);
        let large = offer(Offered::Transform { log_n: 12 }, 60 << 20);
        let small = offer(Offered::Transform { log_n: LOG_N }, 60 << 20);
        driver.fail_on(0, 60, Code::LaunchFailed, true);
        let lost = planned(&accelerator, &session_of, &[small, large, large]);
        assert!(driver.failures() > 0, "a test that cannot fail");
        let [small, large, again] = &lost.jobs[..] else {
            panic!("{lost:?}");
        };
        assert!(
            why(small).contains("too small for a device") && small.seconds.is_none(),
            "{small:?}"
        );
        assert!(
            why(large).ends_with("the processor is faster, by measured rates"),
            "{large:?}"
        );
        let seconds = large.seconds.unwrap();
        assert!(seconds.device > seconds.processor && seconds.processor > 0.0);
        assert_eq!(
            (&large.by, large.seconds),
            (&again.by, again.seconds),
            "measured once"
        );
        let left = lost.report.devices()[0].left_to_others();
        assert!(left[0].0.contains("driver"), "{left:?}");
        drop((session_of, accelerator));
    });
}
