//! Measuring under the fake driver: timed work is computed, failures are reported, accelerators take turns.
//! The figures mean nothing.

use std::sync::Arc;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::UniformRand;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use spillproof_commit::G1;
use spillproof_engine::Session;
use spillproof_engine::accelerator::{Accelerator, Answer, Coset, Panel, Sums, Totals, Transform};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::Column;
use spillproof_engine::stream::{Scalars, msm};
use spillproof_fake_driver::{Code, FakeDriver};
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Staging};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::measure::{AcceleratorSwitch, Facts, Outcome, Rates};
use spillproof_gpu::msm::BasesLocation;
use spillproof_gpu::trace::{Busy, Detail, SpanKind};
use spillproof_gpu::{Error, Gpu};

use crate::sessions::{column, name_the_image};
use crate::support::{is_the_drivers, with_kernels};

fn opened(driver: &FakeDriver) -> Gpu {
    driver.reset(1, 64 << 20);
    Gpu::open(0, Detail::Timeline { spans_max: 1000 }).unwrap()
}

#[test]
fn rates_are_of_what_was_computed() {
    with_kernels(
        module_path!(),
        "rates_are_of_what_was_computed",
        |driver, image| {
            let gpu = opened(driver);
            let facts = Facts::of(&gpu).unwrap();
            assert_eq!((facts.multiprocessors, facts.clock_hz), (4, Some(1_980_000_000)));
            assert_eq!((facts.memory_clock_hz, &*facts.cuda_version), (None, "13.0"));
            let said = facts.to_string();
            assert!(
                said.starts_with(
                    "0: fake device 0 (sm_90, 4 multiprocessors at 1.98 GHz, 64 MiB), CUDA 13.0"
                ),
                "{said}"
            );
            let budget = Budget::new(16 << 20);
            let kernels = Kernels::load(&gpu, image).unwrap();
            let rates = Rates::measure(&gpu, &kernels, &budget).unwrap();
            let all = [
                rates.fq_products_per_second,
                rates.fr_products_per_second,
                rates.mixed_additions_per_second,
                rates.to_device_bytes_per_second,
                rates.from_device_bytes_per_second,
                rates.both_ways_bytes_per_second,
            ];
            assert!(
                all.iter().all(|rate| *rate > 0.0 && rate.is_finite()),
                "{rates:?}"
            );
            let wide = 120.0 * rates.fq_products_per_second.max(rates.fr_products_per_second);
            assert_eq!(rates.wide_products_per_second, wide);
            let of_cycle = rates.wide_products_per_multiprocessor_and_cycle.unwrap();
            assert!((of_cycle * 4.0 * 1.98e9 / wide - 1.0).abs() < 1e-9);
            assert_eq!(budget.held_bytes(), 0);
            assert!(budget.peak_bytes() <= 8 << 20);
            let no_room = Rates::measure(&gpu, &kernels, &Budget::new(0)).unwrap_err();
            assert!(matches!(no_room, Error::Invalid(_)), "{no_room}");

            // A launch that did nothing must not give a rate.
            for nth in [1, 2, 3, 6, 12] {
                driver.fail(Some("cuLaunchKernel"), nth, Code::Lie, false);
                let wrong = Rates::measure(&gpu, &kernels, &budget).unwrap_err();
                assert!(matches!(wrong, Error::Wrong { .. }), "launch {nth}: {wrong}");
            }
            drop((kernels, gpu));
            driver.assert_clean("rates");
        },
    );
}

#[test]
fn rates_of_a_device_that_fails_are_its_error() {
    const TEST: &str = "rates_of_a_device_that_fails_are_its_error";
    with_kernels(module_path!(), TEST, |driver, image| {
        let gpu = opened(driver);
        let budget = Budget::new(16 << 20);
        let kernels = Kernels::load(&gpu, image).unwrap();
        let before = driver.calls(None);
        Rates::measure(&gpu, &kernels, &budget).unwrap();
        // The number of calls depends on the clock, so this is a sample.
        let calls = driver.calls(None) - before;
        for nth in (1..calls.min(300)).step_by(29) {
            driver.fail(None, nth, Code::InvalidValue, false);
            if let Err(error) = Rates::measure(&gpu, &kernels, &budget) {
                assert!(is_the_drivers(&error), "call {nth}: {error}");
            }
            assert_eq!(budget.held_bytes(), 0, "call {nth}");
        }
        driver.fail(None, 0, Code::InvalidValue, false);
        drop((kernels, gpu));
        driver.assert_clean("failures");
    });
}

/// Points and scalars on disk, their sum by arkworks.
fn sum_of(session: &Session, n: usize) -> (Column<G1>, Column<Fr>, G1Projective) {
    let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
    let points: Vec<G1Affine> = (0..n).map(|_| G1Affine::rand(&mut rng)).collect();
    let scalars: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
    let bases: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
    let expected = G1Projective::msm(&points, &scalars).unwrap();
    (column(session, &bases), column(session, &scalars), expected)
}

