//! Every call of the driver fails once, in every way: the job ends with a typed error or with the right
//! result, nothing leaks, nothing hangs.

use spillproof_fake_driver::{Code, FakeDriver, Order, under};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{Choice, Error, Gpu, GpuAbsence, Result};

use crate::support::is_the_drivers;
use crate::support::ring_jobs::{self, Setup, Sizes, accumulated, scaled, words};

const SIZES: Sizes = Sizes {
    words: 60,
    chunk_words: 16,
    first_words: 4,
    up_slots: 2,
    back_slots: 2,
    buffers: 2,
};

/// Every use of a device, once.
fn job(input: &[u64], detail: Detail) -> Result<(Vec<u64>, u64)> {
    let gpu = Gpu::open(0, detail)?;
    let mut setup = Setup::new(&gpu, &SIZES)?;
    Ok((setup.transform(input)?, setup.sum(input)?))
}

fn fail_everywhere(driver: &FakeDriver, code: Code, lost: bool, order: Order, detail: Detail) {
    let input = words(SIZES.words, 11);
    let expected = (scaled(&input), accumulated(&input));
    driver.order(order);
    driver.guard(true);
    let (mut errors, mut survived) = (0u32, 0u32);
    for nth in 1.. {
        driver.reset(1, 1 << 20);
        driver.fail(None, nth, code, lost);
        let case = format!("call {nth} fails with {code:?}, lost: {lost}, {order:?}");
        match job(&input, detail) {
            // A destructor cannot return its failure; the result must be right.
            Ok(result) => {
                survived += 1;
                assert_eq!(result, expected, "{case}");
            }
            Err(error) => {
                errors += 1;
                assert!(is_the_drivers(&error), "{case}: {error}");
                assert!(!error.to_string().is_empty());
            }
        }
        driver.assert_clean(&case);
        if driver.failures() == 0 {
            println!("{code:?}, lost: {lost}, {order:?}: {errors} errors, {survived} jobs ended well");
            assert!(errors > 100, "few calls fail: {errors}");
            return;
        }
    }
}

#[test]
fn every_call_may_fail_once() {
    under(module_path!(), "every_call_may_fail_once", |driver| {
        for code in [Code::OutOfMemory, Code::InvalidValue, Code::Unknown] {
            fail_everywhere(driver, code, false, Order::Late, Detail::Counts);
        }
        let detail = Detail::Timeline { spans_max: 100 };
        fail_everywhere(driver, Code::Unknown, false, Order::Late, detail);
    });
}

#[test]
fn the_device_may_be_lost_at_every_call() {
    under(module_path!(), "the_device_may_be_lost_at_every_call", |driver| {
        for (code, order) in [
            (Code::LaunchFailed, Order::Late),
            (Code::IllegalAddress, Order::Eager),
            (Code::IllegalAddress, Order::Random(5)),
        ] {
            fail_everywhere(driver, code, true, order, Detail::Counts);
        }
    });
}

#[test]
fn a_lost_device_says_so_and_keeps_no_slot() {
    under(
        module_path!(),
        "a_lost_device_says_so_and_keeps_no_slot",
        |driver| {
            let input = words(SIZES.words, 1);
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let mut setup = Setup::new(&gpu, &SIZES).unwrap();
            driver.fail(Some("cuLaunchKernel"), 3, Code::LaunchFailed, true);
            let error = setup.transform(&input).unwrap_err();
            assert!(error.is_device_lost() && !error.is_memory_short(), "{error}");
            assert!(error.to_string().contains("open the device again"), "{error}");
            assert!(setup.transform(&input).unwrap_err().is_device_lost());
            assert!(setup.ring.finish().unwrap_err().is_device_lost());
            drop(setup);
            let failures = gpu.release_failures();
            assert!(!failures.is_empty() && failures.iter().all(Error::is_device_lost));
            assert!(gpu.release_failures().is_empty(), "told once");
            drop(gpu);
            driver.assert_clean("after a lost device");
        },
    );
}

#[test]
fn a_lost_device_can_be_opened_anew() {
    under(module_path!(), "a_lost_device_can_be_opened_anew", |driver| {
        let input = words(SIZES.words, 1);
        driver.fail(Some("cuLaunchKernel"), 2, Code::LaunchFailed, true);
        assert!(job(&input, Detail::Counts).unwrap_err().is_device_lost());
        driver.assert_clean("after a lost device");
        // All of the context was released, so the driver makes a new one.
        assert_eq!(
            job(&input, Detail::Counts).unwrap(),
            (scaled(&input), accumulated(&input))
        );
        driver.assert_clean("after a second start");
    });
}

#[test]
fn an_illegal_copy_is_found_when_it_runs() {
    under(
        module_path!(),
        "an_illegal_copy_is_found_when_it_runs",
        |driver| {
            // A buffer that is dropped under a queued copy: a violation to the fake driver, an illegal
            // address to a real one.
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let vram = spillproof_gpu::Vram::new(&gpu, 4096);
            let stream = ring_jobs::stream(&gpu);
            let (to, from) = (vram.buffer(256, "to").unwrap(), vram.buffer(256, "from").unwrap());
            stream.copy((&to, 0), (&from, 0), 256).unwrap();
            drop(from);
            assert!(stream.synchronize().unwrap_err().is_device_lost());
            assert_eq!(driver.violations().len(), 1, "{:?}", driver.violations());
        },
    );
}

/// Two waits for a copy to the host fail: the device may still write, and not to memory of the caller's.
#[test]
fn a_copy_that_was_not_waited_for_writes_to_no_memory_of_the_callers() {
    under(
        module_path!(),
        "a_copy_that_was_not_waited_for_writes_to_no_memory_of_the_callers",
        |driver| {
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let vram = spillproof_gpu::Vram::new(&gpu, 4096);
            let stream = ring_jobs::stream(&gpu);
            let buffer = vram.buffer(256, "buffer").unwrap();
            stream.write((&buffer, 0), &[7; 256]).unwrap();
            let mut into = [1; 256];
            stream.read((&buffer, 0), &mut into).unwrap();
            assert_eq!(into, [7; 256]);
            driver.order(Order::Eager);
            driver.fail(Some("cuStreamSynchronize"), 1, Code::LaunchFailed, true);
            into = [1; 256];
            assert!(stream.read((&buffer, 0), &mut into).is_err());
            assert_eq!(into, [1; 256]);
            assert!(driver.failures() > 0);
        },
    );
}

#[test]
fn no_device_is_an_answer() {
    under(module_path!(), "no_device_is_an_answer", |driver| {
        // `probe` fails in each way, and `auto` always falls back to the processor.
        driver.reset(0, 1 << 20);
        assert_eq!(
            spillproof_gpu::probe().unwrap_err().to_string(),
            "no GPU: the CUDA driver sees no device"
        );
        for nth in 1..40 {
            driver.reset(1, 1 << 20);
            driver.fail(None, nth, Code::Unknown, false);
            match Choice::Auto.open(Detail::Counts).unwrap() {
                Ok(gpu) => drop(gpu),
                Err(GpuAbsence::Off) => panic!("nobody switched it off"),
                Err(reason) => {
                    assert!(reason.to_string().starts_with("no GPU: "), "{reason}");
                }
            }
            driver.assert_clean("after opening");
        }
    });
}
