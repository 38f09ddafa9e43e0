//! Sums of one vector over columns of points of both groups, as a proof of Groth16 has them, on one device under the
//! fake driver.

use ark_bn254::{Fr, G1Affine, G1Projective, G2Affine, G2Projective, g1, g2};
use ark_ec::{CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand::Rng;
use spillproof_commit::G1;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Groups;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Column;
use spillproof_engine::plan::Job;
use spillproof_engine::stream::{Scalars, msm, sums_over};
use spillproof_fake_driver::{Code, FakeDriver};
use spillproof_gpu::accelerator::{Cut, Executor, GpuAccelerator, Offload};
use spillproof_gpu::msm::BasesLocation;
use spillproof_gpu::trace::SpanKind;
use spillproof_kernels::curve::Point;

use crate::accelerator_plan::{offer, planned};
use crate::sessions::{accelerator, accelerator_with, all_is_given_back, column, name_the_image, session};
use crate::support::{rng, with_kernels};

/// Points, a vector with many zeros and ones, and the sums by arkworks.
struct Case {
    g1: Vec<Vec<G1Affine>>,
    g2: Vec<G2Affine>,
    values: Vec<Fr>,
    expected: (Vec<G1Projective>, Vec<G2Projective>),
}

/// The same on disk.
struct Columns {
    g1: Vec<Column<G1>>,
    g2: Column<Point<g2::Config>>,
    scalars: Column<Fr>,
}

impl Case {
    fn new(n: usize, test: &str) -> Self {
        let mut rng = rng(test);
        let mut some = |_: usize| Fr::from(rng.gen_range(1..1u64 << 40));
        let of_g1 = |scalars: Vec<Fr>| {
            let points: Vec<_> = scalars
                .iter()
                .map(|scalar| G1Projective::generator() * scalar)
                .collect();
            G1Projective::normalize_batch(&points)
        };
        let g1: Vec<_> = (0..3).map(|_| of_g1((0..n).map(&mut some).collect())).collect();
        let g2: Vec<_> = (0..n)
            .map(&mut some)
            .map(|scalar| G2Projective::generator() * scalar)
            .collect();
        let g2 = G2Projective::normalize_batch(&g2);
        let value = |i: usize| match i % 4 {
            0 => Fr::ZERO,
            1 => Fr::ONE,
            _ => Fr::rand(&mut rng),
        };
        let values: Vec<Fr> = (0..n).map(value).collect();
        Self {
            expected: (
                g1.iter()
                    .map(|points| G1Projective::msm(points, &values).unwrap())
                    .collect(),
                vec![G2Projective::msm(&g2, &values).unwrap()],
            ),
            g1,
            g2,
            values,
        }
    }

    fn columns(&self, session: &Session) -> Columns {
        let g1 = self.g1.iter().map(|points| {
            let points: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
            column(session, &points)
        });
        let g2: Vec<_> = self
            .g2
            .iter()
            .map(Point::<g2::Config>::from_affine::<g2::Config>)
            .collect();
        Columns {
            g1: g1.collect(),
            g2: column(session, &g2),
            scalars: column(session, &self.values),
        }
    }
}

impl Columns {
    /// The sums by the accelerator, in one job.
    fn sums(&self, session: &Session) -> Option<(Vec<G1Projective>, Vec<G2Projective>)> {
        let g1: Vec<_> = self.g1.iter().collect();
        session
            .run(|| sums_over::<g1::Config, g2::Config>(&self.scalars, &g1, &[&self.g2]))
            .unwrap()
    }
}

fn sent(accelerator: &GpuAccelerator) -> u64 {
    accelerator.gpus()[0]
        .trace()
        .total(SpanKind::ToDevicePinned)
        .bytes
}

#[test]
fn scalars_cross_once_for_columns_of_both_groups() {
    const TEST: &str = "scalars_cross_once_for_columns_of_both_groups";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let (n, mut passes) = (700u64, Vec::new());
        let case = Case::new(n as usize, TEST);
        for (vram, memory_bytes) in [
            (ByteSize::Auto, 8 << 20),
            (ByteSize::Bytes(2 << 20), 8 << 20),
            (ByteSize::Bytes(600 << 10), 8 << 20),
            (ByteSize::Bytes(260 << 10), 8 << 20),
            // The host has little memory to read all columns at one time.
            (ByteSize::Auto, 448 << 10),
        ] {
            let what = format!("{vram:?} {memory_bytes}");
            driver.reset(1, 64 << 20);
            let accelerator = accelerator_with(vram, Offload::Always, BasesLocation::Streamed);
            let session = session(Some(&accelerator), memory_bytes);
            let columns = case.columns(&session);
            let held = session.budget().held_bytes();
            let before = accelerator.gpus()[0].trace().hard_syncs();
            let sums = columns.sums(&session);
            let report = accelerator.report();
            assert_eq!(sums.as_ref(), Some(&case.expected), "{what}: {report}");
            assert_eq!(session.budget().held_bytes(), held, "{what}");
            let report = accelerator.report();
            assert_eq!(
                (report.sums(), report.by_the_processor()),
                (4, 0),
                "{what}: {report}"
            );
            let of_scalars = sent(&accelerator) - n * (3 * 64 + 128);
            assert_eq!(of_scalars % (32 * n), 0, "{what}");
            passes.push(of_scalars / (32 * n));
            let syncs = accelerator.gpus()[0].trace().hard_syncs() - before;
            assert_eq!(syncs, 2 * of_scalars / (32 * n), "{what}");
            if let ByteSize::Bytes(vram_bytes) = vram {
                assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
            }
            // One column of G2 by itself.
            let sums = session.run(|| msm::<g2::Config>(&columns.g2, &[Scalars::Column(&columns.scalars)]));
            assert_eq!(sums.unwrap(), case.expected.1, "{what}");
            assert_eq!(accelerator.report().sums(), 5, "{what}");
            drop(columns);
            all_is_given_back(session, accelerator, driver, &what);
        }
        // Less device memory means more passes over the scalars; never more than one for each column.
        assert_eq!(passes[0], 1, "{passes:?}");
        assert!(
            passes[..4].is_sorted() && passes[3] > 1 && passes[3] <= 4,
            "{passes:?}"
        );
        assert!((1..=4).contains(&passes[4]), "{passes:?}");
    });
}

