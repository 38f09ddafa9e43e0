//! `GpuAccelerator` on one device under the fake driver: sums and transforms of a session, on the device or,
//! with the same result, on the processor.

use std::sync::Arc;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::UniformRand;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use spillproof_commit::G1;
use spillproof_engine::Error;
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::{Placement, Workspace, Writer};
use spillproof_engine::storage::{Fault, FaultPlan, Storage};
use spillproof_engine::stream::{Scalars, Transform, msm, ntt};
use spillproof_fake_driver::{Code, FakeDriver};
use spillproof_gpu::accelerator::Offload;
use spillproof_gpu::msm::BasesLocation;
use spillproof_gpu::trace::SpanKind;

use crate::sessions::{
    TestJob, accelerator, accelerator_with, all_is_given_back, column, name_the_image, session,
};
use crate::support::with_kernels;

#[test]
fn a_session_gets_its_sums_and_transforms_from_the_device() {
    const TEST: &str = "a_session_gets_its_sums_and_transforms_from_the_device";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        for (vram, memory_bytes) in [
            (ByteSize::Auto, 8 << 20),
            (ByteSize::Bytes(256 << 10), 1 << 20),
            (ByteSize::Bytes(2 << 20), 700 << 10),
        ] {
            let what = format!("{vram:?} {memory_bytes}");
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(vram, Offload::Always);
            let session = session(Some(&accelerator), memory_bytes);
            let job = TestJob::new(&session, 512);
            job.check_in_turn(&session, &what);
            let report = accelerator.report();
            assert_eq!(
                (report.sums(), report.transforms(), report.by_the_processor()),
                (10, 5, 0),
                "{what}: {report}"
            );
            if let ByteSize::Bytes(vram_bytes) = vram {
                assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
            }
            drop(job);
            all_is_given_back(session, accelerator, driver, &what);
        }
    });
}

/// Vectors over the same bases, and their sums. All but the last two are as long as the bases; one of the two
/// is padded.
#[test]
fn bases_cross_once_for_as_many_vectors_as_fit() {
    const TEST: &str = "bases_cross_once_for_as_many_vectors_as_fit";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let n = 512usize;
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let points: Vec<G1Affine> = (0..n).map(|_| G1Affine::rand(&mut rng)).collect();
        let bases: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
        // The vectors are not in order of length, nor whole frames.
        let lens = [60, n, n, n / 2 + 3, n, n, n];
        let vectors = lens.map(|len| -> Vec<Fr> { (0..len).map(|_| Fr::rand(&mut rng)).collect() });
        let expected = vectors
            .each_ref()
            .map(|values| G1Projective::msm(&points[..values.len()], values).unwrap());
        let mut passes = Vec::new();
        for (vram, memory_bytes) in [
            (ByteSize::Auto, 8 << 20),
            (ByteSize::Bytes(2 << 20), 8 << 20),
            (ByteSize::Bytes(1 << 20), 8 << 20),
            (ByteSize::Bytes(256 << 10), 8 << 20),
            // The host has memory for two vectors beside the bases and the slots.
            (ByteSize::Auto, 320 << 10),
        ] {
            let what = format!("{vram:?} {memory_bytes}");
            driver.reset(1, 64 << 20);
            let accelerator = accelerator_with(vram, Offload::Always, BasesLocation::Streamed);
            let session = session(Some(&accelerator), memory_bytes);
            let bases = column(&session, &bases);
            let columns = vectors.each_ref().map(|values| column(&session, values));
            let held = session.budget().held_bytes();
            let sums = session.run(|| msm::<g1::Config>(&bases, &columns.each_ref().map(Scalars::Column)));
            assert_eq!(sums.unwrap_or_else(|e| panic!("{what}: {e}")), expected, "{what}");
            assert_eq!(session.budget().held_bytes(), held, "{what}");
            let report = accelerator.report();
            assert_eq!(
                (report.sums(), report.by_the_processor()),
                (7, 0),
                "{what}: {report}"
            );
            // Six vectors as long as the bases, one of them padded; the short one has its own pass over fewer
            // bases.
            let sent = accelerator.gpus()[0]
                .trace()
                .total(SpanKind::ToDevicePinned)
                .bytes;
            let of_points = sent - (6 * 32 * n as u64) - 60 * (64 + 32);
            assert_eq!(of_points % (64 * n as u64), 0, "{what}");
            passes.push(of_points / (64 * n as u64));
            if let ByteSize::Bytes(vram_bytes) = vram {
                assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
            }
            drop((bases, columns));
            all_is_given_back(session, accelerator, driver, &what);
        }
        // Less of either memory means more passes; never more than one for each vector.
        assert_eq!((passes[0], passes[3]), (1, 6), "{passes:?}");
        assert!(
            passes[..4].is_sorted() && (2..6).contains(&passes[2]),
            "{passes:?}"
        );
        assert!((2..6).contains(&passes[4]), "{passes:?}");
    });
}

