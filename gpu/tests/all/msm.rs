//! Streamed MSMs under the fake driver, with kernels compiled for the host, against arkworks.

use ark_bn254::{Fr, G1Projective, g1};
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand::Rng;
use spillproof_engine::accelerator::Group;
use spillproof_fake_driver::{Code, FakeDriver, Order};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::msm::{Msm, MsmPlan, MsmShape, PointSource, columns_of};
use spillproof_gpu::ring::Upload;
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{BoxedError, Caching, Error, Gpu, Pinned, Result, Vram};

use crate::support::kernels::curves::{Bn254, Point, affine_words, points};
use crate::support::kernels::words;
use crate::support::{DoneBy, bytes_of, is_the_drivers, rng, source_of, with_fallback, with_kernels};

/// A sum and its expected value.
struct Case {
    points: Vec<Point<Bn254>>,
    scalars: Vec<Fr>,
    points_bytes: Vec<u8>,
    expected: G1Projective,
}

impl Case {
    fn new(points: &[Point<Bn254>], scalars: &[Fr]) -> Self {
        Self {
            points: points.to_vec(),
            scalars: scalars.to_vec(),
            points_bytes: bytes_of(points.iter().map(affine_words::<Bn254>)),
            expected: <ark_ec::short_weierstrass::Projective<g1::Config>>::msm(points, scalars).unwrap(),
        }
    }

    fn random(n: usize, test: &str) -> Self {
        let mut rng = rng(test);
        let points = points::<Bn254>(n, 9, &mut rng);
        let scalars: Vec<_> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        Self::new(&points, &scalars)
    }

    fn scalars_bytes(&self) -> Vec<u8> {
        bytes_of(self.scalars.iter().map(|scalar| [words(scalar)]))
    }

    /// The whole job, with budgets that are just enough.
    fn sum(&self, image: &[u8], plan: MsmPlan, slots: usize) -> Result<(G1Projective, Gpu)> {
        self.sum_on(0, 0, image, plan, slots)
    }

    /// The share of one device: the plan's points from `first` on.
    fn sum_on(
        &self,
        ordinal: usize,
        first: usize,
        image: &[u8],
        plan: MsmPlan,
        slots: usize,
    ) -> Result<(G1Projective, Gpu)> {
        let gpu = Gpu::open(ordinal, Detail::Counts)?;
        let kernels = Kernels::load(&gpu, image)?;
        let pinned = Pinned::new(slots as u64 * plan.slot_bytes());
        let slot_bytes = plan.slot_bytes() as usize;
        let pool = pinned.pool(&gpu, slots, slot_bytes, Caching::WriteCombined, "chunks")?;
        let mut upload = Upload::new(pool.take(slots)?, gpu.trace())?;
        let vram = Vram::new(&gpu, plan.vram_bytes());
        let mut msm = Msm::new(&vram, &kernels, plan)?;
        assert_eq!(
            vram.budget().held_bytes(),
            plan.vram_bytes(),
            "a plan says what is leased"
        );
        let scalars = self.scalars_bytes();
        let (points, scalars) = (&self.points_bytes[64 * first..], &scalars[32 * first..]);
        let mut source = columns_of(
            vec![(Group::G1, Box::new(source_of(points)))],
            vec![Box::new(source_of(scalars))],
        );
        let sums = msm.sum_columns(PointSource::Stream, &mut upload, &mut source)?;
        Ok((sums.g1[0], gpu))
    }

    fn check(&self, driver: &FakeDriver, image: &[u8], plan: MsmPlan, slots: usize, what: &str) {
        let (sum, gpu) = self
            .sum(image, plan, slots)
            .unwrap_or_else(|e| panic!("{what}, {plan:?}: {e}"));
        assert_eq!(sum, self.expected, "{what}, {plan:?}");
        assert_eq!(
            gpu.trace().total(SpanKind::Kernel).count,
            plan.launches().unwrap(),
            "{plan:?}"
        );
        assert_eq!(gpu.trace().hard_syncs(), 2, "{plan:?}");
        drop(gpu);
        driver.assert_clean(what);
    }
}

fn shape(window_bits: u32, chunk_points: u64, ring_buffers: usize, split: u64) -> MsmShape {
    MsmShape {
        window_bits,
        chunk_points,
        ring_buffers,
        split,
    }
}