/// What a plan says of the sums of a case: how many of them a device makes, and how many of the job are left.
fn planned_sums(accelerator: &GpuAccelerator, session: &Session, points: u64) -> (u64, u64, u64) {
    let job = Job::Sums {
        points,
        bases: Groups { g1: 3, g2: 1 },
        columns: 1,
        step: Some(128),
        bases_bytes: 0,
        scalars_bytes: 0,
    };
    let plan = planned(
        accelerator,
        session,
        &[offer(job, session.budget().available_bytes())],
    );
    let left = match &plan.jobs[0].by {
        Executor::Devices {
            cut: Cut::Sums { left, .. },
            ..
        } => *left,
        _ => 4,
    };
    (plan.report.sums(), plan.report.by_the_processor(), left)
}

/// Device memory that is too little for buckets of G2 may be enough for those of G1; so says the plan.
#[test]
fn where_g2_does_not_fit_g1_is_summed() {
    const TEST: &str = "where_g2_does_not_fit_g1_is_summed";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let case = Case::new(300, TEST);
        let mut made = Vec::new();
        for vram_kib in [40, 60, 70, 80, 90, 100, 110, 130, 160, 200, 300] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(vram_kib << 10), Offload::Always);
            let session = session(Some(&accelerator), 8 << 20);
            let columns = case.columns(&session);
            let sums = columns.sums(&session);
            let report = accelerator.report();
            let what = format!("{vram_kib} KiB: {report}");
            let (of_g1, of_g2) = sums.unwrap_or_default();
            assert!(of_g1.is_empty() || of_g1 == case.expected.0, "{what}");
            assert!(of_g2.is_empty() || of_g2 == case.expected.1, "{what}");
            made.push((of_g1.len(), of_g2.len()));
            let count = (of_g1.len() + of_g2.len()) as u64;
            let planner = crate::sessions::accelerator(ByteSize::Bytes(vram_kib << 10), Offload::Always);
            let expected = (count, 4 - count, 4 - count);
            assert_eq!(planned_sums(&planner, &session, 300), expected, "{what}");
            drop(planner);
            assert_eq!(
                (report.sums(), report.by_the_processor()),
                (count, 4 - count),
                "{what}"
            );
            assert!(driver.peak_bytes(0) <= vram_kib << 10, "{what}");
            drop(columns);
            all_is_given_back(session, accelerator, driver, &what);
        }
        assert!(made.is_sorted(), "{made:?}");
        made.dedup();
        assert_eq!(made, [(0, 0), (3, 0), (3, 1)]);
    });
}

