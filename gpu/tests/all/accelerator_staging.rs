//! Page-locked memory of `GpuAccelerator` under the fake driver: slots that are kept between jobs, data that
//! is read straight from disk into them, and slots that are filled before the job takes the device.

use std::sync::Arc;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::UniformRand;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use spillproof_commit::G1;
use spillproof_engine::Error;
use spillproof_engine::accelerator::{Bases, Groups, Totals};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::{Column, Element, Placement, Workspace, Writer};
use spillproof_engine::storage::{Backend, Fault, FaultPlan, Storage};
use spillproof_engine::stream::{Scalars, Transform, msm, ntt};
use spillproof_fake_driver::FakeDriver;
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request, Staging, UPLOAD_SLOTS};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Caching, Choice, Gpu, Pinned};

use crate::sessions::{TestJob, all_is_given_back, name_the_image, open, session};
use crate::support::with_kernels;

fn accelerator(vram: ByteSize, staging: Staging) -> Arc<GpuAccelerator> {
    let gpu = Gpu::open(0, Detail::Counts).unwrap();
    Arc::new(GpuAccelerator::over(vec![gpu], vram, Offload::Always, &staging))
}

fn locked(driver: &FakeDriver) -> u64 {
    driver.calls(Some("cuMemHostAlloc"))
}

#[test]
fn slots_are_kept_from_job_to_job() {
    with_kernels(
        module_path!(),
        "slots_are_kept_from_job_to_job",
        |driver, image| {
            let _file = name_the_image(image);
            for (vram, memory_bytes) in [
                (ByteSize::Auto, 8 << 20),
                (ByteSize::Bytes(256 << 10), 1 << 20),
                (ByteSize::Auto, 700 << 10),
            ] {
                let what = format!("{vram:?} {memory_bytes}");
                driver.reset(1, 64 << 20);
                let staging = Staging::default();
                let pinned = staging.pinned.clone();
                let accelerator = accelerator(vram, staging);
                let session = session(Some(&accelerator), memory_bytes);
                let budget = session.budget().clone();
                let job = TestJob::new(&session, 512);
                let held = budget.held_bytes();
                let mut counts = Vec::new();
                for _ in 0..4 {
                    job.check_sums(&session, &what);
                    job.check_transforms(&session, &what);
                    counts.push(locked(driver));
                    // The ledger counts kept slots as spare, and gives their memory to other leases.
                    assert_eq!(budget.held_bytes(), held, "{what}");
                    assert_eq!(budget.spare_bytes(), pinned.budget().held_bytes(), "{what}");
                    assert!(budget.spare_bytes() > 0, "{what}");
                    assert_eq!(budget.available_bytes(), memory_bytes - held, "{what}");
                }
                assert!(counts[0] >= 5, "{what}: {counts:?}");
                assert_eq!(
                    counts[3], counts[0],
                    "{what}: locked once, however many jobs: {counts:?}"
                );
                assert_eq!(
                    accelerator.report().by_the_processor(),
                    0,
                    "{what}: {}",
                    accelerator.report()
                );
                // A lease needs all memory, and gets it; afterwards slots are allocated again.
                let all = budget.lease(budget.available_bytes(), "somebody else").unwrap();
                assert_eq!(
                    (budget.spare_bytes(), pinned.budget().held_bytes()),
                    (0, 0),
                    "{what}"
                );
                assert_eq!(driver.live().pinned_memory, 0, "{what}");
                drop(all);
                job.check_sums(&session, &what);
                assert!(locked(driver) > counts[3], "{what}");
                assert_eq!(
                    accelerator.report().by_the_processor(),
                    0,
                    "{what}: {}",
                    accelerator.report()
                );
                drop(job);
                all_is_given_back(session, accelerator, driver, &what);
                assert_eq!(
                    (budget.spare_bytes(), pinned.budget().held_bytes()),
                    (0, 0),
                    "{what}"
                );
            }
        },
    );
}

