//! `spillproof demo`: a proof from disk that equals the one from memory, and a sum of points larger than its
//! budget.
//!
//! The proof in memory needs an order of magnitude more memory, so both are of 2^18 rows. Parameters are made
//! once, by the session: to make them in memory takes longer than the proofs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use spillproof_commit::{Engine, export_params_kzg, generate};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_format::params_kzg::SerdeFormat;

use super::msm::{describe, msm_from_disk, points_to_disk, scalars_to_disk};
use super::srs::secret;
use super::temporary::{Removed, scratch_file};
use crate::args::{Demo, Global, Parameters, Shape, Statement};
use crate::failure::Failure;
use crate::output::Output;
use crate::peers::Peer;
use crate::report::table::bytes;
use crate::report::{Report, svg};
use crate::run::{Result, Run, hex, put};
use crate::systems;
use spillproof_circuits::{Kind, System};

/// The default budget: a third of the points and scalars of the sum.
const MEMORY: ByteSize = ByteSize::Bytes(32 << 20);
/// The sum has 2^(k + 2) points.
const LOG_POINTS_MORE: u32 = 2;
const ON_DISK: &str = ", disk";
const IN_MEMORY: &str = ", memory";
/// With the scale beside it, the curve takes less than 80 columns.
const CURVE_COLUMNS: usize = 58;
const CURVE_ROWS: usize = 8;
/// What a process holds besides its budget: pages of the program, heap, stacks.
const BESIDE_MIB: u64 = 20;

#[derive(Serialize)]
struct Outcome {
    k: u32,
    proof: String,
    proofs_are_equal: bool,
    proof_seconds: f64,
    proof_peak_bytes: u64,
    in_memory_proof_seconds: f64,
    in_memory_proof_peak_bytes: u64,
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
        k: 18,
        svg: None,
    }
}

/// Runs the demo.
///
/// # Errors
/// The engine's and halo2's; [`Failure::Different`] if two ways give two results; [`Failure::File`], before
/// any work, for a picture that cannot be written.
pub fn run(global: &Global, demo: &Demo) -> Result<()> {
    global.no_limit("the demo proves in memory too")?;
    let mut run = Run::start(global);
    halo2_axiom::spillproof::set_reproducible(true);
    let session = run.session(MEMORY)?;
    let picture_path = (demo.svg.clone()).unwrap_or_else(|| session.dir().join("spillproof-demo.svg"));
    let picture = Output::create(&picture_path)?;
    run.say(format_args!(
        "budget {}, scratch in {} ({})",
        bytes(session.budget().limit_bytes()),
        session.dir().display(),
        session.storage().backend_name()
    ));
    let proof = prove(&mut run, global, &session, demo.k)?;
    let mut proofs = run.recorder.report();
    // The phases of the picture: the peer's sum would be the highest.
    let is_of_a_proof = |name: &str| name.ends_with(ON_DISK) || name.ends_with(IN_MEMORY);
    proofs.phases.retain(|phase| is_of_a_proof(&phase.name));
    let (point, [msm_seconds, peer_seconds]) = sum(&mut run, &session, demo.k + LOG_POINTS_MORE)?;
    let measured = |name: &str, suffix: &str| {
        let name = format!("{name}{suffix}");
        let phase = proofs.phases.iter().find(|phase| phase.name == name);
        phase.map_or((0.0, 0), |phase| (phase.seconds, phase.peak_bytes))
    };
    let ((proof_seconds, proof_peak_bytes), in_memory) =
        (measured("prove", ON_DISK), measured("prove", IN_MEMORY));
    let outcome = Outcome {
        k: demo.k,
        proof: hex(&proof),
        proofs_are_equal: true,
        proof_seconds,
        proof_peak_bytes,
        in_memory_proof_seconds: in_memory.0,
        in_memory_proof_peak_bytes: in_memory.1,
        msm_log_n: demo.k + LOG_POINTS_MORE,
        msm_point: describe(&point),
        msm_seconds,
        peer_seconds,
        svg: picture_path.display().to_string(),
    };
    let quiet = run.global.json || run.global.quiet;
    let report = run.finish("demo", &outcome)?;
    let proofs = Report {
        phases: proofs.phases,
        ..report
    };
    picture.write(svg::render(
        &proofs,
        "spillproof demo: resident memory of two proofs",
    ))?;
    if !quiet {
        tell(&proofs, &outcome);
    }
    Ok(())
}

