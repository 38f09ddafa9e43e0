//! Cells without addresses against vectors, in shares of memory that hold a fraction of them, and on disks
//! that fail or lie.

use std::ops::Range;

use ark_bn254::Fr;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Cells, Element, Scratch, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Backend, Fault, FaultPlan, Storage};
use spillproof_plonk::stages::{Copies, FixedCells, Selectors};

use crate::common::{place, small_tmpfs};

const PAGE: u64 = 4096;

/// Sealed with io_uring, plain with pread.
fn workspace(dir: &std::path::Path, backend: Backend, faults: FaultPlan) -> Workspace {
    let storage = Storage::builder().dir(dir).backend(backend).faults(faults);
    let scratch = match backend {
        Backend::Pread => Scratch::Plain,
        _ => Scratch::Sealed,
    };
    let workspace = Workspace::new(storage.build().unwrap(), Budget::new(4 << 20));
    workspace.with_scratch(scratch).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, u64),
    Get(u64),
    Run(u64, u64),
    Fill(Range<u64>, u64),
    Read(Range<u64>),
    Release,
    Shrink,
    Remove,
}

fn steps(len: u64) -> impl Strategy<Value = Vec<(usize, Step)>> {
    let range = (0..len, 0..=len).prop_map(|(a, b)| a.min(b)..a.max(b));
    let step = prop_oneof![
        12 => (0..len, any::<u64>()).prop_map(|(i, v)| Step::Set(i, v)),
        12 => (0..len).prop_map(Step::Get),
        6 => (0..len, any::<u64>()).prop_map(|(i, v)| Step::Run(i, v)),
        2 => (range.clone(), any::<u64>()).prop_map(|(r, v)| Step::Fill(r, v)),
        3 => range.prop_map(Step::Read),
        2 => Just(Step::Release),
        1 => Just(Step::Shrink),
        1 => Just(Step::Remove),
    ];
    prop::collection::vec((0..3usize, step), 1..80)
}