/// The accelerator's budget of page-locked memory holds the slots of one job: the slots of another kind of
/// job are freed.
#[test]
fn a_small_pinned_budget_is_kept_to() {
    with_kernels(
        module_path!(),
        "a_small_pinned_budget_is_kept_to",
        |driver, image| {
            let _file = name_the_image(image);
            let what = "a small pinned budget";
            for (pinned_bytes, done) in [(1 << 20, 20), (192 << 10, 20), (20 << 10, 20), (4 << 10, 0)] {
                driver.reset(1, 64 << 20);
                let pinned = Pinned::new(pinned_bytes);
                let staging = Staging {
                    pinned: pinned.clone(),
                    ..Staging::default()
                };
                let accelerator = accelerator(ByteSize::Auto, staging);
                let session = session(Some(&accelerator), 8 << 20);
                let job = TestJob::new(&session, 512);
                for _ in 0..2 {
                    job.check_sums(&session, what);
                    job.check_transforms(&session, what);
                }
                assert!(pinned.budget().peak_bytes() <= pinned_bytes);
                let report = accelerator.report();
                assert_eq!(
                    report.sums() + report.transforms() + report.by_the_processor(),
                    20
                );
                if done == 0 {
                    assert!(report.by_the_processor() > 0, "{report}");
                    assert!(report.to_string().contains("a pinned slot"), "{report}");
                } else {
                    assert_eq!(report.by_the_processor(), 0, "{pinned_bytes}: {report}");
                }
                drop(job);
                all_is_given_back(session, accelerator, driver, what);
            }
        },
    );
}

/// The budget of page-locked memory, from the smallest that works on: it is kept; a budget without room for
/// slots is refused with the smallest one; a job that needs longer slots goes to the processor, and the
/// reason has the bytes.
#[test]
fn a_user_says_how_much_is_pinned_and_how() {
    const TEST: &str = "a_user_says_how_much_is_pinned_and_how";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let request = |pinned_bytes: u64, upload| Request {
            choice: Choice::Device(0),
            offload: Offload::Always,
            pinned: ByteSize::Bytes(pinned_bytes),
            upload,
            ..Request::default()
        };
        let refused = |pinned_bytes| match GpuAccelerator::open(&request(pinned_bytes, Caching::Cached)) {
            Err(spillproof_gpu::Error::TooSmall { smallest_bytes, .. }) => smallest_bytes,
            other => panic!("{pinned_bytes}: {other:?}"),
        };
        let smallest = refused(0);
        assert_eq!(refused(smallest - 1), smallest);
        for (pinned_bytes, upload) in [
            (smallest, Caching::Cached),
            (smallest, Caching::WriteCombined),
            (1 << 20, Caching::Cached),
            (1 << 20, Caching::WriteCombined),
        ] {
            let what = format!("{pinned_bytes} {upload:?}");
            driver.reset(1, 64 << 20);
            let accelerator = open(&request(pinned_bytes, upload));
            let session = session(Some(&accelerator), 8 << 20);
            let job = TestJob::new(&session, 512);
            // Scalars of sums would stay for them.
            job.check_transforms(&session, &what);
            job.check_sums(&session, &what);
            assert_eq!(
                accelerator.report().by_the_processor(),
                0,
                "{what}: {}",
                accelerator.report()
            );
            let report = session.budget().report();
            let slots = report.iter().find(|line| line.what == "pinned slots").unwrap();
            assert!(
                (1..=pinned_bytes).contains(&slots.peak_bytes),
                "{what}: {slots:?}"
            );
            let in_place = session.storage().stats().bytes_read_in_place;
            assert_eq!(
                in_place > 0,
                upload == Caching::Cached && pinned_bytes > smallest,
                "{what}: {in_place}"
            );
            drop(job);
            all_is_given_back(session, accelerator, driver, &what);
        }
        // In two steps, by lines of 256 elements.
        driver.reset(1, 64 << 20);
        let accelerator = open(&Request {
            vram: ByteSize::Bytes(160 << 10),
            ..request(smallest, Caching::Cached)
        });
        let session = session(Some(&accelerator), 32 << 20);
        let values: Vec<Fr> = (0..1u64 << 16).map(Fr::from).collect();
        let input = crate::sessions::column(&session, &values);
        let domain = Radix2EvaluationDomain::<Fr>::new(values.len()).unwrap();
        let transform = Transform::forward(16, domain.group_gen);
        let output = session.run(|| ntt(&input, &transform, Placement::Auto)).unwrap();
        assert!(output.to_vec().unwrap() == domain.fft(&values));
        let said = accelerator.report().to_string();
        // 8 KiB for each of the five slots.
        assert!(said.contains("40960 bytes of pinned memory are enough"), "{said}");
        drop((input, output));
        all_is_given_back(session, accelerator, driver, "too short for one");
    });
}

/// An accelerator that moves to another session leaves nothing in the ledger of the first.
#[test]
fn another_session_gets_slots_of_its_own() {
    with_kernels(
        module_path!(),
        "another_session_gets_slots_of_its_own",
        |driver, image| {
            let _file = name_the_image(image);
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Auto, Staging::default());
            let sessions = [
                session(Some(&accelerator), 4 << 20),
                session(Some(&accelerator), 4 << 20),
            ];
            for (i, own) in [0, 1, 0].into_iter().map(|i| (i, &sessions[i])) {
                let job = TestJob::new(own, 64);
                job.check_sums(own, "another session");
                assert!(own.budget().spare_bytes() > 0);
                assert_eq!(sessions[1 - i].budget().spare_bytes(), 0);
            }
            let [one, other] = sessions;
            drop(one);
            all_is_given_back(other, accelerator, driver, "another session");
        },
    );
}