#[test]
fn makers_take_turns_and_bases_stay() {
    with_kernels(
        module_path!(),
        "makers_take_turns_and_bases_stay",
        |driver, image| {
            let _file = name_the_image(image);
            let gpu = opened(driver);
            let turns = Arc::new(AcceleratorSwitch::default());
            let session = Session::builder()
                .memory(ByteSize::Bytes(8 << 20))
                .dir(env!("CARGO_TARGET_TMPDIR"))
                .threads(2)
                .accelerator(Arc::clone(&turns) as Arc<dyn Accelerator>)
                .build()
                .unwrap();
            let n = 700;
            let (bases, scalars, expected) = sum_of(&session, n);
            let sum = || {
                let sums = session.run(|| msm::<g1::Config>(&bases, &[Scalars::Column(&scalars)]));
                assert_eq!(sums.unwrap(), [expected]);
            };
            sum();
            assert_eq!(turns.take_outcome(), Outcome::NotAsked);

            let vram = ByteSize::Bytes(2 << 20);
            let over = |vram, bases| {
                let gpus = vec![gpu.clone()];
                let accelerator = GpuAccelerator::over(gpus, vram, Offload::Always, &Staging::default());
                Arc::new(accelerator.with_bases(bases))
            };
            let streamed = over(vram, BasesLocation::Streamed);
            assert_eq!(streamed.last_plans(), (None, None));
            turns.set(Some(Arc::clone(&streamed) as Arc<dyn Accelerator>));
            sum();
            assert_eq!(
                (turns.take_outcome(), streamed.report().sums()),
                (Outcome::Done, 1)
            );
            assert_eq!(turns.take_outcome(), Outcome::NotAsked);
            assert_eq!(streamed.last_plans().0.unwrap().points(), n as u64);
            turns.set(None);
            drop(streamed);

            // Bases cross once, scalars each time.
            let resident = over(vram, BasesLocation::Resident);
            turns.set(Some(Arc::clone(&resident) as Arc<dyn Accelerator>));
            let sent = || gpu.trace().total(SpanKind::ToDevicePinned).bytes;
            for crossed in [96, 32, 32] {
                let before = sent();
                sum();
                assert_eq!(turns.take_outcome(), Outcome::Done);
                assert_eq!(sent() - before, crossed * n as u64);
            }
            let plan = resident.plan_over_bases(n as u64, session.budget());
            assert_eq!(resident.last_plans().0.unwrap(), plan.unwrap());
            assert!(driver.peak_bytes(0) <= 2 << 20);

            // Spans of one run only, and none while the limit is 0.
            gpu.trace().take_spans();
            gpu.trace().limit_spans(0);
            sum();
            assert_eq!(gpu.trace().take_spans(), []);
            gpu.trace().limit_spans(1000);
            sum();
            let busy = Busy::of(gpu.trace().take_spans()).unwrap();
            assert!(busy.device_seconds > 0.0 && busy.transfer_seconds > 0.0);
            assert_eq!(turns.take_outcome(), Outcome::Done);

            // A failed call is reported, and the next sum uploads the bases again.
            driver.fail(Some("cuLaunchKernel"), 5, Code::InvalidValue, false);
            sum();
            let why = turns.take_outcome();
            assert!(
                matches!(&why, Outcome::Declined(why) if why.contains("the CUDA driver failed")),
                "{why:?}"
            );
            let before = sent();
            sum();
            assert_eq!(
                (turns.take_outcome(), sent() - before),
                (Outcome::Done, 96 * n as u64)
            );

            turns.set(None);
            drop(resident);
            let smallest = |vram_bytes| {
                let accelerator = over(ByteSize::Bytes(vram_bytes), BasesLocation::Resident);
                match accelerator.plan_over_bases(n as u64, session.budget()) {
                    Err(Error::TooSmall { smallest_bytes, .. }) => Err(smallest_bytes),
                    plan => Ok((accelerator, plan.unwrap())),
                }
            };
            // Half of the budget is enough for the bases, then for the sum beside them, too.
            let for_bases = smallest(64 << 10).unwrap_err();
            let (smallest, plan) = match smallest(for_bases) {
                Err(for_both) => smallest(for_both).unwrap(),
                Ok(both) => both,
            };
            turns.set(Some(Arc::clone(&smallest) as Arc<dyn Accelerator>));
            sum();
            assert_eq!(turns.take_outcome(), Outcome::Done);
            assert_eq!(
                smallest.last_plans().0.map(|plan| plan.points()),
                Some(plan.points())
            );
            turns.set(None);
            drop((smallest, bases, scalars));
            assert_eq!(session.budget().held_bytes(), 0);
            drop((session, gpu));
            driver.assert_clean("turns");
        },
    );
}

/// Makes panels, and nothing else.
#[derive(Debug)]
struct Panels;

impl Accelerator for Panels {
    fn sums(&self, _: &mut Sums<'_>, _: &Budget) -> spillproof_engine::Result<Answer<Totals>> {
        Ok(Answer::Declined("it makes panels".into()))
    }

    fn transform(&self, _: &mut Transform<'_>, _: &Budget) -> spillproof_engine::Result<Answer<()>> {
        Ok(Answer::Declined("it makes panels".into()))
    }

    fn panel(&self, _: &mut Panel<'_>, _: &Budget) -> spillproof_engine::Result<Answer<()>> {
        Ok(Answer::Done(()))
    }

    fn quotient(&self, _: &mut Coset<'_>, _: &Budget) -> spillproof_engine::Result<Answer<()>> {
        Ok(Answer::Declined("it makes panels".into()))
    }
}

#[test]
fn a_switch_passes_panels_on() {
    let (switch, budget) = (AcceleratorSwitch::default(), Budget::new(1 << 20));
    let panel = || {
        let mut job = Panel {
            log_rows: 0,
            log_columns: 0,
            first_column: 0,
            halves: Vec::new(),
            input: Box::new(|_: u64, _: &mut [u8]| Ok(())),
            output: Box::new(|_: u64, _: &[u8]| Ok(())),
        };
        switch.panel(&mut job, &budget).unwrap()
    };
    assert!(matches!(panel(), Answer::Declined(_)));
    switch.set(Some(Arc::new(Panels)));
    assert_eq!(panel(), Answer::Done(()));
    assert_eq!(switch.take_outcome(), Outcome::Done);
}
