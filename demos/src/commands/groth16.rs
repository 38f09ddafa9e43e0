//! `spillproof groth16`: proofs over the files of circom and snarkjs.

use std::io;
use std::path::Path;

use serde::Serialize;
use spillproof_circom::example::Circuit;
use spillproof_circom::json::{self, curve_name};
use spillproof_circom::prove::{
    AsRank, Key as Opened, Proved, Summary, WITHOUT_CONTRIBUTION, contribute as add_contribution, setup,
    summary_of, verification_key_of, verify, verify_key,
};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_format::Curve;
use spillproof_groth16::Cut;
use spillproof_groth16::iden3::{Contributor, Origin};

use super::groth16_folder::Folder;
use super::groth16_key::{Key, follow};
use super::groth16_plan::chosen_cut;
use super::on_gpu::{OnGpu, Used};
use super::plan_ranks::name_of_cut;
use crate::args::{
    AllowInsecure, Global, Groth16 as Command, Groth16Example, Kept, LinkOf, OnRanks, ProofOn, Sharing,
};
use crate::failure::Failure;
use crate::output::{Output, write_together};
use crate::ranks::{self, Job, RankReport};
use crate::report::{html, machine, steps};
use crate::run::{Result, Run, hex, start_global_threads};

/// Runs the command.
///
/// # Errors
/// The engine's, and those of the user's files.
pub fn run(global: &Global, command: &Command) -> Result<()> {
    match command {
        Command::Prove {
            key,
            witness,
            proof,
            public,
            kept,
            gpu,
            report,
            on,
            link,
        } => {
            let how = How {
                kept,
                gpu,
                report: report.as_deref(),
                on,
                link: link.as_ref(),
            };
            prove(global, [key, witness], [proof, public], &how)
        }
        Command::Verify {
            key,
            public,
            proof,
            allow,
        } => verify_files(global, [key, public, proof], *allow),
        Command::Setup { circuit, powers, key } => make_key(global, [circuit, powers], key),
        Command::Contribute {
            key,
            out,
            name,
            entropy,
        } => {
            let entropy = entropy.clone().unwrap_or_default().into_bytes();
            contribute(global, [key, out], name.as_deref(), &Origin::Entropy(entropy))
        }
        Command::Beacon {
            key,
            out,
            beacon,
            iterations_log,
            name,
        } => {
            let value = ::hex::decode(beacon).map_err(|error| {
                Failure::Usage(format!("BEACON is in hex, and {beacon:?} is not: {error}"))
            })?;
            let iterations_log = *iterations_log;
            let origin = Origin::Beacon {
                value,
                iterations_log,
            };
            contribute(global, [key, out], name.as_deref(), &origin)
        }
        Command::VerifyKey {
            circuit,
            powers,
            key,
            allow,
        } => verify_key_file(global, [circuit, powers, key], *allow),
        Command::Example(example) => write_example(global, example),
        Command::Import { key, out, on } => super::groth16_import::import(global, key, out, on),
        Command::Vkey { key, out } => vkey(global, key, out),
        Command::Inspect { file } => inspect(global, file),
        Command::Plan { key, ladder, on } => super::groth16_plan::plan_key(global, key, *ladder, on),
    }
}

#[derive(Serialize)]
struct ProvedFiles {
    key: Key,
    proof: String,
    public: String,
    public_signals: usize,
    /// Sums and exchanges of this rank that an earlier run had kept.
    resumed_steps: u64,
    /// What each rank did, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<Vec<RankReport>>,
    /// Their cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
    /// The jobs of GPUs, if any were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<Used>,
}

/// How a proof is made.
struct How<'a> {
    kept: &'a Kept,
    gpu: &'a ProofOn,
    /// The file of the page.
    report: Option<&'a Path>,
    on: &'a OnRanks,
    /// Between ranks, where it is said.
    link: Option<&'a LinkOf>,
}

