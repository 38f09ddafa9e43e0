//! `spillproof groth16`: proofs over the files of circom and snarkjs.

use std::io;
use std::path::Path;

use serde::Serialize;
use spillproof_circom::example::Circuit;
use spillproof_circom::json::{self, curve_name};
use spillproof_circom::prove::{
    AsRank, Key as Opened, OverRanks, Proved, RanksPlan, Summary, WITHOUT_CONTRIBUTION,
    contribute as add_contribution, plan as plan_of, plan_over_ranks as plan_of_ranks, setup, summary_of,
    verification_key_of, verify, verify_key,
};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_format::Curve;
use spillproof_groth16::iden3::{Contributor, Origin};

use super::groth16_folder::Folder;
use super::groth16_key::{Key, follow};
use super::on_gpu::{OnGpu, Used};
use super::plan;
use super::plan_ranks::{self, PhaseSeconds, Reach, Speeds};
use super::plan_table::{Place, Rung};
use super::reach_svg;
use crate::args::{
    AllowInsecure, Global, Groth16 as Command, Groth16Example, Kept, OnRanks, PlannedRanks, ProofOn, Sharing,
};
use crate::failure::Failure;
use crate::link::KnownLink;
use crate::output::{Output, write_together};
use crate::ranks::{self, Job, RankReport};
use crate::report::steps;
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
            on,
        } => prove(global, [key, witness], [proof, public], &How { kept, gpu, on }),
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
        Command::Plan { key, ladder, on } => plan_key(global, key, *ladder, on),
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
    /// The jobs of GPUs, if any were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<Used>,
}

/// How a proof is made.
struct How<'a> {
    kept: &'a Kept,
    gpu: &'a ProofOn,
    on: &'a OnRanks,
}

impl How<'_> {
    /// GPUs make nothing that a later run or another rank would go on from: what does not verify is made again.
    fn check(&self, is_one_of_several: bool) -> Result<()> {
        self.gpu.check_options()?;
        if !self.gpu.is_asked_for() {
            return Ok(());
        }
        let is_kept = self.kept.is_asked() || self.kept.checkpoints()?.is_some();
        let beside = match (is_one_of_several, is_kept) {
            (true, _) => "several ranks",
            (false, true) => "--checkpoint",
            (false, false) => return Ok(()),
        };
        Err(Failure::Usage(format!(
            "--gpu takes no part in a proof with {beside}: leave one of them out"
        )))
    }

    /// A checkpoint, and ranks, are of one proof.
    fn refuse_a_folder(&self, is_a_rank: bool) -> Result<()> {
        let beside = match is_a_rank {
            true => "ranks prove",
            false if self.kept.checkpoints()?.is_some() => "--checkpoint keeps",
            false => return Ok(()),
        };
        Err(Failure::Usage(format!(
            "{beside} one proof, and WITNESS is a folder: name one of its files"
        )))
    }
}

