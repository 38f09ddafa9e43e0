//! A battery for `mpirun -n 1..4`: what each rank gets is compared with what it computes by itself.
//!
//! `battery CASE [TIMEOUT_SECONDS]`. `test.sh` runs the cases, and knows how each has to end: `all` with
//! status 0, the others, in which the last rank fails in some way, with another status, and a typed error on
//! the ranks that are left. In `KIND:INDEX` (`lost:3`) the message of that index, of the last rank, meets
//! that fault.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spillproof_mpi::{Mpi, is_started_by_mpi};
use spillproof_ranks::faults::{Fault, FaultPlan, Faulty};
use spillproof_ranks::{RankError, Ranks, Settings, Transport, measure_link};

const PIECE_BYTES: usize = 1 << 20;
const GRACE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_else(|| "all".to_owned());
    let seconds = arguments
        .next()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(20.0);
    if !is_started_by_mpi() {
        println!("not started by MPI: one rank");
        return match all(&Ranks::alone()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let mpi = match Mpi::start() {
        Ok(mpi) => mpi,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if mpi.rank() == 0 {
        say(&format!(
            "{}, {}, {} ranks",
            Mpi::library(),
            mpi.thread_level(),
            mpi.size()
        ));
    }
    let settings = Settings {
        timeout: Duration::from_secs_f64(seconds),
        piece_bytes: PIECE_BYTES,
        job: *blake3::hash(b"battery").as_bytes(),
    };
    let begun = Instant::now();
    let transport = match fault(&case) {
        Some(plan) if mpi.rank() + 1 == mpi.size() => Arc::new(Faulty::new(mpi.transport(), plan)),
        _ => mpi.transport(),
    };
    let result = Ranks::new(transport, settings).and_then(|ranks| run(&case, &ranks, &mpi));
    match result {
        Ok(()) => match mpi.finish() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            say(&format!("typed error after {:.1?}: {error}", begun.elapsed()));
            mpi.fail(3, GRACE)
        }
    }
}

/// The fault of a case `KIND:INDEX`.
fn fault(case: &str) -> Option<FaultPlan> {
    let (kind, index) = case.split_once(':')?;
    let fault = match kind {
        "lost" => Fault::Lost,
        "late" => Fault::Late(Duration::from_millis(50)),
        "doubled" => Fault::Doubled,
        "swapped" => Fault::Swapped,
        "cut" => Fault::Cut(100),
        "flipped" => Fault::Flipped(8 * 130),
        "stops" => Fault::Stops,
        _ => return None,
    };
    Some(FaultPlan::at(index.parse().ok()?, fault))
}

/// One write, so that lines of ranks do not mix.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(format!("{text}\n").as_bytes());
}

fn run(case: &str, ranks: &Ranks, mpi: &Mpi) -> Result<(), RankError> {
    let last = ranks.size() - 1;
    let fails = ranks.rank() == last;
    ranks.barrier()?;
    let phase = ranks.phase("battery");
    match case {
        "all" => {
            drop(phase);
            all(ranks)?;
            link(ranks)?;
            if ranks.rank() == 0 {
                say(&format!("good end of {} ranks", ranks.size()));
            }
            return ranks.barrier();
        }
        _ if fault(case).is_some() => {
            small(ranks)?;
            say("right bytes");
            return ranks.barrier();
        }
        // The rank ends, and MPI with it, without a word.
        "exit" if fails => std::process::exit(7),
        // The same by a signal, as where memory runs out.
        "kill" if fails => std::process::abort(),
        "hang" if fails => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "give-up" if fails => {
            ranks.give_up(&"a test wants it");
            return ranks.barrier();
        }
        // An error outside of the ranks: `main` ends by `Mpi::fail` all the same.
        "other-error" if fails => {
            return Err(RankError::Stopped {
                rank: ranks.rank(),
                phase: "battery",
                reason: "an error of its own".to_owned(),
            });
        }
        // The process stands still at any point of a message, as on a machine that hangs.
        "stopped" if fails => {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                let own = std::process::id().to_string();
                std::process::Command::new("kill").args(["-STOP", &own]).status()
            });
        }
        // It stops in the middle of a long message of another one.
        "half" => {
            let transport = mpi.transport();
            return half(ranks, &*transport, fails);
        }
        _ => {}
    }
    // The others wait for messages that never come, the first rank for a third one.
    loop {
        exchange(ranks, 3 << 20)?;
    }
}