impl How<'_> {
    /// What is of one proof.
    fn of_one_proof(&self, is_a_rank: bool) -> Result<Option<&'static str>> {
        Ok(match is_a_rank {
            true => Some("ranks prove"),
            false if self.report.is_some() => Some("--report tells of"),
            false if self.kept.checkpoints()?.is_some() => Some("--checkpoint keeps"),
            false => None,
        })
    }
}

/// Alone, or as one rank of several.
fn prove(global: &Global, inputs: [&Path; 2], outputs: [&Path; 2], how: &How<'_>) -> Result<()> {
    let folder = Folder::of(inputs[1], outputs)?;
    let Some(job) = Job::join(&how.on.messages, how.on.sharing.share.len())? else {
        if let Some(link) = how.link {
            return Err(Failure::Usage(format!(
                "--link {link} is between ranks, and this process is one rank: start several, as with mpirun -n 2"
            )));
        }
        how.gpu.check_options()?;
        return match folder {
            Some(folder) => {
                folder.check(how.of_one_proof(false)?)?;
                folder.prove(global, inputs[0], how.gpu)
            }
            None => prove_files(global, inputs, outputs, how, None),
        };
    };
    let checked = match folder {
        Some(folder) => how.of_one_proof(true).and_then(|what| folder.check(what)),
        None => Ok(()),
    };
    let options = checked
        .and_then(|()| how.gpu.check_options())
        .and_then(|()| job.global(global));
    let proved = options.and_then(|global| prove_files(&global, inputs, outputs, how, Some(&job)));
    job.end(proved)
}

/// The cut of all ranks, and why it is this one where rank 0 has compared it with others.
fn cut_of(
    session: &Session,
    key: &Path,
    job: &Job,
    how: &How<'_>,
    gpu: &OnGpu,
) -> Result<(Cut, Option<String>)> {
    let Sharing { share, cut } = &how.on.sharing;
    if let Some(cut) = cut.cut() {
        return Ok((cut, None));
    }
    let mut why = None;
    let decision = job.decided(|| {
        // Measured rates differ from run to run: one that goes on from a checkpoint has the cut of the one before.
        let (Some(link), true, None) = (how.link, job.size() > 1, how.kept.checkpoints()?) else {
            return Ok(0);
        };
        let (cut, said) = chosen_cut(session, (key, link), (job.size(), share), gpu)?;
        why = Some(said);
        Ok(Cut::ALL.iter().position(|other| *other == cut).unwrap_or(0) as u8)
    })?;
    let cut = Cut::ALL.get(usize::from(decision)).copied();
    Ok((cut.unwrap_or_default(), why))
}

