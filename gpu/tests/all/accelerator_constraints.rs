//! Quotients of rank-1 constraint systems, on one device under the fake driver, against arkworks.

use ark_bn254::Fr;
use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::Rng;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Placement, Writer};
use spillproof_engine::plan::{Job as Offered, Offer};
use spillproof_engine::stream::{System as OfColumns, Transform, ntt, system_quotient};
use spillproof_fake_driver::Code;
use spillproof_gpu::accelerator::{Cut, Executor, GpuAccelerator, Offload};
use spillproof_gpu::trace::SpanKind;

use crate::sessions::{TestJob, accelerator, all_is_given_back, name_the_image, session};
use crate::support::systems::System;
use crate::support::{rng, with_kernels};

/// Frames of columns, which sections begin at a multiple of.
const SECTION_BYTES: u64 = 1 << 14;

/// A system's columns.
struct Columns {
    log_n: u32,
    values: Column<Fr>,
    witness: Column<Fr>,
    coefficients: Column<[u8; 16]>,
}

impl Columns {
    fn new(session: &Session, system: &System, placement: Placement) -> Self {
        let in_bytes = |coefficient: &[u32; 4]| {
            let mut bytes = [0; 16];
            for (word, place) in coefficient.iter().zip(bytes.as_chunks_mut::<4>().0) {
                *place = word.to_le_bytes();
            }
            bytes
        };
        let coefficients: Vec<[u8; 16]> = system.coefficients.iter().map(in_bytes).collect();
        let workspace = session.workspace();
        let of_scalars = |values: &[Fr]| {
            let mut writer = Writer::scratch(workspace, "scalars", values.len() as u64, placement).unwrap();
            writer.push(values).unwrap();
            writer.finish().unwrap()
        };
        let count = coefficients.len() as u64;
        let mut writer = Writer::scratch(workspace, "coefficients", count, placement).unwrap();
        writer.push(&coefficients).unwrap();
        Self {
            log_n: system.log_n,
            values: of_scalars(&system.values),
            witness: of_scalars(&system.witness),
            coefficients: writer.finish().unwrap(),
        }
    }

    /// The quotient by the accelerator, if it makes it.
    fn quotient(&self, session: &Session) -> spillproof_engine::Result<Option<Column<Fr>>> {
        let system = OfColumns {
            log_n: self.log_n,
            omega: Fr::get_root_of_unity(1 << self.log_n).unwrap(),
            shift: Fr::GENERATOR,
            values: &self.values,
            witness: &self.witness,
            coefficients: &self.coefficients,
        };
        session.run(|| system_quotient(&system, Placement::Auto))
    }

    /// Bytes that cross for the witness, if it does, and the rest.
    fn bytes(&self, with_witness: bool) -> u64 {
        let witness_bytes = if with_witness { self.witness.len() * 32 } else { 0 };
        let coefficients_start = (self.values.len() * 32).next_multiple_of(SECTION_BYTES) + witness_bytes;
        coefficients_start.next_multiple_of(SECTION_BYTES) + self.coefficients.len() * 16
    }
}

/// Bytes that crossed to the device, and back.
fn crossed(accelerator: &GpuAccelerator) -> [u64; 2] {
    let trace = accelerator.gpus()[0].trace();
    [SpanKind::ToDevicePinned, SpanKind::FromDevicePinned].map(|kind| trace.total(kind).bytes)
}

fn random(rng: &mut rand_chacha::ChaCha20Rng, log_n: u32) -> System {
    let signals = rng.gen_range(1..3 << log_n);
    let long = rng.gen_range(0..1u32 << log_n);
    System::random(rng, (log_n, signals), |rng, row| match row {
        row if row == long => 5000,
        row => (row as usize % 3) * rng.gen_range(0..8),
    })
}

