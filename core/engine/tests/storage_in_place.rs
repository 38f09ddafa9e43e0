//! Transfers of memory that a caller lends, for all backends.

#![allow(clippy::unwrap_used)]

mod storage_cases;

use std::path::PathBuf;

use rand::{Rng, SeedableRng, rngs::StdRng};
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Segment};
use storage_cases::{PAGE, cases};

/// Memory that a caller lends is read into and written from, in pieces, and seen whole by the caller before
/// the next is asked for.
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
            let mut into = budget.buffer(ALL, "lent").unwrap();
            let mut next = 0;
            let read = file.read_in_place(PAGE as u64, &mut into, 2 * PAGE, |at, piece| {
                assert_eq!((at, &*piece), (next, &from[next..][..2 * PAGE]), "{name}");
                next += piece.len();
                Ok(())
            });
            assert!(read.unwrap() && into[..] == from[..], "{name}");
            let stats = storage.stats();
            let in_place = (stats.bytes_read_in_place, stats.bytes_written_in_place);
            assert_eq!(in_place, (ALL as u64, ALL as u64), "{name}");
            assert_eq!((stats.bytes_read, stats.bytes_written), in_place, "{name}");
            // Neither address, length, offset nor pieces off the grid.
            let mut any = |offset, from: usize, to: usize, piece| {
                file.read_in_place(offset, &mut into[from..to], piece, |_, _| panic!("{name}"))
            };
            assert!(!any(0, 512, PAGE + 512, PAGE).unwrap(), "{name}");
            assert!(!any(0, 0, 512, PAGE).unwrap(), "{name}");
            assert!(!any(512, 0, PAGE, PAGE).unwrap(), "{name}");
            assert!(
                !any(0, 0, PAGE, 512).unwrap() && !any(0, 0, PAGE, 0).unwrap(),
                "{name}"
            );
            // What the caller finds wrong ends it, and so does the file's end; nothing is under way then.
            let mut left = 3;
            let ended = file.read_in_place(0, &mut into, PAGE, |_, _| {
                left -= 1;
                if left > 0 {
                    Ok(())
                } else {
                    Err(Invalid::Secret.into())
                }
            });
            assert!(matches!(ended, Err(Error::Invalid(Invalid::Secret))), "{name}");
            let beyond = file.read_in_place(2 * PAGE as u64, &mut into, 9 * PAGE, |_, _| Ok(()));
            assert!(
                matches!(
                    beyond,
                    Err(Error::Io {
                        operation: "read",
                        ..
                    })
                ),
                "{name}: {beyond:?}"
            );
            assert!(
                file.read_in_place(PAGE as u64, &mut into, PAGE, |_, _| Ok(()))
                    .unwrap()
            );
            assert!(into[..] == from[..], "{name}");
        }
        // A byte that changes on its way to the disk is not changed where it came from.
        let flips = FaultPlan::always(Fault::FlipByte(9));
        let flipping = case.storage(flips);
        let mut into = budget.buffer(ALL, "lent").unwrap();
        let from = vec![0x11; 2 * ALL];
        let start = from.as_ptr().align_offset(PAGE);
        let from = &from[start..start + ALL];
        let file = flipping.scratch("flipped", 0).unwrap();
        assert!(file.write_in_place(0, from, ALL, |_, _| Ok(())).unwrap());
        assert!(from.iter().all(|&byte| byte == 0x11), "{name}");
        assert!(file.read_in_place(0, &mut into, ALL / 2, |_, _| Ok(())).unwrap());
        // Flipped twice is as it was; the second half once, when it was read.
        assert_eq!(
            (into[9], into[ALL / 2 + 9], into[10]),
            (0x11, 0x01, 0x11),
            "{name}"
        );
        drop((file, flipping));
        // Pages that the kernel does not reach: that is told, nobody asks again, and other transfers go on.
        let plan = FaultPlan::always(Fault::BadAddress);
        let refusing = case.storage(plan.clone());
        let file = refusing.scratch("refused", ALL as u64).unwrap();
        assert!(
            !file.read_in_place(0, &mut into, PAGE, |_, _| Ok(())).unwrap(),
            "{name}"
        );
        let asked = plan.operations();
        assert!(
            !file.write_in_place(0, from, PAGE, |_, _| Ok(())).unwrap(),
            "{name}"
        );
        assert_eq!(plan.operations(), asked, "{name}");
        let buffer = file.write(into, [Segment::new(0, 0, ALL)]).wait().unwrap();
        file.read(buffer, [Segment::new(0, 0, ALL)]).wait().unwrap();
        assert_eq!(refusing.stats().bytes_read_in_place, 0, "{name}");
        drop((file, refusing));
        assert_eq!(case.entries(), Vec::<PathBuf>::new(), "{name}");
    }
}