/// Long messages to a rank that takes none.
fn half(ranks: &Ranks, transport: &dyn Transport, fails: bool) -> Result<(), RankError> {
    if fails {
        std::thread::sleep(Duration::from_secs(3600));
    }
    let message = vec![1; 4 << 20];
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(1);
    let fault = transport.exchange(Some((ranks.size() - 1, &message)), None, deadline);
    say(&format!("{fault:?} after {:.1?}", begun.elapsed()));
    ranks.give_up(&format!("rank {} takes nothing", ranks.size() - 1));
    ranks.barrier()
}

fn byte(from: usize, to: usize, at: u64) -> u8 {
    (at ^ (at >> 9)) as u8 ^ (from * 37 + to * 11) as u8
}

/// Uneven lengths of up to several pieces, some of them 0.
fn length(from: usize, to: usize) -> u64 {
    let lengths = [
        0,
        1,
        PIECE_BYTES as u64,
        3 * PIECE_BYTES as u64 + 5,
        100_000,
        PIECE_BYTES as u64 + 1,
    ];
    lengths[(from * 2 + to * 3) % lengths.len()]
}

fn all(ranks: &Ranks) -> Result<(), RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    {
        let _phase = ranks.phase("small values");
        for root in 0..size {
            let mut bytes = vec![if rank == root { 7 } else { 0 }; 1000 + root];
            ranks.broadcast(root, &mut bytes)?;
            assert!(bytes.iter().all(|byte| *byte == 7), "broadcast");
            let mut long = vec![if rank == root { 9 } else { 0 }; 3_000_001];
            ranks.broadcast(root, &mut long)?;
            assert!(long.iter().all(|byte| *byte == 9), "long broadcast");
            let gathered = ranks.gather(root, &vec![rank as u8; rank * 400_000])?;
            assert_eq!(gathered.is_some(), rank == root);
            for (from, value) in gathered.into_iter().flatten().enumerate() {
                assert_eq!(value, vec![from as u8; from * 400_000], "gather");
            }
            let parts: Vec<Vec<u8>> = (0..size).map(|to| vec![to as u8 + 1; to * 300]).collect();
            let part = ranks.scatter(root, (rank == root).then_some(&parts[..]))?;
            assert_eq!(part, parts[rank], "scatter");
            let mut sum = vec![1; 700_000];
            ranks.reduce(root, &mut sum, &mut |sum: &mut [u8], more| {
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            })?;
            assert!(rank != root || sum == vec![size as u8; 700_000], "reduce");
            ranks.barrier()?;
        }
    }
    {
        let _phase = ranks.phase("uneven exchange");
        let send: Vec<u64> = (0..size).map(|to| length(rank, to)).collect();
        let receive: Vec<u64> = (0..size).map(|from| length(from, rank)).collect();
        for _ in 0..3 {
            streams(ranks, &send, &receive)?;
        }
        let traffic = ranks.traffic();
        let sent: u64 = (0..size).filter(|to| *to != rank).map(|to| send[to]).sum();
        let line = traffic.iter().find(|line| line.name == "uneven exchange");
        assert_eq!(line.map(|line| line.sent_bytes), Some(3 * sent));
    }
    let _phase = ranks.phase("streams of a root");
    for root in 0..size {
        rooted(ranks, root)?;
    }
    ranks.barrier()
}