/// Columns, their sum, and the transform of the first `2^LOG_N` scalars.
struct Data {
    points: Vec<G1>,
    scalars: Vec<Fr>,
    sum: G1Projective,
    values: Vec<Fr>,
}

const LOG_N: u32 = 12;
const FRAME_BYTES: u64 = 16 << 10;

impl Data {
    fn new(n: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let points: Vec<G1Affine> = (0..n).map(|_| G1Affine::rand(&mut rng)).collect();
        let scalars: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        let domain = Radix2EvaluationDomain::<Fr>::new(1 << LOG_N).unwrap();
        Self {
            points: points.iter().map(G1::from_affine::<g1::Config>).collect(),
            sum: G1Projective::msm(&points, &scalars).unwrap(),
            values: domain.fft(&scalars[..1 << LOG_N]),
            scalars,
        }
    }
}

fn written<E: Element>(
    workspace: &Workspace,
    values: &[E],
    placement: Placement,
) -> spillproof_engine::Result<Column<E>> {
    let mut writer = Writer::scratch(workspace, "of a test", values.len() as u64, placement)?;
    writer.push(values)?;
    writer.finish()
}

/// How a job is staged, and where its data is.
#[derive(Clone, Debug)]
struct Case {
    upload: Caching,
    placement: Placement,
    backend: Backend,
    direct: bool,
    memory_bytes: u64,
    vram: ByteSize,
    faults: FaultPlan,
}

impl Case {
    fn plain() -> Self {
        Self {
            upload: Caching::Cached,
            placement: Placement::Disk,
            backend: Backend::Auto,
            direct: true,
            memory_bytes: 16 << 20,
            vram: ByteSize::Auto,
            faults: FaultPlan::none(),
        }
    }

    /// The sum and the transform on the device. Returns the bytes in place (read for the sum, read and
    /// written for the transform) and all bytes read.
    fn run(&self, driver: &FakeDriver, data: &Data) -> spillproof_engine::Result<[u64; 4]> {
        driver.reset(1, 64 << 20);
        driver.guard(true);
        let staging = Staging {
            upload: self.upload,
            ..Staging::default()
        };
        let accelerator = accelerator(self.vram, staging);
        let budget = Budget::new(self.memory_bytes);
        let found = self.run_with(&accelerator, &budget, data);
        let report = accelerator.report();
        drop(Arc::into_inner(accelerator).unwrap());
        driver.assert_clean("staged");
        assert!(budget.peak_bytes() <= self.memory_bytes);
        if found.is_ok() {
            let done = (report.sums(), report.transforms(), report.by_the_processor());
            assert_eq!(done, (1, 1, 0), "{self:?}: {report}");
        }
        // The last transfer of a file may still run when its error is known.
        let start = std::time::Instant::now();
        while budget.held_bytes() > 0 && start.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert_eq!((budget.held_bytes(), budget.spare_bytes()), (0, 0), "{self:?}");
        found
    }

    fn run_with(
        &self,
        accelerator: &Arc<GpuAccelerator>,
        budget: &Budget,
        data: &Data,
    ) -> spillproof_engine::Result<[u64; 4]> {
        let storage = Storage::builder()
            .dir(env!("CARGO_TARGET_TMPDIR"))
            .backend(self.backend)
            .direct(self.direct)
            .faults(self.faults.clone())
            .build()?;
        let workspace =
            Workspace::new(storage.clone(), budget.clone()).with_accelerator(
                Arc::clone(accelerator) as Arc<dyn spillproof_engine::accelerator::Accelerator>
            );
        let points = written(&workspace, &data.points, self.placement)?;
        let scalars = written(&workspace, &data.scalars, self.placement)?;
        // Another column: the scalars stay on the device.
        let input = written(&workspace, &data.scalars[..1 << LOG_N], self.placement)?;
        let before = storage.stats();
        assert_eq!(
            (before.bytes_read_in_place, before.bytes_written_in_place),
            (0, 0)
        );
        let sums = msm::<g1::Config>(&points, &[Scalars::Column(&scalars)])?;
        assert_eq!(sums, [data.sum], "{self:?}");
        let after_sum = storage.stats();
        let root = Radix2EvaluationDomain::<Fr>::new(1 << LOG_N).unwrap().group_gen;
        let output = ntt(&input, &Transform::forward(LOG_N, root), self.placement)?;
        let after = storage.stats();
        assert!(output.to_vec()? == data.values, "{self:?}");
        Ok([
            after_sum.bytes_read_in_place,
            after.bytes_read_in_place - after_sum.bytes_read_in_place,
            after.bytes_written_in_place,
            after.bytes_read - before.bytes_read,
        ])
    }
}

