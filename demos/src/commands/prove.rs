//! `spillproof prove` and `spillproof verify`: the drop-in proves, within a session or without one; the unmodified crate verifies.

use std::fs::{self, File};
use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use halo2_axiom::spillproof::Unverified;
use serde::Serialize;
use spillproof::budget::ByteSize;
use spillproof::checkpoint::Checkpoints;
use spillproof::{Session, SessionBuilder};

use super::on_gpu::{OnGpu, Used};
use super::plan;
use crate::args::{Global, Prove, Shape, Statement, Verify};
use crate::failure::Failure;
use crate::output::Output;
use crate::read_once::ReadOnce;
use crate::report::{Recorder, html, steps, svg};
use crate::run::{Result, Run};
use spillproof_circuits::{Kind, Scheme, dropin, stock};

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    k: u32,
    scheme: Scheme,
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
        let Shape { k, circuit, scheme } = statement.shape;
        Self {
            circuit,
            k,
            scheme,
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
    let mut run = Run::start(global);
    let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
    let (out, svg_file) = (Output::create(&args.out)?, create(&args.svg)?);
    let (samples_file, report_file) = (create(&args.samples)?, create(&args.report)?);
    halo2_axiom::spillproof::set_reproducible(true);
    let gpu = OnGpu::open(&args.on.gpu, args.on.offload.into())?;
    let session = if args.no_session {
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
        let is_watched = global.json || std::io::stderr().is_terminal();
        plan::expect(session, args.statement.shape, is_watched)?;
    }
    let guard = session
        .as_ref()
        .map_or_else(Session::suspend, |session| session.install());
    let proof = prove_phases(&mut run.recorder, &args.statement, "", &|| gpu.took_part())?;
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
        let mut facts = vec![
            ("circuit", format!("{:?}", outcome.circuit)),
            ("rows", format!("2^{}", outcome.k)),
            ("opening", format!("{:?}", outcome.scheme)),
            ("proof", format!("{} bytes", outcome.proof_bytes)),
        ];
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

/// The prover itself verifies its proof.
fn not_proved(error: halo2_axiom::plonk::Error) -> Failure {
    match Unverified::of(&error) {
        Some(unverified) if unverified.jobs + unverified.jobs_before > 0 => {
            Failure::Unverified(unverified.reason.clone())
        }
        Some(unverified) => Failure::DoesNotVerify(unverified.clone()),
        None => Failure::drop_in("the proof")(error),
    }
}

/// The phases of a proof with the drop-in, in the current session; `suffix` is added to the phases' names. If a device took part,
/// in the keys or in the proof, the proof is verified before it is returned.
pub fn prove_phases(
    recorder: &mut Recorder,
    statement: &Statement,
    suffix: &str,
    a_device_took_part: &dyn Fn() -> bool,
) -> Result<Vec<u8>> {
    use dropin::{proof, prover};
    let Shape { k, circuit, scheme } = statement.shape;
    let seed = statement.seed;
    let name = |phase: &str| format!("{phase}{suffix}");
    let params = recorder.phase(&name("parameters"), |_| match &statement.params {
        None => Ok(proof::insecure_params(k, statement.srs_seed)),
        Some(path) => read_dropin(path, k),
    })?;
    let key = recorder.phase(&name("verifying key"), |_| {
        proof::verifying_key(&params, circuit, k).map_err(Failure::drop_in("the verifying key"))
    })?;
    let key = recorder.phase(&name("proving key"), |_| {
        prover::proving_key(&params, key, circuit, k).map_err(Failure::drop_in("the proving key"))
    })?;
    let proof = recorder.phase(&name("prove"), |_| {
        prover::prove(&params, &key, circuit, k, seed, scheme).map_err(not_proved)
    })?;
    if a_device_took_part() {
        recorder.phase(&name("verify"), |_| {
            let instances = proof::instances(circuit, k, seed);
            proof::verify(&params, key.get_vk(), &instances, &proof, scheme)
                .map_err(|reason| Failure::Unverified(format!("{reason:?}")))
        })?;
    }
    Ok(proof)
}

/// Verifies, with the unmodified crate alone.
///
/// # Errors
/// halo2's, for a proof that does not hold.
pub fn verify(global: &Global, args: &Verify) -> Result<()> {
    let mut run = Run::start(global);
    let proof = fs::read(&args.proof).map_err(Failure::file(&args.proof))?;
    verify_phases(&mut run.recorder, &args.statement, &[&proof])?;
    let outcome = Outcome::of(&args.statement, &proof, &args.proof, None);
    run.say(format_args!(
        "{}: accepted by the unmodified halo2-axiom 0.5.3",
        outcome.file
    ));
    run.finish("verify", &outcome)?;
    Ok(())
}

/// The phases of verifying proofs of one statement with the unmodified crate: its own parameters, its own key.
pub fn verify_phases(recorder: &mut Recorder, statement: &Statement, proofs: &[&[u8]]) -> Result<()> {
    use stock::proof;
    let Shape { k, circuit, scheme } = statement.shape;
    let seed = statement.seed;
    let (params, key) = recorder.phase("stock: parameters and key", |_| {
        let params = stock_params(statement)?;
        let key =
            proof::verifying_key(&params, circuit, k).map_err(Failure::halo2("stock's verifying key"))?;
        Ok::<_, Failure>((params, key))
    })?;
    recorder.phase("stock: verify", |_| {
        let instances = proof::instances(circuit, k, seed);
        proofs.iter().try_for_each(|proof| {
            proof::verify(&params, &key, &instances, proof, scheme)
                .map_err(Failure::halo2("the unmodified verifier refuses the proof"))
        })
    })
}

fn read_dropin(path: &Path, k: u32) -> Result<dropin::proof::Params> {
    use halo2_axiom::poly::commitment::Params;
    let file = open_params(path, k)?;
    dropin::proof::Params::read(&mut ReadOnce::new(file)).map_err(Failure::file(path))
}

/// The parameters of a statement, for the unmodified crate.
///
/// # Errors
/// [`Failure::File`] and [`Failure::Content`] for a file that is not theirs.
pub fn stock_params(statement: &Statement) -> Result<stock::proof::Params> {
    use stock_halo2_axiom::poly::commitment::Params;
    let k = statement.shape.k;
    let Some(path) = &statement.params else {
        return Ok(stock::proof::insecure_params(k, statement.srs_seed));
    };
    let file = open_params(path, k)?;
    stock::proof::Params::read(&mut BufReader::new(file)).map_err(Failure::file(path))
}

/// Stock's reader panics on a file that is too short, so the length is checked first.
fn open_params(path: &Path, k: u32) -> Result<File> {
    let file = File::open(path).map_err(Failure::file(path))?;
    let bytes = file.metadata().map_err(Failure::file(path))?.len();
    let expected = (1u64 << (k + 7)) + 260;
    if bytes != expected {
        let details = format!("{bytes} bytes; a ParamsKZG file of raw bytes for k = {k} has {expected}");
        return Err(Failure::Content {
            file: path.to_owned(),
            details,
        });
    }
    Ok(file)
}
