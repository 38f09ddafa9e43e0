//! Several sums over one upload of the bases, bases that stay on the device, and sums over several devices,
//! under the fake driver with kernels compiled for the host, against arkworks.

use ark_bn254::{Fr, G1Projective};
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, UniformRand};
use spillproof_fake_driver::{Code, Order};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::msm::{
    Bases, BasesAre, Msm, MsmPlan, MsmShape, Share, ShareWorker, columns, columns_of, over_devices,
    share_worker,
};
use spillproof_gpu::ring::{Source, Upload};
use spillproof_gpu::trace::{Detail, Kind};
use spillproof_gpu::{Caching, Error, Gpu, Pinned, Result, Vram};

use crate::support::kernels::curves::{Bn254, Point, affine_words, points};
use crate::support::kernels::words;
use crate::support::{bytes_of, rng, source_of, with_kernels};

/// Columns of scalars over the same points, and their sums.
struct Case {
    points: Vec<Point<Bn254>>,
    scalars: Vec<Vec<Fr>>,
    points_bytes: Vec<u8>,
    scalars_bytes: Vec<Vec<u8>>,
    expected: Vec<G1Projective>,
}

impl Case {
    fn new(n: usize, columns: usize) -> Self {
        let mut rng = rng("columns");
        let mut points = points::<Bn254>(n, 9, &mut rng);
        points[n / 2] = Point::<Bn254>::zero();
        let mut column = |column: usize| -> Vec<Fr> {
            let scalar = |i: usize| match (column % 3, i % 5) {
                (1, 0) => Fr::ZERO,
                (1, _) => Fr::from(1u64),
                (2, 1) => -Fr::from(7u64),
                _ => Fr::rand(&mut rng),
            };
            (0..n).map(scalar).collect()
        };
        let scalars: Vec<Vec<Fr>> = (0..columns).map(&mut column).collect();
        Self {
            points_bytes: bytes_of(points.iter().map(affine_words::<Bn254>)),
            scalars_bytes: scalars
                .iter()
                .map(|column| bytes_of(column.iter().map(|scalar| [words(scalar)])))
                .collect(),
            expected: scalars
                .iter()
                .map(|column| G1Projective::msm(&points, column).unwrap())
                .collect(),
            points,
            scalars,
        }
    }