/// Points cross with the first pass over them. Later passes and later jobs stream scalars only, until another
/// job needs the memory.
#[test]
fn bases_stay_for_later_sums() {
    const TEST: &str = "bases_stay_for_later_sums";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let n = 1200usize;
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let sets = [0, 1].map(|_| -> Vec<G1Affine> { (0..n).map(|_| G1Affine::rand(&mut rng)).collect() });
        let vectors = [n, n - 5].map(|len| -> Vec<Fr> { (0..len).map(|_| Fr::rand(&mut rng)).collect() });
        // The set of each sum and its vectors; and the sets whose points cross then, with memory for both and
        // for one.
        let jobs: [(usize, &[usize], [bool; 2]); 6] = [
            (0, &[0, 1, 0], [true, true]),
            (0, &[0], [false, false]),
            (1, &[1], [true, true]),
            (0, &[1], [false, true]),
            (1, &[1, 1], [false, true]),
            (1, &[0], [true, true]),
        ];
        for (vram_bytes, place) in [(4 << 20, 0), (256 << 10, 1)] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(vram_bytes), Offload::Always);
            let session = session(Some(&accelerator), 8 << 20);
            let bases = sets.each_ref().map(|points| {
                let points: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
                column(&session, &points)
            });
            let columns = vectors.each_ref().map(|values| column(&session, values));
            let sent = || {
                accelerator.gpus()[0]
                    .trace()
                    .total(SpanKind::ToDevicePinned)
                    .bytes
            };
            for (at, (set, job, crosses)) in jobs.iter().enumerate() {
                let what = format!("{vram_bytes} {at}");
                let before = sent();
                let scalars: Vec<_> = job.iter().map(|&i| Scalars::Column(&columns[i])).collect();
                let sums = session.run(|| msm::<g1::Config>(&bases[*set], &scalars)).unwrap();
                let longest = job.iter().map(|&i| vectors[i].len()).max().unwrap();
                for (&i, sum) in job.iter().zip(sums) {
                    let expected = G1Projective::msm(&sets[*set][..vectors[i].len()], &vectors[i]);
                    assert_eq!(sum, expected.unwrap(), "{what}");
                }
                let of_points = if crosses[place] { 64 * longest } else { 0 };
                assert_eq!(
                    sent() - before,
                    (of_points + 32 * longest * job.len()) as u64,
                    "{what}"
                );
            }
            // A transform takes the memory; then the points cross again.
            let input: Vec<Fr> = (0..2048).map(|_| Fr::rand(&mut rng)).collect();
            let domain = Radix2EvaluationDomain::<Fr>::new(input.len()).unwrap();
            let values = column(&session, &input);
            let transform = Transform::forward(11, domain.group_gen);
            let output = session.run(|| ntt(&values, &transform, Placement::Disk)).unwrap();
            assert_eq!(output.to_vec().unwrap(), domain.fft(&input));
            let before = sent();
            let sums = session.run(|| msm::<g1::Config>(&bases[1], &[Scalars::Column(&columns[0])]));
            assert_eq!(sums.unwrap(), [G1Projective::msm(&sets[1], &vectors[0]).unwrap()]);
            assert_eq!(sent() - before, [32, 96][place] * n as u64);
            let report = accelerator.report();
            assert_eq!((report.sums(), report.by_the_processor()), (10, 0), "{report}");
            assert!(driver.peak_bytes(0) <= vram_bytes);
            // Other points have another id, even in the same file.
            drop(bases);
            let points: Vec<G1> = sets[0].iter().map(G1::from_affine::<g1::Config>).collect();
            let anew = column(&session, &points);
            let sums = session.run(|| msm::<g1::Config>(&anew, &[Scalars::Column(&columns[0])]));
            assert_eq!(sums.unwrap(), [G1Projective::msm(&sets[0], &vectors[0]).unwrap()]);
            drop((anew, columns, values, output));
            all_is_given_back(session, accelerator, driver, &format!("{vram_bytes}"));
        }
    });
}

