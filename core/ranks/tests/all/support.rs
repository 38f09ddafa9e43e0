//! A job of all collectives, ranks as threads, and a watchdog.

use std::fmt::Debug;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use spillproof_ranks::{RankError, Ranks, Settings, Transport, one_process};

pub const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

/// Small pieces, so that short tests have many messages.
pub const PIECE_BYTES: usize = 32;

pub fn settings(timeout: Duration) -> Settings {
    Settings {
        timeout,
        piece_bytes: PIECE_BYTES,
        job: [7; 32],
    }
}

/// Runs `rank` on a thread of its own for each transport; what each returned. A hang ends the test.
pub fn run_on<T, R>(transports: Vec<T>, rank: impl Fn(T) -> R + Send + Sync + 'static) -> Vec<R>
where
    T: Send + 'static,
    R: Send + 'static,
{
    const HANG: Duration = Duration::from_secs(60);
    let rank = Arc::new(rank);
    let (done, ends) = channel();
    let size = transports.len();
    for (index, transport) in transports.into_iter().enumerate() {
        let (rank, done) = (rank.clone(), done.clone());
        std::thread::spawn(move || {
            // The test may be over.
            let _ = done.send((index, rank(transport)));
        });
    }
    drop(done);
    let mut results: Vec<Option<R>> = (0..size).map(|_| None).collect();
    for _ in 0..size {
        match ends.recv_timeout(HANG) {
            Ok((index, result)) => results[index] = Some(result),
            Err(RecvTimeoutError::Timeout) => panic!("a rank hangs: {HANG:?} have passed"),
            Err(RecvTimeoutError::Disconnected) => panic!("a rank panicked"),
        }
    }
    results.into_iter().map(Option::unwrap).collect()
}

/// The same over `size` ranks without faults.
pub fn run<R: Send + 'static>(size: usize, rank: impl Fn(Ranks) -> R + Send + Sync + 'static) -> Vec<R> {
    // A rank whose first call fails must not meet others in their handshake.
    let all_are_there = Barrier::new(size);
    run_on(one_process(size), move |transport| {
        let settings = settings(Duration::from_secs(30));
        let ranks = Ranks::new(Arc::new(transport), settings).unwrap();
        all_are_there.wait();
        rank(ranks)
    })
}

/// Bytes that tell sender, receiver and place.
pub fn bytes(from: usize, to: usize, length: u64) -> Vec<u8> {
    let at = |index: u64| (index as u8).wrapping_mul(31) ^ (from as u8) << 4 ^ to as u8;
    (0..length).map(at).collect()
}

/// Uneven lengths, some of them 0, some of them multiples of the piece.
pub fn length(from: usize, to: usize) -> u64 {
    [0, 1, 31, 32, 33, 64, 100, 7][(from * 5 + to * 3) % 8]
}

/// What went from rank to rank.
pub type Streams = Vec<Vec<u8>>;

/// The all-to-all of [`length`] and [`bytes`].
pub fn all_to_all(ranks: &Ranks) -> Result<Streams, RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let send: Vec<u64> = (0..size).map(|to| length(rank, to)).collect();
    let receive: Vec<u64> = (0..size).map(|from| length(from, rank)).collect();
    let mut came = vec![Vec::new(); size];
    with_buffers(ranks, |buffers| {
        ranks.all_to_all(&send, &receive, buffers, &mut source(rank), &mut sink(&mut came))
    })?;
    Ok(came)
}

pub fn gather_stream(ranks: &Ranks, root: usize) -> Result<Streams, RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let lengths: Vec<u64> = (0..size).map(|from| length(from, root)).collect();
    let mut came = vec![Vec::new(); size];
    with_buffers(ranks, |buffers| {
        ranks.gather_stream(root, &lengths, buffers, &mut source(rank), &mut sink(&mut came))
    })?;
    Ok(came)
}

pub fn scatter_stream(ranks: &Ranks, root: usize) -> Result<Streams, RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let lengths: Vec<u64> = (0..size).map(|to| length(root, to)).collect();
    let mut came = vec![Vec::new(); size];
    with_buffers(ranks, |buffers| {
        ranks.scatter_stream(root, &lengths, buffers, &mut source(rank), &mut sink(&mut came))
    })?;
    Ok(came)
}

fn with_buffers<T>(ranks: &Ranks, f: impl FnOnce([&mut [u8]; 2]) -> T) -> T {
    let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
    let [out, into] = &mut buffers;
    f([out, into])
}

fn source(rank: usize) -> impl FnMut(usize, u64, &mut [u8]) -> Result<(), RankError> {
    move |to, offset, piece| {
        let whole = bytes(rank, to, offset + piece.len() as u64);
        piece.copy_from_slice(&whole[offset as usize..]);
        Ok(())
    }
}

