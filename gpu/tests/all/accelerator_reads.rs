//! How `GpuAccelerator` reads its data, under the fake driver: what is on disk is on its way before the slots
//! before it are sent, what is in memory is copied once, and the number of threads changes nothing.

use std::sync::{Arc, Mutex};

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::{Field, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use spillproof_commit::G1;
use spillproof_engine::Session;
use spillproof_engine::accelerator::{
    Accelerator, Answer, Arrivals, Bases, Coset, Groups, ReadElements, Scalars as Vector, Sums, Totals,
    Transform,
};
use spillproof_engine::budget::{Budget, ByteSize, Lent};
use spillproof_engine::column::{Column, Element, Placement, Writer};
use spillproof_engine::stream::{Scalars, msm, ntt};
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, UPLOAD_SLOTS};
use spillproof_gpu::msm::BasesLocation;
use spillproof_gpu::trace::SpanKind;

use crate::sessions::{accelerator_with, all_is_given_back, name_the_image, session_of_threads};
use crate::support::with_kernels;

/// One part that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    first: u64,
    /// Parts whose copies were queued before.
    sent: u64,
}

/// Passes jobs on, and sees when each part of the bases is begun.
#[derive(Debug)]
struct Watching {
    by: Arc<GpuAccelerator>,
    begun: Mutex<Vec<Begun>>,
}

struct Watched<'w, 'a> {
    from: Box<dyn ReadElements + 'a>,
    by: &'w Watching,
}

impl ReadElements for Watched<'_, '_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> spillproof_engine::Result<()> {
        self.from.read(first, into)
    }

    fn begin(&mut self, first: u64, into: Lent) -> spillproof_engine::Result<Arrivals> {
        let sent = self.by.by.gpus()[0].trace().total(SpanKind::ToDevicePinned).count;
        self.by.begun.lock().unwrap().push(Begun { first, sent });
        self.from.begin(first, into)
    }

    fn lease_bytes(&self) -> u64 {
        self.from.lease_bytes()
    }
}

impl Accelerator for Watching {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<Totals>> {
        let scalars = job.scalars.drain(..).map(|vector| Vector {
            len: vector.len,
            source: vector.source,
        });
        let bases = job.bases.g1.drain(..).map(|bases| Bases {
            source: Box::new(Watched {
                from: bases.source,
                by: self,
            }),
            id: bases.id,
        });
        let mut watched = Sums {
            bases: Groups {
                g1: bases.collect(),
                g2: Vec::new(),
            },
            scalars: scalars.collect(),
            parts: None,
        };
        self.by.sums(&mut watched, budget)
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.by.transform(job, budget)
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.by.quotient(job, budget)
    }
}

fn column<E: Element>(session: &Session, values: &[E], placement: Placement) -> Column<E> {
    let len = values.len() as u64;
    let mut writer = Writer::scratch(session.workspace(), "of a test", len, placement).unwrap();
    writer.push(values).unwrap();
    writer.finish().unwrap()
}