/// Points of a key stay for the next proof, all columns or none.
#[test]
fn columns_of_both_groups_stay() {
    const TEST: &str = "columns_of_both_groups_stay";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let n = 700u64;
        let case = Case::new(n as usize, TEST);
        let points_bytes = n * (3 * 64 + 128);
        for (vram_bytes, stays) in [(4 << 20, true), (2 * points_bytes - 4096, false)] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(vram_bytes), Offload::Always);
            let session = session(Some(&accelerator), 8 << 20);
            let columns = case.columns(&session);
            for time in 0..2 {
                let before = sent(&accelerator);
                assert_eq!(
                    columns.sums(&session).as_ref(),
                    Some(&case.expected),
                    "{vram_bytes}"
                );
                let of_points = if stays && time > 0 { 0 } else { points_bytes };
                let of_scalars = sent(&accelerator) - before - of_points;
                assert_eq!(of_scalars % (32 * n), 0, "{vram_bytes}, {time}");
            }
            assert!(driver.peak_bytes(0) <= vram_bytes);
            drop(columns);
            all_is_given_back(session, accelerator, driver, TEST);
        }
    });
}

/// A device that fails or is lost at some call: the sums are right, or left to the processor.
fn failing(driver: &FakeDriver, case: &Case, code: Code, lost: bool) {
    let run = |nth: Option<u64>| {
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(1 << 20), Offload::Always);
        let session = session(Some(&accelerator), 4 << 20);
        let columns = case.columns(&session);
        let before = driver.calls(None);
        if let Some(nth) = nth {
            driver.fail(None, nth, code, lost);
        }
        let what = format!("call {nth:?}, {code:?}, lost: {lost}");
        let report = match columns.sums(&session) {
            // Short of memory, it makes those of G1.
            Some((of_g1, of_g2)) if of_g2.is_empty() => {
                assert_eq!(of_g1, case.expected.0, "{what}");
                assert_eq!(accelerator.report().sums(), 3, "{what}");
                assert_eq!(code, Code::OutOfMemory, "{what}");
                accelerator.report()
            }
            Some(sums) => {
                assert_eq!(sums, case.expected, "{what}");
                assert_eq!(accelerator.report().sums(), 4, "{what}");
                accelerator.report()
            }
            None => accelerator.report(),
        };
        assert_eq!(report.sums() + report.by_the_processor(), 4, "{what}: {report}");
        let calls = driver.calls(None) - before;
        drop((columns, session));
        drop(std::sync::Arc::into_inner(accelerator).unwrap());
        if !lost {
            driver.assert_clean(&what);
        }
        (calls, report.by_the_processor())
    };
    let (calls, _) = run(None);
    assert!(calls > 100, "{calls}");
    let failed = (1..=calls)
        .step_by((calls / 15) as usize)
        .map(|nth| run(Some(nth)).1);
    assert!(failed.sum::<u64>() >= 4, "a test that cannot fail");
}

#[test]
fn a_failure_at_columns_of_both_groups_changes_nothing() {
    const TEST: &str = "a_failure_at_columns_of_both_groups_changes_nothing";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let case = Case::new(150, TEST);
        failing(driver, &case, Code::OutOfMemory, false);
        failing(driver, &case, Code::LaunchFailed, true);
    });
}
