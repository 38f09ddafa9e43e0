//! Ranks of other jobs and settings refuse each other.

use std::time::Duration;

use spillproof_ranks::{RankError, Ranks, Settings, one_process};

use crate::support::{run_on, settings, shared};

fn handshake(second: Settings) -> Vec<Result<(), RankError>> {
    let first = settings(Duration::from_secs(20));
    let each = [first, second];
    let with_settings = one_process(2).into_iter().zip(each).collect();
    run_on(with_settings, |(transport, settings)| {
        Ranks::new(shared(transport), settings).map(|_| ())
    })
}

#[test]
fn another_job_or_piece_is_refused() {
    let usual = settings(Duration::from_secs(20));
    let others = [
        (
            "job",
            Settings {
                job: [8; 32],
                ..usual.clone()
            },
        ),
        (
            "piece",
            Settings {
                piece_bytes: 33,
                ..usual.clone()
            },
        ),
    ];
    for (due, second) in others {
        let mut differences = 0;
        for result in handshake(second) {
            match result.unwrap_err() {
                RankError::Different { field, .. } => {
                    assert_eq!(field, due);
                    differences += 1;
                }
                RankError::GaveUp { reason, .. } => assert!(reason.contains(due), "{reason}"),
                other => panic!("{other}"),
            }
        }
        assert!(differences > 0);
    }
    assert!(handshake(usual).iter().all(Result::is_ok));
}

#[test]
fn a_piece_out_of_bounds_is_refused() {
    for piece_bytes in [0, (16 << 20) + 1] {
        let error = Ranks::new(
            shared(one_process(1).remove(0)),
            Settings {
                piece_bytes,
                ..Settings::default()
            },
        )
        .unwrap_err();
        assert!(matches!(error, RankError::Invalid { .. }), "{error}");
    }
}

#[test]
fn a_rank_that_never_comes_is_late() {
    let mut transports = one_process(2);
    // It is there, and does nothing.
    let _second = transports.pop();
    let results = run_on(transports, |transport| {
        Ranks::new(shared(transport), settings(Duration::from_millis(50))).map(|_| ())
    });
    let error = results[0].as_ref().unwrap_err();
    assert!(matches!(error, RankError::Late { peer: 1, .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("rank 0, phase \"handshake\": waited"), "{text}");
    assert!(text.contains("ranks wait 50.0ms at most"), "{text}");
}

#[test]
fn a_rank_that_has_ended_is_gone() {
    let mut transports = one_process(2);
    drop(transports.pop());
    let results = run_on(transports, |transport| {
        Ranks::new(shared(transport), settings(Duration::from_secs(20))).map(|_| ())
    });
    let error = results[0].as_ref().unwrap_err();
    assert!(matches!(error, RankError::Gone { peer: 1, .. }), "{error}");
}
