//! `GpuAccelerator` on several devices under the fake driver: shared sums, and jobs that one device takes
//! over from another.

use spillproof_engine::budget::ByteSize;
use spillproof_fake_driver::{Code, FakeDriver};
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::{Offload, Request};

use crate::sessions::{TestJob, all_is_given_back, name_the_image, open, session};
use crate::support::with_kernels;

/// Four shares: they begin at multiples of 512.
const N: usize = 2048;
/// Sums of each [`TestJob::check_sums`]; one of them is empty.
const SUMS: u64 = 5;
const TRANSFORMS: u64 = 5;

fn request(choice: Choice) -> Request {
    Request {
        choice,
        vram: ByteSize::Bytes(1 << 20),
        offload: Offload::Always,
        ..Request::default()
    }
}

#[test]
fn all_devices_have_a_part_in_a_sum() {
    const TEST: &str = "all_devices_have_a_part_in_a_sum";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let (much, little) = (8 << 20, 2 << 20);
        for (choice, there, used, memories) in [
            (Choice::All, 1, 1u64, &[little][..]),
            (Choice::All, 2, 2, &[much][..]),
            (Choice::All, 4, 4, &[much, little][..]),
            (Choice::Devices(vec![2, 0]), 4, 2, &[much][..]),
            (Choice::Auto, 4, 1, &[much][..]),
        ] {
            for &memory_bytes in memories {
                let what = format!("{choice} of {there}, {memory_bytes} bytes");
                driver.reset(there, 64 << 20);
                let accelerator = open(&request(choice.clone()));
                let session = session(Some(&accelerator), memory_bytes);
                let job = TestJob::new(&session, N);
                job.check_in_turn(&session, &what);
                let report = accelerator.report();
                assert_eq!(
                    (report.sums(), report.transforms(), report.by_the_processor()),
                    (2 * SUMS, TRANSFORMS, 0),
                    "{what}: {report}"
                );
                let devices = report.devices();
                assert_eq!(devices.len() as u64, used, "{what}");
                let points: Vec<u64> = devices.iter().map(|device| device.points()).collect();
                if used == 1 {
                    assert_eq!((points[0], devices[0].sums()), (0, 2 * SUMS), "{what}: {report}");
                } else {
                    assert_eq!(points.iter().sum::<u64>(), 2 * N as u64, "{what}: {report}");
                    assert!(report.to_string().contains("devices: "), "{report}");
                    let busy = points.iter().filter(|points| **points > 0).count();
                    // A late device may find no share left; at least two devices have some.
                    assert!(busy >= 2, "{what}: {report}");
                    assert!(
                        devices.iter().all(|device| device.left_to_others().is_empty()),
                        "{what}: {report}"
                    );
                    assert!(
                        report.to_string().contains(" points of 10 sums") || busy > 2,
                        "{report}"
                    );
                }
                for ordinal in 0..there as usize {
                    assert!(
                        driver.peak_bytes(ordinal) <= 1 << 20,
                        "{what}: each keeps to its budget"
                    );
                }
                drop(job);
                all_is_given_back(session, accelerator, driver, &what);
            }
        }
    });
}

/// One of several devices fails once, or is lost: the others take over its jobs, the results are right, and
/// the report names it.
/// Returns how many of `samples` runs for each of two devices showed the failure.
fn one_fails(
    driver: &FakeDriver,
    (count, vram_bytes): (u64, u64),
    samples: u64,
    (code, lost): (Code, bool),
) -> u64 {
    let run = |ordinal: usize, nth: u64| {
        let what = format!("call {nth} on {ordinal} of {count}, {code:?}, lost: {lost}");
        driver.reset(count, 64 << 20);
        let accelerator = open(&Request {
            vram: ByteSize::Bytes(vram_bytes),
            ..request(Choice::All)
        });
        let session = session(Some(&accelerator), 8 << 20);
        let job = TestJob::new(&session, N);
        let before = driver.calls_on(ordinal);
        driver.fail_on(ordinal, nth, code, lost);
        job.check_sums(&session, &what);
        job.check_transforms(&session, &what);
        let report = accelerator.report();
        let calls = driver.calls_on(ordinal) - before;
        let failed = driver.failures() > 0;
        drop(job);
        drop(session);
        drop(std::sync::Arc::into_inner(accelerator).unwrap());
        if !lost {
            driver.assert_clean(&what);
        }
        let all = report.sums() + report.transforms() + report.by_the_processor();
        assert_eq!(all, SUMS + TRANSFORMS, "{what}: {report}");
        // While a device works, the processor does nothing.
        assert_eq!(report.by_the_processor(), 0, "{what}: {report}");
        for (number, device) in report.devices().iter().enumerate() {
            let left = device.left_to_others();
            assert!(number == ordinal || left.is_empty(), "{what}: {report}");
            if let [(why, _), ..] = left {
                assert!(failed && why.contains("driver "), "{what}: {report}");
            }
        }
        (
            calls,
            u64::from(!report.devices()[ordinal].left_to_others().is_empty()),
        )
    };
    let mut left = 0;
    for ordinal in [0, count as usize - 1] {
        let (calls, _) = run(ordinal, 0);
        // A sample of the calls: all of them would take an hour.
        let step = (calls / samples).max(1) as usize;
        left += (1..calls.max(2))
            .step_by(step)
            .take(samples as usize)
            .map(|nth| run(ordinal, nth).1)
            .sum::<u64>();
    }
    left
}