fn sink(came: &mut Streams) -> impl FnMut(usize, u64, &[u8]) -> Result<(), RankError> {
    |from, offset, piece| {
        assert_eq!(offset, came[from].len() as u64, "pieces come in order");
        came[from].extend_from_slice(piece);
        Ok(())
    }
}

/// All that one rank gets out of a job with every collective in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub broadcast: Vec<u8>,
    pub chain: Vec<u8>,
    pub gathered: Option<Vec<Vec<u8>>>,
    pub scattered: Vec<u8>,
    pub sum: Option<Vec<u64>>,
    pub exchanged: Streams,
    pub streamed: Streams,
    pub dealt: Streams,
}

/// Every collective once.
pub fn job(ranks: &Ranks) -> Result<Outcome, RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let root = (size - 1) / 2;
    let first = ranks.phase("small values");
    let mut broadcast = if rank == root {
        bytes(root, 99, 20)
    } else {
        vec![0; 20]
    };
    ranks.broadcast(root, &mut broadcast)?;
    let mut chain = if rank == root {
        bytes(root, 98, 100)
    } else {
        vec![0; 100]
    };
    ranks.broadcast(root, &mut chain)?;
    let gathered = ranks.gather_of(root, &value(rank), |of| value(of).len())?;
    let parts: Vec<Vec<u8>> = (0..size).map(value).collect();
    let scattered = ranks.scatter_of(root, (rank == root).then_some(&parts[..]), value(rank).len())?;
    let mut sum: Vec<u8> = numbers(rank)
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    ranks.reduce(root, &mut sum, &mut add)?;
    ranks.barrier()?;
    drop(first);
    let exchanged = {
        let _phase = ranks.phase("exchange");
        all_to_all(ranks)?
    };
    let _phase = ranks.phase("streams with a leader, a long name");
    let streamed = gather_stream(ranks, root)?;
    let dealt = scatter_stream(ranks, root)?;
    ranks.barrier()?;
    Ok(Outcome {
        broadcast,
        chain,
        gathered,
        scattered,
        sum: (rank == root).then(|| sum.chunks(8).map(number).collect()),
        exchanged,
        streamed,
        dealt,
    })
}

/// What [`job`] has to give on this rank.
pub fn expected(rank: usize, size: usize) -> Outcome {
    let root = (size - 1) / 2;
    let streams = |to: usize, from_all: bool| -> Streams {
        (0..size)
            .map(|from| {
                if from_all {
                    bytes(from, to, length(from, to))
                } else {
                    Vec::new()
                }
            })
            .collect()
    };
    let mut dealt = streams(rank, false);
    dealt[root] = bytes(root, rank, length(root, rank));
    let total = |at: usize| (0..size).map(|rank| numbers(rank)[at]).sum();
    Outcome {
        broadcast: bytes(root, 99, 20),
        chain: bytes(root, 98, 100),
        gathered: (rank == root).then(|| (0..size).map(value).collect()),
        scattered: value(rank),
        sum: (rank == root).then(|| (0..numbers(0).len()).map(total).collect()),
        exchanged: streams(rank, true),
        streamed: streams(root, rank == root),
        dealt,
    }
}

/// Values of other lengths on each rank: an empty one, some of several pieces.
fn value(rank: usize) -> Vec<u8> {
    bytes(rank, 77, [40, 0, 32, 65, 5, 1, 96, 200][rank % 8])
}

/// Enough for several pieces.
fn numbers(rank: usize) -> Vec<u64> {
    (0..9).map(|at| (rank as u64 + 1) * 1000 + at).collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn add(sum: &mut [u8], more: &[u8]) {
    assert_eq!(sum.len(), more.len());
    for (sum, more) in sum.chunks_mut(8).zip(more.chunks(8)) {
        let total = number(sum) + number(more);
        sum.copy_from_slice(&total.to_le_bytes());
    }
}

/// Every rank has the right bytes, or an error that names it.
pub fn check<E: Debug>(results: &[Result<Outcome, RankError>], what: E) {
    let size = results.len();
    for (rank, result) in results.iter().enumerate() {
        match result {
            Ok(outcome) => assert_eq!(*outcome, expected(rank, size), "{what:?}, rank {rank}"),
            Err(error) => assert_eq!(error.rank(), rank, "{what:?}: {error}"),
        }
    }
}

/// A transport as what `Ranks::new` takes.
pub fn shared(transport: impl Transport + 'static) -> Arc<dyn Transport> {
    Arc::new(transport)
}