fn prove_files(
    global: &Global,
    [key, witness]: [&Path; 2],
    [proof, public]: [&Path; 2],
    how: &How<'_>,
    job: Option<&Job>,
) -> Result<()> {
    let mut run = Run::start(global);
    let writes = job.is_none_or(Job::is_first);
    let outputs = match writes {
        true => vec![Output::create(proof)?, Output::create(public)?],
        false => Vec::new(),
    };
    let page = how.report.filter(|_| writes).map(Output::create).transpose()?;
    let (offload, is_watched) = (how.gpu.offload.into(), global.json || page.is_some());
    let gpu = match job {
        None => OnGpu::open_watched(&how.gpu.gpu, offload, is_watched)?,
        Some(job) => {
            let place = job.neighbours()?;
            let gpu = OnGpu::open_of_rank(&how.gpu.gpu, offload, place, is_watched)?;
            job.check_devices(&gpu.uuids(), how.gpu.gpu.vram != ByteSize::Auto)?;
            gpu
        }
    };
    let session = run.session_with(ByteSize::Auto, gpu.accelerator(), how.kept.checkpoints()?)?;
    let chosen = match job {
        None => None,
        Some(job) => Some(cut_of(&session, key, job, how, &gpu)?),
    };
    let opened = run.recorder.phase("key", |progress| {
        let mut followed = |now| follow(progress, now);
        match job {
            None => Opened::open(&session, key, &mut followed),
            Some(job) => {
                let sharing = &how.on.sharing;
                let of = AsRank {
                    rank: job.rank(),
                    ranks: job.size(),
                    weights: &sharing.share,
                    cut: chosen.as_ref().map_or(Cut::Layout, |(cut, _)| *cut),
                };
                Opened::open_of_rank(&session, key, &of, &mut followed)
            }
        }
    })?;
    let witness = run.recorder.phase("witness", |progress| {
        opened.witness(&session, witness, &mut |now| follow(progress, now))
    })?;
    let ranks = match job {
        None => None,
        Some(job) => {
            let statement = opened.statement(&witness)?;
            Some((job.ranks(&statement, session.budget().limit_bytes())?, job))
        }
    };
    let (proved, kept) = run.recorder.phase("prove", |_| match &ranks {
        None => opened.prove_and_keep(&session, &witness),
        Some((ranks, _)) => {
            let (proved, kept) = opened.prove_over_ranks(&session, ranks, &witness)?;
            Ok((proved, Some(kept)))
        }
    })?;
    steps::forget();
    let reports = match &ranks {
        None => None,
        Some((ranks, job)) => {
            let used = gpu.used().and_then(|used| serde_json::to_value(used).ok());
            job.reports(ranks, session.budget().peak_bytes(), used)?
        }
    };
    let key = Key::of(key, &opened.summary());
    let Proved {
        proof: proof_text,
        public: public_text,
        public_signals,
    } = proved;
    if writes {
        let texts = [proof_text, public_text];
        write_together(outputs.into_iter().zip(texts).collect())?;
    }
    if let Some(kept) = kept {
        if let Some((ranks, _)) = &ranks {
            // Until the proof is written, each rank's checkpoint may be needed again.
            ranks.barrier().map_err(spillproof_engine::Error::from)?;
        }
        kept.finish()?;
    }
    if !writes {
        return Ok(());
    }
    key.tell(&run);
    let outcome = ProvedFiles {
        key,
        proof: proof.display().to_string(),
        public: public.display().to_string(),
        public_signals,
        resumed_steps: steps::resumed_rounds(),
        ranks: reports,
        cut: chosen.as_ref().map(|(cut, _)| name_of_cut(*cut)),
        // Of several ranks, each has said it.
        gpu: gpu.used().filter(|_| job.is_none()),
    };
    if outcome.resumed_steps > 0 {
        run.say(format_args!(
            "the proof went on after {} steps of its checkpoint",
            outcome.resumed_steps
        ));
    }
    run.say(format_args!(
        "{}: a proof that verifies; {}: {} public signals",
        outcome.proof, outcome.public, public_signals
    ));
    if let Some(reports) = &outcome.ranks {
        run.say(ranks::table(reports));
    }
    if let Some((_, Some(why))) = &chosen {
        run.say(why);
    }
    if let Some(used) = &outcome.gpu {
        run.say(used.said());
    }
    let mut facts = machine::facts();
    facts.push(("key", outcome.key.file.clone()));
    facts.extend(outcome.gpu.as_ref().map(|used| ("GPUs", used.said().to_owned())));
    let report = run.finish("groth16 prove", &outcome)?;
    if let Some(page) = page {
        page.write(html::render(&report, "spillproof groth16 prove", &facts))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Verified {
    key: String,
    proof: String,
    curve: &'static str,
    public_signals: usize,
    verifies: bool,
    /// Whether proofs can be forged with the key: gamma and delta are equal.
    insecure: bool,
}

/// Refuses what anyone can forge, unless that is allowed.
pub(super) fn refuse_insecure(file: &Path, allow: AllowInsecure, words: &str) -> Result<()> {
    match allow.insecure {
        true => Ok(()),
        false => Err(Failure::Content {
            file: file.to_owned(),
            details: format!("{words} (--allow-insecure takes it all the same)"),
        }),
    }
}

fn verify_files(global: &Global, files: [&Path; 3], allow: AllowInsecure) -> Result<()> {
    let [key, public, proof] = files;
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let texts = [json::read(key)?, json::read(public)?, json::read(proof)?];
    let files = [(key, &*texts[0]), (public, &*texts[1]), (proof, &*texts[2])];
    let verified = run.recorder.phase("verify", |_| verify(&session, files))?;
    if verified.is_without_contribution {
        refuse_insecure(key, allow, WITHOUT_CONTRIBUTION)?;
    }
    if !verified.verifies {
        return Err(Failure::Content {
            file: proof.to_owned(),
            details: "the proof does not verify for this key and these public signals".into(),
        });
    }
    let outcome = Verified {
        key: key.display().to_string(),
        proof: proof.display().to_string(),
        curve: curve_name(verified.curve),
        public_signals: verified.public_signals,
        verifies: true,
        insecure: verified.is_without_contribution,
    };
    run.say(format_args!("{}: the proof verifies", outcome.proof));
    if outcome.insecure {
        run.say(WITHOUT_CONTRIBUTION);
    }
    run.finish("groth16 verify", &outcome)?;
    Ok(())
}

#[derive(Serialize)]
struct Made {
    key: Key,
    circuit_hash: String,
}

fn make_key(global: &Global, files: [&Path; 2], key: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let made = run.recorder.phase("setup", |progress| {
        setup(&session, files, key, &mut |now| follow(progress, now))
    })?;
    steps::forget();
    let outcome = Made {
        key: Key::of(
            key,
            &Summary {
                curve: made.curve,
                shape: made.shape,
                are_values_counted: true,
                is_without_contribution: true,
            },
        ),
        circuit_hash: hex(&made.circuit_hash),
    };
    outcome.key.tell(&run);
    run.say(format_args!("circuit hash: {}", outcome.circuit_hash));
    run.finish("groth16 setup", &outcome)?;
    Ok(())
}

#[derive(Serialize)]
struct ContributedKey {
    key: String,
    contribution: u64,
    circuit_hash: String,
    contribution_hash: String,
}

fn contribute(global: &Global, files: [&Path; 2], name: Option<&str>, origin: &Origin) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let made = run.recorder.phase("contribution", |progress| {
        add_contribution(&session, files, name, origin, &mut |now| follow(progress, now))
    })?;
    steps::forget();
    let outcome = ContributedKey {
        key: files[1].display().to_string(),
        contribution: made.number,
        circuit_hash: hex(&made.circuit_hash),
        contribution_hash: hex(&made.hash),
    };
    run.say(format_args!(
        "{}: contribution {} to the key; its hash, to be published: {}",
        outcome.key, outcome.contribution, outcome.contribution_hash
    ));
    run.finish("groth16 contribute", &outcome)?;
    Ok(())
}

#[derive(Serialize)]
struct VerifiedFile {
    key: Key,
    circuit_hash: String,
    contributions: Vec<ContributionLine>,
    verifies: bool,
}

/// A contribution to a key or to powers of tau.
#[derive(Serialize)]
pub struct ContributionLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beacon: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations_log: Option<u8>,
    hash: String,
}