#[test]
fn scalars_of_every_kind() {
    with_kernels(module_path!(), "scalars_of_every_kind", |driver, image| {
        let n = 600;
        let mut rng = rng("kinds");
        let mut points = points::<Bn254>(n, 20, &mut rng);
        points[17] = Point::<Bn254>::zero();
        let (few, r): ([Fr; 2], _) = ([Fr::rand(&mut rng), Fr::rand(&mut rng)], &mut rng);
        let mut each = |of: &mut dyn FnMut(&mut rand_chacha::ChaCha20Rng, usize) -> Fr| -> Vec<Fr> {
            (0..n).map(|i| of(r, i)).collect()
        };
        let kinds = [
            ("random", each(&mut |rng, _| Fr::rand(rng))),
            ("zeros", each(&mut |_, _| Fr::ZERO)),
            ("ones", each(&mut |_, _| Fr::ONE)),
            ("minus ones", each(&mut |_, _| -Fr::ONE)),
            ("two values", each(&mut |_, i| few[i % 2])),
            (
                "small, either sign",
                each(&mut |rng, i| {
                    let value = Fr::from(rng.gen_range(0..1000u64));
                    if i % 2 == 0 { value } else { -value }
                }),
            ),
            ("one of all", each(&mut |_, i| Fr::from(u64::from(i == 599)))),
        ];
        // None of the chunks divides 600.
        let shapes = [
            (shape(7, 113, 2, 8), 3),
            (shape(4, 256, 1, 16), 1),
            (shape(9, 601, 3, 64), 2),
        ];
        for (i, (what, scalars)) in kinds.iter().enumerate() {
            let case = Case::new(&points, scalars);
            let (shape, slots) = shapes[i % shapes.len()];
            let plan = MsmPlan::with_shape(n as u64, shape).unwrap();
            case.check(driver, image, plan, slots, what);
        }
        // One point, many times.
        let case = Case::new(&vec![points[0]; n], &kinds[4].1);
        let plan = MsmPlan::with_shape(n as u64, shapes[0].0).unwrap();
        case.check(driver, image, plan, 2, "one point");
    });
}

#[test]
fn every_budget_gives_the_same_sum() {
    with_kernels(
        module_path!(),
        "every_budget_gives_the_same_sum",
        |driver, image| {
            let case = Case::random(700, "budgets");
            let Error::TooSmall { smallest_bytes, .. } = MsmPlan::new(700, 0, 1 << 20).unwrap_err() else {
                panic!("no budget is too small");
            };
            println!("700 points take {smallest_bytes} bytes at least");
            assert!(smallest_bytes < 256 << 10);
            let budgets = [
                (smallest_bytes, 1 << 20, 2, Order::Late),
                (300 << 10, 20_000, 1, Order::Random(3)),
                (1 << 20, 9_600, 3, Order::Late),
                (16 << 20, 1 << 20, 2, Order::Eager),
            ];
            for (vram_bytes, slot_bytes, slots, order) in budgets {
                driver.order(order);
                let plan = MsmPlan::new(700, vram_bytes, slot_bytes).unwrap();
                println!(
                    "{vram_bytes} bytes: {:?}, {} chunks",
                    plan.shape(),
                    plan.chunks().unwrap()
                );
                assert!(plan.vram_bytes() <= vram_bytes);
                driver.reset(1, 64 << 20);
                case.check(driver, image, plan, slots, "budget");
                assert!(driver.peak_bytes(0) <= vram_bytes);
            }
        },
    );
}

#[test]
fn waits_do_not_grow_with_chunks() {
    with_kernels(
        module_path!(),
        "waits_do_not_grow_with_chunks",
        |driver, image| {
            let case = Case::random(90, "waits");
            for chunk_points in [1, 7, 90] {
                let plan = MsmPlan::with_shape(90, shape(6, chunk_points, 2, 16)).unwrap();
                let (sum, gpu) = case.sum(image, plan, 3).unwrap();
                assert_eq!(sum, case.expected);
                let chunks = gpu.trace().total(SpanKind::ToDevicePinned).count;
                assert_eq!(chunks, plan.chunks().unwrap());
                assert_eq!(gpu.trace().hard_syncs(), 2, "{chunks} chunks");
                assert_eq!(gpu.trace().total(SpanKind::ToDevicePageable).count, 0);
                assert_eq!(gpu.trace().total(SpanKind::FromDevicePageable).count, 1);
                drop(gpu);
                driver.assert_clean("after a sum");
            }
        },
    );
}

