//! Transfers of memory that a caller lends, for all backends.

#![allow(clippy::unwrap_used)]

mod storage_cases;

use std::path::PathBuf;

use rand::{Rng, SeedableRng, rngs::StdRng};
use spillproof_engine::Error;
use spillproof_engine::budget::{Budget, Lender};
use spillproof_engine::storage::{Fault, FaultPlan, Segment};
use storage_cases::{PAGE, cases};

/// Memory that a caller lends is read into, in parts that are under way at one time, and written from, in pieces,
/// each seen by the caller before it leaves.
#[test]
fn a_callers_memory_is_transferred_in_place() {
    const PAGES: usize = 100;
    const ALL: usize = PAGES * PAGE;
    let budget = Budget::new(8 << 20);
    let mut rng = StdRng::seed_from_u64(11);
    for case in cases() {
        let name = &case.name;
        for faults in [
            FaultPlan::none(),
            FaultPlan::always(Fault::Short(PAGE)),
            FaultPlan::always(Fault::Interrupted),
        ] {
            let storage = case.storage(faults);
            let file = storage.scratch("lent", 0).unwrap();
            let mut from = budget.buffer(ALL, "lent").unwrap();
            rng.fill(&mut from[..]);
            let mut seen = Vec::new();
            let written = file.write_in_place(PAGE as u64, &from, 7 * PAGE, |at, piece| {
                assert_eq!(piece, &from[at..][..piece.len()]);
                seen.push((at, piece.len()));
                Ok(())
            });
            assert!(written.unwrap(), "{name}");
            let expected = (0..ALL)
                .step_by(7 * PAGE)
                .map(|at| (at, (7 * PAGE).min(ALL - at)));
            assert_eq!(seen, expected.collect::<Vec<_>>(), "{name}");
            assert_eq!(file.len_bytes(), (ALL + PAGE) as u64);
            let mut into = Lender::new(budget.buffer(ALL, "lent").unwrap());
            // Two pieces of several segments each, both under way at one time.
            let mut rest = into.lend(ALL).unwrap();
            let half = ALL / PAGE / 2 * PAGE;
            let halves = [rest.take_first(half), rest];
            let mut start = PAGE;
            let begun = halves.map(|part| {
                let pages = (0..part.len()).step_by(2 * PAGE);
                let segments = pages.map(|at| {
                    let bytes = (2 * PAGE).min(part.len() - at);
                    Segment::new((start + at) as u64, at, bytes)
                });
                let segments = segments.collect();
                start += part.len();
                file.read_lent(part, segments).unwrap()
            });
            assert!(into.memory().is_none(), "{name}");
            for (pending, from) in begun.into_iter().zip(from.chunks(half)) {
                let (lent, is_there) = file.wait_for_lent(pending).unwrap();
                assert!(is_there && lent[..] == from[..], "{name}");
            }
            assert!(into.memory().unwrap()[..] == from[..], "{name}");
            let stats = storage.stats();
            let in_place = (stats.bytes_read_in_place, stats.bytes_written_in_place);
            assert_eq!(in_place, (ALL as u64, ALL as u64), "{name}");
            assert_eq!((stats.bytes_read, stats.bytes_written), in_place, "{name}");
            // Neither address, length nor offset off the grid.
            for (offset, first, bytes) in [(0, 512, PAGE), (0, 0, 512), (512, 0, PAGE)] {
                let mut lent = into.lend(ALL).unwrap();
                drop(lent.take_first(first));
                let refused = file.read_lent(lent, vec![Segment::new(offset, 0, bytes)]);
                assert_eq!(refused.unwrap_err().len(), ALL - first, "{name}");
            }
            // The file's end is an error, and nothing is under way then.
            let segment = Segment::new(2 * PAGE as u64, 0, ALL);
            let beyond = file.read_lent(into.lend(ALL).unwrap(), vec![segment]);
            let beyond = file.wait_for_lent(beyond.unwrap());
            let operation = match &beyond {
                Err(Error::Io { operation, .. }) => *operation,
                other => panic!("{name}: {other:?}"),
            };
            assert!(operation == "read" && into.memory().is_some(), "{name}");
        }
        // A byte that changes on its way to the disk is not changed where it came from.
        let flips = FaultPlan::always(Fault::FlipByte(9));
        let flipping = case.storage(flips);
        let from = vec![0x11; 2 * ALL];
        let start = from.as_ptr().align_offset(PAGE);
        let from = &from[start..start + ALL];
        let file = flipping.scratch("flipped", 0).unwrap();
        assert!(file.write_in_place(0, from, ALL, |_, _| Ok(())).unwrap());
        assert!(from.iter().all(|&byte| byte == 0x11), "{name}");
        let halves = [0, ALL / 2].map(|at| Segment::new(at as u64, at, ALL / 2));
        let mut lender = Lender::new(budget.buffer(ALL, "lent").unwrap());
        let read = file
            .read_lent(lender.lend(ALL).unwrap(), halves.to_vec())
            .unwrap();
        let (into, is_there) = file.wait_for_lent(read).unwrap();
        assert!(is_there, "{name}");
        // Flipped twice is as it was; the second half once, when it was read.
        assert_eq!(
            (into[9], into[ALL / 2 + 9], into[10]),
            (0x11, 0x01, 0x11),
            "{name}"
        );
        drop((file, flipping, into));
        // Pages that the kernel does not reach: that is told, nobody asks again, and other transfers go on.
        let plan = FaultPlan::always(Fault::BadAddress);
        let refusing = case.storage(plan.clone());
        let file = refusing.scratch("refused", ALL as u64).unwrap();
        let segment = [Segment::new(0, 0, PAGE)];
        let refused = file
            .read_lent(lender.lend(ALL).unwrap(), segment.to_vec())
            .unwrap();
        let (lent, is_there) = file.wait_for_lent(refused).unwrap();
        assert!(!is_there && lent.len() == ALL, "{name}");
        let asked = plan.operations();
        assert!(file.read_lent(lent, segment.to_vec()).is_err(), "{name}");
        assert!(
            !file.write_in_place(0, from, PAGE, |_, _| Ok(())).unwrap(),
            "{name}"
        );
        assert_eq!(plan.operations(), asked, "{name}");
        let into = budget.buffer(ALL, "own").unwrap();
        let buffer = file.write(into, [Segment::new(0, 0, ALL)]).wait().unwrap();
        file.read(buffer, [Segment::new(0, 0, ALL)]).wait().unwrap();
        assert_eq!(refusing.stats().bytes_read_in_place, 0, "{name}");
        drop((file, refusing));
        assert_eq!(case.entries(), Vec::<PathBuf>::new(), "{name}");
    }
}
