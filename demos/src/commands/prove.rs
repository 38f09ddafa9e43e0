//! `spillproof prove` and `spillproof verify`: a drop-in proves, within a session or without one; the
//! unmodified crate verifies.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

use super::on_gpu::{OnGpu, Used};
use super::plan::{self, Awaited};
use crate::args::{Global, OfProgram, Parameters, Prove, Proved, Statement, Verified, Verify};
use crate::output::{Output, write_together};
use crate::read_once::read_whole;
use crate::report::{html, machine, steps, svg};
use crate::run::{Result, Run, start_global_threads};
use crate::systems;
use crate::systems::of_program::{self, Key, PublicJson};
use crate::systems::params::insecurity;
use spillproof_circuits::{Kind, System};

#[derive(Serialize)]
struct Outcome {
    /// A built-in one.
    circuit: Option<Kind>,
    /// The files of the key and of the witness, if the circuit is a program's own.
    key: Option<String>,
    witness: Option<String>,
    /// The file of its public inputs.
    public: Option<String>,
    system: System,
    k: u32,
    scheme: &'static str,
    /// None for a proof whose random values are the system's.
    seed: Option<u64>,
    proof_bytes: usize,
    file: String,
    /// The jobs of each GPU, if one was asked for.
    gpu: Option<Used>,
    /// Rounds that an earlier run had kept.
    resumed_rounds: u64,
    /// Whether the secret of the parameters is known.
    insecure: bool,
}

impl Outcome {
    fn of(Statement { shape, seed, .. }: &Statement, proof: &[u8], file: &Path) -> Self {
        Self {
            circuit: Some(shape.circuit),
            key: None,
            witness: None,
            public: None,
            system: shape.system,
            k: shape.k,
            scheme: shape.opening(),
            seed: Some(*seed),
            proof_bytes: proof.len(),
            file: file.display().to_string(),
            gpu: None,
            resumed_rounds: 0,
            insecure: false,
        }
    }

    /// Of a circuit of a program's own.
    fn of_program(of: &OfProgram, key: &Key, proof: &[u8], file: &Path) -> Self {
        Self {
            circuit: None,
            key: Some(of.key.display().to_string()),
            witness: None,
            public: None,
            system: key.system(),
            k: key.k(),
            scheme: key.opening(of.scheme),
            seed: of.seed,
            proof_bytes: proof.len(),
            file: file.display().to_string(),
            gpu: None,
            resumed_rounds: 0,
            insecure: false,
        }
    }

    /// Says and notes why proofs over these parameters can be forged, if that is known.
    fn note(&mut self, run: &Run, parameters: &Parameters) -> Result<Option<&'static str>> {
        let insecurity = insecurity(parameters, self.k, self.system)?;
        self.insecure = insecurity.is_some();
        if let Some(words) = insecurity {
            run.say(words);
        }
        Ok(insecurity)
    }

    /// The result in words.
    fn tell(&self, run: &Run) {
        if self.resumed_rounds > 0 {
            run.say(format_args!(
                "the proof went on after {} rounds of its checkpoint",
                self.resumed_rounds
            ));
        }
        run.say(format_args!(
            "{}: a proof of {} bytes",
            self.file, self.proof_bytes
        ));
        if let Some(used) = &self.gpu {
            run.say(used.said());
        }
    }

    /// Lines of the page.
    fn facts(&self, proof: &[u8]) -> Vec<(&'static str, String)> {
        vec![
            ("circuit", self.name()),
            ("rows", format!("2^{}", self.k)),
            ("opening", self.scheme.to_owned()),
            ("proof", format!("{} bytes", self.proof_bytes)),
            (
                "digest of the proof",
                format!("BLAKE3 {}", blake3::hash(proof).to_hex()),
            ),
        ]
    }

    /// The circuit's name.
    fn name(&self) -> String {
        match (self.circuit, &self.key) {
            (Some(kind), _) => format!("{kind:?}"),
            (None, key) => format!("the circuit of {}", key.as_deref().unwrap_or_default()),
        }
    }
}

/// Proves. A run that fails after its session was opened leaves its table on standard error, and its page.
///
/// # Errors
/// The engine's and halo2's.
pub fn prove(global: &Global, args: &Prove) -> Result<()> {
    let proved = args.proved()?;
    let mut run = Run::start(global);
    let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
    let (out, svg_file) = (Output::create(&args.out)?, create(&args.svg)?);
    let (samples_file, report_file) = (create(&args.samples)?, create(&args.report)?);
    let public_file = create(&args.public)?;
    // A proof of secret random values is to come out once.
    let is_reproducible = !matches!(&proved, Proved::OfProgram(of, _) if of.seed.is_none());
    halo2_axiom::spillproof::set_reproducible(is_reproducible);
    midnight_proofs::spillproof::set_reproducible(is_reproducible);
    let is_watched = global.json || report_file.is_some();
    let gpu = OnGpu::open_watched(&args.on.gpu, args.on.offload.into(), is_watched)?;
    let session = session(&mut run, args, &gpu)?;
    let session = session.as_ref();
    let guard = session.map_or_else(Session::suspend, |session| session.install());
    let made = make(&mut run, args, &proved, (session, &gpu));
    drop(guard);
    steps::forget();
    let written = made.and_then(|made| {
        let mut results = vec![(out, made.proof.clone())];
        if let (Some(file), Some(public)) = (public_file, &made.public) {
            results.push((file, serde_json::to_vec_pretty(public)?));
        }
        write_together(results)?;
        Ok(made)
    });
    let Made {
        mut outcome, proof, ..
    } = match written {
        Ok(made) => made,
        Err(failure) => {
            let report = run.fail();
            if let Some(file) = report_file {
                let verdict = ("verdict", format!("failed: {failure}"));
                let facts = [facts_before(), vec![verdict], facts_of_session(session)].concat();
                file.write(html::render(&report, "spillproof prove: failed", &facts))?;
            }
            return Err(failure);
        }
    };
    outcome.gpu = gpu.used();
    outcome.resumed_rounds = steps::resumed_rounds();
    outcome.tell(&run);
    let insecurity = outcome.note(&run, proved.parameters())?;
    let title = format!("spillproof prove: {}, k = {}", outcome.name(), outcome.k);
    let report = run.finish("prove", &outcome)?;
    if let Some(file) = svg_file {
        file.write(svg::render(&report, &title))?;
    }
    if let Some(file) = samples_file {
        file.write(report.curve.csv())?;
    }
    if let Some(file) = report_file {
        let mut facts = [facts_before(), outcome.facts(&proof)].concat();
        facts.extend(insecurity.map(|words| ("parameters", words.to_owned())));
        facts.extend(facts_of_session(session));
        file.write(html::render(&report, &title, &facts))?;
    }
    Ok(())
}

