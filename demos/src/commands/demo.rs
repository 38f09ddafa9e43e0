//! `spillproof demo`: in about a minute, a proof from disk that equals the one from memory, and an MSM larger
//! than its budget.

use std::fs;

use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

use super::msm::{describe, msm_from_disk, points_to_disk, scalars_to_disk};
use crate::args::{Demo, Global, Shape, Statement};
use crate::failure::Failure;
use crate::peers::Peer;
use crate::report::svg;
use crate::report::table::bytes;
use crate::run::{Result, Run, hex, put};
use crate::systems;
use spillproof_circuits::{Kind, System};

/// The default budget: a third of the MSM's points and scalars.
const MEMORY: ByteSize = ByteSize::Bytes(32 << 20);
const MSM_LOG_N: u32 = 20;

#[derive(Serialize)]
struct Outcome {
    k: u32,
    proof: String,
    proofs_are_equal: bool,
    msm_log_n: u32,
    msm_point: String,
    msm_seconds: f64,
    peer_seconds: f64,
    svg: String,
}

/// The demo of a bare `spillproof`.
pub fn usual() -> Demo {
    Demo {
        which: None,
        k: 14,
        svg: "spillproof-demo.svg".into(),
    }
}

/// Runs the demo.
///
/// # Errors
/// The engine's and halo2's; [`Failure::Different`] if two ways give two results.
pub fn run(global: &Global, demo: &Demo) -> Result<()> {
    global.no_limit("the demo proves in memory too")?;
    let mut run = Run::start(global);
    halo2_axiom::spillproof::set_reproducible(true);
    let session = run.session(MEMORY)?;
    let budget_bytes = session.budget().limit_bytes();
    run.say(format_args!(
        "budget {}, scratch in {} ({})",
        bytes(budget_bytes),
        session.dir().display(),
        session.storage().backend_name()
    ));
    let statement = Statement::of(Shape::of(System::Axiom, Kind::Chain, demo.k));

    // The streamed work comes first, so that the curve shows its memory before the in-memory work.
    let n = 1u64 << MSM_LOG_N;
    run.say(format_args!(
        "\nWithin that budget: an MSM of 2^{MSM_LOG_N} points ({} of points and scalars), a proof of 2^{} rows",
        bytes(n * 96),
        demo.k
    ));
    let bases = run.recorder.phase("points to disk", |progress| {
        points_to_disk(&session, 1, n, progress)
    })?;
    let scalars = run.recorder.phase("scalars to disk", |progress| {
        scalars_to_disk(&session, 1, n, progress)
    })?;
    let point = run
        .recorder
        .phase("MSM from disk", |_| msm_from_disk(&bases, &scalars))?;
    let msm_seconds = run.recorder.last_seconds();
    drop((bases, scalars));
    let guard = session.install();
    let streamed = systems::prove(&mut run.recorder, &statement, None, ", session", &|| false)?;
    drop(guard);
    run.say(format_args!("  sum {:.32}...", describe(&point)));
    run.say(format_args!(
        "  proof {:.32}... ({} bytes)",
        hex(&streamed),
        streamed.len()
    ));

    run.say("\nIn memory, without a budget:");
    let guard = Session::suspend();
    let in_memory = systems::prove(&mut run.recorder, &statement, None, ", no session", &|| false)?;
    drop(guard);
    if streamed != in_memory {
        return Err(Failure::Different(
            "the proof of the session and the one without".into(),
        ));
    }
    run.say("  the same proof, byte for byte");
    systems::verify_by_stock(&mut run.recorder, &statement, None, &[&streamed])?;
    run.say("  the unmodified halo2-axiom 0.5.3 accepts it");
    let sum = run.recorder.phase("halo2-axiom: inputs", |_| {
        Ok::<_, Failure>(Peer::Halo2curves.load(1, n as usize))
    })?;
    let peers_point = run
        .recorder
        .phase("halo2-axiom: MSM", |_| Ok::<_, Failure>(sum()))?;
    let peer_seconds = run.recorder.last_seconds();
    if point != peers_point {
        return Err(Failure::Different("the MSM from disk and halo2-axiom's".into()));
    }
    run.say(format_args!(
        "  the same sum by the unmodified halo2-axiom: {peer_seconds:.2} s in memory, {msm_seconds:.2} s from disk, ratio {:.2}",
        msm_seconds / peer_seconds
    ));

    let outcome = Outcome {
        k: demo.k,
        proof: hex(&streamed),
        proofs_are_equal: true,
        msm_log_n: MSM_LOG_N,
        msm_point: describe(&point),
        msm_seconds,
        peer_seconds,
        svg: demo.svg.display().to_string(),
    };
    let quiet = run.global.json || run.global.quiet;
    let report = run.finish("demo", &outcome)?;
    fs::write(
        &demo.svg,
        svg::render(&report, "spillproof demo: resident memory"),
    )
    .map_err(Failure::file(&demo.svg))?;
    if !quiet {
        put(format_args!(
            "\nresident memory over time\n{}",
            report.curve.text(72, 8)
        ));
        put(format_args!("the same as a picture: {}", demo.svg.display()));
    }
    Ok(())
}
