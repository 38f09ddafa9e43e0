//! Mapped cells against a `Vec`, and what they leave in memory, seen from outside.

#![allow(clippy::expect_used, clippy::unwrap_used, unsafe_code)]

use std::ops::Range;

use ark_bn254::Fr;
use proptest::prelude::*;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Cell, Mapped, Placement, Plain, Residency, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Storage};

use crate::common::small_tmpfs;

const PAGE: usize = 4096;

/// As halo2's `Assigned`: an enum of 72 bytes whose first variant is all zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, u64)]
enum Assigned {
    Zero,
    Trivial([u64; 4]),
    Rational([u64; 4], [u64; 4]),
}

// SAFETY: tag 0 is `Zero`, which has no content.
unsafe impl Cell for Assigned {}

fn assigned(seed: u64) -> Assigned {
    let limbs = [seed, seed ^ 1, seed.wrapping_mul(3), !seed];
    match seed % 3 {
        0 => Assigned::Zero,
        1 => Assigned::Trivial(limbs),
        _ => Assigned::Rational(limbs, limbs.map(|limb| limb.rotate_left(7))),
    }
}

struct Place {
    workspace: Workspace,
    dir: tempfile::TempDir,
}

fn place_with(budget_bytes: u64, faults: FaultPlan) -> Place {
    // Not the system's folder for temporary files, which may be in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary directory");
    let storage = Storage::builder()
        .dir(dir.path())
        .faults(faults)
        .build()
        .expect("storage");
    Place {
        workspace: Workspace::new(storage, Budget::new(budget_bytes)),
        dir,
    }
}

fn place(budget_bytes: u64) -> Place {
    place_with(budget_bytes, FaultPlan::none())
}

