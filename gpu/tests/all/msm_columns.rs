//! Several sums over one upload of the bases, and bases that stay on the device, under the fake driver with
//! kernels compiled for the host, against arkworks.

use ark_bn254::{Fr, G1Projective};
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, UniformRand};
use spillproof_fake_driver::Order;
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::msm::{Bases, BasesLocation, Msm, MsmPlan, MsmShape, PointSource, columns_of};
use spillproof_gpu::ring::{Source, Upload};
use spillproof_gpu::trace::{Detail, SpanKind};
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

    fn source(&self, bases: BasesLocation) -> impl Source + '_ {
        let points = (bases == BasesLocation::Streamed)
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
fn plans(n: u64, columns: u64, bases: BasesLocation) -> Vec<MsmPlan> {
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
                for (at, plan) in plans(case.n(), k as u64, BasesLocation::Streamed)
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
                    assert_eq!(vram.budget().held_bytes(), plan.vram_bytes());
                    let sums = msm
                        .sum_columns(
                            PointSource::Stream,
                            &mut upload,
                            &mut case.source(BasesLocation::Streamed),
                        )
                        .unwrap();
                    assert_eq!(sums, case.expected, "{plan:?}");
                    let trace = gpu.trace();
                    let sent = trace.total(SpanKind::ToDevicePinned).bytes;
                    assert_eq!(
                        sent,
                        case.n() * (64 + 32 * k as u64),
                        "points once, scalars once each"
                    );
                    assert_eq!(
                        trace.total(SpanKind::Kernel).count,
                        plan.launches().unwrap(),
                        "{plan:?}"
                    );
                    assert_eq!(trace.hard_syncs(), 2, "{plan:?}");
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
        for (at, plan) in plans(n, k as u64, BasesLocation::Resident)
            .into_iter()
            .enumerate()
        {
            driver.order([Order::Late, Order::Random(5), Order::Eager][at]);
            driver.reset(1, 16 << 20);
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let kernels = Kernels::load(&gpu, image).unwrap();
            let first = plan.with_columns(k as u64, BasesLocation::Streamed).unwrap();
            let vram_bytes = plan.vram_bytes().max(first.vram_bytes()) + Bases::vram_bytes(n);
            let vram = Vram::new(&gpu, vram_bytes);
            let mut upload = upload_of(&gpu, first.slot_bytes()).unwrap();
            let bases = Bases::reserve(&vram, n).unwrap();
            assert_eq!(vram.budget().held_bytes(), Bases::vram_bytes(n));
            let mut msm = Msm::new(&vram, &kernels, first).unwrap();
            let keep = PointSource::StreamAndKeep(&bases);
            let sums = msm.sum_columns(keep, &mut upload, &mut cases[0].source(BasesLocation::Streamed));
            assert_eq!(sums.unwrap(), cases[0].expected, "{first:?}");
            drop(msm);
            let mut msm = Msm::new(&vram, &kernels, plan).unwrap();
            for (round, case) in cases.iter().enumerate() {
                // The second case streams other points: those on the device count.
                let expected = case
                    .scalars
                    .iter()
                    .map(|column| G1Projective::msm(&cases[0].points, column).unwrap());
                let sums = msm
                    .sum_columns(
                        PointSource::Resident(&bases),
                        &mut upload,
                        &mut case.source(BasesLocation::Resident),
                    )
                    .unwrap();
                assert_eq!(sums, expected.collect::<Vec<_>>(), "{plan:?}");
                let sent = gpu.trace().total(SpanKind::ToDevicePinned).bytes;
                assert_eq!(
                    sent,
                    n * 64 + (round as u64 + 2) * n * 32 * k as u64,
                    "points went once"
                );
            }
            let few = Bases::reserve(&Vram::new(&gpu, 1 << 20), n - 1).unwrap();
            for wrong in [PointSource::Resident(&few), PointSource::Stream] {
                let refused =
                    msm.sum_columns(wrong, &mut upload, &mut cases[0].source(BasesLocation::Resident));
                assert!(matches!(refused, Err(Error::Invalid(_))));
            }
            let too_many = Bases::reserve(&vram, 2 * vram_bytes / 64).unwrap_err();
            assert!(too_many.is_memory_short(), "{too_many}");
            drop((few, msm, bases, vram, upload, kernels, gpu));
            driver.assert_clean("after resident bases");
        }
    });
}
