//! Kernels: from disk within a budget, beside the in-memory libraries without a limit on their memory, in
//! turns.
//!
//! Every run reads from disk: scratch files are read past the page cache, or dropped from it. Inputs are made
//! once; medians of the runs are compared, and results are compared too.

use std::time::Instant;

use ark_bn254::Fr;
use halo2curves::bn256;
use serde::Serialize;
use spillproof_commit::{HALO2_ROOT_OF_UNITY, omega};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Placement};
use spillproof_engine::plan::Rates;
use spillproof_engine::storage::IoStats;
use spillproof_engine::stream::{Transform, ntt};

use spillproof_cli::commands::msm::{msm_from_disk, points_to_disk, scalars_to_disk};
use spillproof_cli::failure::Failure;
use spillproof_cli::inputs::scalar_at;
use spillproof_cli::peers::{Peer, Sum};
use spillproof_cli::report::progress::Progress;
use spillproof_cli::report::table::{bytes, grid};
use spillproof_cli::run::{Result, Run};

use crate::args::Bench;
use crate::median;
use crate::peers::{HALO2CURVES, to_halo2curves};

const MSM_MEMORY: ByteSize = ByteSize::Bytes(96 << 20);
const NTT_MEMORY: ByteSize = ByteSize::Bytes(64 << 20);
/// The seed of all points and scalars.
pub const SEED: u64 = 1;

/// A kernel beside a peer.
#[derive(Debug, Serialize)]
pub struct Line {
    /// The kernel and its size.
    pub what: String,
    budget_bytes: u64,
    seconds: f64,
    /// Bytes of one run at the measured rates of the disk: a lower bound of its time.
    disk_seconds: f64,
    /// The peer.
    pub peer: &'static str,
    peer_seconds: f64,
    /// Ours by theirs.
    pub ratio: f64,
}

/// Multi-scalar multiplications and transforms of the sizes asked for.
///
/// # Errors
/// The engine's; [`Failure::Different`] if a peer has another result.
pub fn run(run: &mut Run, args: &Bench) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    if !args.msm.is_empty() {
        let session = run.session(MSM_MEMORY)?;
        let rates = session.run(|| Rates::measure(session.workspace()))?;
        for &log_n in &args.msm {
            lines.extend(msm(&session, log_n, args, &rates)?);
        }
    }
    if !args.ntt.is_empty() {
        let session = run.session(NTT_MEMORY)?;
        let rates = session.run(|| Rates::measure(session.workspace()))?;
        for &log_n in &args.ntt {
            lines.push(transform(&session, log_n, args, &rates)?);
        }
    }
    Ok(lines)
}

/// The lines as a table.
pub fn render(lines: &[Line]) -> String {
    let headings = [
        "",
        "budget",
        "from disk, s",
        "disk alone, s",
        "peer, in memory",
        "peer, s",
        "ratio",
    ];
    let rows: Vec<[String; 7]> = lines.iter().map(row).collect();
    grid(&headings, &rows, usize::MAX)
}

fn row(line: &Line) -> [String; 7] {
    [
        line.what.clone(),
        bytes(line.budget_bytes),
        format!("{:.3}", line.seconds),
        format!("{:.3}", line.disk_seconds),
        line.peer.to_owned(),
        format!("{:.3}", line.peer_seconds),
        format!("{:.2}", line.ratio),
    ]
}

fn msm(session: &Session, log_n: u32, args: &Bench, rates: &Rates) -> Result<Vec<Line>> {
    let progress = Progress::start(&format!("MSM 2^{log_n}"));
    let bases = points_to_disk(session, SEED, 1 << log_n, &progress)?;
    let scalars = scalars_to_disk(session, SEED, 1 << log_n, &progress)?;
    let n = 1 << log_n;
    let mut peers: Vec<(&'static str, Sum)> = vec![("halo2curves 0.10, asm", HALO2CURVES.load(SEED, n))];
    if !args.no_ark {
        peers.push(("arkworks 0.6", Peer::Ark.load(SEED, n)));
    }
    let (mut ours, mut disk) = (Vec::new(), 0.0);
    let mut theirs = vec![Vec::new(); peers.len()];
    for _ in 0..args.runs {
        let before = session.storage().stats();
        let (point, seconds) = timed(|| msm_from_disk(&bases, &scalars));
        let point = point?;
        disk = disk_seconds(&before, &session.storage().stats(), rates);
        ours.push(seconds);
        for ((_, sum), times) in peers.iter().zip(&mut theirs) {
            let (peers_point, seconds) = timed(sum);
            times.push(seconds);
            if peers_point != point {
                return Err(Failure::Different(format!("the MSM of 2^{log_n} and a peer's")));
            }
        }
    }
    let seconds = [median(ours), disk];
    let lines = peers
        .iter()
        .zip(theirs)
        .map(|((peer, _), times)| line(format!("MSM 2^{log_n}"), session, seconds, peer, median(times)));
    Ok(lines.collect())
}

fn transform(session: &Session, log_n: u32, args: &Bench, rates: &Rates) -> Result<Line> {
    let progress = Progress::start(&format!("NTT 2^{log_n}"));
    let n = 1usize << log_n;
    let input = scalars_to_disk(session, SEED, n as u64, &progress)?;
    let omega = omega(HALO2_ROOT_OF_UNITY, log_n)?;
    let forward = Transform::forward(log_n, omega);
    let peers_omega = to_halo2curves(&omega);
    let (mut ours, mut theirs, mut disk) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..args.runs {
        let before = session.storage().stats();
        let (output, seconds) = timed(|| session.run(|| ntt(&input, &forward, Placement::Disk)));
        let output: Column<Fr> = output?;
        disk = disk_seconds(&before, &session.storage().stats(), rates);
        ours.push(seconds);
        let mut values: Vec<bn256::Fr> = (0..n).map(|i| to_halo2curves(&scalar_at(SEED, i))).collect();
        let ((), seconds) = timed(|| halo2curves::fft::best_fft(&mut values, peers_omega, log_n));
        theirs.push(seconds);
        if output.cast::<bn256::Fr>()?.to_vec()? != values {
            return Err(Failure::Different(format!(
                "the transform of 2^{log_n} and halo2curves'"
            )));
        }
    }
    Ok(line(
        format!("NTT 2^{log_n}"),
        session,
        [median(ours), disk],
        "halo2curves 0.10, asm",
        median(theirs),
    ))
}

fn line(
    what: String,
    session: &Session,
    [seconds, disk_seconds]: [f64; 2],
    peer: &'static str,
    peer_seconds: f64,
) -> Line {
    Line {
        what,
        budget_bytes: session.budget().limit_bytes(),
        seconds,
        disk_seconds,
        peer,
        peer_seconds,
        ratio: seconds / peer_seconds,
    }
}

/// Seconds of the bytes that moved since `before`, at the disk's rates.
pub fn disk_seconds(before: &IoStats, now: &IoStats, rates: &Rates) -> f64 {
    (now.bytes_read - before.bytes_read) as f64 / rates.bytes_read
        + (now.bytes_written - before.bytes_written) as f64 / rates.bytes_written
}

/// The result of a work, and its seconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let value = work();
    (value, started.elapsed().as_secs_f64())
}