/// The points of an SRS are sections of one file: each of them stays, whichever frame it begins at.
#[test]
fn bases_stay_wherever_in_a_file_they_begin() {
    const TEST: &str = "bases_stay_wherever_in_a_file_they_begin";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        // Five frames of 256 points each.
        let n = 1280usize;
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let points: Vec<G1Affine> = (0..2 * n).map(|_| G1Affine::rand(&mut rng)).collect();
        let values: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(4 << 20), Offload::Always);
        let session = session(Some(&accelerator), 8 << 20);
        let all: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
        let file = column(&session, &all);
        let sections = [0, n].map(|first| file.part(first as u64, n as u64).unwrap());
        let scalars = column(&session, &values);
        for time in 0..3 {
            for (at, section) in sections.iter().enumerate() {
                let sent = || {
                    let trace = accelerator.gpus()[0].trace();
                    trace.total(SpanKind::ToDevicePinned).bytes
                };
                let before = sent();
                let sums = session.run(|| msm::<g1::Config>(section, &[Scalars::Column(&scalars)]));
                let expected = G1Projective::msm(&points[at * n..][..n], &values).unwrap();
                assert_eq!(sums.unwrap(), [expected], "section {at}, time {time}");
                let bytes_a_point = if time == 0 { 64 + 32 } else { 32 };
                assert_eq!(
                    sent() - before,
                    bytes_a_point * n as u64,
                    "section {at}, time {time}"
                );
            }
        }
        drop((file, sections, scalars));
        all_is_given_back(session, accelerator, driver, TEST);
    });
}

/// Transforms in two steps, through the disk: chunks from one column on, tiles of the host from a frame a
/// line on.
#[test]
fn a_transform_larger_than_the_device_goes_in_two_steps() {
    const TEST: &str = "a_transform_larger_than_the_device_goes_in_two_steps";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        for (log_n, vram_bytes, memory_bytes) in [
            (6, 3 << 10, 1 << 20),
            (11, 20 << 10, 1 << 20),
            (11, 40 << 10, 8 << 20),
            (12, 24 << 10, 2 << 20),
            (13, 128 << 10, 16 << 20),
            (13, 200 << 10, 1 << 20),
        ] {
            let what = format!("2^{log_n}, {vram_bytes} of the device, {memory_bytes} of the host");
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(vram_bytes), Offload::Always);
            let session = session(Some(&accelerator), memory_bytes);
            let job = TestJob::new(&session, 1 << log_n);
            let held = session.budget().held_bytes();
            job.check_transforms(&session, &what);
            // Less than a row.
            let few = column(&session, &job.input[..3]);
            let domain = Radix2EvaluationDomain::<Fr>::new(1 << log_n).unwrap();
            let transform = Transform::forward(log_n, domain.group_gen);
            let output = session.run(|| ntt(&few, &transform, Placement::Auto)).unwrap();
            assert!(output.to_vec().unwrap() == domain.fft(&job.input[..3]), "{what}");
            drop((few, output));
            assert_eq!(session.budget().held_bytes(), held, "{what}");
            let report = accelerator.report();
            assert_eq!(
                (report.transforms(), report.by_the_processor()),
                (6, 0),
                "{what}: {report}"
            );
            // Each element crosses twice.
            for kind in [SpanKind::ToDevicePinned, SpanKind::FromDevicePinned] {
                let bytes = accelerator.gpus()[0].trace().total(kind).bytes;
                assert_eq!(bytes, 6 * 2 * (32 << log_n), "{what}");
            }
            assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
            drop(job);
            all_is_given_back(session, accelerator, driver, &what);
        }
    });
}

