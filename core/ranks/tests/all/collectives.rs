//! Collectives for 1 to 8 ranks, against what each rank computes by itself.

use std::fmt;
use std::time::Duration;

use spillproof_ranks::{RankError, Ranks, VALUE_BYTES_MAX, one_process};

use crate::support::{SIZES, check, expected, job, run, run_on, settings, shared};

#[test]
fn every_collective_gives_the_right_bytes() {
    for size in SIZES {
        let results = run(size, |ranks| job(&ranks));
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        check(&results, size);
    }
}

#[test]
fn one_rank_needs_no_transport() {
    let ranks = Ranks::alone();
    assert_eq!((ranks.rank(), ranks.size(), ranks.is_dry()), (0, 1, false));
    assert_eq!(job(&ranks), Ok(expected(0, 1)));
    assert!(ranks.traffic().iter().all(|phase| phase.messages == 0));
}

#[test]
fn every_rank_may_be_the_root() {
    let results = run(3, |ranks| {
        for root in 0..3 {
            let mut number = [ranks.rank() as u8 + 1; 50];
            ranks.reduce(root, &mut number, &mut |sum, more| {
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            })?;
            ranks.broadcast(root, &mut number)?;
            assert_eq!(number, [6; 50]);
        }
        Ok::<(), RankError>(())
    });
    assert_eq!(results, [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn what_passes_a_limit_is_refused_on_all_ranks() {
    let results = run(2, |ranks| {
        let bytes = vec![0; if ranks.rank() == 1 { VALUE_BYTES_MAX + 1 } else { 3 }];
        ranks.gather(0, &bytes)
    });
    assert!(matches!(
        results[1],
        Err(RankError::TooLong { rank: 1, peer: 1, .. })
    ));
    let told = results[0].as_ref().unwrap_err();
    assert!(matches!(told, RankError::GaveUp { peer: 1, .. }), "{told}");
    assert!(told.to_string().contains("4194305 bytes"), "{told}");
}

#[test]
fn mistakes_in_calls_are_errors_that_all_ranks_see() {
    let results = run(3, |ranks| match ranks.rank() {
        0 => ranks.scatter(0, None).map(|_| ()),
        _ => ranks.scatter(0, None).map(|_| ()),
    });
    assert!(
        matches!(results[0], Err(RankError::Invalid { .. })),
        "{results:?}"
    );
    for other in &results[1..] {
        assert!(
            matches!(other, Err(RankError::GaveUp { peer: 0, .. })),
            "{other:?}"
        );
    }
    let ranks = Ranks::alone();
    assert!(matches!(
        ranks.broadcast(1, &mut []),
        Err(RankError::Invalid { .. })
    ));
    let first = ranks.first_error().unwrap();
    assert_eq!(ranks.barrier(), Err(first), "the first error stays");
}

#[test]
fn ranks_that_make_different_calls_are_told() {
    let results = run(2, |ranks| {
        let mut byte = [0];
        match ranks.rank() {
            0 => ranks.broadcast(0, &mut byte),
            _ => ranks.barrier(),
        }
    });
    let found = results[1].as_ref().unwrap_err();
    assert!(
        matches!(found, RankError::Damaged { field: "kind", .. }),
        "{found}"
    );
    let results = run(2, |ranks| {
        let _phase = ranks.phase(["a", "b"][ranks.rank()]);
        ranks.barrier()
    });
    let fields = results.iter().map(|result| match result {
        Err(RankError::Damaged { field, .. }) => *field,
        Err(RankError::GaveUp { .. }) => "phase",
        other => panic!("{other:?}"),
    });
    assert!(fields.eq(["phase", "phase"]));
}

#[test]
fn lengths_that_differ_are_told() {
    let results = run(2, |ranks| {
        let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
        let [out, into] = &mut buffers;
        let lengths = [[0, 10], [12, 0]][ranks.rank()];
        ranks.all_to_all::<RankError>(
            &lengths,
            &[[0, 10], [10, 0]][ranks.rank()],
            [out, into],
            &mut |_, _, _| Ok(()),
            &mut |_, _, _| Ok(()),
        )
    });
    assert!(
        matches!(results[0], Err(RankError::Damaged { field: "length", .. })),
        "{results:?}"
    );
}

#[derive(Debug)]
enum OwnError {
    Disk,
    Ranks(RankError),
}

impl From<RankError> for OwnError {
    fn from(error: RankError) -> Self {
        Self::Ranks(error)
    }
}

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk => f.write_str("the disk is full"),
            Self::Ranks(error) => error.fmt(f),
        }
    }
}