/// A few messages of each rank.
fn small(ranks: &Ranks) -> Result<(), RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let mut bytes = vec![if rank == size - 1 { 7 } else { 0 }; 300_000];
    ranks.broadcast(size - 1, &mut bytes)?;
    assert!(bytes.iter().all(|byte| *byte == 7), "broadcast");
    let send: Vec<u64> = (0..size).map(|to| length(rank, to)).collect();
    let receive: Vec<u64> = (0..size).map(|from| length(from, rank)).collect();
    streams(ranks, &send, &receive)?;
    let gathered = ranks.gather(0, &[rank as u8; 10])?;
    for (from, value) in gathered.into_iter().flatten().enumerate() {
        assert_eq!(value, [from as u8; 10], "gather");
    }
    ranks.barrier()
}

fn buffers(ranks: &Ranks) -> [Vec<u8>; 2] {
    [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]]
}

fn streams(ranks: &Ranks, send: &[u64], receive: &[u64]) -> Result<(), RankError> {
    let rank = ranks.rank();
    let mut came = vec![0; ranks.size()];
    let [mut out, mut into] = buffers(ranks);
    ranks.all_to_all::<RankError>(
        send,
        receive,
        [&mut out, &mut into],
        &mut |to, offset, piece| {
            fill(rank, to, offset, piece);
            Ok(())
        },
        &mut |from, offset, piece| {
            came[from] += piece.len() as u64;
            check(from, rank, offset, piece);
            Ok(())
        },
    )?;
    assert_eq!(came, receive, "all bytes came");
    Ok(())
}

fn rooted(ranks: &Ranks, root: usize) -> Result<(), RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let mut came = 0;
    let [mut out, mut into] = buffers(ranks);
    let lengths: Vec<u64> = (0..size).map(|from| length(from, root)).collect();
    ranks.gather_stream::<RankError>(
        root,
        &lengths,
        [&mut out, &mut into],
        &mut |to, offset, piece| {
            fill(rank, to, offset, piece);
            Ok(())
        },
        &mut |from, offset, piece| {
            came += piece.len() as u64;
            check(from, rank, offset, piece);
            Ok(())
        },
    )?;
    assert_eq!(came, if rank == root { lengths.iter().sum() } else { 0 });
    let lengths: Vec<u64> = (0..size).map(|to| length(root, to)).collect();
    came = 0;
    ranks.scatter_stream::<RankError>(
        root,
        &lengths,
        [&mut out, &mut into],
        &mut |to, offset, piece| {
            fill(rank, to, offset, piece);
            Ok(())
        },
        &mut |from, offset, piece| {
            came += piece.len() as u64;
            check(from, rank, offset, piece);
            Ok(())
        },
    )?;
    assert_eq!(came, lengths[rank]);
    Ok(())
}

fn fill(from: usize, to: usize, offset: u64, piece: &mut [u8]) {
    for (at, place) in (offset..).zip(piece) {
        *place = byte(from, to, at);
    }
}

fn check(from: usize, to: usize, offset: u64, piece: &[u8]) {
    for (at, found) in (offset..).zip(piece) {
        assert_eq!(*found, byte(from, to, at), "byte {at} from rank {from}");
    }
}

/// So many bytes to each rank; nothing is looked at.
fn exchange(ranks: &Ranks, bytes: u64) -> Result<(), RankError> {
    let lengths = vec![bytes; ranks.size()];
    let [mut out, mut into] = buffers(ranks);
    ranks.all_to_all::<RankError>(
        &lengths,
        &lengths,
        [&mut out, &mut into],
        &mut |_, _, _| Ok(()),
        &mut |_, _, _| Ok(()),
    )
}

/// Prints the link, as the model takes it.
fn link(ranks: &Ranks) -> Result<(), RankError> {
    let Some(link) = measure_link(ranks, 64 << 20)? else {
        return Ok(());
    };
    if ranks.rank() == 0 {
        let together = link.switch_bytes_per_second.map_or_else(
            || "as fast together".to_owned(),
            |rate| format!("{:.0} MB/s together", rate / 1e6),
        );
        let (latency, port) = (link.latency * 1e6, link.port_bytes_per_second / 1e6);
        say(&format!("link: {latency:.1} us, {port:.0} MB/s, {together}"));
    }
    Ok(())
}