/// An error of the disk is the error of the job; a lack of memory of the host leaves the job to the
/// processor. Neither leaks.
#[test]
fn two_steps_that_fail_leave_nothing() {
    const TEST: &str = "two_steps_that_fail_leave_nothing";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let values: Vec<Fr> = (1..=1u64 << 11).map(Fr::from).collect();
        let domain = Radix2EvaluationDomain::<Fr>::new(values.len()).unwrap();
        let (transform, expected) = (Transform::forward(11, domain.group_gen), domain.fft(&values));
        let run = |faults: FaultPlan, left_bytes: u64, failing: Option<(u64, Code)>| {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(20 << 10), Offload::Always);
            let folder = tempfile::tempdir().unwrap();
            let storage = Storage::builder()
                .dir(folder.path())
                .faults(faults)
                .build()
                .unwrap();
            let budget = Budget::new(1 << 20);
            let workspace = Workspace::new(storage, budget.clone()).with_accelerator(
                Arc::clone(&accelerator) as Arc<dyn spillproof_engine::accelerator::Accelerator>,
            );
            let found = (|| {
                let mut writer = Writer::scratch(&workspace, "values", 1 << 11, Placement::Disk)?;
                writer.push(&values)?;
                let input = writer.finish()?;
                let rest_bytes = budget.available_bytes().saturating_sub(left_bytes);
                let held = budget.lease(rest_bytes, "somebody else")?;
                if let Some((nth, code)) = failing {
                    driver.fail(None, nth, code, false);
                }
                let output = ntt(&input, &transform, Placement::Disk)?;
                drop(held);
                output.to_vec()
            })();
            let calls = driver.calls(None);
            drop(workspace);
            let report = accelerator.report();
            drop(Arc::into_inner(accelerator).unwrap());
            driver.assert_clean("after a fault");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            // The last transfer of a file may still run when its error is known.
            let start = std::time::Instant::now();
            while budget.held_bytes() > 0 && start.elapsed().as_secs() < 10 {
                std::thread::yield_now();
            }
            assert_eq!(budget.held_bytes(), 0);
            (found, report, calls)
        };
        const ALL: u64 = 1 << 20;
        let plan = FaultPlan::none();
        let (found, report, calls) = run(plan.clone(), ALL, None);
        assert!(found.unwrap() == expected);
        assert_eq!(report.transforms(), 1);
        let operations = plan.operations();
        assert!(operations > 50, "{operations}");
        let mut failed = 0;
        for index in (0..operations).step_by((operations / 40).max(1) as usize) {
            for fault in [Fault::Io, Fault::FlipByte(77)] {
                match run(FaultPlan::at(index, fault), ALL, None).0 {
                    Ok(found) => assert!(found == expected, "operation {index}"),
                    Err(Error::Io { .. } | Error::File { .. } | Error::Damaged { .. }) => failed += 1,
                    Err(other) => panic!("operation {index}: {other}"),
                }
            }
        }
        assert!(failed > 40, "{failed}");
        let mut declined = 0;
        for nth in (1..calls).step_by((calls / 30).max(1) as usize) {
            let (found, report, _) = run(FaultPlan::none(), ALL, Some((nth, Code::OutOfMemory)));
            assert!(found.unwrap() == expected, "call {nth}");
            declined += report.by_the_processor();
        }
        assert!(declined > 10, "{declined}");
        let mut ways = [0; 3];
        for left_bytes in (40 << 10..800 << 10).step_by(20 << 10) {
            match run(FaultPlan::none(), left_bytes, None) {
                (Ok(found), report, _) => {
                    assert!(found == expected, "{left_bytes} left");
                    ways[report.by_the_processor() as usize] += 1;
                }
                (Err(Error::BudgetTooSmall { .. } | Error::OverBudget { .. }), report, _) => {
                    assert!(report.to_string().contains("the host lacks memory"), "{report}");
                    ways[2] += 1;
                }
                (Err(other), ..) => panic!("{left_bytes} left: {other}"),
            }
        }
        assert!(ways[0] > 5 && ways[2] > 0, "{ways:?}");
    });
}

#[test]
fn what_does_not_fit_is_the_processors_and_the_reason_is_told() {
    const TEST: &str = "what_does_not_fit_is_the_processors_and_the_reason_is_told";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(1, 64 << 20);
        let reason = "bytes of device memory";
        let accelerator_of = accelerator(ByteSize::Bytes(4 << 10), Offload::Always);
        let session_of = session(Some(&accelerator_of), 1 << 20);
        let job = TestJob::new(&session_of, 2048);
        job.check_transforms(&session_of, reason);
        let report = accelerator_of.report();
        assert_eq!(
            (report.transforms(), report.by_the_processor()),
            (0, 5),
            "{report}"
        );
        assert!(report.to_string().contains(reason), "{report}");
        drop(job);
        all_is_given_back(session_of, accelerator_of, driver, reason);
        // A budget of the host with little left: the device needs less than the processor. With even less
        // neither has enough.
        driver.reset(1, 64 << 20);
        let accelerator = accelerator_with(ByteSize::Auto, Offload::Always, BasesLocation::Streamed);
        let session = session(Some(&accelerator), 700 << 10);
        let job = TestJob::new(&session, 512);
        for (left_bytes, declined) in [(300 << 10, 0), (48 << 10, 1)] {
            let rest_bytes = session.budget().available_bytes() - left_bytes;
            let held = session.budget().lease(rest_bytes, "somebody else").unwrap();
            if declined == 0 {
                job.check_sums(&session, "little room");
            } else {
                let sum = session
                    .run(|| msm::<g1::Config>(&job.bases, &[Scalars::Column(&job.scalars[0])]))
                    .map(|_| ());
                assert!(
                    matches!(sum, Err(spillproof_engine::Error::BudgetTooSmall { .. })),
                    "{sum:?}"
                );
            }
            drop(held);
            let report = accelerator.report();
            assert_eq!(
                (report.sums(), report.by_the_processor()),
                (5, declined),
                "{report}"
            );
        }
        let report = accelerator.report();
        assert!(report.to_string().contains("the host lacks memory"), "{report}");
        drop(job);
        all_is_given_back(session, accelerator, driver, "no room");
    });
}