    fn source(&self, bases: BasesAre) -> impl Source + '_ {
        let points = (bases == BasesAre::Streamed)
            .then(|| -> Box<dyn Source + '_> { Box::new(source_of(&self.points_bytes)) });
        columns_of(
            points,
            self.scalars_bytes
                .iter()
                .map(|column| -> Box<dyn Source + '_> { Box::new(source_of(column)) })
                .collect(),
        )
    }

    fn n(&self) -> u64 {
        self.points.len() as u64
    }
}

fn upload_of(gpu: &Gpu, slot_bytes: u64) -> Result<Upload> {
    let pool = Pinned::new(2 * slot_bytes).pool(gpu, 2, slot_bytes as usize, Caching::Cached, "chunks")?;
    Upload::new(pool.take(2)?, gpu.trace())
}

/// Shapes that do not divide evenly, and plans for several budgets.
fn plans(n: u64, columns: u64, bases: BasesAre) -> Vec<MsmPlan> {
    let shape = MsmShape {
        window_bits: 6,
        chunk_points: 37,
        ring_buffers: 2,
        split: 16,
    };
    let Err(Error::TooSmall { smallest_bytes, .. }) = MsmPlan::of_columns(n, columns, bases, 0, 1 << 20)
    else {
        panic!("no budget is too small");
    };
    assert!(MsmPlan::of_columns(n, columns, bases, smallest_bytes - 1, 1 << 20).is_err());
    let plan =
        |vram_bytes, slot_bytes| MsmPlan::of_columns(n, columns, bases, vram_bytes, slot_bytes).unwrap();
    vec![
        MsmPlan::with_shape(n, shape)
            .unwrap()
            .with_columns(columns, bases)
            .unwrap(),
        plan(smallest_bytes, 1 << 20),
        plan(4 * smallest_bytes, 40 * (64 + 32 * columns)),
    ]
}

#[test]
fn bases_cross_once_for_all_columns() {
    with_kernels(
        module_path!(),
        "bases_cross_once_for_all_columns",
        |driver, image| {
            driver.guard(true);
            for (n, k) in [(1, 2), (150, 1), (203, 4)] {
                let case = Case::new(n, k);
                for (at, plan) in plans(case.n(), k as u64, BasesAre::Streamed)
                    .into_iter()
                    .enumerate()
                {
                    driver.order([Order::Late, Order::Random(5), Order::Eager][at]);
                    driver.reset(1, 16 << 20);
                    let gpu = Gpu::open(0, Detail::Counts).unwrap();
                    let kernels = Kernels::load(&gpu, image).unwrap();
                    let mut upload = upload_of(&gpu, plan.slot_bytes()).unwrap();
                    let vram = Vram::new(&gpu, plan.vram_bytes());
                    let mut msm = Msm::new(&vram, &kernels, plan).unwrap();
                    assert_eq!(vram.ledger().held_bytes(), plan.vram_bytes());
                    let sums = msm
                        .run_columns(&mut upload, &mut case.source(BasesAre::Streamed))
                        .unwrap();
                    assert_eq!(sums, case.expected, "{plan:?}");
                    let trace = gpu.trace();
                    let sent = trace.total(Kind::ToDevicePinned).bytes;
                    assert_eq!(
                        sent,
                        case.n() * (64 + 32 * k as u64),
                        "points once, scalars once each"
                    );
                    assert_eq!(
                        trace.total(Kind::Kernel).count,
                        plan.launches().unwrap(),
                        "{plan:?}"
                    );
                    assert_eq!(trace.hard_syncs(), 2, "{plan:?}");
                    if k > 1 {
                        let refused = msm
                            .run(&mut upload, &mut case.source(BasesAre::Streamed))
                            .unwrap_err();
                        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
                    }
                    drop((msm, vram, upload, kernels, gpu));
                    driver.assert_clean("after columns");
                }
            }
        },
    );
}

#[test]
fn bases_stay_for_further_sums() {
    with_kernels(module_path!(), "bases_stay_for_further_sums", |driver, image| {
        driver.guard(true);
        let (n, k) = (203u64, 3);
        let cases = [Case::new(n as usize, k), Case::new(n as usize, k)];
        for (at, plan) in plans(n, k as u64, BasesAre::Resident).into_iter().enumerate() {
            driver.order([Order::Late, Order::Random(5), Order::Eager][at]);
            driver.reset(1, 16 << 20);
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let kernels = Kernels::load(&gpu, image).unwrap();
            let vram = Vram::new(&gpu, plan.vram_bytes() + Bases::vram_bytes(n));
            let mut upload = upload_of(&gpu, plan.slot_bytes().max(64 * 20)).unwrap();
            let mut source = source_of(&cases[0].points_bytes);
            let bases = Bases::upload(&vram, &mut upload, n, 20, &mut source).unwrap();
            assert_eq!(vram.ledger().held_bytes(), Bases::vram_bytes(n));
            let mut msm = Msm::new(&vram, &kernels, plan).unwrap();
            for (round, case) in cases.iter().enumerate() {
                // The second case streams other points: those on the device count.
                let expected = case
                    .scalars
                    .iter()
                    .map(|column| G1Projective::msm(&cases[0].points, column).unwrap());
                let sums = msm
                    .run_over(&bases, &mut upload, &mut case.source(BasesAre::Resident))
                    .unwrap();
                assert_eq!(sums, expected.collect::<Vec<_>>(), "{plan:?}");
                let sent = gpu.trace().total(Kind::ToDevicePinned).bytes;
                assert_eq!(
                    sent,
                    n * 64 + (round as u64 + 1) * n * 32 * k as u64,
                    "points went once"
                );
            }
            let few = Bases::upload(&Vram::new(&gpu, 1 << 20), &mut upload, n - 1, 20, &mut source).unwrap();
            let refused = msm.run_over(&few, &mut upload, &mut cases[0].source(BasesAre::Resident));
            assert!(matches!(refused, Err(Error::Invalid(_))));
            let refused = msm.run_columns(&mut upload, &mut cases[0].source(BasesAre::Resident));
            assert!(matches!(refused, Err(Error::Invalid(_))));
            let too_many = Bases::upload(&vram, &mut upload, n, 20, &mut source).unwrap_err();
            assert!(too_many.is_memory_short(), "{too_many}");
            drop((few, msm, bases, vram, upload, kernels, gpu));
            driver.assert_clean("after resident bases");
        }
    });
}

/// A worker that opens its device with its first share.
fn device<'a>(case: &'a Case, image: &'a [u8], ordinal: usize, plan: MsmPlan) -> ShareWorker<'a> {
    let mut opened: Option<ShareWorker<'a>> = None;
    Box::new(move |share| {
        if opened.is_none() {
            let gpu = Gpu::open(ordinal, Detail::Counts)?;
            let kernels = Kernels::load(&gpu, image)?;
            let upload = upload_of(&gpu, plan.slot_bytes())?;
            let vram = Vram::new(&gpu, plan.vram_bytes());
            let msm = Msm::new(&vram, &kernels, plan)?;
            let source = move |share: Share| {
                let first = share.first as usize;
                columns(
                    source_of(&case.points_bytes[64 * first..]),
                    source_of(&case.scalars_bytes[0][32 * first..]),
                )
            };
            opened = Some(share_worker(msm, upload, source));
        }
        opened.as_mut().unwrap()(share)
    })
}

fn by_processor(case: &Case) -> impl FnMut(Share) -> Result<G1Projective> + '_ {
    |share: Share| {
        let range = share.first as usize..(share.first + share.points) as usize;
        Ok(G1Projective::msm(&case.points[range.clone()], &case.scalars[0][range]).unwrap())
    }
}