#[test]
fn a_device_that_fails_leaves_its_part_to_the_others() {
    const TEST: &str = "a_device_that_fails_leaves_its_part_to_the_others";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        // Enough memory for a sum, and not for a whole transform.
        let vram_bytes = 136 << 10;
        let once = one_fails(driver, (2, vram_bytes), 3, (Code::InvalidValue, false));
        assert!(once > 2, "{once}");
    });
}

#[test]
fn a_device_that_is_lost_leaves_everything_to_the_others() {
    const TEST: &str = "a_device_that_is_lost_leaves_everything_to_the_others";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        for (count, samples) in [(2, 3), (4, 2)] {
            let failure = (Code::LaunchFailed, true);
            let lost = one_fails(driver, (count, 1 << 20), samples, failure);
            assert!(lost >= samples, "{lost}");
        }
    });
}

/// All devices are lost, one after the other: the processor does the rest.
#[test]
fn where_no_device_is_left_the_processor_does_it() {
    const TEST: &str = "where_no_device_is_left_the_processor_does_it";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        for (first, second) in [(200, 300), (1500, 400)] {
            let what = format!("{first} {second}");
            driver.reset(2, 64 << 20);
            let accelerator = open(&request(Choice::All));
            let session = session(Some(&accelerator), 8 << 20);
            let job = TestJob::new(&session, N);
            driver.fail_on(0, first, Code::LaunchFailed, true);
            driver.fail_on(1, second, Code::LaunchFailed, true);
            for _ in 0..3 {
                job.check_sums(&session, &what);
                job.check_transforms(&session, &what);
            }
            let report = accelerator.report();
            assert!(report.by_the_processor() > 0, "{what}: {report}");
            let all = report.sums() + report.transforms() + report.by_the_processor();
            assert_eq!(all, 3 * (SUMS + TRANSFORMS), "{what}: {report}");
            for device in report.devices() {
                assert!(!device.left_to_others().is_empty(), "{what}: {report}");
            }
        }
    });
}

/// Each device has an equal part of page-locked memory, whatever the others keep.
#[test]
fn the_pinned_budget_is_divided_among_devices() {
    const TEST: &str = "the_pinned_budget_is_divided_among_devices";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(4, 64 << 20);
        let with = |pinned_bytes| Request {
            pinned: ByteSize::Bytes(pinned_bytes),
            ..request(Choice::All)
        };
        let smallest = match spillproof_gpu::accelerator::GpuAccelerator::open(&with(0)) {
            Err(spillproof_gpu::Error::TooSmall { smallest_bytes, .. }) => smallest_bytes,
            other => panic!("{other:?}"),
        };
        let accelerator = open(&with(smallest));
        let session = session(Some(&accelerator), 8 << 20);
        let job = TestJob::new(&session, N);
        job.check_sums(&session, "pinned");
        job.check_transforms(&session, "pinned");
        let report = accelerator.report();
        assert_eq!(report.by_the_processor(), 0, "{report}");
        let budget = session.budget().report();
        let slots = budget.iter().find(|line| line.what == "pinned slots").unwrap();
        assert!(
            (1..=smallest).contains(&slots.peak_bytes),
            "{slots:?} of {smallest}"
        );
        drop(job);
        all_is_given_back(session, accelerator, driver, "pinned");
    });
}