/// Bytes of the cells' pages that are in the page cache, whoever brought them: what a control group is
/// charged.
fn cached_bytes<T: Cell>(map: &Mapped<T>) -> usize {
    let first = map.address(0).addr();
    let start = first / PAGE * PAGE;
    let bytes = first + map.len() as usize * size_of::<T>() - start;
    let mut pages = vec![0u8; bytes.div_ceil(PAGE)];
    // SAFETY: the range is mapped, and there is a byte for each page.
    let done = unsafe { libc::mincore(start as *mut libc::c_void, bytes, pages.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    pages.iter().filter(|&&page| page & 1 != 0).count() * PAGE
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, u64),
    Get(u64),
    Run(u64, u64),
    Fill(Range<u64>, u64),
    Read(Range<u64>),
    Release,
}

fn steps(len: u64) -> impl Strategy<Value = Vec<(usize, Step)>> {
    let range = (0..len, 0..len).prop_map(|(a, b)| a.min(b)..a.max(b));
    let step = prop_oneof![
        6 => (0..len, any::<u64>()).prop_map(|(i, v)| Step::Set(i, v)),
        6 => (0..len).prop_map(Step::Get),
        2 => (0..len, any::<u64>()).prop_map(|(i, v)| Step::Run(i, v)),
        1 => (range.clone(), any::<u64>()).prop_map(|(r, v)| Step::Fill(r, v)),
        1 => range.prop_map(Step::Read),
        1 => Just(Step::Release),
    ];
    prop::collection::vec((0..3usize, step), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Three maps in one share that holds a fraction of them, in any order of operations, are three vectors.
    #[test]
    fn a_group_of_maps_is_as_many_vectors(steps in steps(9000)) {
        let place = place(1 << 20);
        let share = Residency::new(&place.workspace, "cells", 3 * 4 * PAGE as u64, 3).unwrap();
        let mut maps: Vec<Mapped<Assigned>> =
            (0..3).map(|_| Mapped::zeroed_in(&share, "cells", 9000).unwrap()).collect();
        let mut model = vec![vec![Assigned::Zero; 9000]; 3];
        for (which, step) in steps {
            let (map, model) = (&mut maps[which], &mut model[which]);
            match step {
                Step::Set(i, v) => {
                    map.set(i, assigned(v)).unwrap();
                    model[i as usize] = assigned(v);
                }
                Step::Get(i) => prop_assert_eq!(map.get(i).unwrap(), model[i as usize]),
                Step::Run(i, v) => {
                    for j in i..9000.min(i + 500) {
                        map.set(j, assigned(v ^ j)).unwrap();
                        model[j as usize] = assigned(v ^ j);
                    }
                }
                Step::Fill(range, v) => {
                    map.fill(range.clone(), assigned(v)).unwrap();
                    model[range.start as usize..range.end as usize].fill(assigned(v));
                }
                Step::Read(range) => {
                    let mut next = range.start;
                    map.read(range.clone(), |first, cells| {
                        assert_eq!(first, next);
                        assert_eq!(cells, &model[first as usize..first as usize + cells.len()]);
                        next += cells.len() as u64;
                        Ok(())
                    }).unwrap();
                    prop_assert_eq!(next, range.end);
                }
                Step::Release => map.release().unwrap(),
            }
            prop_assert!(share.resident_bytes() <= share.share_bytes());
        }
        for (map, model) in maps.iter().zip(&model) {
            for (i, cell) in model.iter().enumerate() {
                prop_assert_eq!(map.get(i as u64).unwrap(), *cell);
            }
        }
        drop((maps, share));
        prop_assert_eq!(place.workspace.budget.held_bytes(), 0);
    }
}

#[test]
fn small_cells_and_odd_lengths() {
    let place = place(1 << 20);
    let mut bytes = Mapped::<u8>::zeroed(&place.workspace, "selectors", 100_001).unwrap();
    let mut numbers = Mapped::<u32>::zeroed(&place.workspace, "numbers", 1).unwrap();
    let empty = Mapped::<u64>::zeroed(&place.workspace, "none", 0).unwrap();
    for i in (0..100_001).step_by(7) {
        bytes.set(i, (i % 251) as u8).unwrap();
    }
    numbers.set(0, 7).unwrap();
    for i in 0..100_001 {
        let wanted = if i % 7 == 0 { (i % 251) as u8 } else { 0 };
        assert_eq!(bytes.get(i).unwrap(), wanted);
    }
    assert_eq!(numbers.get(0).unwrap(), 7);
    assert!(empty.is_empty() && empty.address(0).is_null());
    assert!(matches!(
        bytes.get(100_001),
        Err(Error::Invalid(Invalid::OutOfRange {
            start: 100_001,
            len: 100_001,
            ..
        }))
    ));
    assert!(matches!(bytes.set(u64::MAX, 0), Err(Error::Invalid(_))));
    assert!(matches!(bytes.fill(5..100_002, 0), Err(Error::Invalid(_))));
    assert!(matches!(
        numbers.read(0..2, |_, _| Ok(())),
        Err(Error::Invalid(_))
    ));
    let refused = bytes.read(0..100_001, |first, _| {
        Err(Invalid::ProofSystem {
            what: "caller",
            reason: first.to_string(),
        }
        .into())
    });
    assert!(matches!(
        refused,
        Err(Error::Invalid(Invalid::ProofSystem { what: "caller", .. }))
    ));
}

/// 64 MiB of cells in a share of 4 MiB: what is in memory stays within the share, and old addresses read what
/// was written.
#[test]
fn addresses_outlive_residency_and_memory_stays_within_the_share() {
    let place = place(64 << 20);
    let share = Residency::new(&place.workspace, "cells", 4 << 20, 1).unwrap();
    let len = (64u64 << 20) / 72;
    let mut map = Mapped::<Assigned>::zeroed_in(&share, "cells", len).unwrap();
    let slack = 256 << 10;
    let mut given = Vec::new();
    let mut most = 0;
    for i in 0..len {
        let address = map.set(i, assigned(i)).unwrap();
        if i % 997 == 0 {
            given.push((i, address));
        }
        if i % 50_000 == 0 {
            most = most.max(cached_bytes(&map));
        }
    }
    assert!(most <= (4 << 20) + slack, "{most} bytes in memory while writing");
    // Behind the clock's back: each read brings a page in. The hand takes them away again as others go on.
    for &(i, address) in &given {
        assert_eq!(address, map.address(i));
        // SAFETY: `map` lives and is not written now.
        assert_eq!(unsafe { address.read() }, assigned(i));
    }
    let behind = cached_bytes(&map);
    for i in (0..len).rev().take(20_000_000 / 72) {
        map.set(i, assigned(i)).unwrap();
    }
    let after = cached_bytes(&map);
    assert!(
        after <= (4 << 20) + slack,
        "{after} bytes in memory, {behind} before"
    );
    let mut next = 0;
    let mut most = 0;
    map.read(0..len, |first, cells| {
        assert_eq!(first, next);
        for (i, cell) in (first..).zip(cells) {
            assert_eq!(*cell, assigned(i));
        }
        next += cells.len() as u64;
        Ok(())
    })
    .unwrap();
    assert_eq!(next, len);
    most = most.max(cached_bytes(&map));
    assert!(most <= slack, "{most} bytes in memory after reading");
    map.release().unwrap();
    assert_eq!(cached_bytes(&map), 0);
    assert_eq!(share.resident_bytes(), 0);
    let stats = place.workspace.storage.stats();
    assert!(stats.bytes_written >= 64 << 20 && stats.bytes_read >= 64 << 20);
    drop((map, share));
    assert_eq!(place.workspace.budget.held_bytes(), 0);
    let left = std::fs::read_dir(place.dir.path()).unwrap().count();
    assert_eq!(left, 0, "files left behind");
}

/// As a witness is written: 96 columns, row by row, in a share of 4 MiB.
#[test]
fn many_maps_in_lockstep() {
    let place = place(16 << 20);
    let share = Residency::new(&place.workspace, "advice", 4 << 20, 96).unwrap();
    let rows = 12_000u64;
    let mut maps: Vec<Mapped<Assigned>> = (0..96)
        .map(|_| Mapped::zeroed_in(&share, "advice", rows).unwrap())
        .collect();
    assert!(matches!(
        Mapped::<u8>::zeroed_in(&share, "one more", 1),
        Err(Error::Invalid(_))
    ));
    for row in 0..rows {
        for (column, map) in maps.iter_mut().enumerate() {
            map.set(row, assigned(row * 96 + column as u64)).unwrap();
        }
    }
    let cached: usize = maps.iter().map(cached_bytes).sum();
    assert!(
        cached <= (4 << 20) + (512 << 10),
        "{cached} bytes of {} in memory",
        rows * 96 * 72
    );
    // Every block went out once: nothing was written twice.
    let written = place.workspace.storage.stats().bytes_written;
    assert!(written <= rows * 96 * 72 * 21 / 20, "{written} bytes written");
    assert_eq!(place.workspace.storage.stats().bytes_read, 0);
    // Then they are only read, in a small part of the share.
    share.keep_for_reading(0).unwrap();
    let kept = share.share_bytes();
    assert_eq!(kept, 16 * share.block_bytes() as u64);
    let cached: usize = maps.iter().map(cached_bytes).sum();
    assert!(cached as u64 <= kept + (256 << 10), "{cached} bytes in memory");
    for (column, map) in maps.iter_mut().enumerate() {
        map.read(0..rows, |first, cells| {
            for (row, cell) in (first..).zip(cells) {
                assert_eq!(*cell, assigned(row * 96 + column as u64));
            }
            Ok(())
        })
        .unwrap();
    }
    // From several threads at once.
    rayon::scope(|scope| {
        for (column, map) in maps.iter_mut().enumerate() {
            scope.spawn(move |_| {
                let mut rng = ChaCha20Rng::seed_from_u64(column as u64);
                for _ in 0..200 {
                    let row = rng.gen_range(0..rows);
                    assert_eq!(map.get(row).unwrap(), assigned(row * 96 + column as u64));
                    map.set(row, Assigned::Zero).unwrap();
                    map.set(row, assigned(row * 96 + column as u64)).unwrap();
                }
            });
        }
    });
    assert!(share.resident_bytes() <= share.share_bytes());
    // A map that goes makes room for another.
    drop(maps.swap_remove(17));
    let fresh = Mapped::<u64>::zeroed_in(&share, "another", 1000).unwrap();
    assert_eq!(fresh.get(999).unwrap(), 0);
}

#[test]
fn a_share_that_is_too_small_names_what_would_do() {
    let place = place(1 << 20);
    match Residency::new(&place.workspace, "cells", 100 << 10, 10) {
        Err(Error::BudgetTooSmall { needed_bytes, .. }) => {
            assert!(Residency::new(&place.workspace, "cells", needed_bytes, 10).is_ok());
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        Residency::new(&place.workspace, "cells", 2 << 20, 1),
        Err(Error::OverBudget { .. })
    ));
}

fn write_cells(workspace: &Workspace) -> Result<u64> {
    let share = Residency::new(workspace, "cells", 64 << 10, 1)?;
    let mut map = Mapped::<u64>::zeroed_in(&share, "cells", 100_000)?;
    for i in 0..100_000 {
        map.set(i, i)?;
    }
    map.release()?;
    let mut sum = 0;
    map.read(0..100_000, |_, cells| {
        sum += cells.iter().sum::<u64>();
        Ok(())
    })?;
    Ok(sum)
}

/// Every reservation and write-out can fail; each failure is an error that says what and where, and is not
/// forgotten.
#[test]
fn a_full_or_broken_disk_is_a_typed_error() {
    let counting = FaultPlan::none();
    let sum = write_cells(&place_with(1 << 20, counting.clone()).workspace).unwrap();
    assert_eq!(sum, 100_000 * 99_999 / 2);
    let operations = counting.operations();
    assert!(operations > 10, "{operations}");
    for fault in [Fault::NoSpace, Fault::Io] {
        for index in 0..operations {
            let place = place_with(1 << 20, FaultPlan::at(index, fault));
            match write_cells(&place.workspace) {
                Err(Error::File { source, .. }) => {
                    let wanted = if fault == Fault::Io {
                        libc::EIO
                    } else {
                        libc::ENOSPC
                    };
                    assert_eq!(source.raw_os_error(), Some(wanted));
                }
                // Making the folder may find it there already.
                other => panic!("operation {index}: {other:?}"),
            }
            assert_eq!(place.workspace.budget.held_bytes(), 0);
        }
    }
}

#[test]
fn a_failed_write_out_stays_failed() {
    // Create, resize, reserve, then the first write-out.
    let place = place_with(1 << 20, FaultPlan::at(3, Fault::Io));
    let share = Residency::new(&place.workspace, "cells", 64 << 10, 1).unwrap();
    let mut map = Mapped::<u64>::zeroed_in(&share, "cells", 100_000).unwrap();
    let first = (0..100_000).find(|&i| map.set(i, i).is_err()).expect("a failure");
    assert!(matches!(map.set(first, 0), Err(Error::File { .. })));
    assert!(matches!(map.release(), Err(Error::File { .. })));
}

/// On a file system of 1 MiB that is really full: ENOSPC is an error, never a SIGBUS.
#[test]
fn a_disk_that_is_really_full() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_unmount) = small_tmpfs(dir.path()) else {
        return;
    };
    let result = {
        let storage = Storage::builder().dir(dir.path()).build().expect("storage");
        let workspace = Workspace::new(storage, Budget::new(1 << 20));
        Mapped::<u64>::zeroed(&workspace, "cells", 1 << 20)
            .and_then(|mut map| (0..1 << 20).try_for_each(|i| map.set(i, i).map(drop)))
    };
    match result {
        Err(Error::File { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::StorageFull),
        other => panic!("{other:?}"),
    }
}

fn column_is_a_slice<E: Plain + PartialEq + std::fmt::Debug>(values: &[E]) {
    let place = place(8 << 20);
    // In memory as on disk.
    for value in values {
        let mut bytes = vec![0; E::BYTES];
        value.encode(&mut bytes);
        // SAFETY: `Plain` values have no padding.
        let memory = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), E::BYTES) };
        assert_eq!(bytes, memory);
    }
    for placement in [Placement::Disk, Placement::Memory] {
        for len in [0, 1, values.len()] {
            let mut writer = Writer::scratch(&place.workspace, "column", len as u64, placement).unwrap();
            writer.push(&values[..len]).unwrap();
            let column = writer.finish().unwrap();
            let map = column.map().unwrap();
            drop(column);
            assert_eq!(&map[..], &values[..len]);
            map.release();
            assert_eq!(&map[..], &values[..len]);
        }
    }
    assert_eq!(place.workspace.budget.held_bytes(), 0);
}