#[test]
fn devices_come_for_shares() {
    with_kernels(module_path!(), "devices_come_for_shares", |driver, image| {
        let case = Case::new(203, 1);
        for count in [1, 2, 4] {
            for (share_points, vram_bytes) in [(50, 1 << 20), (7, 200 << 10), (500, 150 << 10)] {
                driver.reset(count, 2 << 20);
                let plan = MsmPlan::new(share_points.min(203), vram_bytes, 3072).unwrap();
                let devices = (0..count as usize).map(|ordinal| device(&case, image, ordinal, plan));
                let shared = over_devices(203, share_points, devices.collect(), by_processor(&case)).unwrap();
                assert_eq!(shared.sum, case.expected[0]);
                assert_eq!(
                    shared.devices.iter().map(|worked| worked.points).sum::<u64>(),
                    203
                );
                assert_eq!(shared.by_processor, 0);
                for ordinal in 0..count as usize {
                    assert!(
                        driver.peak_bytes(ordinal) <= plan.vram_bytes(),
                        "each keeps to its budget"
                    );
                }
                driver.assert_clean("after shares");
            }
        }
        let nobody = over_devices::<_, Error, _>(203, 50, Vec::new(), by_processor(&case)).unwrap();
        assert_eq!((nobody.sum, nobody.by_processor), (case.expected[0], 203));
        assert!(over_devices::<_, Error, Error>(203, 0, Vec::new(), |_| Ok(G1Projective::ZERO)).is_err());
    });
}

/// One of two devices is too small, or fails at some call: the other one, or the processor, takes its shares,
/// and the sum is right.
#[test]
fn a_device_that_fails_leaves_its_share() {
    with_kernels(
        module_path!(),
        "a_device_that_fails_leaves_its_share",
        |driver, image| {
            let case = Case::new(120, 1);
            let plan = MsmPlan::new(15, 1 << 20, 3072).unwrap();
            let refusing: ShareWorker<'_> = Box::new(|_| Err(Error::Unusable { what: "this one" }));
            driver.reset(1, 2 << 20);
            let devices = vec![device(&case, image, 0, plan), refusing];
            let shared = over_devices(120, 15, devices, by_processor(&case)).unwrap();
            assert_eq!((shared.sum, shared.by_processor), (case.expected[0], 0));
            assert_eq!(shared.devices[0].points, 120);
            // If the other device took all shares before, it had none.
            let told = &shared.devices[1].stopped;
            assert!(
                told.as_ref()
                    .is_none_or(|why| why.contains("this one is unusable")),
                "{told:?}"
            );

            driver.reset(1, 2 << 20);
            let mut alone = device(&case, image, 0, plan);
            let mut shares = 0;
            let fails: ShareWorker<'_> = Box::new(|share| {
                shares += 1;
                if shares > 3 {
                    return Err(Error::Unusable { what: "this one" });
                }
                alone(share)
            });
            let shared = over_devices(120, 15, vec![fails], by_processor(&case)).unwrap();
            assert_eq!((shared.sum, shared.by_processor), (case.expected[0], 75));
            assert_eq!(shared.devices[0].points, 45);
            assert!(shared.devices[0].stopped.is_some());
            drop(alone);

            driver.guard(true);
            driver.reset(2, 2 << 20);
            let devices = |image| vec![device(&case, image, 0, plan), device(&case, image, 1, plan)];
            over_devices(120, 15, devices(image), by_processor(&case)).unwrap();
            let calls = driver.calls(None);
            let (mut stopped, mut left) = (0, 0);
            for (code, lost) in [(Code::OutOfMemory, false), (Code::IllegalAddress, true)] {
                for nth in (1..=calls).step_by((calls / 30).max(1) as usize) {
                    driver.reset(2, 2 << 20);
                    driver.fail(None, nth, code, lost);
                    let shared = over_devices(120, 15, devices(image), by_processor(&case)).unwrap();
                    assert_eq!(shared.sum, case.expected[0], "call {nth}: {code:?}");
                    stopped += shared
                        .devices
                        .iter()
                        .filter(|worked| worked.stopped.is_some())
                        .count();
                    left += u64::from(shared.by_processor > 0);
                    driver.assert_clean("after a device that fails");
                }
            }
            println!("{stopped} devices stopped, {left} times the processor had to");
            assert!(stopped > 30, "{stopped}");
        },
    );
}

/// A source that fails ends the job; no device takes the share.
#[test]
fn the_jobs_own_failure_ends_it() {
    with_kernels(module_path!(), "the_jobs_own_failure_ends_it", |driver, _| {
        driver.reset(2, 1 << 20);
        let failing = || -> ShareWorker<'_> {
            Box::new(|share: Share| {
                if share.first < 30 {
                    return Ok(G1Projective::ZERO);
                }
                Err(Error::Source {
                    offset: share.first,
                    bytes: 1,
                    source: "the disk is gone".into(),
                })
            })
        };
        let shared = over_devices(100, 10, vec![failing(), failing()], |_| -> Result<_> {
            panic!("the processor would read from the same disk")
        });
        assert!(matches!(shared, Err(Error::Source { .. })), "{shared:?}");
    });
}