/// The session of a proof, unless it is made without one.
fn session(run: &mut Run, args: &Prove, gpu: &OnGpu) -> Result<Option<Arc<Session>>> {
    if args.no_session {
        run.global.no_limit("--no-session proves without one")?;
        start_global_threads()?;
        return Ok(None);
    }
    run.session_with(ByteSize::Auto, gpu.accelerator(), args.kept.checkpoints()?)
        .map(Some)
}

/// A proof that is made and not yet written.
struct Made {
    outcome: Outcome,
    proof: Vec<u8>,
    /// Of a program's own circuit.
    public: Option<PublicJson>,
}

/// Makes the proof, in the current session if there is one.
fn make(
    run: &mut Run,
    args: &Prove,
    proved: &Proved,
    (session, gpu): (Option<&Arc<Session>>, &OnGpu),
) -> Result<Made> {
    let global = &run.global;
    let is_watched = !global.quiet && (global.json || std::io::stderr().is_terminal());
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    match proved {
        Proved::BuiltIn(statement) => {
            if let Some(session) = session {
                let shape = &statement.shape;
                // A budget that is too small is refused before the parameters are made.
                let planned = systems::plan(session, shape, session.budget().limit_bytes())?;
                let awaited = Awaited {
                    parameters: &statement.parameters,
                    k: shape.k,
                    system: shape.system,
                    makes_keys: args.key.is_none(),
                };
                if is_watched {
                    plan::expect(session, &awaited, planned);
                }
            }
            let took_part = || gpu.took_part();
            let proof = systems::prove(&mut run.recorder, statement, args.key.as_deref(), "", &took_part)?;
            Ok(Made {
                outcome: Outcome::of(statement, &proof, &args.out),
                proof,
                public: None,
            })
        }
        Proved::OfProgram(of, witness) => {
            let key = of_program::open_key(&mut run.recorder, &of.key, of.scheme)?;
            args.on.check(key.system())?;
            if let Some(session) = session {
                let planned = key.plan(session, of.scheme, session.budget().limit_bytes())?;
                let awaited = Awaited {
                    parameters: &of.parameters,
                    k: key.k(),
                    system: key.system(),
                    makes_keys: false,
                };
                if is_watched {
                    plan::expect(session, &awaited, planned);
                }
            }
            let (proof, public) = of_program::prove(&mut run.recorder, of, witness, &key)?;
            let outcome = Outcome {
                witness: shown(&args.witness),
                public: shown(&args.public),
                ..Outcome::of_program(of, &key, &proof, &args.out)
            };
            Ok(Made {
                outcome,
                proof,
                public: Some(public),
            })
        }
    }
}

/// Lines of the page: the command and the machine.
fn facts_before() -> Vec<(&'static str, String)> {
    let mut facts = vec![("command", command_line())];
    facts.extend(machine::facts());
    facts
}

/// Lines of the page about the session.
fn facts_of_session(session: Option<&Arc<Session>>) -> Vec<(&'static str, String)> {
    let Some(session) = session else {
        return Vec::new();
    };
    let scratch = format!(
        "{} ({})",
        session.dir().display(),
        session.storage().backend_name()
    );
    vec![("threads", session.threads().to_string()), ("scratch", scratch)]
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
    let verified = args.verified()?;
    if args.vk.is_none() && args.key.is_none() {
        global.no_limit("without --vk the unmodified crate makes the key in memory")?;
    }
    start_global_threads()?;
    let mut run = Run::start(global);
    let proof = read_whole(&args.proof)?;
    let mut outcome = match &verified {
        Verified::BuiltIn(statement) => {
            systems::verify_by_stock(&mut run.recorder, statement, args.vk.as_deref(), &[&proof])?;
            Outcome::of(statement, &proof, &args.proof)
        }
        Verified::OfProgram(of, inputs) => {
            let _current = run.session(ByteSize::Auto)?.install();
            let key = of_program::verify(&mut run.recorder, of, inputs, &proof)?;
            let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
            Outcome {
                witness: shown(&args.witness),
                public: shown(&args.public),
                ..Outcome::of_program(of, &key, &proof, &args.proof)
            }
        }
    };
    run.say(format_args!(
        "{}: accepted by the unmodified {}",
        outcome.file,
        systems::stock_name(outcome.system)
    ));
    outcome.note(&run, verified.parameters())?;
    run.finish("verify", &outcome)?;
    Ok(())
}