/// Page-locked memory is page-aligned, and frames are pages: a chunk of whole frames needs no other memory of
/// the host.
#[test]
fn frames_land_in_the_slots_and_leave_from_them() {
    const TEST: &str = "frames_land_in_the_slots_and_leave_from_them";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let even = Data::new(1 << LOG_N);
        let of_transform = 32u64 << LOG_N;
        let once = (96 << LOG_N) + of_transform;
        let all = [96 << LOG_N, of_transform, of_transform, once];
        for (backend, direct) in [
            (Backend::Auto, true),
            (Backend::Pread, true),
            (Backend::Auto, false),
        ] {
            let case = Case {
                backend,
                direct,
                ..Case::plain()
            };
            assert_eq!(case.run(driver, &even).unwrap(), all, "{case:?}");
        }
        let none = [
            Case {
                upload: Caching::WriteCombined,
                ..Case::plain()
            },
            Case {
                placement: Placement::Memory,
                ..Case::plain()
            },
            // Simulates a kernel that cannot access the pages of a driver.
            Case {
                faults: FaultPlan::always(Fault::BadAddress),
                ..Case::plain()
            },
        ];
        for case in none {
            // Results are written from their slots, however they were computed.
            let back = if case.upload == Caching::WriteCombined {
                of_transform
            } else {
                0
            };
            let [of_sum, read, written, _] = case.run(driver, &even).unwrap();
            assert_eq!([of_sum, read, written], [0, 0, back], "{case:?}");
        }
        // Slots of less than a frame of points.
        let short = Case {
            memory_bytes: 2 << 20,
            vram: ByteSize::Bytes(256 << 10),
            ..Case::plain()
        };
        let [of_sum, read, written, _] = short.run(driver, &even).unwrap();
        assert_eq!(
            [of_sum, read, written],
            [0, of_transform, of_transform],
            "{short:?}"
        );
        // The chunk is not a whole number of frames or pages: the last frame of the points goes through a
        // buffer, and so do the scalars of the last chunk, which begin where its points end.
        let odd = Data::new(5000);
        let of_points = 5000 * 64 / FRAME_BYTES * FRAME_BYTES;
        let [of_sum, read, back, _] = Case::plain().run(driver, &odd).unwrap();
        assert!(
            (of_points + 1..of_points + 5000 * 32).contains(&of_sum),
            "{of_sum} of {of_points}"
        );
        assert_eq!([read, back], [of_transform; 2]);
    });
}

/// An error of the disk is the error of the job, wherever the bytes go; a retried transfer does not show.
#[test]
fn faults_of_frames_in_place_are_found() {
    const TEST: &str = "faults_of_frames_in_place_are_found";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let data = Data::new(1 << LOG_N);
        let counting = FaultPlan::none();
        let with = |faults: FaultPlan| Case {
            faults,
            ..Case::plain()
        };
        with(counting.clone()).run(driver, &data).unwrap();
        let operations = counting.operations();
        let mut failed = [0; 2];
        for index in 0..operations {
            // Faults that must fail the job, and faults that must not.
            let fault = [Fault::Io, Fault::FlipByte(77)][index as usize % 2];
            match with(FaultPlan::at(index, fault)).run(driver, &data) {
                Ok(_) => {}
                Err(Error::Io { .. } | Error::File { .. }) => failed[0] += 1,
                Err(Error::Damaged { .. }) => failed[1] += 1,
                Err(other) => panic!("operation {index} of {operations}, {fault:?}: {other}"),
            }
            if index % 2 == 0 {
                let fault =
                    [Fault::Short(4096), Fault::Interrupted, Fault::BadAddress][index as usize / 2 % 3];
                let found = with(FaultPlan::at(index, fault)).run(driver, &data);
                found.unwrap_or_else(|e| panic!("operation {index} of {operations}, {fault:?}: {e}"));
            }
        }
        assert!(failed[0] > 4 && failed[1] > 4, "{failed:?} of {operations}");
    });
}

/// Waits until the trace counts this many filled slots.
fn filled(accelerator: &GpuAccelerator, slots: u64) {
    let start = std::time::Instant::now();
    while accelerator.gpus()[0].trace().total(SpanKind::Fill).count < slots {
        assert!(start.elapsed().as_secs() < 60, "slots wait for the device's turn");
        std::thread::yield_now();
    }
}

