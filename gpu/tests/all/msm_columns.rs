//! Several sums over one upload of points and scalars, and bases that stay on the device, under the fake driver
//! with kernels compiled for the host, against arkworks.

use ark_bn254::Fr;
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, UniformRand};
use rand::RngCore;
use spillproof_engine::accelerator::{Group, Groups, Totals};
use spillproof_fake_driver::Order;
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::msm::{
    BaseColumns, Bases, BasesLocation, Msm, MsmPlan, MsmShape, PointSource, SumsSize, columns_of,
};
use spillproof_gpu::ring::{Source, Upload};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Caching, Error, Gpu, Pinned, Result, Vram};

use crate::support::kernels::curves::{Bn254, Bn254G2, Curve, Point, Sum, affine_words, points};
use crate::support::kernels::words;
use crate::support::{bytes_of, rng, source_of, with_kernels};

const ONE: Groups<u64> = Groups { g1: 1, g2: 0 };
const JOINT: Groups<u64> = Groups { g1: 3, g2: 1 };

/// Columns of points and of scalars, and their sums.
struct Case {
    g1: Vec<Vec<Point<Bn254>>>,
    g2: Vec<Vec<Point<Bn254G2>>>,
    scalars: Vec<Vec<Fr>>,
    /// Of each column of points.
    points_bytes: Vec<(Group, Vec<u8>)>,
    scalars_bytes: Vec<Vec<u8>>,
}

fn points_of<C: Curve>(n: usize, count: u64, rng: &mut impl RngCore) -> Vec<Vec<Point<C>>> {
    let column = |_| {
        let mut points = points::<C>(n, 9, rng);
        points[n / 2] = Point::<C>::zero();
        points
    };
    (0..count).map(column).collect()
}

fn sums<C: Curve<Scalar = ark_bn254::FrConfig>>(
    points: &[Vec<Point<C>>],
    scalars: &[Vec<Fr>],
) -> Vec<Sum<C>> {
    let of = |points: &Vec<Point<C>>, scalars: &Vec<Fr>| Sum::<C>::msm(points, scalars).unwrap();
    let each = points
        .iter()
        .flat_map(|points| scalars.iter().map(move |scalars| of(points, scalars)));
    each.collect()
}

impl Case {
    fn new(n: usize, bases: Groups<u64>, columns: usize) -> Self {
        let mut rng = rng("columns");
        let g1 = points_of::<Bn254>(n, bases.g1, &mut rng);
        let g2 = points_of::<Bn254G2>(n, bases.g2, &mut rng);
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
        let of_g1 = g1
            .iter()
            .map(|points| (Group::G1, bytes_of(points.iter().map(affine_words::<Bn254>))));
        let of_g2 = g2.iter().map(|points| {
            let words = points
                .iter()
                .map(affine_words::<Bn254G2>)
                .map(|[x, y]| [x[0], x[1], y[0], y[1]]);
            (Group::G2, bytes_of(words))
        });
        Self {
            points_bytes: of_g1.chain(of_g2).collect(),
            scalars_bytes: scalars
                .iter()
                .map(|column| bytes_of(column.iter().map(|scalar| [words(scalar)])))
                .collect(),
            g1,
            g2,
            scalars,
        }
    }

    fn expected(&self, scalars: &[Vec<Fr>]) -> Totals {
        Totals {
            g1: sums::<Bn254>(&self.g1, scalars),
            g2: sums::<Bn254G2>(&self.g2, scalars),
        }
    }