/// Runs `steps` on three arrays of `len` cells and on three vectors.
fn are_vectors<E: Element + PartialEq + std::fmt::Debug>(
    steps: Vec<(usize, Step)>,
    (len, share_bytes): (u64, u64),
    value: impl Fn(u64) -> E,
) {
    let place = place(4 << 20);
    let mut cells = Cells::<E>::zeroed(&place.workspace, "cells", share_bytes, (3, len)).unwrap();
    let zero = E::decode(&vec![0; E::BYTES]);
    let mut model = vec![vec![zero; len as usize]; 3];
    let mut is_removed = [false; 3];
    for (array, step) in steps {
        if is_removed[array] {
            continue;
        }
        let model = &mut model[array];
        match step {
            Step::Set(i, v) => {
                cells.set(array, i, value(v)).unwrap();
                model[i as usize] = value(v);
            }
            Step::Get(i) => assert_eq!(cells.get(array, i).unwrap(), model[i as usize]),
            Step::Run(i, v) => {
                for j in i..len.min(i + 700) {
                    cells.set(array, j, value(v ^ j)).unwrap();
                    model[j as usize] = value(v ^ j);
                }
            }
            Step::Fill(range, v) => {
                cells.fill(array, range.clone(), value(v)).unwrap();
                model[range.start as usize..range.end as usize].fill(value(v));
            }
            Step::Read(range) => {
                let mut next = range.start;
                let read = cells.read(array, range.clone(), |first, cells| {
                    assert_eq!(first, next);
                    assert_eq!(cells, &model[first as usize..first as usize + cells.len()]);
                    next += cells.len() as u64;
                    Ok(())
                });
                read.unwrap();
                assert_eq!(next, range.end);
            }
            Step::Release => cells.release(array).unwrap(),
            Step::Shrink => cells.shrink_to(share_bytes / 2).unwrap(),
            Step::Remove => {
                cells.remove(array);
                is_removed[array] = true;
            }
        }
        assert!(cells.share_bytes() <= share_bytes);
    }
    for (array, model) in model.iter().enumerate().filter(|(array, _)| !is_removed[*array]) {
        for (i, cell) in model.iter().enumerate() {
            assert_eq!(cells.get(array, i as u64).unwrap(), *cell);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Arrays in a share that holds a fraction of them, in any order of operations, are as many vectors.
    #[test]
    fn arrays_are_vectors(steps in steps(9001), pages in 20..80u64) {
        are_vectors(steps.clone(), (9001, pages * PAGE), |v| v);
        are_vectors(steps.clone(), (9001, pages * PAGE), |v| v as u32);
        are_vectors(steps, (9001, pages * PAGE), Fr::from);
    }
}

/// 96 arrays in lockstep, as a circuit assigns fixed columns: each block goes out once.
#[test]
fn many_arrays_in_lockstep() {
    let place = place(16 << 20);
    let (arrays, rows) = (96, 12_000u64);
    let mut cells = Cells::<[u8; 32]>::zeroed(&place.workspace, "fixed", 4 << 20, (arrays, rows)).unwrap();
    let value = |array: usize, row: u64| {
        let mut value = [array as u8; 32];
        value[..8].copy_from_slice(&row.to_le_bytes());
        value
    };
    for row in 0..rows {
        for array in 0..arrays {
            cells.set(array, row, value(array, row)).unwrap();
        }
    }
    let bytes = rows * arrays as u64 * 32;
    let stats = || place.workspace.storage.stats();
    assert!(stats().bytes_written <= bytes * 21 / 20, "{:?}", stats());
    assert_eq!(stats().bytes_read, 0);
    for array in 0..arrays {
        let read = cells.read(array, 0..rows, |first, cells| {
            let right = (first..).zip(cells).all(|(row, cell)| *cell == value(array, row));
            assert!(right, "array {array} from {first}");
            Ok(())
        });
        read.unwrap();
    }
    // What stayed in memory was not read.
    assert!(stats().bytes_read < bytes - (2 << 20), "{:?}", stats());
    let peak_bytes = place.workspace.budget.peak_bytes();
    let tables_bytes = 36 * bytes.div_ceil(PAGE) + arrays as u64 * 3 * PAGE;
    assert!(peak_bytes <= (4 << 20) + tables_bytes, "{peak_bytes}");
}

#[test]
fn cells_outside_are_refused_and_a_small_share_names_what_will_do() {
    let place = place(1 << 20);
    let error = Cells::<u64>::zeroed(&place.workspace, "cells", 100 << 10, (10, 1000)).unwrap_err();
    let Error::BudgetTooSmall { needed_bytes, .. } = error else {
        panic!("{error}");
    };
    let mut cells = Cells::<u64>::zeroed(&place.workspace, "cells", needed_bytes, (10, 1000)).unwrap();
    assert!(matches!(
        cells.get(10, 0),
        Err(Error::Invalid(Invalid::Index { index: 10, .. }))
    ));
    assert!(matches!(
        cells.set(0, 1000, 7),
        Err(Error::Invalid(Invalid::OutOfRange { start: 1000, .. }))
    ));
    assert!(matches!(cells.get(3, u64::MAX), Err(Error::Invalid(_))));
    assert!(matches!(cells.fill(3, 5..1001, 7), Err(Error::Invalid(_))));
    assert!(matches!(
        cells.read(3, 5..1001, |_, _| Ok(())),
        Err(Error::Invalid(_))
    ));
    let refused = cells.read(0, 0..1000, |first, _| {
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
    let empty = Cells::<u64>::zeroed(&place.workspace, "none", needed_bytes, (0, 7)).unwrap();
    assert_eq!((empty.arrays(), empty.len()), (0, 7));
    let mut dry =
        Cells::<u64>::zeroed(&Workspace::dry(Budget::new(1 << 20)), "dry", 1 << 19, (1, 7)).unwrap();
    assert!(matches!(
        dry.get(0, 0),
        Err(Error::Invalid(Invalid::DryRun { .. }))
    ));
}

/// What a keygen does with cells: fixed cells in any order, selectors, copies; and the columns that become of
/// them.
fn assign(workspace: &Workspace) -> Result<Vec<Vec<Fr>>> {
    let (columns, rows) = (3, 1 << 12);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut fixed = FixedCells::<Fr>::new(workspace, columns, rows)?;
    let mut selectors = Selectors::new(workspace, 200, rows)?;
    let mut copies = Copies::new(workspace, columns, 4 * rows)?;
    for i in 0..200 {
        let cell = |rng: &mut ChaCha20Rng| (rng.gen_range(0..columns), rng.gen_range(0..4 * rows));
        let (column, row) = cell(&mut rng);
        fixed.assign(column, row % rows, Fr::from(i), None)?;
        selectors.enable(rng.gen_range(0..200), row % rows)?;
        copies.copy(cell(&mut rng), cell(&mut rng))?;
    }
    let mut made = fixed.into_columns()?;
    made.extend(selectors.columns(&[vec![(0, Fr::from(1u64)), (3, Fr::from(2u64))]])?);
    for column in 0..columns {
        made.push(copies.sigma(column, Fr::from(5u64), Fr::from(7u64))?);
    }
    made.iter().map(|column| column.to_vec()).collect()
}

/// Every operation of an assignment meets every fault: the right columns, or a typed error. A flipped bit
/// used to be a wrong key.
#[test]
fn a_disk_that_fails_or_lies_is_an_error_and_never_another_key() {
    const FAULTS: [Fault; 9] = [
        Fault::Io,
        Fault::NoSpace,
        Fault::Unsupported,
        Fault::Interrupted,
        Fault::Short(1),
        Fault::FlipByte(1234),
        Fault::Torn,
        Fault::SwapFrames(4096),
        Fault::Truncate,
    ];
    const TRIED_MAX: u64 = 5;
    for backend in [Backend::Uring, Backend::Pread] {
        let dir = tempfile::tempdir().unwrap();
        let counting = FaultPlan::none();
        // So little that cells go out and come back.
        let small = |faults| workspace(dir.path(), backend, faults).with_budget(Budget::new(768 << 10));
        let wanted = assign(&small(counting.clone())).unwrap();
        let operations = counting.operations();
        assert!(operations > 150, "{operations}");
        let mut damaged = 0;
        let stride = operations.div_ceil(TRIED_MAX);
        for (number, fault) in FAULTS.into_iter().enumerate() {
            let first = number as u64 * stride / FAULTS.len() as u64;
            for index in (first..operations).step_by(stride as usize) {
                let place = small(FaultPlan::at(index, fault));
                match assign(&place) {
                    Ok(columns) => assert!(columns == wanted, "{fault:?} at {index}"),
                    Err(Error::Damaged { .. }) => damaged += 1,
                    Err(Error::Io { .. } | Error::File { .. }) => {}
                    Err(other) => panic!("{fault:?} at {index}: {other}"),
                }
            }
        }
        assert!(damaged > 4, "{damaged}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_failed_transfer_stays_failed() {
    let dir = tempfile::tempdir().unwrap();
    let counting = FaultPlan::none();
    let fill = |workspace: &Workspace| {
        let mut cells = Cells::<u64>::zeroed(workspace, "cells", 64 << 10, (1, 100_000)).unwrap();
        let failed = (0..100_000).find_map(|i| cells.set(0, i, i).err());
        (cells, failed)
    };
    drop(fill(&workspace(dir.path(), Backend::Pread, counting.clone())));
    let last = counting.operations() - 4;
    let (mut cells, failed) = fill(&workspace(
        dir.path(),
        Backend::Pread,
        FaultPlan::at(last, Fault::Io),
    ));
    assert!(matches!(failed, Some(Error::Io { .. })), "{failed:?}");
    assert!(matches!(cells.get(0, 0), Err(Error::File { .. })));
    assert!(matches!(cells.release(0), Err(Error::File { .. })));
    assert!(matches!(
        cells.read(0, 0..10, |_, _| Ok(())),
        Err(Error::File { .. })
    ));
}

/// On a file system of 1 MiB that is really full: ENOSPC is an error.
#[test]
fn a_disk_that_is_really_full() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_unmount) = small_tmpfs(dir.path()) else {
        return;
    };
    let mut cells = {
        let place = workspace(dir.path(), Backend::Pread, FaultPlan::none());
        Cells::<u64>::zeroed(&place, "cells", 64 << 10, (1, 1 << 20)).unwrap()
    };
    let failed = (0..1 << 20).find_map(|i| cells.set(0, i, i).err());
    match failed {
        Some(Error::Io { source, .. }) => assert_eq!(source.raw_os_error(), Some(28), "{source}"),
        other => panic!("{other:?}"),
    }
}