/// While another job has the device, a job fills its slots and does not use the device.
#[test]
fn slots_are_filled_before_the_device_is_taken() {
    const TEST: &str = "slots_are_filled_before_the_device_is_taken";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        // The last transform is in two steps.
        for (sums, vram, log_n) in [
            (true, ByteSize::Auto, 9),
            (false, ByteSize::Auto, 12),
            (false, ByteSize::Bytes(64 << 10), 12),
        ] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(vram, Staging::default());
            let session = session(Some(&accelerator), 700 << 10);
            let job = TestJob::new(&session, 1 << log_n);
            let other = Gpu::open(0, Detail::Counts).unwrap();
            let turn = other.take_turn();
            std::thread::scope(|scope| {
                scope.spawn(|| match sums {
                    true => job.check_sums(&session, "staged"),
                    false => job.check_transforms(&session, "staged"),
                });
                filled(&accelerator, UPLOAD_SLOTS as u64);
                let live = driver.live();
                assert_eq!(
                    (live.device_memory, live.modules),
                    (0, 0),
                    "nothing of the device is used"
                );
                assert_eq!(
                    accelerator.gpus()[0]
                        .trace()
                        .total(SpanKind::ToDevicePinned)
                        .count,
                    0
                );
                drop(turn);
            });
            assert_eq!(
                accelerator.report().by_the_processor(),
                0,
                "{}",
                accelerator.report()
            );
            drop((job, other));
            all_is_given_back(session, accelerator, driver, "staged");
        }
    });
}

/// Passes over the bases: the first points of the next pass are read before the pass before ends.
#[test]
fn the_next_pass_is_staged_while_the_device_works() {
    const TEST: &str = "the_next_pass_is_staged_while_the_device_works";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(256 << 10), Staging::default());
        let budget = Budget::new(8 << 20);
        let data = Data::new(1 << LOG_N);
        let n = 512usize;
        fn bytes<E: Element>(values: &[E]) -> Vec<u8> {
            let mut bytes = vec![0; values.len() * E::BYTES];
            let each = values.iter().zip(bytes.chunks_exact_mut(E::BYTES));
            each.for_each(|(value, out)| value.encode(out));
            bytes
        }
        let (points, scalars) = (bytes(&data.points[..n]), &bytes(&data.scalars));
        let starts = std::sync::Mutex::new(Vec::new());
        let synchronised = || driver.calls(Some("cuStreamSynchronize"));
        let from = |all: &[u8], at: usize, into: &mut [u8]| into.copy_from_slice(&all[at..][..into.len()]);
        let mut job = spillproof_engine::accelerator::Sums {
            bases: Groups {
                g1: vec![Bases {
                    source: Box::new(|first: u64, into: &mut [u8]| {
                        if first == 0 {
                            starts.lock().unwrap().push(synchronised());
                        }
                        from(&points, 64 * first as usize, into);
                        Ok(())
                    }),
                    id: None,
                }],
                g2: Vec::new(),
            },
            scalars: (0..6)
                .map(|i| spillproof_engine::accelerator::Scalars {
                    len: n as u64,
                    source: Box::new(move |first: u64, into: &mut [u8]| {
                        from(scalars, 32 * (i * n + first as usize), into);
                        Ok(())
                    }) as Box<dyn spillproof_engine::accelerator::ReadElements>,
                })
                .collect(),
            parts: None,
        };
        let answer =
            spillproof_engine::accelerator::Accelerator::sums(&*accelerator, &mut job, &budget).unwrap();
        drop(job);
        let affine: Vec<G1Affine> = data.points[..n].iter().map(G1::to_affine::<g1::Config>).collect();
        let expected = (0..6).map(|i| G1Projective::msm(&affine, &data.scalars[i * n..][..n]).unwrap());
        assert_eq!(
            answer,
            spillproof_engine::accelerator::Answer::Done(Totals {
                g1: expected.collect(),
                g2: Vec::new(),
            })
        );
        // Every pass ends with the same number of synchronisations. When the second pass begins to read, the
        // first has not reached its own.
        let starts = starts.into_inner().unwrap();
        let since: Vec<u64> = starts.iter().map(|start| start - starts[0]).collect();
        assert!(since.len() > 2 && since[2] > 0, "{since:?}");
        let passes = (0..since.len() as u64).map(|pass| since[2] * pass.saturating_sub(1));
        assert_eq!(since, passes.collect::<Vec<_>>());
        drop(Arc::into_inner(accelerator).unwrap());
        driver.assert_clean("passes");
    });
}
