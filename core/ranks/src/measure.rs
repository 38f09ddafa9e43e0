//! The link between ranks, measured by messages: latency, rate of a port, and what all ports share.
//!
//! In: ranks that do nothing else. Out: a [`Link`] for the model, the same on all ranks. What is measured is
//! what ranks see: digests and copies of messages are in it. Three runs, each after a barrier: empty messages
//! of two ranks to and fro; pieces of two ranks to each other, as in an exchange; an all-to-all. Each is made
//! [`TURNS`] times, and the best counts, so that a moment in which something else ran does not. Bytes sent by
//! a rank: at most `2 * TURNS * bytes`, rounded up to pieces. Memory: two buffers of [`Ranks::buffer_bytes`].

use std::time::Instant;

use crate::error::RankError;
use crate::link::Link;
use crate::ranks::Ranks;

/// Empty messages, there and back.
const ROUNDS: u32 = 100;

/// How often each figure is measured.
const TURNS: u32 = 3;

/// Measures the link with streams of so many bytes; `None` for one rank, and in a dry run.
///
/// # Errors
///
/// The first error of this rank.
pub fn measure_link(ranks: &Ranks, bytes: u64) -> Result<Option<Link>, RankError> {
    let size = ranks.size();
    if size == 1 || ranks.is_dry() {
        return Ok(None);
    }
    let _phase = ranks.phase("measure the link");
    let mut buffers = [vec![0; ranks.buffer_bytes()], vec![0; ranks.buffer_bytes()]];
    let bytes = bytes.max(1).next_multiple_of(ranks.piece_bytes() as u64);
    let pair = (bytes / (size as u64 - 1)).max(1);
    let of_two = |from: usize, to: usize| if from + to == 1 { bytes } else { 0 };
    let of_all = |from: usize, to: usize| if from == to { 0 } else { pair };
    let mut least = [f64::INFINITY; 3];
    for _ in 0..TURNS {
        let turn = [
            latency(ranks)?,
            all_to_all_seconds(ranks, &mut buffers, of_two)?,
            all_to_all_seconds(ranks, &mut buffers, of_all)?,
        ];
        least = std::array::from_fn(|at| least[at].min(turn[at]));
    }
    let [latency, of_pair, of_all] = least;
    let rate = |bytes: u64, seconds: f64| bytes as f64 / seconds.max(f64::MIN_POSITIVE);
    let port = rate(bytes, of_pair);
    let together = rate(pair * (size as u64 - 1) * size as u64, of_all);
    let mut figures = [latency, port, together].map(f64::to_le_bytes).concat();
    // One rank's clock decides.
    ranks.broadcast(0, &mut figures)?;
    let (figures, _) = figures.as_chunks::<8>();
    let [latency, port, together] =
        [0, 1, 2].map(|at| figures.get(at).copied().map_or(0.0, f64::from_le_bytes));
    Ok(Some(Link {
        latency,
        port_bytes_per_second: port,
        // Ports that are as fast together as alone share nothing.
        switch_bytes_per_second: (together < 0.9 * port * size as f64).then_some(together),
    }))
}

/// Seconds of an empty message from rank 0 to rank 1.
fn latency(ranks: &Ranks) -> Result<f64, RankError> {
    ranks.barrier()?;
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        ranks.to_and_fro()?;
    }
    Ok(begun.elapsed().as_secs_f64() / f64::from(2 * ROUNDS))
}

/// Seconds from a barrier to the end of the next one, between which `bytes(from, to)` go from rank to rank.
fn all_to_all_seconds(
    ranks: &Ranks,
    buffers: &mut [Vec<u8>; 2],
    bytes: impl Fn(usize, usize) -> u64,
) -> Result<f64, RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let sent: Vec<u64> = (0..size).map(|to| bytes(rank, to)).collect();
    let received: Vec<u64> = (0..size).map(|from| bytes(from, rank)).collect();
    let [out, into] = buffers;
    ranks.barrier()?;
    let begun = Instant::now();
    ranks.all_to_all::<RankError>(
        &sent,
        &received,
        [out, into],
        &mut |_, _, _| Ok(()),
        &mut |_, _, _| Ok(()),
    )?;
    ranks.barrier()?;
    Ok(begun.elapsed().as_secs_f64())
}