/// A chunk is gathered on the device from as many slots as it takes.
#[test]
fn chunks_longer_than_slots() {
    with_kernels(module_path!(), "chunks_longer_than_slots", |driver, image| {
        driver.guard(true);
        let case = Case::random(230, "parts");
        for (chunk_points, slot_points, buffers, slots) in
            [(100, 7, 2, 3), (100, 50, 1, 1), (230, 64, 2, 2), (64, 64, 2, 2)]
        {
            for order in [Order::Late, Order::Random(9), Order::Eager] {
                driver.order(order);
                let plan = MsmPlan::with_shape(230, shape(6, chunk_points, buffers, 16)).unwrap();
                let plan = plan.with_slots(slot_points).unwrap();
                assert_eq!(plan.slot_bytes(), slot_points * 96);
                let (sum, gpu) = case.sum(image, plan, slots).unwrap();
                assert_eq!(sum, case.expected, "{plan:?}");
                let parts = plan.chunking().unwrap().parts(230 * 96).unwrap().count() as u64;
                let sent = gpu.trace().total(SpanKind::ToDevicePinned);
                assert_eq!((sent.count, sent.bytes), (parts, 230 * 96), "{plan:?}");
                assert_eq!(
                    gpu.trace().total(SpanKind::Kernel).count,
                    plan.launches().unwrap()
                );
                assert_eq!(gpu.trace().hard_syncs(), 2);
                drop(gpu);
                driver.assert_clean("after a sum in parts");
            }
        }
    });
}

/// Small cases, down to one point; several sums by the same buffers, one of them staged.
#[test]
fn one_after_the_other() {
    with_kernels(module_path!(), "one_after_the_other", |driver, image| {
        driver.guard(true);
        for n in [1, 2, 33] {
            let case = Case::random(n, "short");
            let plan = MsmPlan::new(n as u64, 1 << 20, 1 << 20).unwrap();
            case.check(driver, image, plan, 2, "short");
        }
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let kernels = Kernels::load(&gpu, image).unwrap();
        let plan = MsmPlan::with_shape(50, shape(5, 8, 2, 16)).unwrap();
        let vram = Vram::new(&gpu, plan.vram_bytes());
        let pool = Pinned::new(1 << 20)
            .pool(&gpu, 3, plan.slot_bytes() as usize, Caching::Cached, "chunks")
            .unwrap();
        let mut upload = Upload::new(pool.take(3).unwrap(), gpu.trace()).unwrap();
        let mut msm = Msm::new(&vram, &kernels, plan).unwrap();
        for round in 0..3 {
            let case = Case::random(50, "again");
            let scalars = case.scalars_bytes();
            let mut source = columns_of(
                vec![(Group::G1, Box::new(source_of(&case.points_bytes)))],
                vec![Box::new(source_of(&scalars))],
            );
            if round == 1 {
                let chunking = plan.chunking().unwrap();
                let staged = upload.stage(&chunking, 50 * 96, &mut source).unwrap();
                assert!(staged > 0);
            }
            let sums = msm
                .sum_columns(PointSource::Stream, &mut upload, &mut source)
                .unwrap();
            assert_eq!(sums.g1, [case.expected], "{round}");
        }
        drop((msm, upload, pool, vram, kernels, gpu));
        driver.assert_clean("after three sums");
    });
}