impl ContributionLine {
    fn of(contributor: &Contributor) -> Self {
        let beacon = contributor.beacon.as_ref();
        Self {
            name: contributor.name.clone(),
            beacon: beacon.map(|beacon| hex(&beacon.value)),
            iterations_log: beacon.map(|beacon| beacon.iterations_log),
            hash: hex(&contributor.hash),
        }
    }

    fn tell(&self, run: &Run, number: usize) {
        let name = self.name.as_deref().unwrap_or("without a name");
        run.say(format_args!("contribution {number}, {name}: {}", self.hash));
        if let (Some(beacon), Some(iterations_log)) = (&self.beacon, self.iterations_log) {
            run.say(format_args!(
                "    of the beacon {beacon}, hashed 2^{iterations_log} times"
            ));
        }
    }

    /// The lines of all contributions, which are printed.
    pub fn tell_all(run: &Run, contributors: &[Contributor]) -> Vec<Self> {
        let lines: Vec<_> = contributors.iter().map(Self::of).collect();
        for (number, line) in (1..).zip(&lines) {
            line.tell(run, number);
        }
        lines
    }
}

fn verify_key_file(global: &Global, files: [&Path; 3], allow: AllowInsecure) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let verified = run.recorder.phase("verify", |progress| {
        verify_key(&session, files, &mut |now| follow(progress, now))
    })?;
    steps::forget();
    if verified.contributors.is_empty() {
        refuse_insecure(files[2], allow, WITHOUT_CONTRIBUTION)?;
    }
    let summary = Summary {
        curve: verified.curve,
        shape: verified.shape,
        are_values_counted: true,
        is_without_contribution: verified.contributors.is_empty(),
    };
    let key = Key::of(files[2], &summary);
    let circuit_hash = hex(&verified.circuit_hash);
    key.tell(&run);
    run.say(format_args!("circuit hash: {circuit_hash}"));
    let outcome = VerifiedFile {
        key,
        circuit_hash,
        contributions: ContributionLine::tell_all(&run, &verified.contributors),
        verifies: true,
    };
    run.say(format_args!("{}: the key verifies", outcome.key.file));
    run.finish("groth16 verify-key", &outcome)?;
    Ok(())
}