/// The phases of the two proofs of 2^k rows, which are equal, and of their verification.
fn prove(run: &mut Run, global: &Global, session: &Arc<Session>, k: u32) -> Result<Vec<u8>> {
    let [container, params_kzg] = ["srs", "params"].map(|what| scratch_file(global, what));
    let _removed = [Removed(&container), Removed(&params_kzg)];
    run.recorder.phase("parameters to disk", |progress| {
        progress.length(2 << k);
        make_parameters(session, k, [&container, &params_kzg], &mut |points| {
            progress.at(points)
        })
    })?;
    let statement = |file: &PathBuf| Statement {
        parameters: Parameters {
            file: Some(file.clone()),
            seed: None,
        },
        ..Statement::of(Shape::of(System::Axiom, Kind::Chain, k))
    };
    run.say(format_args!("\nWithin that budget: a proof of 2^{k} rows"));
    let guard = session.install();
    let streamed = systems::prove(&mut run.recorder, &statement(&container), None, ON_DISK, &|| {
        false
    })?;
    drop(guard);
    run.say(format_args!(
        "  {:.32}... ({} bytes)",
        hex(&streamed),
        streamed.len()
    ));
    run.say("In memory, without a budget:");
    let guard = Session::suspend();
    let statement = statement(&params_kzg);
    let in_memory = systems::prove(&mut run.recorder, &statement, None, IN_MEMORY, &|| false)?;
    drop(guard);
    if streamed != in_memory {
        return Err(Failure::Different(
            "the proof of the session and the one without".into(),
        ));
    }
    run.say("  the same proof, byte for byte");
    systems::verify_by_stock(&mut run.recorder, &statement, None, &[&streamed])?;
    run.say("  the unmodified halo2-axiom 0.5.3 accepts it");
    Ok(streamed)
}

/// Writes parameters for 2^k rows, as a container for the session and as `ParamsKZG` for the others.
fn make_parameters(
    session: &Session,
    k: u32,
    [container, params_kzg]: [&Path; 2],
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<()> {
    let workspace = session.workspace();
    session.run(|| {
        generate::<Engine>(workspace, container, k, secret(1), progress)?;
        export_params_kzg(
            workspace,
            container,
            params_kzg,
            SerdeFormat::RawBytes,
            &mut |_| (),
        )
    })?;
    Ok(())
}

/// The phases of a sum of 2^`log_n` points from disk, and by a peer in memory. Gives the sum, and the seconds
/// of both.
fn sum(run: &mut Run, session: &Session, log_n: u32) -> Result<(ark_bn254::G1Affine, [f64; 2])> {
    let n = 1u64 << log_n;
    run.say(format_args!(
        "Within that budget: a sum of 2^{log_n} points ({} of points and scalars)",
        bytes(n * 96)
    ));
    let bases = run.recorder.phase("points to disk", |progress| {
        points_to_disk(session, 1, n, progress)
    })?;
    let scalars = run.recorder.phase("scalars to disk", |progress| {
        scalars_to_disk(session, 1, n, progress)
    })?;
    let point = run
        .recorder
        .phase("MSM, disk", |_| msm_from_disk(&bases, &scalars))?;
    let seconds = run.recorder.last_seconds();
    drop((bases, scalars));
    let peers_sum = run.recorder.phase("halo2-axiom: inputs", |_| {
        Ok::<_, Failure>(Peer::Halo2curves.load(1, n as usize))
    })?;
    let peers_point = run
        .recorder
        .phase("halo2-axiom: MSM", |_| Ok::<_, Failure>(peers_sum()))?;
    let peer_seconds = run.recorder.last_seconds();
    if point != peers_point {
        return Err(Failure::Different("the MSM from disk and halo2-axiom's".into()));
    }
    run.say(format_args!(
        "  {seconds:.2} s; by the unmodified halo2-axiom in memory {peer_seconds:.2} s, ratio {:.2}",
        seconds / peer_seconds
    ));
    Ok((point, [seconds, peer_seconds]))
}

/// The picture as text, the claim in three lines, and what else there is.
fn tell(proofs: &Report, outcome: &Outcome) {
    let Outcome {
        proof_seconds,
        proof_peak_bytes,
        in_memory_proof_seconds,
        in_memory_proof_peak_bytes,
        ..
    } = outcome;
    put(format_args!(
        "\nresident memory of the two proofs over time\n{}as a picture: {}\n",
        proofs.curve_of_phases().text(CURVE_COLUMNS, CURVE_ROWS),
        outcome.svg
    ));
    put(format_args!(
        "time of the proof: {proof_seconds:.1} s from disk, {in_memory_proof_seconds:.1} s in memory, ratio {:.2}",
        proof_seconds / in_memory_proof_seconds.max(1e-9)
    ));
    put(format_args!(
        "memory of the proof: {} from disk, {} in memory, ratio {:.2}",
        bytes(*proof_peak_bytes),
        bytes(*in_memory_proof_peak_bytes),
        *proof_peak_bytes as f64 / (*in_memory_proof_peak_bytes).max(1) as f64
    ));
    put(format_args!(
        "the budget ({}) + about {BESIDE_MIB} MiB is what the process takes",
        bytes(proofs.budget_bytes.unwrap_or_default())
    ));
    put("\nnext: `spillproof new my-proof` (a circuit of your own), `spillproof --help`");
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    #[test]
    fn a_bare_command_line_is_the_demo_of_no_options() {
        let parsed = Arguments::try_parse_from(["spillproof", "demo"]).unwrap();
        let Some(Command::Demo(demo)) = parsed.command else {
            panic!("{parsed:?}");
        };
        assert_eq!(format!("{:?}", usual()), format!("{demo:?}"));
    }
}