#[test]
fn constraints_become_a_quotient_on_the_device() {
    const TEST: &str = "constraints_become_a_quotient_on_the_device";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = rng(TEST);
        for (log_n, vram, memory_bytes) in [
            (0, ByteSize::Auto, 2 << 20),
            (5, ByteSize::Auto, 700 << 10),
            (11, ByteSize::Bytes(600 << 10), 2 << 20),
            (11, ByteSize::Bytes(16 << 20), 8 << 20),
        ] {
            for placement in [Placement::Disk, Placement::Memory] {
                let what = format!("2^{log_n}, {vram:?}, {memory_bytes}, {placement:?}");
                driver.reset(1, 64 << 20);
                let accelerator = accelerator(vram, Offload::Always);
                let session = session(Some(&accelerator), memory_bytes);
                let system = random(&mut rng, log_n);
                let columns = Columns::new(&session, &system, placement);
                let (held, expected) = (session.budget().held_bytes(), system.quotient(Fr::GENERATOR));
                let quotient = columns
                    .quotient(&session)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                let quotient = quotient.unwrap_or_else(|| panic!("{what}: {}", accelerator.report()));
                assert!(quotient.to_vec().unwrap() == expected, "{what}");
                assert_eq!(
                    crossed(&accelerator),
                    [columns.bytes(true), 32 << log_n],
                    "{what}"
                );
                // What it made stays, and what it was made of.
                let domain = Radix2EvaluationDomain::<Fr>::new(1 << log_n).unwrap();
                let back = Transform::inverse(log_n, domain.group_gen).unwrap();
                let before = crossed(&accelerator);
                let coefficients = session.run(|| ntt(&quotient, &back, Placement::Auto)).unwrap();
                assert!(coefficients.to_vec().unwrap() == domain.ifft(&expected), "{what}");
                let again = columns.quotient(&session).unwrap().unwrap();
                assert!(again.to_vec().unwrap() == expected, "{what}");
                let after = crossed(&accelerator);
                assert_eq!(after[1] - before[1], 2 * (32 << log_n), "{what}");
                if vram != ByteSize::Bytes(600 << 10) {
                    assert_eq!(after[0] - before[0], columns.bytes(false), "{what}");
                }
                let report = accelerator.report();
                assert_eq!(
                    (
                        report.constraints(),
                        report.transforms(),
                        report.by_the_processor()
                    ),
                    (2, 1, 0),
                    "{what}: {report}"
                );
                if let ByteSize::Bytes(vram_bytes) = vram {
                    assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
                }
                drop((quotient, coefficients, again));
                assert_eq!(session.budget().held_bytes(), held, "{what}");
                drop(columns);
                all_is_given_back(session, accelerator, driver, &what);
            }
        }
    });
}

#[test]
fn wrong_coefficients_are_the_processors() {
    const TEST: &str = "wrong_coefficients_are_the_processors";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = rng(TEST);
        let system = random(&mut rng, 8);
        let middle = system.coefficients.len() / 2;
        for (field, value) in [(0, 256), (0, 0), (1, u32::MAX), (2, 7), (3, 2)] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Auto, Offload::Always);
            let session = session(Some(&accelerator), 2 << 20);
            let mut wrong = system.clone();
            wrong.coefficients[middle][field] = value;
            if field == 0 {
                // The others before and behind it are not of row 0.
                wrong.coefficients[middle - 1][0] = wrong.coefficients[middle - 1][0].max(1);
            }
            let columns = Columns::new(&session, &wrong, Placement::Disk);
            assert!(columns.quotient(&session).unwrap().is_none(), "{field}");
            let report = accelerator.report().to_string();
            assert!(
                report.contains("a coefficient is outside of the matrices, or out of order"),
                "{report}"
            );
            // The device is as good as before.
            let right = Columns::new(&session, &system, Placement::Disk);
            assert!(right.quotient(&session).unwrap().is_some(), "{field}");
            drop((columns, right));
            all_is_given_back(session, accelerator, driver, "wrong coefficients");
        }
    });
}

/// A device without room for all rows leaves the job, and keeps what it has.
#[test]
fn constraints_without_room_leave_what_stays() {
    const TEST: &str = "constraints_without_room_leave_what_stays";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = rng(TEST);
        let system = random(&mut rng, 12);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(512 << 10), Offload::Always);
        let session = session(Some(&accelerator), 8 << 20);
        let job = TestJob::new(&session, 64);
        let mut sent = Vec::new();
        for _ in 0..2 {
            let before = crossed(&accelerator)[0];
            job.check_sums(&session, "beside constraints");
            sent.push(crossed(&accelerator)[0] - before);
            let columns = Columns::new(&session, &system, Placement::Disk);
            assert!(columns.quotient(&session).unwrap().is_none());
        }
        assert!(sent[1] + 64 * 64 <= sent[0], "{sent:?}");
        let report = accelerator.report().to_string();
        assert!(report.contains("the constraints of 2^12 rows"), "{report}");
        drop(job);
        all_is_given_back(session, accelerator, driver, "no room");
    });
}