#[test]
fn columns_as_slices() {
    use ark_ff::UniformRand;
    use stock_halo2_axiom::halo2curves::bn256 as stock;
    use stock_halo2_axiom::halo2curves::ff::Field;
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    column_is_a_slice(&(0..5000).map(|_| Fr::rand(&mut rng)).collect::<Vec<_>>());
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    column_is_a_slice(&(0..5000).map(|_| stock::Fr::random(&mut rng)).collect::<Vec<_>>());
    let points: Vec<stock::G1Affine> = (0..200).map(|_| stock::G1Affine::random(&mut rng)).collect();
    column_is_a_slice(&points);
    column_is_a_slice(&[[7u8; 8]; 3000]);
}

/// The columns of a container start behind its header and behind each other.
#[test]
fn columns_of_a_container_as_slices() {
    use spillproof_commit::generate;
    use stock_halo2_axiom::halo2curves::bn256::G1Affine;
    let place = place(16 << 20);
    let path = place.dir.path().join("test.srs");
    let srs = generate::<ark_bn254::Bn254>(&place.workspace, &path, 10, Fr::from(5u64), |_| ()).unwrap();
    for column in [srs.monomial().unwrap(), srs.lagrange().unwrap()] {
        let column = column.cast::<G1Affine>().unwrap();
        assert_eq!(column.map().unwrap().to_vec(), column.to_vec().unwrap());
        let prefix = column.prefix(3).unwrap();
        assert_eq!(prefix.map().unwrap().len(), 3);
    }
}

#[test]
fn a_damaged_column_is_not_mapped() {
    let write = |faults: FaultPlan| {
        let place = place_with(8 << 20, faults);
        let mut writer = Writer::scratch(&place.workspace, "column", 5000, Placement::Disk)?;
        writer.push(&vec![Fr::from(3u64); 5000])?;
        let column = writer.finish()?;
        column
            .map()
            .map(|map| assert!(map.iter().all(|value| *value == Fr::from(3u64))))
    };
    let counting = FaultPlan::none();
    write(counting.clone()).unwrap();
    let refused = (0..counting.operations())
        .filter(|&index| {
            matches!(
                write(FaultPlan::at(index, Fault::FlipByte(77))),
                Err(Error::Damaged { .. })
            )
        })
        .count();
    assert!(refused >= 2, "one write and one read at least, {refused}");
}