/// Sums over many slots: with columns on disk and in memory, by 1 to 4 threads. The bytes are read once, as many
/// are in place, and the number of hard synchronisations does not depend on the number of slots.
#[test]
fn slots_are_read_ahead_and_the_threads_change_nothing() {
    const TEST: &str = "slots_are_read_ahead_and_the_threads_change_nothing";
    const N: usize = 1 << 13;
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = ChaCha8Rng::seed_from_u64(51);
        let affine: Vec<G1Affine> = (0..N).map(|_| G1Affine::rand(&mut rng)).collect();
        let points: Vec<G1> = affine.iter().map(G1::from_affine::<g1::Config>).collect();
        let vectors: Vec<Vec<Fr>> = (0..2)
            .map(|_| (0..N).map(|_| Fr::rand(&mut rng)).collect())
            .collect();
        let expected: Vec<G1Projective> = vectors
            .iter()
            .map(|vector| G1Projective::msm(&affine, vector).unwrap())
            .collect();
        let mut synchronisations = Vec::new();
        for (placement, threads) in [Placement::Disk, Placement::Memory]
            .into_iter()
            .flat_map(|placement| [1, 2, 4].map(|threads| (placement, threads)))
        {
            let what = format!("{placement:?} {threads}");
            driver.reset(1, 64 << 20);
            driver.guard(true);
            let gpu = accelerator_with(ByteSize::Auto, Offload::Always, BasesLocation::Streamed);
            let watching = Arc::new(Watching {
                by: Arc::clone(&gpu),
                begun: Mutex::new(Vec::new()),
            });
            // Slots of 64 KiB, which have 512 points and their scalars of two columns: whole frames of each.
            let own = match placement {
                Placement::Disk => 0,
                _ => 128 * N as u64,
            };
            let session = session_of_threads(Some(watching.clone()), (1 << 20) + own, threads);
            let bases = column(&session, &points, placement);
            let columns: Vec<Column<Fr>> = vectors
                .iter()
                .map(|vector| column(&session, vector, placement))
                .collect();
            let (before, held) = (session.storage().stats(), session.budget().held_bytes());
            let sums = session.run(|| {
                let scalars = [Scalars::Column(&columns[0]), Scalars::Column(&columns[1])];
                msm::<g1::Config>(&bases, &scalars)
            });
            assert_eq!(sums.unwrap(), expected, "{what}");
            assert_eq!(session.budget().held_bytes(), held, "{what}");
            let after = session.storage().stats();
            let read = after.bytes_read - before.bytes_read;
            let in_place = after.bytes_read_in_place - before.bytes_read_in_place;
            let all = match placement {
                Placement::Disk => 128 * N as u64,
                _ => 0,
            };
            assert_eq!((read, in_place), (all, all), "{what}");
            let trace = gpu.gpus()[0].trace();
            let parts = trace.total(SpanKind::ToDevicePinned);
            assert_eq!(parts.bytes, 128 * N as u64, "{what}");
            assert!(parts.count > 2 * UPLOAD_SLOTS as u64, "{what}: {parts:?}");
            assert_eq!(trace.total(SpanKind::Fill).count, parts.count, "{what}");
            assert!(
                trace.total(SpanKind::FromDevicePageable).count == 1 && gpu.report().sums() == 2,
                "{what}: {}",
                gpu.report()
            );
            synchronisations.push(trace.hard_syncs());
            // Behind the parts that are staged, a part is begun before the part before it is sent.
            let begun = watching.begun.lock().unwrap().clone();
            assert_eq!(begun.len() as u64, parts.count, "{what}");
            assert!(begun.is_sorted_by_key(|part| part.first), "{what}");
            let sent: Vec<u64> = begun.iter().map(|part| part.sent).collect();
            let staged = UPLOAD_SLOTS as u64;
            let expected = (0..parts.count).map(|part| if part < staged { 0 } else { part - 1 });
            assert_eq!(sent, expected.collect::<Vec<_>>(), "{what}");
            drop((bases, columns, watching));
            all_is_given_back(session, gpu, driver, &what);
        }
        assert!(
            synchronisations.iter().all(|count| *count == synchronisations[0]) && synchronisations[0] <= 3,
            "{synchronisations:?}"
        );
    });
}

/// A transform in parts whose input is several tiles, with 1 to 4 threads: the result, the bytes, and the hard
/// synchronisations do not depend on them.
#[test]
fn transforms_in_parts_are_the_same_by_any_threads() {
    const TEST: &str = "transforms_in_parts_are_the_same_by_any_threads";
    const LOG_N: u32 = 16;
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let values: Vec<Fr> = (1..=1u64 << LOG_N).map(|i| Fr::from(i).square()).collect();
        let domain = Radix2EvaluationDomain::<Fr>::new(values.len()).unwrap();
        let (transform, expected) = (
            spillproof_engine::stream::Transform::forward(LOG_N, domain.group_gen),
            domain.fft(&values),
        );
        for (placement, own) in [(Placement::Disk, 0), (Placement::Memory, 4 << 20)] {
            let mut counts = Vec::new();
            for threads in [1, 2, 4] {
                let what = format!("{placement:?} {threads}");
                driver.reset(1, 64 << 20);
                driver.guard(true);
                let gpu = accelerator_with(
                    ByteSize::Bytes(160 << 10),
                    Offload::Always,
                    BasesLocation::Streamed,
                );
                let session = session_of_threads(
                    Some(Arc::clone(&gpu) as Arc<dyn Accelerator>),
                    (4 << 20) + own,
                    threads,
                );
                let input = column(&session, &values, placement);
                let (before, held) = (session.storage().stats(), session.budget().held_bytes());
                let output = session.run(|| ntt(&input, &transform, placement)).unwrap();
                let after = session.storage().stats();
                assert!(output.to_vec().unwrap() == expected, "{what}");
                assert_eq!(gpu.report().transforms(), 1, "{what}: {}", gpu.report());
                counts.push((
                    after.bytes_read - before.bytes_read,
                    after.bytes_written - before.bytes_written,
                    gpu.gpus()[0].trace().hard_syncs(),
                ));
                drop(output);
                assert_eq!(session.budget().held_bytes(), held, "{what}");
                drop(input);
                all_is_given_back(session, gpu, driver, &what);
            }
            assert!(
                counts.iter().all(|count| *count == counts[0]),
                "{placement:?}: {counts:?}"
            );
        }
    });
}