    fn source(&self, location: BasesLocation) -> impl Source + '_ {
        let streamed = self
            .points_bytes
            .iter()
            .filter(|_| location == BasesLocation::Streamed);
        let points = streamed
            .map(|(group, bytes)| -> (Group, Box<dyn Source + '_>) { (*group, Box::new(source_of(bytes))) });
        columns_of(
            points.collect(),
            self.scalars_bytes
                .iter()
                .map(|column| -> Box<dyn Source + '_> { Box::new(source_of(column)) })
                .collect(),
        )
    }
}

fn upload_of(gpu: &Gpu, slot_bytes: u64) -> Result<Upload> {
    let pool = Pinned::new(2 * slot_bytes).pool(gpu, 2, slot_bytes as usize, Caching::Cached, "chunks")?;
    Upload::new(pool.take(2)?, gpu.trace())
}

/// Shapes that do not divide evenly, and plans for several budgets.
fn plans(size: SumsSize) -> Vec<MsmPlan> {
    let shape = MsmShape {
        window_bits: 6,
        chunk_points: 37,
        ring_buffers: 2,
        split: 16,
    };
    let Err(Error::TooSmall { smallest_bytes, .. }) = MsmPlan::of(size, 0, 1 << 20) else {
        panic!("no budget is too small");
    };
    assert!(MsmPlan::of(size, smallest_bytes - 1, 1 << 20).is_err());
    let plan = |vram_bytes, slot_bytes| MsmPlan::of(size, vram_bytes, slot_bytes).unwrap();
    vec![
        MsmPlan::with_shape(size.points, shape)
            .unwrap()
            .for_sums(size)
            .unwrap(),
        plan(smallest_bytes, 1 << 20),
        plan(4 * smallest_bytes, 40 * size.element_bytes()),
    ]
}

#[test]
fn points_and_scalars_cross_once_for_all_sums() {
    with_kernels(
        module_path!(),
        "points_and_scalars_cross_once_for_all_sums",
        |driver, image| {
            driver.guard(true);
            let cases = [
                (1, ONE, 2),
                (150, ONE, 1),
                (203, ONE, 4),
                (150, JOINT, 1),
                (61, Groups { g1: 0, g2: 1 }, 1),
                (83, Groups { g1: 2, g2: 2 }, 2),
            ];
            for (n, bases, columns) in cases {
                let case = Case::new(n, bases, columns);
                let expected = case.expected(&case.scalars);
                let size = SumsSize {
                    points: n as u64,
                    bases,
                    location: BasesLocation::Streamed,
                    columns: columns as u64,
                };
                for (at, plan) in plans(size).into_iter().enumerate() {
                    driver.order([Order::Late, Order::Random(5), Order::Eager][at]);
                    driver.reset(1, 16 << 20);
                    let gpu = Gpu::open(0, Detail::Counts).unwrap();
                    let kernels = Kernels::load(&gpu, image).unwrap();
                    let mut upload = upload_of(&gpu, plan.slot_bytes()).unwrap();
                    let vram = Vram::new(&gpu, plan.vram_bytes());
                    let mut msm = Msm::new(&vram, &kernels, plan).unwrap();
                    assert_eq!(vram.budget().held_bytes(), plan.vram_bytes());
                    let mut source = case.source(BasesLocation::Streamed);
                    let sums = msm.sum_columns(PointSource::Stream, &mut upload, &mut source);
                    drop(source);
                    assert_eq!(sums.unwrap(), expected, "{plan:?}");
                    let trace = gpu.trace();
                    let sent = trace.total(SpanKind::ToDevicePinned).bytes;
                    let element_bytes = 64 * bases.g1 + 128 * bases.g2 + 32 * columns as u64;
                    assert_eq!(sent, n as u64 * element_bytes, "each column once");
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
        for (n, bases, k) in [(203u64, ONE, 3), (101, JOINT, 1)] {
            let cases = [Case::new(n as usize, bases, k), Case::new(n as usize, bases, k)];
            let size = SumsSize {
                points: n,
                bases,
                location: BasesLocation::Resident,
                columns: k as u64,
            };
            let streamed = SumsSize {
                location: BasesLocation::Streamed,
                ..size
            };
            let bases_bytes = Bases::vram_bytes(bases, n);
            for (at, plan) in plans(size).into_iter().enumerate() {
                driver.order([Order::Late, Order::Random(5), Order::Eager][at]);
                driver.reset(1, 16 << 20);
                let gpu = Gpu::open(0, Detail::Counts).unwrap();
                let kernels = Kernels::load(&gpu, image).unwrap();
                let first = plan.for_sums(streamed).unwrap();
                let vram_bytes = plan.vram_bytes().max(first.vram_bytes()) + bases_bytes;
                let vram = Vram::new(&gpu, vram_bytes);
                let mut upload = upload_of(&gpu, first.slot_bytes()).unwrap();
                let there = Bases::reserve(&vram, bases, n).unwrap();
                assert_eq!(vram.budget().held_bytes(), bases_bytes);
                let all = BaseColumns {
                    bases: &there,
                    first: 0,
                };
                let mut msm = Msm::new(&vram, &kernels, first).unwrap();
                let keep = PointSource::StreamAndKeep(all);
                let sums = msm.sum_columns(keep, &mut upload, &mut cases[0].source(BasesLocation::Streamed));
                assert_eq!(sums.unwrap(), cases[0].expected(&cases[0].scalars), "{first:?}");
                drop(msm);
                let mut msm = Msm::new(&vram, &kernels, plan).unwrap();
                let resident = PointSource::Resident(all);
                for (round, case) in cases.iter().enumerate() {
                    // The second case streams other points: those on the device count.
                    let mut source = case.source(BasesLocation::Resident);
                    let sums = msm.sum_columns(resident, &mut upload, &mut source);
                    drop(source);
                    assert_eq!(sums.unwrap(), cases[0].expected(&case.scalars), "{plan:?}");
                    let sent = gpu.trace().total(SpanKind::ToDevicePinned).bytes;
                    assert_eq!(
                        sent,
                        n * bases.point_bytes() + (round as u64 + 2) * n * 32 * k as u64,
                        "points went once"
                    );
                }
                // Some of the columns, from any of them on.
                let last = bases.count() - 1;
                let of_last = SumsSize {
                    bases: bases.range(last..last + 1),
                    ..size
                };
                let mut of_last = Msm::new(
                    &Vram::new(&gpu, 4 << 20),
                    &kernels,
                    MsmPlan::of(of_last, 4 << 20, 3072).unwrap(),
                )
                .unwrap();
                let from_last = BaseColumns {
                    bases: &there,
                    first: last,
                };
                let mut source = cases[0].source(BasesLocation::Resident);
                let mut sums = of_last
                    .sum_columns(PointSource::Resident(from_last), &mut upload, &mut source)
                    .unwrap();
                drop(source);
                let mut expected = cases[0].expected(&cases[0].scalars);
                let sums = (sums.g1.pop(), sums.g2.pop());
                let expected = (expected.g1.pop().filter(|_| bases.g2 == 0), expected.g2.pop());
                assert_eq!(sums, expected);
                drop(of_last);
                let few = Bases::reserve(&Vram::new(&gpu, 1 << 20), bases, n - 1).unwrap();
                let too_few = BaseColumns {
                    bases: &few,
                    first: 0,
                };
                let beyond = BaseColumns { first: 1, ..all };
                let wrongs = [too_few, beyond].map(PointSource::Resident);
                for wrong in wrongs.into_iter().chain([PointSource::Stream]) {
                    let refused =
                        msm.sum_columns(wrong, &mut upload, &mut cases[0].source(BasesLocation::Resident));
                    assert!(matches!(refused, Err(Error::Invalid(_))));
                }
                let too_many = Bases::reserve(&vram, bases, 2 * vram_bytes / 64).unwrap_err();
                assert!(too_many.is_memory_short(), "{too_many}");
                drop((few, msm, there, vram, upload, kernels, gpu));
                driver.assert_clean("after resident bases");
            }
        }
    });
}
