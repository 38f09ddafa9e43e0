//! `spillproof msm`: the sum of `2^n` scalars times points, streamed from disk within the budget, or in
//! memory by a peer.
//!
//! Points and scalars are made from the seed as they are written, so nothing grows with n but the files. The
//! streamed sum is printed; `--in-memory --peer ark` prints the same elsewhere.

use ark_bn254::{Fr, G1Affine, g1};
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, PrimeField};
use serde::Serialize;
use spillproof_commit::{Engine, G1, kzg};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Draft, Placement, Writer};
use spillproof_engine::stream::{MsmPlan, Scalars};
use spillproof_format::SRS_FRAME_BYTES_DEFAULT;
use spillproof_format::params_kzg::Dialect;
use spillproof_gpu::accelerator::Offload;

use super::on_gpu::{OnGpu, Used};
use crate::args::{Global, Msm};
use crate::failure::Failure;
use crate::inputs::{POINTS_PER_ROW, Points, scalar_at};
use crate::peers::Peer;
use crate::report::progress::Progress;
use crate::run::{Result, Run, hex, start_global_threads};
use crate::systems::params::{Bases, insecurity_of_file, open_srs};

/// Rows of points made at a time: they take 2.5 MiB while they are made.
const ROWS_AT_ONCE: usize = 4;
/// Scalars made at a time.
const SCALARS_AT_ONCE: usize = 1 << 14;

#[derive(Serialize)]
struct Outcome {
    log_n: u32,
    seed: u64,
    how: &'static str,
    /// Which device computed the sum, if a GPU was asked for.
    done_by: Option<String>,
    point: String,
    msm_seconds: f64,
    checked_with: Vec<Peer>,
    /// Whether the points are an SRS whose secret is known.
    insecure: bool,
}

/// Runs the command.
///
/// # Errors
/// The engine's, and [`Failure::Different`] from `--check`.
pub fn run(global: &Global, args: &Msm) -> Result<()> {
    args.gpu.check()?;
    if args.in_memory || args.check {
        global.no_limit("--in-memory and --check hold everything in memory")?;
        start_global_threads()?;
    }
    let mut run = Run::start(global);
    let (point, done_by) = if args.in_memory {
        (in_memory(&mut run, args)?, None)
    } else {
        streamed(&mut run, args)?
    };
    let msm_seconds = run.recorder.last_seconds();
    let mut checked_with = Vec::new();
    if args.check {
        for peer in [Peer::Ark, Peer::Halo2curves] {
            let peers_point = run.recorder.phase(&format!("{peer:?}, in memory"), |_| {
                Ok::<_, Failure>(peer.load(args.seed, 1 << args.log_n)())
            })?;
            if peers_point != point {
                return Err(Failure::Different(format!("spillproof's MSM and {peer:?}'s")));
            }
            checked_with.push(peer);
        }
    }
    let insecurity = match &args.srs {
        Some(path) => insecurity_of_file(path, args.log_n, Dialect::Halo2)?,
        None => None,
    };
    let outcome = Outcome {
        log_n: args.log_n,
        seed: args.seed,
        how: if args.in_memory { "in memory" } else { "streamed" },
        done_by: done_by.as_ref().map(Used::done_by),
        point: describe(&point),
        msm_seconds,
        checked_with,
        insecure: insecurity.is_some(),
    };
    run.say(format_args!(
        "sum of 2^{} terms, {}: {}",
        outcome.log_n, outcome.how, outcome.point
    ));
    if let Some(done_by) = &outcome.done_by {
        run.say(format_args!("by {done_by}"));
    }
    for peer in &outcome.checked_with {
        run.say(format_args!("equal to {peer:?}"));
    }
    if let Some(words) = insecurity {
        run.say(words);
    }
    run.finish("msm", &outcome)?;
    Ok(())
}

