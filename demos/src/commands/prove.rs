//! `spillproof prove` and `spillproof verify`: a drop-in proves, within a session or without one; the unmodified crate verifies.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde::Serialize;
use spillproof::budget::ByteSize;
use spillproof::checkpoint::Checkpoints;
use spillproof::{Session, SessionBuilder};

use super::on_gpu::{OnGpu, Used};
use super::plan;
use crate::args::{Global, Prove, Shape, Statement, Verify};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{html, machine, steps, svg};
use crate::run::{Result, Run};
use crate::systems;
use spillproof_circuits::{Kind, System};

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    system: System,
    k: u32,
    scheme: &'static str,
    seed: u64,
    proof_bytes: usize,
    file: String,
    /// The jobs of each GPU, if one was asked for.
    gpu: Option<Used>,
    /// Rounds that an earlier run had kept.
    resumed_rounds: u64,
}

impl Outcome {
    fn of(statement: &Statement, proof: &[u8], file: &Path, gpu: Option<Used>) -> Self {
        let Shape {
            k, circuit, system, ..
        } = statement.shape;
        Self {
            circuit,
            system,
            k,
            scheme: statement.shape.opening(),
            seed: statement.seed,
            proof_bytes: proof.len(),
            file: file.display().to_string(),
            gpu,
            resumed_rounds: 0,
        }
    }
}

/// Proves.
///
/// # Errors
/// The engine's and halo2's.
pub fn prove(global: &Global, args: &Prove) -> Result<()> {
    args.check()?;
    let mut run = Run::start(global);
    let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
    let (out, svg_file) = (Output::create(&args.out)?, create(&args.svg)?);
    let (samples_file, report_file) = (create(&args.samples)?, create(&args.report)?);
    halo2_axiom::spillproof::set_reproducible(true);
    let gpu = OnGpu::open(&args.on.gpu, args.on.offload.into())?;
    let session = if args.no_session {
        global.no_limit("--no-session proves without one")?;
        None
    } else {
        let checkpoints =
            Checkpoints::configured(args.checkpoint.as_deref(), args.checkpoint_key.as_deref())?;
        let keeping = |builder: SessionBuilder| match checkpoints {
            Some(checkpoints) => builder.checkpoints(checkpoints),
            None => builder,
        };
        Some(run.session_with(ByteSize::Auto, gpu.tier(), keeping)?)
    };
    if let Some(session) = &session {
        let is_watched = !global.quiet && (global.json || std::io::stderr().is_terminal());
        plan::expect(session, &args.statement.shape, is_watched)?;
    }
    let guard = session
        .as_ref()
        .map_or_else(Session::suspend, |session| session.install());
    let proof = systems::prove(
        &mut run.recorder,
        &args.statement,
        args.key.as_deref(),
        "",
        &|| gpu.took_part(),
    )?;
    drop(guard);
    steps::forget();
    out.write(&proof)?;
    let mut outcome = Outcome::of(&args.statement, &proof, &args.out, gpu.used());
    outcome.resumed_rounds = steps::resumed_rounds();
    if outcome.resumed_rounds > 0 {
        run.say(format_args!(
            "the proof went on after {} rounds of its checkpoint",
            outcome.resumed_rounds
        ));
    }
    run.say(format_args!(
        "{}: a proof of {} bytes",
        outcome.file, outcome.proof_bytes
    ));
    if let Some(used) = &outcome.gpu {
        run.say(used.said());
    }
    let title = format!(
        "spillproof prove: {:?}, k = {}",
        args.statement.shape.circuit, args.statement.shape.k
    );
    let report = run.finish("prove", &outcome)?;
    if let Some(file) = svg_file {
        file.write(svg::render(&report, &title))?;
    }
    if let Some(file) = samples_file {
        file.write(report.curve.csv())?;
    }
    if let Some(file) = report_file {
        let mut facts = vec![("command", command_line())];
        facts.extend(machine::facts());
        facts.extend([
            ("circuit", format!("{:?}", outcome.circuit)),
            ("rows", format!("2^{}", outcome.k)),
            ("opening", outcome.scheme.to_owned()),
            ("proof", format!("{} bytes", outcome.proof_bytes)),
            (
                "digest of the proof",
                format!("BLAKE3 {}", blake3::hash(&proof).to_hex()),
            ),
        ]);
        if let Some(session) = &session {
            facts.push(("threads", session.threads().to_string()));
            let scratch = format!(
                "{} ({})",
                session.dir().display(),
                session.storage().backend_name()
            );
            facts.push(("scratch", scratch));
        }
        file.write(html::render(&report, &title, &facts))?;
    }
    Ok(())
}

/// The command line of this process, with quotes where a shell would need them.
fn command_line() -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=+@%".contains(letter);
    let words = std::env::args_os().enumerate().map(|(index, word)| {
        let word = match index {
            0 => Path::new(&word)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            _ => word.to_string_lossy().into_owned(),
        };
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Verifies, with the unmodified crate alone.
///
/// # Errors
/// halo2's, for a proof that does not hold.
pub fn verify(global: &Global, args: &Verify) -> Result<()> {
    args.statement.check()?;
    if args.vk.is_none() {
        global.no_limit("without --vk the unmodified crate makes the key in memory")?;
    }
    let mut run = Run::start(global);
    let proof = fs::read(&args.proof).map_err(Failure::file(&args.proof))?;
    systems::verify_by_stock(&mut run.recorder, &args.statement, args.vk.as_deref(), &[&proof])?;
    let outcome = Outcome::of(&args.statement, &proof, &args.proof, None);
    run.say(format_args!(
        "{}: accepted by the unmodified {}",
        outcome.file,
        systems::stock_name(outcome.system)
    ));
    run.finish("verify", &outcome)?;
    Ok(())
}
