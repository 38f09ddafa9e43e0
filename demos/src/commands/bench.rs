//! `spillproof bench`: from disk within a budget, against the in-memory libraries with all the memory they want, in turns.
//!
//! Every run reads from disk: scratch files are read past the page cache, or leave none behind. Inputs are made once; medians
//! of the runs are compared, and results are compared too.

use std::time::Instant;

use ark_bn254::Fr;
use halo2curves::bn256;
use serde::Serialize;
use spillproof::Session;
use spillproof::budget::ByteSize;
use spillproof::column::{Column, Placement};
use spillproof::commit::omega;
use spillproof::stream::{Transform, ntt};

use super::msm::{msm_from_disk, points_to_disk, scalars_to_disk};
use crate::args::{Bench, Global};
use crate::failure::Failure;
use crate::inputs::scalar_at;
use crate::peers::{Inputs, Peer, scalar_to_halo2curves};
use crate::report::progress::Progress;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run};

const MSM_MEMORY: ByteSize = ByteSize::Bytes(96 << 20);
const NTT_MEMORY: ByteSize = ByteSize::Bytes(64 << 20);
const SEED: u64 = 1;

#[derive(Serialize)]
struct Line {
    what: String,
    budget_bytes: u64,
    seconds: f64,
    peer: &'static str,
    peer_seconds: f64,
    ratio: f64,
}

/// Runs the benchmarks.
///
/// # Errors
/// The engine's; [`Failure::Different`] if a peer has another result.
pub fn run(global: &Global, args: &Bench) -> Result<()> {
    if args.runs == 0 {
        return Err(Failure::Usage("--runs 0 measures nothing".into()));
    }
    let mut run = Run::start(global);
    let mut lines = Vec::new();
    if !args.msm.is_empty() {
        let session = run.session(MSM_MEMORY)?;
        for &log_n in &args.msm {
            lines.extend(msm(&session, log_n, args)?);
        }
    }
    if !args.ntt.is_empty() {
        let session = run.session(NTT_MEMORY)?;
        for &log_n in &args.ntt {
            lines.push(transform(&session, log_n, args)?);
        }
    }
    let rows: Vec<[String; 6]> = lines.iter().map(row).collect();
    let headings = [
        "",
        "budget",
        "from disk, s",
        "peer, in memory",
        "peer, s",
        "ratio",
    ];
    run.say(format_args!(
        "medians of {} runs, in turns, {} threads",
        args.runs,
        rayon::current_num_threads()
    ));
    run.say(grid(&headings, &rows, usize::MAX).trim_end());
    run.finish("bench", &lines)?;
    Ok(())
}

fn row(line: &Line) -> [String; 6] {
    [
        line.what.clone(),
        bytes(line.budget_bytes),
        format!("{:.3}", line.seconds),
        line.peer.to_owned(),
        format!("{:.3}", line.peer_seconds),
        format!("{:.2}", line.ratio),
    ]
}

fn msm(session: &Session, log_n: u32, args: &Bench) -> Result<Vec<Line>> {
    let progress = Progress::start(&format!("MSM 2^{log_n}"));
    let bases = points_to_disk(session, SEED, 1 << log_n, &progress)?;
    let scalars = scalars_to_disk(session, SEED, 1 << log_n, &progress)?;
    let peers: &[(Peer, &'static str)] = &[
        (Peer::Halo2curves, "halo2curves 0.10, asm"),
        (Peer::Ark, "arkworks 0.6"),
    ][..if args.no_ark { 1 } else { 2 }];
    let inputs: Vec<Inputs> = peers
        .iter()
        .map(|(peer, _)| Inputs::generate(*peer, SEED, 1 << log_n))
        .collect();
    let mut ours = Vec::new();
    let mut theirs = vec![Vec::new(); peers.len()];
    for _ in 0..args.runs {
        let (point, seconds) = timed(|| msm_from_disk(session, &bases, &scalars));
        let point = point?;
        ours.push(seconds);
        for (inputs, times) in inputs.iter().zip(&mut theirs) {
            let (peers_point, seconds) = timed(|| inputs.msm());
            times.push(seconds);
            if peers_point != point {
                return Err(Failure::Different(format!("the MSM of 2^{log_n} and a peer's")));
            }
        }
    }
    let seconds = median(ours);
    let lines = peers
        .iter()
        .zip(theirs)
        .map(|((_, peer), times)| line(format!("MSM 2^{log_n}"), session, seconds, peer, median(times)));
    Ok(lines.collect())
}

fn transform(session: &Session, log_n: u32, args: &Bench) -> Result<Line> {
    let progress = Progress::start(&format!("NTT 2^{log_n}"));
    let n = 1usize << log_n;
    let input = scalars_to_disk(session, SEED, n as u64, &progress)?;
    let omega = omega(log_n);
    let forward = Transform::forward(log_n, omega);
    let peers_omega = scalar_to_halo2curves(&omega);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let (output, seconds) = timed(|| session.run(|| ntt(&input, &forward, Placement::Disk)));
        let output: Column<Fr> = output?;
        ours.push(seconds);
        let mut values: Vec<bn256::Fr> = (0..n)
            .map(|i| scalar_to_halo2curves(&scalar_at(SEED, i)))
            .collect();
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
        median(ours),
        "halo2curves 0.10, asm",
        median(theirs),
    ))
}

fn line(what: String, session: &Session, seconds: f64, peer: &'static str, peer_seconds: f64) -> Line {
    let budget_bytes = session.budget().limit_bytes();
    Line {
        what,
        budget_bytes,
        seconds,
        peer,
        peer_seconds,
        ratio: seconds / peer_seconds,
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let value = work();
    (value, started.elapsed().as_secs_f64())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
