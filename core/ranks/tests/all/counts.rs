//! Traffic: a dry run counts what a run sends, and formulas hold.

use spillproof_ranks::{PhaseTraffic, Ranks};

use crate::support::{PIECE_BYTES, SIZES, job, length, run, settings};

fn counts(ranks: &Ranks) -> Vec<PhaseTraffic> {
    ranks.traffic().iter().map(PhaseTraffic::counts).collect()
}

#[test]
fn a_dry_run_counts_what_a_run_sends() {
    for size in SIZES {
        let real = run(size, |ranks| {
            job(&ranks).unwrap();
            counts(&ranks)
        });
        for (rank, real) in real.into_iter().enumerate() {
            let settings = settings(std::time::Duration::ZERO);
            let dry = Ranks::dry_with(rank, size, settings);
            assert!(dry.is_dry());
            job(&dry).unwrap();
            assert_eq!(counts(&dry), real, "rank {rank} of {size}");
        }
    }
}

#[test]
fn an_exchange_sends_what_its_lengths_say() {
    for size in SIZES {
        let real = run(size, |ranks| {
            job(&ranks).unwrap();
            counts(&ranks)
        });
        for (rank, phases) in real.iter().enumerate() {
            let others = || (0..size).filter(|other| *other != rank);
            let sent: u64 = others().map(|to| length(rank, to)).sum();
            let received: u64 = others().map(|from| length(from, rank)).sum();
            let pieces = |bytes: u64| bytes.div_ceil(PIECE_BYTES as u64);
            let messages: u64 = others().map(|to| pieces(length(rank, to))).sum();
            let exchange = phases.iter().find(|phase| phase.name == "exchange").unwrap();
            assert_eq!((exchange.sent_bytes, exchange.received_bytes), (sent, received));
            assert_eq!(exchange.messages, messages);
        }
        let sum = |of: fn(&PhaseTraffic) -> u64| -> u64 { real.iter().flatten().map(of).sum() };
        assert_eq!(sum(|phase| phase.sent_bytes), sum(|phase| phase.received_bytes));
        assert_eq!(sum(|phase| phase.messages), sum(|phase| phase.received_messages));
    }
}

/// A chain passes each byte on once, whatever the number of ranks.
#[test]
fn a_long_broadcast_sends_each_byte_once_a_rank() {
    let sent = run(8, |ranks| {
        let mut bytes = vec![ranks.rank() as u8; 1000];
        ranks.broadcast(3, &mut bytes).unwrap();
        assert_eq!(bytes, [3; 1000]);
        ranks.traffic()[0].sent_bytes
    });
    let mut expected = [1000; 8];
    expected[2] = 0;
    assert_eq!(sent, expected);
}

#[test]
fn a_plan_counts_a_thousand_ranks() {
    let dry = Ranks::dry(1000, 1024);
    let lengths = vec![3 << 20; 1024];
    dry.all_to_all::<spillproof_ranks::RankError>(
        &lengths,
        &lengths,
        [&mut [], &mut []],
        &mut |_, _, _| panic!("a dry run asks no source"),
        &mut |_, _, _| panic!("a dry run asks no sink"),
    )
    .unwrap();
    let traffic = &dry.traffic()[0];
    assert_eq!((traffic.messages, traffic.received_messages), (1023, 1023));
    assert_eq!(traffic.sent_bytes, 1023 * (3 << 20));
}

#[test]
fn the_root_gets_the_traffic_of_all() {
    let results = run(3, |ranks| {
        job(&ranks).unwrap();
        let own = ranks.traffic();
        (own, ranks.gather_traffic(1).unwrap())
    });
    assert!(results[0].1.is_none() && results[2].1.is_none());
    let own: Vec<_> = results.iter().map(|(own, _)| own.clone()).collect();
    assert_eq!(results[1].1.as_ref(), Some(&own));
    // A rank that was never in a phase.
    let results = run(2, |ranks| {
        let _phase = (ranks.rank() == 1).then(|| ranks.phase("own"));
        drop(_phase);
        ranks.gather_traffic(0)
    });
    let error = results[0].as_ref().unwrap_err();
    assert!(
        error.to_string().contains("number of phases is 1, expected 0"),
        "{error}"
    );
}

#[test]
fn memory_is_told() {
    assert_eq!(Ranks::alone().held_bytes(), 0);
    let piece = 4 << 20;
    let small = 2 * ((256 << 10) + 128);
    assert_eq!(Ranks::dry(0, 4).held_bytes(), small + 2 * (piece + 128));
    let held = run(4, |ranks| ranks.held_bytes());
    assert_eq!(held, [(2 + 3) * (PIECE_BYTES + 128); 4]);
}

#[test]
fn phases_know_how_long_they_took() {
    let ranks = Ranks::alone();
    {
        let _phase = ranks.phase("work");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let traffic = ranks.traffic();
    assert_eq!(traffic[0].name, "work");
    assert!(traffic[0].elapsed.as_millis() >= 5);
}
