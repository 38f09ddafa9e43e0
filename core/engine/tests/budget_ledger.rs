//! The ledger under threads and panics, and what is outside of it.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use spillproof_engine::Error;
use spillproof_engine::budget::{Budget, CountingAlloc, process};

#[global_allocator]
static HEAP: CountingAlloc = CountingAlloc;

/// The heap is the process's: its tests run one after the other.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(|poison| poison.into_inner())
}

#[test]
fn concurrent_leases_never_pass_the_limit() {
    const LIMIT: u64 = 1000;
    let _turn = turn();
    let budget = Budget::new(LIMIT);
    let (held, most, refused) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (budget, held, most, refused) = (&budget, &held, &most, &refused);
            scope.spawn(move || {
                for round in 0..2000u64 {
                    let bytes = (round * 37 + thread * 101) % 400;
                    match budget.lease(bytes, "worker") {
                        Ok(lease) => {
                            // Counted after it was taken and before it is given back: never more than the
                            // ledger's.
                            let now = held.fetch_add(bytes, SeqCst) + bytes;
                            most.fetch_max(now, SeqCst);
                            assert!(now <= LIMIT);
                            std::thread::yield_now();
                            held.fetch_sub(bytes, SeqCst);
                            assert_eq!(lease.bytes(), bytes);
                        }
                        Err(Error::OverBudget { .. }) => {
                            refused.fetch_add(1, SeqCst);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(budget.held_bytes(), 0);
    assert!(most.into_inner() <= budget.peak_bytes() && budget.peak_bytes() <= LIMIT);
    assert!(refused.into_inner() > 0, "nothing was ever refused: vacuous");
}

#[test]
fn refusals_name_the_holders_largest_first() {
    let _turn = turn();
    let budget = Budget::new(10 << 20);
    let _window = budget.lease(1 << 20, "window").unwrap();
    let mut tile = budget.lease(4 << 20, "tile").unwrap();
    let part = budget.lease(2 << 20, "tile").unwrap();
    let error = budget.lease(4 << 20, "buckets").unwrap_err();
    let Error::OverBudget {
        asked_bytes,
        held_bytes,
        limit_bytes,
        ref holders,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (asked_bytes, held_bytes, limit_bytes),
        (4 << 20, 7 << 20, 10 << 20)
    );
    assert_eq!(holders, "tile: 6MiB, window: 1MiB");
    assert!(error.to_string().starts_with("buckets needs"), "{error}");
    drop(part);
    tile.shrink_to(1 << 20);
    assert_eq!(
        (budget.held_bytes(), budget.available_bytes(), budget.peak_bytes()),
        (2 << 20, 8 << 20, 7 << 20)
    );
    let report: Vec<_> = budget
        .report()
        .into_iter()
        .map(|l| (l.what, l.held_bytes, l.peak_bytes))
        .collect();
    assert_eq!(
        report,
        [
            ("tile".into(), 1 << 20, 6 << 20),
            ("window".into(), 1 << 20, 1 << 20)
        ]
    );
    assert!(Budget::unlimited().lease(u64::MAX, "all").is_ok());
}

#[test]
fn a_panic_gives_leases_back() {
    let _turn = turn();
    let budget = Budget::new(1 << 20);
    let thread = std::thread::spawn({
        let budget = budget.clone();
        move || {
            let _lease = budget.lease(1000, "doomed").unwrap();
            let _buffer = budget.buffer(8192, "doomed too").unwrap();
            panic!("as asked: part of a test");
        }
    });
    assert!(thread.join().is_err());
    assert_eq!(budget.held_bytes(), 0);
    assert_eq!(budget.peak_bytes(), 9192);
}

#[test]
fn memory_under_leases_is_not_outside_of_them() {
    let _turn = turn();
    const BIG: usize = 64 << 20;
    let budget = Budget::unlimited();
    CountingAlloc::reset_peaks();
    let before = CountingAlloc::outside_leases_peak_bytes();
    let lease = budget.lease(BIG as u64, "vector").unwrap();
    let vector = vec![1u8; BIG];
    let buffer = budget.buffer(BIG, "buffer").unwrap();
    let tile = budget.vec(BIG / 8, 1u64, "tile").unwrap();
    let outside = CountingAlloc::outside_leases_peak_bytes();
    assert!(outside < before + (1 << 20), "{outside} after {before}");
    assert!(CountingAlloc::peak_bytes() >= BIG as u64);
    assert!(
        process::anonymous_bytes().unwrap() >= 3 * BIG as u64,
        "pages are really there"
    );
    assert!(process::resident_peak_bytes().unwrap() >= 3 * BIG as u64);
    drop((vector, lease, buffer, tile));
    let unleased = vec![1u8; BIG];
    assert!(
        CountingAlloc::outside_leases_peak_bytes() >= BIG as u64,
        "the control is seen"
    );
    drop(unleased);
    assert!(
        process::anonymous_bytes().unwrap() >= 2 * BIG as u64,
        "pages stay for the next buffers"
    );
    drop(budget);
    assert!(
        process::anonymous_bytes().unwrap() < BIG as u64,
        "all pages went back to the system"
    );
}
