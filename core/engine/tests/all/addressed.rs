//! Cells with addresses against vectors, read through old addresses by other threads, and on disks that fail
//! or lie.

#![allow(unsafe_code)]

use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Addressed, Scratch, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Backend, Fault, FaultPlan, Region, Storage};

use crate::common::{place, skipped};

const PAGE: usize = 4096;
/// As halo2's cells: nine words, which do not divide a page.
type Words = [u64; 9];

fn words(seed: u64) -> Words {
    std::array::from_fn(|word| seed.wrapping_mul(2 * word as u64 + 1))
}

fn is_skipped() -> bool {
    if !Region::is_allowed() {
        skipped(format_args!(
            "this kernel, or a container's filter, does not allow userfaultfd"
        ));
    }
    !Region::is_allowed()
}

/// An address that another thread may read.
#[derive(Clone, Copy)]
struct Address(*const Words);

// SAFETY: cells may be read by any thread.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// The cell must live, and not be written now.
    fn read(&self) -> Words {
        // SAFETY: callers keep the cells, and write no cell whose address they read.
        unsafe { self.0.read_volatile() }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, u64),
    Run(u64, u64),
    Look(prop::sample::Index),
    /// With the array that may be read next.
    Read(Range<u64>, Option<usize>),
    Shrink,
}

