//! The model beside runs on simulated clocks, which take no time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spillproof_ranks::{Clock, Link, Paced, Ranks, SimulatedClock, Switch, measure_link, one_process};

use crate::support::{
    PIECE_BYTES, all_to_all, gather_stream, length, run_on, scatter_stream, settings, shared,
};

const LINK: Link = Link {
    latency: 20e-6,
    port_bytes_per_second: 1.25e6,
    switch_bytes_per_second: None,
};

/// Seconds of `work` on the slowest rank, after all have begun at one time.
fn simulated(size: usize, link: Link, work: impl Fn(&Ranks) + Send + Sync + 'static) -> f64 {
    let switch = link.switch_bytes_per_second.map(|_| Arc::new(Switch::new()));
    let transports = one_process(size).into_iter().collect();
    let seconds = run_on(transports, move |transport| {
        let clock = Arc::new(SimulatedClock::new());
        let paced = Paced::with(transport, link, clock.clone(), switch.clone());
        let ranks = Ranks::new(shared(paced), settings(Duration::from_secs(30))).unwrap();
        // All clocks go on from one time, at which all ports are free.
        clock.wait_until(1000.0, Instant::now());
        work(&ranks);
        clock.now() - 1000.0
    });
    seconds.into_iter().fold(0.0, f64::max)
}

#[track_caller]
fn close(measured: f64, modelled: f64, tolerance: f64) {
    let off = (measured - modelled).abs();
    assert!(
        off <= tolerance * modelled + 1e-9,
        "measured {measured}, modelled {modelled}"
    );
}

#[test]
fn the_model_is_what_simulated_clocks_say() {
    for size in [2, 3, 4, 8] {
        let matrix: Vec<Vec<u64>> = (0..size)
            .map(|from| (0..size).map(|to| length(from, to)).collect())
            .collect();
        let measured = simulated(size, LINK, |ranks| {
            all_to_all(ranks).unwrap();
        });
        close(measured, LINK.all_to_all_seconds(&matrix, PIECE_BYTES), 0.0);
        let root = 1;
        let to_root: Vec<u64> = matrix.iter().map(|row| row[root]).collect();
        let measured = simulated(size, LINK, move |ranks| {
            gather_stream(ranks, root).unwrap();
        });
        close(measured, LINK.gather_seconds(root, &to_root, PIECE_BYTES), 0.0);
        let measured = simulated(size, LINK, move |ranks| {
            scatter_stream(ranks, root).unwrap();
        });
        close(
            measured,
            LINK.scatter_seconds(root, &matrix[root], PIECE_BYTES),
            0.0,
        );
        for bytes in [0, 5, 32, 1000] {
            let measured = simulated(size, LINK, move |ranks| {
                ranks.broadcast(0, &mut vec![0; bytes]).unwrap();
            });
            close(
                measured,
                LINK.broadcast_seconds(size, bytes as u64, PIECE_BYTES),
                0.0,
            );
            let measured = simulated(size, LINK, move |ranks| {
                ranks.reduce(0, &mut vec![0; bytes], &mut |_, _| ()).unwrap();
            });
            close(
                measured,
                LINK.reduce_seconds(size, bytes as u64, PIECE_BYTES),
                0.0,
            );
        }
        let measured = simulated(size, LINK, |ranks| ranks.barrier().unwrap());
        close(measured, LINK.barrier_seconds(size), 0.0);
    }
}

#[test]
fn a_switch_is_shared() {
    let link = Link {
        switch_bytes_per_second: Some(1.25e6),
        ..LINK
    };
    let matrix = vec![vec![10_000; 4]; 4];
    let measured = simulated(4, link, |ranks| {
        let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
        let [out, into] = &mut buffers;
        ranks
            .all_to_all::<spillproof_ranks::RankError>(
                &[10_000; 4],
                &[10_000; 4],
                [out, into],
                &mut |_, _, _| Ok(()),
                &mut |_, _, _| Ok(()),
            )
            .unwrap();
    });
    let modelled = link.all_to_all_seconds(&matrix, PIECE_BYTES);
    // Which rank comes first at the switch is chance.
    close(measured, modelled, 0.2);
    assert!(modelled > 2.0 * LINK.all_to_all_seconds(&matrix, PIECE_BYTES));
}

#[test]
fn the_model_is_the_formula_where_there_is_one() {
    let link = Link {
        latency: 1e-6,
        port_bytes_per_second: 1e9,
        switch_bytes_per_second: None,
    };
    // d - 1 steps of one message each.
    let piece = 1 << 20;
    for size in [2, 4, 64] {
        let step = link.message_seconds(piece);
        let formula = (size - 1) as f64 * step;
        close(
            link.even_all_to_all_seconds(size, piece as u64, piece),
            formula,
            1e-9,
        );
    }
    assert_eq!(link.even_all_to_all_seconds(1, 1 << 30, piece), 0.0);
    // A leader takes all bytes through one port.
    let gather = link.gather_seconds(0, &[1 << 26; 4], piece);
    let port = 3.0 * f64::from(1 << 26) / 1e9;
    assert!(gather > port && gather < 1.01 * port, "{gather}");
}

#[test]
fn a_thousand_ranks_are_modelled() {
    let seconds = LINK.even_all_to_all_seconds(1024, 1000, 1 << 20);
    close(seconds, 1023.0 * LINK.message_seconds(1000), 1e-6);
}

/// On the machine's clock nothing is faster than the link; how much slower it is depends on the machine.
#[test]
fn a_paced_run_is_not_faster_than_its_link() {
    let link = Link {
        latency: 1e-3,
        port_bytes_per_second: 1e6,
        switch_bytes_per_second: None,
    };
    let seconds = run_on(one_process(2), move |transport| {
        let ranks = Ranks::new(
            shared(Paced::new(transport, link)),
            settings(Duration::from_secs(30)),
        )
        .unwrap();
        ranks.barrier().unwrap();
        let begun = Instant::now();
        for _ in 0..5 {
            ranks.barrier().unwrap();
        }
        begun.elapsed().as_secs_f64()
    });
    let modelled = 5.0 * link.barrier_seconds(2);
    for seconds in seconds {
        assert!(seconds > 0.8 * modelled, "{seconds}, modelled {modelled}");
    }
}

/// Its order of magnitude: what is measured is the link and the machine, on which other tests run.
#[test]
fn a_link_is_measured() {
    let link = Link {
        latency: 2e-3,
        port_bytes_per_second: 2e6,
        switch_bytes_per_second: None,
    };
    let links = run_on(one_process(3), move |transport| {
        let settings = spillproof_ranks::Settings {
            piece_bytes: 20_000,
            ..settings(Duration::from_secs(30))
        };
        let ranks = Ranks::new(shared(Paced::new(transport, link)), settings).unwrap();
        measure_link(&ranks, 200_000).unwrap().unwrap()
    });
    assert!(links.iter().all(|other| *other == links[0]), "{links:?}");
    let measured = links[0];
    assert!(
        measured.latency >= link.latency && measured.latency < 20.0 * link.latency,
        "{measured:?}"
    );
    let rate = measured.port_bytes_per_second / link.port_bytes_per_second;
    assert!(rate < 1.05 && rate > 0.2, "{measured:?}");
    assert_eq!(measure_link(&Ranks::alone(), 1), Ok(None));
}