/// The sums of each device, added up on the host.
#[test]
fn four_devices_share_a_sum() {
    with_kernels(module_path!(), "four_devices_share_a_sum", |driver, image| {
        driver.reset(4, 16 << 20);
        let case = &Case::random(203, "four devices");
        let parts: Vec<_> = (0..4)
            .map(|part| (part, 51 * part, 51.min(203 - 51 * part)))
            .collect();
        let sum: G1Projective = std::thread::scope(|scope| {
            let work = |(ordinal, first, count): (usize, usize, usize)| {
                scope.spawn(move || {
                    let plan = MsmPlan::new(count as u64, 1 << 20, 3072).unwrap();
                    case.sum_on(ordinal, first, image, plan, 2).unwrap().0
                })
            };
            let threads: Vec<_> = parts.into_iter().map(work).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(sum, case.expected);
        driver.assert_clean("after four devices");
    });
}

#[test]
fn a_source_that_fails_is_nobodys_fallback() {
    with_kernels(
        module_path!(),
        "a_source_that_fails_is_nobodys_fallback",
        |driver, image| {
            let plan = MsmPlan::with_shape(50, shape(5, 8, 2, 16)).unwrap();
            for good in [0, 4] {
                let work = || {
                    let gpu = Gpu::open(0, Detail::Counts)?;
                    let kernels = Kernels::load(&gpu, image)?;
                    let vram = Vram::new(&gpu, plan.vram_bytes());
                    let slot_bytes = plan.slot_bytes() as usize;
                    let pool = Pinned::new(1 << 20).pool(&gpu, 2, slot_bytes, Caching::Cached, "up")?;
                    let mut upload = Upload::new(pool.take(2)?, gpu.trace())?;
                    let mut msm = Msm::new(&vram, &kernels, plan)?;
                    let mut asked = 0;
                    let mut source = |_: u64, into: &mut [u8]| -> Result<(), BoxedError> {
                        asked += 1;
                        into.fill(0);
                        if asked > good {
                            Err("the disk is gone".into())
                        } else {
                            Ok(())
                        }
                    };
                    msm.sum_columns(PointSource::Stream, &mut upload, &mut source)
                };
                let error = with_fallback(work, || -> Result<_> {
                    panic!("the processor would read from the same disk")
                });
                assert!(matches!(error, Err(Error::Source { .. })), "{error:?}");
                driver.assert_clean("after a failing source");
            }
        },
    );
}

#[test]
fn a_card_that_is_full_leaves_the_processor() {
    with_kernels(
        module_path!(),
        "a_card_that_is_full_leaves_the_processor",
        |driver, image| {
            let case = Case::random(50, "full");
            let plan = MsmPlan::new(50, 1 << 20, 1 << 20).unwrap();
            driver.reset(1, plan.vram_bytes() / 2);
            let (sum, done_by) = with_fallback(
                || Ok(case.sum(image, plan, 2)?.0),
                || Ok::<_, Error>(G1Projective::msm(&case.points, &case.scalars).unwrap()),
            )
            .unwrap();
            assert_eq!(sum, case.expected);
            let DoneBy::Processor { why, device_is_lost } = &done_by else {
                panic!("half the memory was enough");
            };
            assert!(
                why.contains("the driver refused") && !device_is_lost,
                "{done_by:?}"
            );
            driver.assert_clean("after a full card");
        },
    );
}

/// About a hundred calls of a job fail, in four ways: the sum is right on the device or on the processor, and
/// nothing leaks.
#[test]
fn a_failing_device_leaves_the_processor() {
    with_kernels(
        module_path!(),
        "a_failing_device_leaves_the_processor",
        |driver, image| {
            let case = Case::random(40, "failing");
            let plan = MsmPlan::with_shape(40, shape(8, 13, 2, 16)).unwrap();
            driver.guard(true);
            driver.reset(1, 16 << 20);
            drop(case.sum(image, plan, 2).unwrap());
            let calls = driver.calls(None);
            let step = (calls / 24).max(4);
            let (mut by_device, mut by_processor) = (0, 0);
            for (way, (code, lost, order)) in [
                (Code::OutOfMemory, false, Order::Late),
                (Code::Unknown, false, Order::Eager),
                (Code::LaunchFailed, true, Order::Late),
                (Code::IllegalAddress, true, Order::Random(1)),
            ]
            .into_iter()
            .enumerate()
            {
                driver.order(order);
                // Other calls in each way.
                for nth in (1 + way as u64 * step / 4..=calls).step_by(step as usize) {
                    let what = format!("call {nth} of {calls}: {code:?}, lost: {lost}, {order:?}");
                    driver.reset(1, 16 << 20);
                    driver.fail(None, nth, code, lost);
                    let device = || {
                        let sum = case.sum(image, plan, 2);
                        if let Err(error) = &sum {
                            assert!(is_the_drivers(error), "{what}: {error}");
                        }
                        Ok(sum?.0)
                    };
                    let (sum, done_by) = with_fallback(device, || Ok::<_, Error>(case.expected)).unwrap();
                    assert_eq!(sum, case.expected, "{what}");
                    match done_by {
                        DoneBy::Device => by_device += 1,
                        DoneBy::Processor { why, .. } => {
                            assert!(!why.is_empty());
                            by_processor += 1;
                        }
                    }
                    driver.assert_clean(&what);
                }
            }
            println!("{calls} calls: {by_device} sums by the device, {by_processor} by the processor");
            assert!(by_processor > 50);
        },
    );
}
