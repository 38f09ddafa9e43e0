//! Every fault at every message and call of a small job: the right bytes or a typed error on every rank, and
//! no hang.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use spillproof_ranks::faults::{Fault, FaultPlan, Faulty};
use spillproof_ranks::{RankError, Ranks, one_process};

use crate::support::{Outcome, check, job, run_on, settings, shared};

/// Some faults are found when it has passed, so it is short; a machine under load may make other messages
/// late.
const TIMEOUT: Duration = Duration::from_millis(80);
/// For runs in which nothing may be late.
const LONG: Duration = Duration::from_secs(30);

/// One job in which one rank has a plan.
fn with_fault(size: usize, faulty: usize, plan: &FaultPlan) -> Vec<Result<Outcome, RankError>> {
    within(TIMEOUT, size, faulty, plan)
}

fn within(
    timeout: Duration,
    size: usize,
    faulty: usize,
    plan: &FaultPlan,
) -> Vec<Result<Outcome, RankError>> {
    let plan = plan.clone();
    run_on(one_process(size), move |transport| {
        let rank = spillproof_ranks::Transport::rank(&transport);
        let own = if rank == faulty {
            plan.clone()
        } else {
            FaultPlan::none()
        };
        let ranks = Ranks::new(shared(Faulty::new(transport, own)), settings(timeout))?;
        job(&ranks)
    })
}

struct Totals {
    messages: u64,
    calls: u64,
}

fn totals(size: usize, faulty: usize) -> Totals {
    let plan = FaultPlan::none();
    let results = within(LONG, size, faulty, &plan);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    Totals {
        messages: plan.messages(),
        calls: plan.calls(),
    }
}

/// A fault that no rank may miss: some rank has an error.
fn must_be_found(fault: Fault) -> bool {
    !matches!(fault, Fault::Late(_) | Fault::Doubled)
}

fn every_index(size: usize, faulty: usize, fault: Fault) {
    let Totals { messages, calls } = totals(size, faulty);
    let is_of_calls = matches!(fault, Fault::Stops | Fault::GivesUp);
    for index in 0..if is_of_calls { calls } else { messages } {
        let plan = FaultPlan::at(index, fault);
        let results = with_fault(size, faulty, &plan);
        assert!(plan.was_met(), "{fault:?} at {index}");
        check(&results, (fault, faulty, index));
        let errors = results.iter().filter(|result| result.is_err()).count();
        if must_be_found(fault) {
            assert!(errors > 0, "{fault:?} at {index} of rank {faulty} was missed");
        }
        let is_told = matches!(fault, Fault::GivesUp);
        // The last barrier is the job's end: a rank that has left it is done.
        if is_told && index + 4 < calls {
            assert_eq!(errors, size, "{fault:?} at {index}: {results:?}");
        }
    }
}

#[test]
fn lost_messages_are_found() {
    every_index(3, 1, Fault::Lost);
}

#[test]
fn late_messages_are_waited_for() {
    every_index(3, 0, Fault::Late(Duration::from_millis(2)));
    let Totals { messages, .. } = totals(3, 2);
    let results = with_fault(3, 2, &FaultPlan::at(messages / 2, Fault::Late(TIMEOUT * 4)));
    check(&results, "later than the timeout");
    assert!(results.iter().all(Result::is_err), "{results:?}");
}

#[test]
fn doubled_messages_are_found() {
    every_index(3, 2, Fault::Doubled);
}

#[test]
fn swapped_messages_are_found() {
    every_index(3, 1, Fault::Swapped);
}

#[test]
fn cut_messages_are_found() {
    for length in [0, 40, 128, 1000] {
        every_index(3, 0, Fault::Cut(length));
    }
}

#[test]
fn flipped_bits_are_found() {
    for bit in [0, 8 * 26, 8 * 90 + 3, 8 * 100, 8 * 130 + 7] {
        every_index(3, 2, Fault::Flipped(bit));
    }
}

#[test]
fn a_rank_that_stops_is_found() {
    every_index(3, 1, Fault::Stops);
}

#[test]
fn a_rank_that_gives_up_is_heard() {
    every_index(4, 3, Fault::GivesUp);
}

#[test]
fn errors_name_what_was_found() {
    let found = |timeout: Duration, fault: Fault| -> Vec<RankError> {
        let Totals { messages, .. } = totals(2, 1);
        let results = within(timeout, 2, 1, &FaultPlan::at(messages / 2, fault));
        results.into_iter().filter_map(Result::err).collect()
    };
    let flipped = found(LONG, Fault::Flipped(8 * 127));
    assert!(
        matches!(
            flipped[0],
            RankError::Damaged {
                rank: 0,
                peer: 1,
                field: "digest",
                ..
            }
        ),
        "{flipped:?}"
    );
    assert!(
        matches!(&flipped[1], RankError::GaveUp { rank: 1, peer: 0, reason, .. } if reason.contains("digest"))
    );
    let cut = found(LONG, Fault::Cut(50));
    assert!(
        matches!(cut[0], RankError::Damaged { field: "length", .. }),
        "{cut:?}"
    );
    let stopped = found(TIMEOUT, Fault::Stops);
    assert!(
        matches!(
            stopped[0],
            RankError::Late { peer: 1, .. } | RankError::Gone { peer: 1, .. }
        ),
        "{stopped:?}"
    );
}

/// Rank 0 waits for rank 1, which waits for rank 2, which hangs: whichever is out of patience first, an error
/// names rank 2.
#[test]
fn the_rank_that_hangs_is_named() {
    let results: Vec<Result<(), RankError>> = run_on(one_process(3), |transport| {
        let rank = spillproof_ranks::Transport::rank(&transport);
        let timeout = if rank == 0 { TIMEOUT } else { LONG };
        let ranks = Ranks::new(shared(transport), settings(timeout))?;
        match rank {
            0 => ranks.gather(1, &[]).and_then(|_| ranks.barrier()),
            1 => ranks.gather(1, &[]).and_then(|_| ranks.barrier()),
            _ => {
                std::thread::sleep(TIMEOUT * 3);
                ranks.barrier()
            }
        }
    });
    assert!(matches!(results[0], Err(RankError::Late { .. })), "{results:?}");
    let told = results[1].as_ref().unwrap_err();
    assert!(
        matches!(
            told,
            RankError::GaveUp {
                peer: 0,
                waits_for: Some(2),
                ..
            }
        ),
        "{told}"
    );
    assert!(told.to_string().ends_with("ms for rank 2"), "{told}");
}

/// Any fault anywhere, in jobs of 2 to 8 ranks.
#[test]
fn random_faults_are_found() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..60 {
        let size = [2, 3, 4, 8][rng.gen_range(0..4)];
        let faulty = rng.gen_range(0..size);
        let Totals { messages, calls } = totals(size, faulty);
        let fault = match rng.gen_range(0..8) {
            0 => Fault::Lost,
            1 => Fault::Late(Duration::from_millis(rng.gen_range(0..100))),
            2 => Fault::Doubled,
            3 => Fault::Swapped,
            4 => Fault::Cut(rng.gen_range(0..200)),
            5 => Fault::Flipped(rng.r#gen()),
            6 => Fault::Stops,
            _ => Fault::GivesUp,
        };
        let index = rng.gen_range(0..messages.min(calls));
        let results = with_fault(size, faulty, &FaultPlan::at(index, fault));
        check(&results, (seed, fault, faulty, index));
        if must_be_found(fault) {
            assert!(
                results.iter().any(Result::is_err),
                "seed {seed}: {fault:?} at {index}"
            );
        }
    }
}