/// Alone, or as one rank of several.
fn prove(global: &Global, inputs: [&Path; 2], outputs: [&Path; 2], how: &How<'_>) -> Result<()> {
    let folder = Folder::of(inputs[1], outputs)?;
    let Some(job) = Job::join(&how.on.messages, how.on.sharing.share.len())? else {
        how.check(false)?;
        return match folder {
            Some(folder) => {
                how.refuse_a_folder(false)?;
                folder.prove(global, inputs[0], how.gpu)
            }
            None => prove_files(global, inputs, outputs, how, None),
        };
    };
    let proved = how
        .check(job.size() > 1)
        .and_then(|()| match folder {
            Some(_) => how.refuse_a_folder(true),
            None => Ok(()),
        })
        .and_then(|()| job.global(global))
        .and_then(|global| prove_files(&global, inputs, outputs, how, Some(&job)));
    job.end(proved)
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
    let gpu = OnGpu::open(&how.gpu.gpu, how.gpu.offload.into())?;
    let session = run.session_with(ByteSize::Auto, gpu.accelerator(), how.kept.checkpoints()?)?;
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
                    cut: sharing.cut.into(),
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
        Some((ranks, job)) => job.reports(ranks, session.budget().peak_bytes())?,
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
        gpu: gpu.used(),
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
    if let Some(used) = &outcome.gpu {
        run.say(used.said());
    }
    run.finish("groth16 prove", &outcome)?;
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

#[derive(Serialize)]
struct PlannedOverRanks {
    key: Key,
    cut: String,
    /// Of each rank, or of all of them.
    rates: Speeds,
    ranks: Vec<Plan>,
    /// Bytes from each rank to each in both exchanges; a rank's own stay with it.
    exchanges: [Vec<Vec<u64>>; 2],
    phases: Vec<PhaseSeconds>,
    seconds: f64,
    reach: Vec<Reach>,
}

fn plan_over_ranks(global: &Global, file: &Path, ranks: usize, on: &PlannedRanks) -> Result<()> {
    let Sharing { share, cut } = &on.sharing;
    if !share.is_empty() && share.len() != ranks {
        let shares = share.len();
        return Err(Failure::Usage(format!(
            "--share has {shares} weights, and --ranks is {ranks}"
        )));
    }
    let mut run = Run::start(global);
    let svg = on.svg.as_deref().map(Output::create).transpose()?;
    let session = run.session(ByteSize::Auto)?;
    let budget_bytes = session.budget().limit_bytes();
    let summary = summary_of(&session, file)?;
    let shape = (&summary.shape, summary.curve);
    let planned = |ranks, weights: &[u64]| -> Result<RanksPlan> {
        let over = OverRanks {
            ranks,
            weights,
            cut: (*cut).into(),
            piece_bytes: ranks::piece_bytes(budget_bytes) as usize,
        };
        Ok(plan_of_ranks(&session, file, shape, &over, budget_bytes)?)
    };
    let plan = planned(ranks, share)?;
    let link = KnownLink::of(&on.link, Some(summary.curve))?;
    let speeds = Speeds::of(&link, summary.curve, || {
        plan::measured(&session).unwrap_or_default()
    });
    let phases = plan_ranks::phases(&plan, &speeds, &link.link);
    let reach = plan_ranks::reach(&speeds, &link, |ranks| planned(ranks, &[]))?;
    if let Some(svg) = svg {
        let rows = summary.shape.log_domain;
        svg.write(reach_svg::render(
            &format!("a Groth16 proof of 2^{rows} rows"),
            &reach,
        ))?;
    }
    let key = Key::of(file, &summary);
    key.tell(&run);
    run.say(plan_ranks::text(&plan, &speeds, &phases, (&link.called, &reach)));
    let outcome = PlannedOverRanks {
        key,
        cut: format!("{cut:?}").to_lowercase(),
        ranks: plan_ranks::at(&plan, &speeds),
        rates: speeds,
        exchanges: plan.exchanges,
        seconds: phases.iter().map(|phase| phase.seconds).sum(),
        phases,
        reach,
    };
    run.finish_without_table("groth16 plan", &outcome)?;
    Ok(())
}

#[derive(Serialize)]
struct Planned {
    key: Key,
    peak_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    seconds: f64,
    rates: Rates,
    plan: Plan,
    /// Plans within other budgets, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ladder: Vec<Rung>,
}

fn plan_key(global: &Global, file: &Path, asks_for_ladder: bool, on: &PlannedRanks) -> Result<()> {
    if let Some(ranks) = on.ranks {
        return plan_over_ranks(global, file, ranks as usize, on);
    }
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let summary = summary_of(&session, file)?;
    let shape = (&summary.shape, summary.curve);
    let planned = |budget_bytes| -> Result<Plan> { Ok(plan_of(&session, file, shape, budget_bytes)?) };
    let plan = planned(session.budget().limit_bytes())?;
    let measured = plan::measured(&session);
    let rates = measured.unwrap_or_default();
    let plan = plan.at(&rates);
    let key = Key::of(file, &summary);
    key.tell(&run);
    let place = Place::of(&session, true, measured.is_some());
    let ladder = match asks_for_ladder {
        true => place.climb(&plan, &rates, planned)?,
        false => Vec::new(),
    };
    run.say(match asks_for_ladder {
        true => place.ladder(&ladder),
        false => place.steps(&plan),
    });
    let total = plan.of(None);
    let outcome = Planned {
        key,
        peak_bytes: total.peak_bytes,
        bytes_read: total.bytes_read,
        bytes_written: total.bytes_written,
        seconds: total.seconds,
        rates,
        plan,
        ladder,
    };
    run.finish_without_table("groth16 plan", &outcome)?;
    Ok(())
}