#[test]
fn small_jobs_stay_with_the_processor_and_larger_ones_are_measured() {
    const TEST: &str = "small_jobs_stay_with_the_processor_and_larger_ones_are_measured";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(1, 256 << 20);
        let accelerator = accelerator(ByteSize::Auto, Offload::Measured);
        let session = session(Some(&accelerator), 64 << 20);
        let job = TestJob::new(&session, 512);
        job.check_sums(&session, "small");
        job.check_transforms(&session, "small");
        let report = accelerator.report();
        assert!(report.to_string().contains("too small for a device"), "{report}");
        assert_eq!(
            (report.by_the_processor(), driver.calls(Some("cuLaunchKernel"))),
            (10, 0)
        );
        drop(job);
        // No processor is slower than a fake device. Nothing is measured twice.
        let job = TestJob::new(&session, 4096);
        job.check_transforms(&session, "measured");
        let launches = driver.calls(Some("cuLaunchKernel"));
        assert!(launches > 0);
        job.check_transforms(&session, "measured");
        assert_eq!(driver.calls(Some("cuLaunchKernel")), launches);
        let report = accelerator.report();
        assert!(
            report
                .to_string()
                .contains("the processor is faster, by measured rates"),
            "{report}"
        );
        drop(job);
        all_is_given_back(session, accelerator, driver, "measured");
    });
}

/// A device that fails or is lost at the `nth` call of any kind: the results are right, and the report says
/// where the jobs were done.
fn failing(driver: &FakeDriver, code: Code, lost: bool) {
    let (calls, of_sums) = {
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(1 << 20), Offload::Always);
        let session = session(Some(&accelerator), 4 << 20);
        let job = TestJob::new(&session, 64);
        let before = driver.calls(None);
        job.check_sums(&session, "counting");
        let of_sums = driver.calls(None) - before;
        job.check_transforms(&session, "counting");
        (driver.calls(None) - before, of_sums)
    };
    assert!(calls > 200, "{calls}");
    // A sample of the calls: all of them would take minutes.
    for nth in (1..=calls).step_by((calls / 20) as usize) {
        let what = format!("call {nth} of {calls}, {code:?}, lost: {lost}");
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(1 << 20), Offload::Always);
        let session = session(Some(&accelerator), 4 << 20);
        let job = TestJob::new(&session, 64);
        driver.fail(None, nth, code, lost);
        job.check_sums(&session, &what);
        job.check_transforms(&session, &what);
        let failed = driver.failures() > 0;
        let report = accelerator.report();
        let all = report.sums() + report.transforms() + report.by_the_processor();
        assert_eq!(all, 10, "{what}: {report}");
        if failed && report.by_the_processor() > 0 {
            assert!(report.to_string().contains("driver "), "{what}: {report}");
        }
        if lost && failed && nth < of_sums {
            assert!(report.by_the_processor() >= 5, "{what}: {report}");
        }
        assert!(session.budget().peak_bytes() <= 4 << 20, "{what}");
        drop(job);
        drop(session);
        drop(Arc::into_inner(accelerator).unwrap());
        if !lost {
            driver.assert_clean(&what);
        }
    }
}

#[test]
fn a_failure_half_way_changes_nothing() {
    with_kernels(
        module_path!(),
        "a_failure_half_way_changes_nothing",
        |driver, image| {
            let _file = name_the_image(image);
            for code in [Code::OutOfMemory, Code::InvalidValue] {
                failing(driver, code, false);
            }
        },
    );
}

#[test]
fn a_lost_device_is_left_alone() {
    with_kernels(module_path!(), "a_lost_device_is_left_alone", |driver, image| {
        let _file = name_the_image(image);
        failing(driver, Code::LaunchFailed, true);
    });
}
