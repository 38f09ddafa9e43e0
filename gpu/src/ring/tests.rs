//! Rings that forget one event, under a driver that runs as late as it may: each must be caught, and the
//! whole ring must not.

use spillproof_fake_driver::{FakeDriver, Order, killed_under, under};

use super::fault::Fault;
use crate::{Gpu, trace::Detail};

use crate::support::ring_jobs::{Setup, Sizes, scaled, words};

/// Long enough that every slot and buffer is used many times over.
const SIZES: Sizes = Sizes {
    words: 40 * 32 + 5,
    chunk_words: 32,
    first_words: 32,
    up_slots: 2,
    back_slots: 2,
    buffers: 2,
};

/// How many of the words that come back are wrong.
fn wrong_words(driver: &FakeDriver, sizes: Sizes, fault: Fault) -> usize {
    let gpu = Gpu::open(0, Detail::Counts).unwrap();
    let mut setup = Setup::new(&gpu, &sizes).unwrap();
    setup.ring.fault = fault;
    let input = words(sizes.words, 7);
    let output = setup.transform(&input).unwrap();
    let expected = scaled(&input);
    assert_eq!(output.len(), expected.len());
    drop((setup, gpu));
    driver.assert_clean("after a job");
    output
        .iter()
        .zip(&expected)
        .filter(|(got, want)| got != want)
        .count()
}

/// The sizes under which a fault can show: what is overwritten must still be wanted by somebody who is later.
fn cases() -> [(Fault, Sizes); 6] {
    [
        (Fault::SlotRefilledEarly, SIZES),
        // Copies run ahead of kernels by a slot's wait: with more slots than buffers they would not get that
        // far.
        (
            Fault::BufferOverwrittenEarly,
            Sizes {
                up_slots: 1,
                back_slots: 4,
                ..SIZES
            },
        ),
        (Fault::KernelStartsEarly, SIZES),
        (Fault::CopyBackStartsEarly, SIZES),
        (
            Fault::BufferOverwrittenBeforeCopyBack,
            Sizes {
                up_slots: 1,
                back_slots: 4,
                buffers: 1,
                ..SIZES
            },
        ),
        (Fault::SinkReadsEarly, SIZES),
    ]
}

#[test]
fn a_ring_that_forgets_an_event_is_caught() {
    under(
        module_path!(),
        "a_ring_that_forgets_an_event_is_caught",
        |driver| {
            for (fault, sizes) in cases() {
                let wrong = wrong_words(driver, sizes, fault);
                println!("{fault:?}: {wrong} of {} words wrong when late", sizes.words);
                assert!(wrong > 0, "{fault:?} went unseen");
                assert_eq!(
                    wrong_words(driver, sizes, Fault::None),
                    0,
                    "the whole ring with the same sizes"
                );
            }
        },
    );
}

/// Why the driver runs late: if it ran at once, only the faults of the host's own order would be seen.
#[test]
fn a_driver_that_runs_at_once_sees_no_fault() {
    under(
        module_path!(),
        "a_driver_that_runs_at_once_sees_no_fault",
        |driver| {
            driver.order(Order::Eager);
            for (fault, sizes) in cases() {
                assert_eq!(wrong_words(driver, sizes, fault), 0, "{fault:?}");
            }
        },
    );
}

#[test]
fn faults_show_in_some_random_order_too() {
    under(module_path!(), "faults_show_in_some_random_order_too", |driver| {
        for (fault, sizes) in cases() {
            let caught = (0..40).filter(|&seed| {
                driver.order(Order::Random(seed));
                wrong_words(driver, sizes, fault) > 0
            });
            let caught = caught.count();
            println!("{fault:?}: caught under {caught} of 40 seeds");
            assert!(caught > 0, "{fault:?}");
        }
    });
}

/// The two faults of the host's own order are seen by the guard at the very instruction, whatever the data.
#[test]
fn a_slot_that_is_refilled_under_its_copy_is_fatal() {
    killed_under(
        module_path!(),
        "a_slot_that_is_refilled_under_its_copy_is_fatal",
        |driver| {
            driver.guard(true);
            wrong_words(driver, SIZES, Fault::SlotRefilledEarly);
        },
    );
}

#[test]
fn a_slot_that_is_read_under_its_copy_is_fatal() {
    killed_under(
        module_path!(),
        "a_slot_that_is_read_under_its_copy_is_fatal",
        |driver| {
            driver.guard(true);
            wrong_words(driver, SIZES, Fault::SinkReadsEarly);
        },
    );
}