/// Each call of a job fails once, or the device is lost at it: the quotient is right, or left to the processor.
#[test]
fn failing_calls_leave_constraints_to_the_processor() {
    const TEST: &str = "failing_calls_leave_constraints_to_the_processor";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = rng(TEST);
        let system = random(&mut rng, 6);
        let expected = system.quotient(Fr::GENERATOR);
        let run = |inject: Option<(u64, Code, bool)>, what: &str| {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(1 << 20), Offload::Always);
            let session = session(Some(&accelerator), 1 << 20);
            let columns = Columns::new(&session, &system, Placement::Disk);
            let before = driver.calls(None);
            if let Some((nth, code, is_lost)) = inject {
                driver.fail(None, nth, code, is_lost);
            }
            let quotient = columns
                .quotient(&session)
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            let report = accelerator.report();
            match quotient {
                Some(quotient) => assert!(quotient.to_vec().unwrap() == expected, "{what}"),
                None => assert_eq!(report.by_the_processor(), 1, "{what}: {report}"),
            }
            let calls = driver.calls(None) - before;
            drop(columns);
            drop(session);
            drop(accelerator);
            if inject.is_none_or(|(_, _, is_lost)| !is_lost) {
                driver.assert_clean(what);
            }
            calls
        };
        let calls = run(None, "all calls");
        for nth in (1..=calls).step_by((calls / 25).max(1) as usize) {
            for (code, is_lost) in [(Code::OutOfMemory, false), (Code::LaunchFailed, true)] {
                run(
                    Some((nth, code, is_lost)),
                    &format!("call {nth} of {calls}, {code:?}"),
                );
            }
        }
    });
}

/// A plan has the cut and the memory of the job that comes, or its reason.
#[test]
fn constraints_are_planned() {
    const TEST: &str = "constraints_are_planned";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = rng(TEST);
        let system = random(&mut rng, 10);
        for (vram_bytes, fits) in [(100 << 10, false), (2 << 20, true)] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(vram_bytes), Offload::Always);
            let session = session(Some(&accelerator), 4 << 20);
            let columns = Columns::new(&session, &system, Placement::Disk);
            let offer = Offer {
                job: Offered::Constraints {
                    log_n: 10,
                    signals: system.witness.len() as u64,
                    coefficients: system.coefficients.len() as u64,
                    values: system.values.len() as u64,
                    ends_bytes: 64 << 10,
                },
                count: 1,
                available_bytes: session.budget().available_bytes(),
            };
            let planned = session
                .run(|| accelerator.plan(&[offer], None, session.budget()))
                .unwrap();
            assert_eq!(
                planned.report.constraints(),
                u64::from(fits),
                "{}",
                planned.report
            );
            assert_eq!(columns.quotient(&session).unwrap().is_some(), fits);
            match &planned.jobs[0].by {
                Executor::Devices {
                    cut: Cut::Constraints { chunk_coefficients },
                    vram_bytes: leased_bytes,
                    ..
                } => {
                    assert!(fits && *chunk_coefficients > 0);
                    // Buffers are rounded up.
                    let unused_bytes = leased_bytes.checked_sub(driver.peak_bytes(0));
                    assert!(unused_bytes.is_some_and(|bytes| bytes < 1024), "{unused_bytes:?}");
                }
                Executor::Processor { why } => {
                    assert!(!fits && why.contains("the constraints of 2^10 rows"), "{why}");
                }
                other => panic!("{other:?}"),
            }
            drop(columns);
            all_is_given_back(session, accelerator, driver, "planned");
        }
    });
}

/// No processor is slower than a fake device. Nothing is measured twice, nor for small systems.
#[test]
fn constraints_are_measured() {
    const TEST: &str = "constraints_are_measured";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let mut rng = rng(TEST);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Auto, Offload::Measured);
        let session = session(Some(&accelerator), 64 << 20);
        let mut launches = Vec::new();
        for log_n in [11, 12, 12] {
            let system = System::random(&mut rng, (log_n, 100), |_, row| row as usize % 3);
            let columns = Columns::new(&session, &system, Placement::Disk);
            assert!(columns.quotient(&session).unwrap().is_none());
            launches.push(driver.calls(Some("cuLaunchKernel")));
        }
        assert!(
            launches[0] == 0 && launches[1] > 0 && launches[2] == launches[1],
            "{launches:?}"
        );
        let report = accelerator.report();
        let reasons = report.reasons().iter().map(|(why, count)| (why.as_str(), *count));
        let expected = [
            (
                "the quotient of constraints of 2^11 rows is too small for a device",
                1,
            ),
            (
                "the quotient of constraints of 2^12 rows: the processor is faster, by measured rates",
                2,
            ),
        ];
        assert!(reasons.eq(expected), "{report}");
        all_is_given_back(session, accelerator, driver, "measured");
    });
}