#[test]
fn an_error_of_a_source_or_a_sink_reaches_all_ranks() {
    for fails_in_sink in [false, true] {
        let results = run_on(one_process(4), move |transport| {
            let ranks = Ranks::new(shared(transport), settings(Duration::from_secs(30)))?;
            let _phase = ranks.phase("exchange");
            let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
            let [out, into] = &mut buffers;
            let fails = ranks.rank() == 2;
            let end = |fails: bool| if fails { Err(OwnError::Disk) } else { Ok(()) };
            ranks.all_to_all(
                &[1000; 4],
                &[1000; 4],
                [out, into],
                &mut |_, offset, _| end(fails && !fails_in_sink && offset > 500),
                &mut |_, offset, _| end(fails && fails_in_sink && offset > 500),
            )
        });
        for (rank, result) in results.into_iter().enumerate() {
            match (rank, result.unwrap_err()) {
                (2, OwnError::Disk) => {}
                (_, OwnError::Ranks(error)) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("rank 2 gave up") && text.contains("the disk is full"),
                        "{text}"
                    );
                }
                (rank, error) => panic!("rank {rank}: {error}"),
            }
        }
    }
}

#[test]
fn two_calls_at_one_time_are_refused() {
    let ranks = Ranks::alone();
    let again = ranks.clone();
    let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
    let [out, into] = &mut buffers;
    let result = ranks.all_to_all::<RankError>(
        &[1],
        &[1],
        [out, into],
        &mut |_, _, _| again.barrier(),
        &mut |_, _, _| Ok(()),
    );
    let error = result.unwrap_err();
    assert!(error.to_string().contains("two calls of this rank"), "{error}");
}

#[test]
fn giving_up_reaches_ranks_that_wait_for_a_third_one() {
    let results = run(3, |ranks| match ranks.rank() {
        // Ranks 0 and 1 wait for each other's next message, and rank 2 never takes part.
        2 => {
            ranks.give_up(&"it has had enough");
            ranks.barrier()
        }
        rank => {
            let mut byte = [0];
            ranks
                .broadcast(1 - rank, &mut byte)
                .and_then(|()| ranks.barrier())
        }
    });
    assert!(matches!(results[2], Err(RankError::Stopped { rank: 2, .. })));
    for other in &results[..2] {
        assert!(
            matches!(other, Err(RankError::GaveUp { peer: 2, .. })),
            "{other:?}"
        );
    }
}

/// A look of one thread is no call that could be in the way of another thread's.
#[test]
fn looks_and_calls_go_together() {
    let results = run(2, |ranks| {
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    ranks.check().unwrap();
                }
            });
            let result = (0..500).try_for_each(|_| ranks.barrier());
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            result
        })
    });
    assert_eq!(results, [Ok(()), Ok(())]);
}

#[test]
fn a_look_finds_that_another_rank_gave_up() {
    let results: Vec<Result<(), RankError>> = run(2, |ranks| {
        if ranks.rank() == 1 {
            ranks.give_up(&"no key");
            return Ok(());
        }
        loop {
            ranks.check()?;
            std::thread::yield_now();
        }
    });
    let error = results[0].as_ref().unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 0, phase \"-\": rank 1 gave up: rank 1, phase \"-\": this rank gave up: no key"
    );
}

/// Sums run while an exchange is on the wire: its messages keep their phase, and a look does not disturb it.
#[test]
fn another_thread_may_go_on_to_the_next_phase() {
    let results = run(2, |ranks| {
        let exchange = ranks.phase("exchange");
        let mut lengths = [5000; 2];
        lengths[ranks.rank()] = 0;
        let (begun, has_begun) = std::sync::mpsc::channel();
        let sent = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
                let [out, into] = &mut buffers;
                ranks.all_to_all::<RankError>(
                    &lengths,
                    &lengths,
                    [out, into],
                    &mut |_, _, _| {
                        // The other thread may be done.
                        let _ = begun.send(());
                        Ok(())
                    },
                    &mut |_, _, _| Ok(()),
                )
            });
            has_begun.recv().unwrap();
            for _ in 0..ranks.rank() * 100 + 1 {
                let _phase = ranks.phase("sums");
                ranks.check()?;
            }
            thread.join().unwrap()
        });
        drop(exchange);
        sent.map(|()| {
            ranks
                .traffic()
                .iter()
                .map(|line| line.sent_bytes)
                .collect::<Vec<_>>()
        })
    });
    assert_eq!(results, [Ok(vec![5000, 0]), Ok(vec![5000, 0])]);
}