#[derive(Serialize)]
struct Example {
    key: String,
    witness: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    r1cs: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptau: Option<String>,
    constraints: usize,
    signals: usize,
}

fn write_example(global: &Global, args: &Groth16Example) -> Result<()> {
    const BUFFER_BYTES: usize = 1 << 20;
    start_global_threads()?;
    let mut run = Run::start(global);
    let circuit = Circuit {
        k: args.k,
        values: args.values.into(),
        seed: args.seed,
    };
    let curve = Curve::from(args.curve);
    type Writes = fn(&Circuit, Curve, &mut dyn io::Write) -> io::Result<()>;
    let files: [(_, Writes, _); 4] = [
        ("witness", Circuit::write_witness, Some(&args.witness)),
        ("circuit", Circuit::write_constraints, args.r1cs.as_ref()),
        ("first phase", Circuit::write_powers, args.ptau.as_ref()),
        ("key", Circuit::write_key, Some(&args.key)),
    ];
    // All of them before the first is written: a name that cannot be written is found at once.
    let mut opened = Vec::with_capacity(files.len());
    for (what, write, path) in files {
        let Some(path) = path else { continue };
        let out = Output::create(path)?.in_pieces(BUFFER_BYTES)?;
        opened.push((what, write, path, out));
    }
    for (what, write, path, out) in &mut opened {
        run.recorder.phase(what, |_| {
            write(&circuit, curve, out).map_err(Failure::file(path.as_path()))
        })?;
    }
    for (.., out) in opened {
        out.finish()?;
    }
    let shown = |path: &Path| path.display().to_string();
    let outcome = Example {
        key: shown(&args.key),
        witness: shown(&args.witness),
        r1cs: args.r1cs.as_deref().map(shown),
        ptau: args.ptau.as_deref().map(shown),
        constraints: circuit.constraints(),
        signals: circuit.signals(),
    };
    run.say(format_args!(
        "{}: a key of {} constraints; {}: a witness of {} signals",
        outcome.key, outcome.constraints, outcome.witness, outcome.signals
    ));
    run.say("INSECURE: the seed is enough to forge proofs with this key; for tests and demonstrations only");
    run.finish("groth16 example", &outcome)?;
    Ok(())
}

fn vkey(global: &Global, file: &Path, out: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let output = Output::create(out)?;
    let session = run.session(ByteSize::Auto)?;
    let (text, summary) = run.recorder.phase("key", |progress| {
        verification_key_of(&session, file, &mut |now| follow(progress, now))
    })?;
    output.write(text)?;
    let key = Key::of(file, &summary);
    key.tell(&run);
    run.finish("groth16 vkey", &key)?;
    Ok(())
}

fn inspect(global: &Global, file: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let key = Key::of(file, &summary_of(&session, file)?);
    key.tell(&run);
    run.finish("groth16 inspect", &key)?;
    Ok(())
}