fn steps(len: u64) -> impl Strategy<Value = Vec<(usize, Step)>> {
    let range = (0..len, 0..=len).prop_map(|(a, b)| a.min(b)..a.max(b));
    let step = prop_oneof![
        10 => (0..len, any::<u64>()).prop_map(|(i, v)| Step::Set(i, v)),
        4 => (0..len, any::<u64>()).prop_map(|(i, v)| Step::Run(i, v)),
        12 => any::<prop::sample::Index>().prop_map(Step::Look),
        3 => (range, prop::option::of(0..3usize)).prop_map(|(range, then)| Step::Read(range, then)),
        3 => prop::option::of(0..3usize).prop_map(move |then| Step::Read(0..len, then)),
        1 => Just(Step::Shrink),
    ];
    prop::collection::vec((0..3usize, step), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Arrays in a share that holds a fraction of them are as many vectors, through their calls and through
    /// addresses of any age.
    #[test]
    fn arrays_are_vectors_with_addresses(steps in steps(9001), pages in 20..80u64) {
        let (place, len) = (place(4 << 20), 9001);
        let mut cells =
            Addressed::<Words>::zeroed(&place.workspace, "cells", pages * PAGE as u64, (3, len)).unwrap();
        let mut model = vec![vec![[0; 9]; len as usize]; 3];
        let mut given: Vec<(usize, u64, Address)> = Vec::new();
        for (array, step) in steps {
            match step {
                Step::Set(i, v) => {
                    given.push((array, i, Address(cells.set(array, i, words(v)).unwrap())));
                    model[array][i as usize] = words(v);
                }
                Step::Run(i, v) => {
                    for j in i..len.min(i + 700) {
                        let address = Address(cells.set(array, j, words(v ^ j)).unwrap());
                        model[array][j as usize] = words(v ^ j);
                        if j % 50 == 0 {
                            given.push((array, j, address));
                        }
                    }
                }
                Step::Look(at) if !given.is_empty() => {
                    let (array, i, address) = at.get(&given);
                    prop_assert_eq!(address.read(), model[*array][*i as usize]);
                }
                Step::Look(_) => {}
                Step::Read(range, then) => {
                    let (model, mut next) = (&model[array], range.start);
                    let read = cells.read_before((array, then), range.clone(), |first, cells| {
                        assert_eq!(first, next);
                        assert_eq!(cells, &model[first as usize..first as usize + cells.len()]);
                        next += cells.len() as u64;
                        Ok(())
                    });
                    read.unwrap();
                    prop_assert_eq!(next, range.end);
                }
                Step::Shrink => cells.keep_for_reading(pages * PAGE as u64 / 2).unwrap(),
            }
        }
        for (array, i, address) in &given {
            prop_assert_eq!(address.read(), model[*array][*i as usize]);
        }
    }
}

/// Pages from `address` on that are in memory.
fn resident_bytes(address: *const Words, bytes: usize) -> usize {
    let start = address.addr() / PAGE * PAGE;
    let mut pages = vec![0u8; bytes.div_ceil(PAGE)];
    // SAFETY: the range is mapped, and there is a byte for each page.
    let done = unsafe { libc::mincore(start as *mut libc::c_void, pages.len() * PAGE, pages.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    pages.iter().filter(|page| **page & 1 != 0).count() * PAGE
}

#[test]
fn other_threads_read_old_addresses_while_cells_are_written() {
    if is_skipped() {
        return;
    }
    read_while_written(&place(16 << 20).workspace);
}

/// As in a container that forbids userfaultfd.
#[test]
fn other_threads_read_old_addresses_where_signals_do_for_faults() {
    let dir = tempfile::tempdir().unwrap();
    let place = workspace(dir.path(), refusing(dir.path(), false)).unwrap();
    read_while_written(&place.with_budget(Budget::new(16 << 20)));
}

/// 64 MiB of cells in 4 MiB of memory, while other threads read old ones: every value is right, and what is
/// in memory stays within the share.
fn read_while_written(workspace: &Workspace) {
    let (share_bytes, arrays) = (4 << 20, 4);
    let len = (64u64 << 20) / 72 / arrays as u64;
    let mut cells = Addressed::<Words>::zeroed(workspace, "cells", share_bytes, (arrays, len)).unwrap();
    assert!(cells.is_checked());
    let (sender, done) = (
        std::sync::mpsc::channel::<(u64, Address)>(),
        AtomicBool::new(false),
    );
    let (sender, given) = sender;
    // Other maps may begin behind the last cell.
    let (mut first, mut last) = (std::ptr::null(), std::ptr::null());
    let mut most = 0;
    std::thread::scope(|scope| {
        let (done, given) = (&done, std::sync::Mutex::new(given));
        let known = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let given = std::sync::Arc::new(given);
        for seed in 0..3 {
            let (known, given) = (known.clone(), given.clone());
            scope.spawn(move || {
                let mut rng = ChaCha20Rng::seed_from_u64(seed);
                let mut looked = 0;
                while !done.load(Ordering::Relaxed) || looked < 100 {
                    if let Ok(given) = given.lock() {
                        known.lock().unwrap().extend(given.try_iter());
                    }
                    let picked = {
                        let known = known.lock().unwrap();
                        (!known.is_empty()).then(|| known[rng.gen_range(0..known.len())])
                    };
                    let Some((value, address)): Option<(u64, Address)> = picked else {
                        continue;
                    };
                    assert_eq!(address.read(), words(value));
                    looked += 1;
                }
            });
        }
        for row in 0..len {
            for array in 0..arrays {
                let value = row * arrays as u64 + array as u64;
                let address = cells.set(array, row, words(value)).unwrap();
                if (row, array) == (0, 0) {
                    first = address;
                }
                last = address;
                if value.is_multiple_of(997) {
                    sender.send((value, Address(address))).unwrap();
                }
            }
            if row.is_multiple_of(40_000) {
                most = most.max(resident_bytes(first, last.addr() - first.addr()));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(most as u64 <= share_bytes, "{most} bytes in memory");
    cells.keep_for_reading(1 << 20).unwrap();
    for array in 0..arrays {
        let read = cells.read(array, 0..len, |first, cells| {
            let value = |row: u64| words(row * arrays as u64 + array as u64);
            assert!((first..).zip(cells).all(|(row, cell)| *cell == value(row)));
            Ok(())
        });
        read.unwrap();
    }
    let after = resident_bytes(first, last.addr() - first.addr());
    assert!(after <= 1 << 20, "{after} bytes in memory after reading");
    let peak_bytes = workspace.budget.peak_bytes();
    assert!(peak_bytes < share_bytes + (1 << 20), "{peak_bytes}");
    let stats = workspace.storage.stats();
    assert!(stats.bytes_written >= 60 << 20, "{stats:?}");
}

#[test]
fn cells_that_go_as_they_are_read_leave_memory_to_others_and_the_disk_what_does_not_fit() {
    if is_skipped() {
        return;
    }
    let shape @ (arrays, len) = (9, 16_000);
    let value = |array: usize, row: u64| words(row * arrays as u64 + array as u64);
    // All rows, or so few that no cell leaves memory.
    for rows in [len, len / 5] {
        let place = place(32 << 20);
        let (workspace, share_bytes) = (&place.workspace, 6 << 20);
        let mut cells = Addressed::<Words>::zeroed(workspace, "cells", share_bytes, shape).unwrap();
        for row in 0..rows {
            for array in 0..arrays {
                cells.set(array, row, value(array, row)).unwrap();
            }
        }
        let held_bytes = workspace.budget.held_bytes();
        cells.keep_for_reading(share_bytes).unwrap();
        for array in 0..arrays {
            let read = cells.read(array, 0..rows, |first, cells| {
                assert!((first..).zip(cells).all(|(row, cell)| *cell == value(array, row)));
                Ok(())
            });
            read.unwrap();
            cells.remove(array).unwrap();
            let gone_bytes = held_bytes - workspace.budget.held_bytes();
            let part_bytes = (share_bytes / 3) * (array as u64 + 1) / arrays as u64;
            assert!(
                gone_bytes >= part_bytes,
                "{rows} rows: {gone_bytes} after {array}"
            );
            assert!(cells.read(array, 0..rows, |_, _| Ok(())).is_err());
        }
        let stats = workspace.storage.stats();
        assert_eq!(stats.bytes_written, stats.bytes_read);
        let all_bytes = arrays as u64 * len * size_of::<Words>() as u64;
        // The cells take more than half of the share, buffers for transfers the rest.
        let written_bytes = match rows == len {
            true => all_bytes - share_bytes..all_bytes - share_bytes / 3,
            false => 0..1,
        };
        assert!(
            written_bytes.contains(&stats.bytes_written),
            "{stats:?} of {all_bytes} bytes"
        );
    }
}

/// Arrays that were assigned one after the other: the last ones are in memory, and go first.
#[test]
fn what_is_in_memory_of_each_array_is_known() {
    if is_skipped() {
        return;
    }
    let place = place(32 << 20);
    let shape @ (arrays, len) = (9, 16_000);
    let mut cells = Addressed::<Words>::zeroed(&place.workspace, "cells", 6 << 20, shape).unwrap();
    for array in 0..arrays {
        for row in 0..len {
            cells.set(array, row, words(row)).unwrap();
        }
    }
    let stored: Vec<u64> = (0..arrays).map(|array| cells.stored_cells(array)).collect();
    // The block that was written last stays, of each array.
    assert!(stored[..5].iter().all(|cells| *cells > len / 2), "{stored:?}");
    assert_eq!(stored[arrays - 2..], [0, 0], "{stored:?}");
    let held_bytes = place.workspace.budget.held_bytes();
    cells.remove(arrays - 1).unwrap();
    let gone_bytes = held_bytes - place.workspace.budget.held_bytes();
    assert!(gone_bytes >= 256 << 10, "{gone_bytes}");
}

#[test]
fn with_memory_in_plenty_no_cell_leaves_it() {
    for (arrays, len) in [(1, 1), (1, 70_000), (3, 20_011), (40, 1000)] {
        let place = place(1 << 30);
        let shape = (arrays, len);
        let bytes = arrays as u64 * len * size_of::<Words>() as u64;
        let reading = Addressed::<Words>::reading_share_bytes(&place.workspace, shape, false);
        let writing = Addressed::<Words>::writing_share_bytes(&place.workspace, shape, false);
        assert_eq!(reading, writing);
        assert!(
            bytes <= writing && writing <= bytes + ((2 * arrays as u64 + 12) << 18),
            "{shape:?}"
        );
        let mut cells = Addressed::<Words>::zeroed(&place.workspace, "cells", writing, shape).unwrap();
        // From the last row up: no order is better than another.
        for row in (0..len).rev() {
            for array in 0..arrays {
                cells.set(array, row, words(row ^ array as u64)).unwrap();
            }
        }
        cells.keep_for_reading(reading).unwrap();
        for array in 0..arrays {
            let read = cells.read(array, 0..len, |first, cells| {
                let value = |row: u64| words(row ^ array as u64);
                assert!((first..).zip(cells).all(|(row, cell)| *cell == value(row)));
                Ok(())
            });
            read.unwrap();
        }
        let stats = place.workspace.storage.stats();
        assert_eq!((stats.bytes_read, stats.bytes_written), (0, 0), "{shape:?}");
    }
}

#[test]
fn cells_outside_are_refused() {
    let place = place(4 << 20);
    let mut cells = Addressed::<Words>::zeroed(&place.workspace, "cells", 1 << 20, (2, 100)).unwrap();
    assert!(matches!(
        cells.set(2, 0, words(1)),
        Err(Error::Invalid(Invalid::Index { index: 2, .. }))
    ));
    assert!(matches!(
        cells.set(1, 100, words(1)),
        Err(Error::Invalid(Invalid::OutOfRange { start: 100, .. }))
    ));
    assert!(matches!(
        cells.read(1, 3..101, |_, _| Ok(())),
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        Addressed::<Words>::zeroed(&place.workspace, "cells", 8192, (2, 100)),
        Err(Error::BudgetTooSmall { .. })
    ));
    assert_eq!((cells.arrays(), cells.len(), cells.is_empty()), (2, 100, false));
}

fn workspace(dir: &std::path::Path, faults: FaultPlan) -> Result<Workspace> {
    let storage = Storage::builder().dir(dir).backend(Backend::Pread);
    Workspace::new(storage.faults(faults).build()?, Budget::new(1 << 20)).with_scratch(Scratch::Sealed)
}

/// Writes cells in lockstep, and some of them again; reads them in order.
fn write_and_read(workspace: &Workspace) -> Result<Vec<Words>> {
    let mut cells = Addressed::<Words>::zeroed(workspace, "cells", 96 << 10, (2, 3000))?;
    for row in (0..3000).chain((0..3000).step_by(700)) {
        for array in 0..2 {
            cells.set(array, row, words(2 * row + array as u64))?;
        }
    }
    cells.keep_for_reading(0)?;
    let mut read = Vec::new();
    for array in 0..2 {
        let then = (array == 0).then_some(1);
        cells.read_before((array, then), 0..3000, |_, cells| {
            read.extend_from_slice(cells);
            Ok(())
        })?;
    }
    Ok(read)
}

/// Every operation meets every fault: the right cells or a typed error. One flipped bit used to be another
/// witness.
#[test]
fn a_disk_that_fails_or_lies_is_an_error() {
    if is_skipped() {
        return;
    }
    const FAULTS: [Fault; 8] = [
        Fault::Io,
        Fault::NoSpace,
        Fault::Interrupted,
        Fault::Short(1),
        Fault::FlipByte(1234),
        Fault::Torn,
        Fault::SwapFrames(4096),
        Fault::Truncate,
    ];
    let dir = tempfile::tempdir().unwrap();
    let counting = FaultPlan::none();
    let wanted = write_and_read(&workspace(dir.path(), counting.clone()).unwrap()).unwrap();
    let operations = counting.operations();
    assert!(operations > 60, "{operations}");
    let mut damaged = 0;
    for fault in FAULTS {
        for index in (0..operations).step_by(3) {
            let result =
                workspace(dir.path(), FaultPlan::at(index, fault)).and_then(|place| write_and_read(&place));
            match result {
                Ok(read) => assert!(read == wanted, "{fault:?} at {index}"),
                Err(Error::Damaged { .. }) => damaged += 1,
                Err(Error::Io { .. } | Error::File { .. }) => {}
                Err(other) => panic!("{fault:?} at {index}: {other}"),
            }
        }
    }
    assert!(damaged > 20, "{damaged}");
}

/// A plan in which the system refuses a region's faults, and with `signals_too` what does for them.
fn refusing(dir: &std::path::Path, signals_too: bool) -> FaultPlan {
    let counting = FaultPlan::none();
    drop(workspace(dir, counting.clone()).unwrap());
    let first = counting.operations();
    let plan = FaultPlan::at(first, Fault::Unsupported);
    match signals_too {
        true => plan.and(first + 1, Fault::Unsupported),
        false => plan,
    }
}

/// Where the system refuses everything, cells are in mapped files.
#[test]
fn a_kernel_that_refuses_means_mapped_files() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = write_and_read(&workspace(dir.path(), FaultPlan::none()).unwrap()).unwrap();
    let place = workspace(dir.path(), refusing(dir.path(), true)).unwrap();
    let cells = Addressed::<Words>::zeroed(&place, "cells", 96 << 10, (2, 3000)).unwrap();
    assert!(!cells.is_checked());
    drop(cells);
    for signals_too in [true, false] {
        let place = workspace(dir.path(), refusing(dir.path(), signals_too)).unwrap();
        assert!(write_and_read(&place).unwrap() == wanted);
        assert_eq!(place.budget.held_bytes(), 0);
    }
}

/// Where the kernel refuses, cells that fit into their share stay in memory: none is in a file in plain.
#[test]
fn a_kernel_that_refuses_leaves_cells_that_fit_in_memory() {
    let (dir, rows) = (tempfile::tempdir().unwrap(), 9001);
    let place = workspace(dir.path(), refusing(dir.path(), true)).unwrap();
    let place = place.with_budget(Budget::new(16 << 20));
    let mut cells = Addressed::<Words>::zeroed(&place, "cells", 8 << 20, (3, rows)).unwrap();
    assert!(cells.is_checked());
    let mut given = Vec::new();
    for row in (0..rows).step_by(2) {
        for array in 0..3 {
            let value = 3 * row + array as u64;
            given.push((value, Address(cells.set(array, row, words(value)).unwrap())));
        }
    }
    cells.keep_for_reading(0).unwrap();
    for array in 0..3 {
        let expected = |row: u64| match row % 2 {
            0 => words(3 * row + array as u64),
            _ => [0; 9],
        };
        let read = cells.read(array, 0..rows, |first, cells| {
            assert!((first..).zip(cells).all(|(row, cell)| *cell == expected(row)));
            Ok(())
        });
        read.unwrap();
    }
    assert!(
        given
            .iter()
            .all(|(value, address)| address.read() == words(*value))
    );
    let stats = place.storage.stats();
    assert_eq!((stats.bytes_read, stats.bytes_written), (0, 0));
    drop(cells);
    assert_eq!(place.budget.held_bytes(), 0);
}

/// All threads of a pool wait for old cells, while what is in memory has to be written out for them.
#[test]
fn threads_of_the_pool_wait_for_cells() {
    crate::watchdog::within(60, "reading old cells in a pool", || {
        let (dir, rows) = (tempfile::tempdir().unwrap(), 60_000);
        let builder = Session::builder().memory("64MiB").dir(dir.path()).threads(2);
        let session = builder.build().unwrap();
        let place = session.workspace();
        session.run(|| {
            let mut cells = Addressed::<Words>::zeroed(place, "cells", 4 << 20, (2, rows)).unwrap();
            for round in 0..3 {
                let mut addresses = Vec::new();
                for at in 0..2 * rows {
                    let address = cells.set((at % 2) as usize, at / 2, words(at + round));
                    addresses.push(Address(address.unwrap()));
                }
                let right = |(i, address): (usize, &Address)| address.read() == words(i as u64 + round);
                assert!(addresses.par_iter().enumerate().all(right));
            }
        });
    });
}

/// A cell that a thread reads through its address, and that the disk changed: the process says so and aborts.
/// In a process of its own.
#[test]
fn a_changed_cell_that_is_read_through_its_address_aborts_with_a_reason() {
    const NAME: &str = "SPILLPROOF_TEST_CHANGED_CELL";
    if is_skipped() {
        return;
    }
    if std::env::var_os(NAME).is_some() {
        let dir = tempfile::tempdir().unwrap();
        let counting = FaultPlan::none();
        let make = |faults| {
            let place = workspace(dir.path(), faults).unwrap();
            Addressed::<Words>::zeroed(&place, "advice cells", 96 << 10, (1, 3000)).unwrap()
        };
        drop(make(counting.clone()));
        // The first block that goes out.
        let mut cells = make(FaultPlan::at(counting.operations(), Fault::FlipByte(100)));
        let first = Address(cells.set(0, 0, words(7)).unwrap());
        for row in 1..3000 {
            cells.set(0, row, words(row)).unwrap();
        }
        // The file goes with the process; the folder is empty.
        std::fs::remove_dir(dir.keep()).unwrap();
        println!("read {:?}", first.read());
        return;
    }
    let name = "addressed::a_changed_cell_that_is_read_through_its_address_aborts_with_a_reason";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(NAME, "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&output.status),
        Some(libc::SIGABRT),
        "{output:?}"
    );
    assert!(
        errors.contains("a circuit reads one of its advice cells") && errors.contains("is damaged"),
        "{errors}"
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("read ["));
}

/// Signals of no region go to what was there before: a stack that overflows is told as before, and a program
/// that touches no memory of its own ends by SIGSEGV. In processes of their own.
#[test]
fn signals_of_no_region_are_handed_on() {
    const NAME: &str = "SPILLPROOF_TEST_SIGNAL";
    #[allow(unconditional_recursion)]
    fn endless(depth: &mut [u64; 64]) -> u64 {
        let mut more = std::hint::black_box([depth[0] + 1; 64]);
        endless(&mut more) + depth[1]
    }
    if let Ok(kind) = std::env::var(NAME) {
        let dir = tempfile::tempdir().unwrap();
        let place = workspace(dir.path(), refusing(dir.path(), false)).unwrap();
        let mut cells = Addressed::<Words>::zeroed(&place, "cells", 96 << 10, (1, 3000)).unwrap();
        for row in 0..3000 {
            cells.set(0, row, words(row)).unwrap();
        }
        std::fs::remove_dir(dir.keep()).unwrap();
        match kind.as_str() {
            "stack" => println!("{}", endless(&mut [0; 64])),
            // SAFETY: none; the process is to end.
            _ => println!("{}", unsafe {
                std::ptr::without_provenance::<u8>(64).read_volatile()
            }),
        }
        return;
    }
    for (kind, signal, words) in [
        ("stack", libc::SIGABRT, "overflowed its stack"),
        ("null", libc::SIGSEGV, ""),
    ] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "addressed::signals_of_no_region_are_handed_on",
                "--nocapture",
            ])
            .env(NAME, kind)
            .output()
            .unwrap();
        let ended = std::os::unix::process::ExitStatusExt::signal(&output.status);
        assert_eq!(ended, Some(signal), "{kind}: {output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(words),
            "{output:?}"
        );
    }
}