/// A point as text: `x` and `y` in hexadecimal, or `infinity`.
pub fn describe(point: &G1Affine) -> String {
    match point.xy() {
        Some((x, y)) => {
            let digits = |value: ark_bn254::Fq| hex(&value.into_bigint().to_bytes_be());
            format!("{},{}", digits(x), digits(y))
        }
        None => "infinity".into(),
    }
}

fn in_memory(run: &mut Run, args: &Msm) -> Result<G1Affine> {
    let sum = run.recorder.phase("points and scalars into memory", |_| {
        Ok::<_, Failure>(args.peer.load(args.seed, 1 << args.log_n))
    })?;
    run.recorder.phase("MSM in memory", |_| Ok(sum()))
}

fn streamed(run: &mut Run, args: &Msm) -> Result<(G1Affine, Option<Used>)> {
    // A GPU that was asked for computes the sum, however small it is.
    let gpu = OnGpu::open(&args.gpu, Offload::Always)?;
    let session = run.session_on(ByteSize::Auto, gpu.accelerator())?;
    let n = 1u64 << args.log_n;
    // A budget that is too small for the sum is refused before points are written.
    session.run(|| MsmPlan::new::<g1::Config>(n, 1, 1, session.budget().available_bytes()))?;
    let bases = match &args.srs {
        Some(path) => {
            let srs = open_srs(&session, path, args.log_n, Bases::Monomial)?;
            srs.monomial()?.clone()
        }
        None => run.recorder.phase("points to disk", |progress| {
            points_to_disk(&session, args.seed, n, progress)
        })?,
    };
    let scalars = run.recorder.phase("scalars to disk", |progress| {
        scalars_to_disk(&session, args.seed, n, progress)
    })?;
    let sum = run
        .recorder
        .phase("MSM from disk", |_| msm_from_disk(&bases, &scalars))?;
    Ok((sum, gpu.used()))
}

/// The first `n` points of a seed, as a scratch column.
pub fn points_to_disk(session: &Session, seed: u64, n: u64, progress: &Progress) -> Result<Column<G1>> {
    let frame_bytes = SRS_FRAME_BYTES_DEFAULT as usize;
    session.run(|| {
        let workspace = session.workspace();
        let _points = workspace.budget.lease(
            (POINTS_PER_ROW * (1 + 3 * ROWS_AT_ONCE) * 96) as u64,
            "points being made",
        )?;
        let draft = Draft::scratch_with_frames(workspace, "MSM bases", n, Placement::Disk, frame_bytes)?;
        let mut writer = Writer::<G1>::new(draft);
        let mut done = 0;
        progress.length(n);
        Points::new(seed).stream(n as usize, ROWS_AT_ONCE, |row| {
            let row: Vec<G1> = row.iter().map(G1::from_affine::<g1::Config>).collect();
            writer.push(&row)?;
            done += row.len() as u64;
            progress.at(done);
            Ok::<_, Failure>(())
        })?;
        Ok(writer.finish()?)
    })
}

/// The first `n` scalars of a seed, as a scratch column.
pub fn scalars_to_disk(session: &Session, seed: u64, n: u64, progress: &Progress) -> Result<Column<Fr>> {
    session.run(|| {
        let mut writer = Writer::<Fr>::scratch(session.workspace(), "MSM scalars", n, Placement::Disk)?;
        progress.length(n);
        let mut some = Vec::with_capacity(SCALARS_AT_ONCE);
        for start in (0..n as usize).step_by(SCALARS_AT_ONCE) {
            some.clear();
            some.extend(
                (start..n as usize)
                    .take(SCALARS_AT_ONCE)
                    .map(|i| scalar_at(seed, i)),
            );
            writer.push(&some)?;
            progress.at(start as u64);
        }
        Ok(writer.finish()?)
    })
}

/// The sum, from disk.
pub fn msm_from_disk(bases: &Column<G1>, scalars: &Column<Fr>) -> Result<G1Affine> {
    let sums = kzg::commit_over::<Engine>(bases, &[Scalars::Column(scalars)])?;
    Ok(sums.first().copied().unwrap_or_default())
}
