//! `spillproof prove` as a process of its own, whose memory is observed from outside.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use spillproof_cgroup_tests::{Group, SlowCores, cold, watched, watched_with};
use spillproof_circuits::{Kind, System};
use spillproof_cli::args::{Global, name_of};
use spillproof_cli::failure::Failure;
use spillproof_cli::report::table::bytes;
use spillproof_cli::run::Result;

use crate::args::OfProgram;
use crate::median;

const TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// The prover of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prover {
    /// The unmodified crate.
    Stock,
    /// A session with this budget in bytes, or with all available memory.
    Ours(Option<u64>),
}

/// Time, memory and bytes of keys and a proof.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Taken {
    /// Both keys; none, if the key was in a file.
    pub keygen_seconds: f64,
    /// The proof.
    pub prove_seconds: f64,
    /// The most resident memory, or the most memory that the group was charged.
    pub peak_bytes: u64,
    /// By the proof.
    pub bytes_read: u64,
    /// By the proof.
    pub bytes_written: u64,
}

impl Taken {
    /// Medians of seconds, and the highest peak.
    pub fn median(runs: &[Self]) -> Self {
        let seconds = |of: fn(&Self) -> f64| median(runs.iter().map(of).collect());
        let most = |of: fn(&Self) -> u64| runs.iter().map(of).max().unwrap_or(0);
        Self {
            keygen_seconds: seconds(|run| run.keygen_seconds),
            prove_seconds: seconds(|run| run.prove_seconds),
            peak_bytes: most(|run| run.peak_bytes),
            bytes_read: most(|run| run.bytes_read),
            bytes_written: most(|run| run.bytes_written),
        }
    }

    /// Keys and proof.
    pub fn seconds(&self) -> f64 {
        self.keygen_seconds + self.prove_seconds
    }
}

/// How a child in a group ended.
pub enum Limited {
    /// With a proof.
    Finished(Taken),
    /// The kernel killed it.
    Killed,
    /// It ran past its time limit.
    TimedOut,
}

/// What is proved.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A built-in circuit of `2^k` rows.
    BuiltIn { circuit: Kind, system: System, k: u32 },
    /// A program's own key and witness.
    Saved(&'a OfProgram),
}

/// A circuit, its parameters, and the number of threads.
pub struct Statement<'a> {
    pub global: &'a Global,
    /// The folder of scratch files.
    pub dir: &'a Path,
    pub params: PathBuf,
    pub subject: Subject<'a>,
    pub threads: usize,
}

impl Statement<'_> {
    /// Proves, with the parameters out of the page cache.
    pub fn prove(&self, prover: Prover) -> Result<Taken> {
        let (program, arguments, proof) = self.command(prover)?;
        let threads = self.threads.to_string();
        let ended = watched(program, &arguments, &[("RAYON_NUM_THREADS", &threads)], TIMEOUT)?;
        proof.remove();
        if !ended.status.success() {
            return Err(failed(prover, &ended.stderr));
        }
        taken(&ended.stdout, ended.peak_bytes, self.subject).ok_or_else(|| failed(prover, &ended.stdout))
    }

    /// Proves, on slow cores if there are any, and gives the report (JSON) and samples (comma-separated
    /// values) of the run.
    pub fn sampled(&self, prover: Prover, mut cores: Option<SlowCores>) -> Result<(String, String)> {
        let (program, mut arguments, proof) = self.command(prover)?;
        let samples = Made(self.dir.join("samples.csv"));
        arguments.extend(["--samples".into(), samples.0.display().to_string()]);
        let threads = self.threads.to_string();
        let mut refused = None;
        let hold = |process: u32| {
            if let Some(Err(refusal)) = cores.as_mut().map(|cores| cores.hold(process)) {
                refused = Some(refusal);
            }
        };
        let environment = [("RAYON_NUM_THREADS", &*threads)];
        let ended = watched_with(program, &arguments, &environment, TIMEOUT, hold)?;
        let csv = std::fs::read_to_string(&samples.0);
        proof.remove();
        samples.remove();
        if !ended.status.success() {
            return Err(failed(prover, &ended.stderr));
        }
        if let Some(refusal) = refused {
            return Err(refusal.into());
        }
        Ok((ended.stdout, csv.map_err(Failure::file(&samples.0))?))
    }

    /// Proves in a group.
    pub fn prove_in(&self, group: &Group, prover: Prover, timeout: Duration) -> Result<Limited> {
        let (program, arguments, proof) = self.command(prover)?;
        let threads = self.threads.to_string();
        let ended = group.run(program, &arguments, &[("RAYON_NUM_THREADS", &threads)], timeout)?;
        proof.remove();
        if ended.timed_out {
            return Ok(Limited::TimedOut);
        }
        if ended.is_oom_killed() {
            return Ok(Limited::Killed);
        }
        if !ended.status.success() {
            return Err(failed(prover, &ended.stderr));
        }
        let taken = taken(&ended.stdout, ended.figures.peak_bytes, self.subject);
        taken
            .map(Limited::Finished)
            .ok_or_else(|| failed(prover, &ended.stdout))
    }

    /// Proves once more, and has the unmodified crate verify the proof.
    pub fn check(&self, prover: Prover) -> Result<()> {
        let (program, arguments, proof) = self.command(prover)?;
        let ended = watched(program, &arguments, &[], TIMEOUT)?;
        let verify = self.words().into_iter().chain([proof.0.display().to_string()]);
        let (program, verify) = this_program(["spillproof", "verify"], verify)?;
        let verified = watched(program, &verify, &[], TIMEOUT)?;
        proof.remove();
        if ended.status.success() && verified.status.success() {
            return Ok(());
        }
        Err(failed(prover, &format!("{}{}", ended.stderr, verified.stderr)))
    }

    fn words(&self) -> Vec<String> {
        let params = ["--srs".into(), self.params.display().to_string()];
        let options = match self.subject {
            Subject::BuiltIn { circuit, system, k } => vec![
                ("--circuit", name_of(&circuit)),
                ("--system", name_of(&system)),
                ("--k", k.to_string()),
            ],
            Subject::Saved(of) => vec![
                ("--key", of.key.display().to_string()),
                ("--witness", of.witness.display().to_string()),
                ("--scheme", name_of(&of.scheme)),
            ],
        };
        let options = options.into_iter().flat_map(|(name, value)| [name.into(), value]);
        params.into_iter().chain(options).collect()
    }

    /// The program, its arguments, and the file of the proof; the parameters are evicted from the page cache.
    fn command(&self, prover: Prover) -> Result<(PathBuf, Vec<String>, Made)> {
        cold::evict(&self.params).map_err(Failure::file(&self.params))?;
        let proof = Made(self.dir.join("proof"));
        let mut arguments = vec!["--json".into(), "--out".into(), proof.0.display().to_string()];
        arguments.extend(self.words());
        let Prover::Ours(budget) = prover else {
            let task = match self.subject {
                Subject::BuiltIn { .. } => "stock",
                Subject::Saved(_) => "stock-saved",
            };
            let (program, arguments) = this_program([task], arguments)?;
            return Ok((program, arguments, proof));
        };
        let memory = budget.map_or("auto".into(), |bytes| bytes.to_string());
        arguments.extend(["--memory".into(), memory]);
        arguments.extend(["--dir".into(), self.dir.display().to_string()]);
        arguments.extend(["--threads".into(), self.threads.to_string()]);
        let backend = clap::ValueEnum::to_possible_value(&self.global.backend);
        arguments.extend(backend.map(|name| format!("--backend={}", name.get_name())));
        arguments.extend((self.global.scratch).map(|scratch| format!("--scratch={scratch}")));
        let (program, arguments) = this_program(["spillproof", "prove"], arguments)?;
        Ok((program, arguments, proof))
    }
}

/// This program, with arguments that begin with the words of a task.
pub fn this_program<const N: usize>(
    task: [&str; N],
    arguments: impl IntoIterator<Item = impl Into<String>>,
) -> Result<(PathBuf, Vec<String>)> {
    let program = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    let task = task.into_iter().map(str::to_owned);
    Ok((
        program,
        task.chain(arguments.into_iter().map(Into::into)).collect(),
    ))
}

/// A file of a run.
struct Made(PathBuf);

impl Made {
    fn remove(&self) {
        // A prover that failed has made none.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn failed(prover: Prover, said: &str) -> Failure {
    let name = match prover {
        Prover::Stock => "the unmodified prover".to_owned(),
        Prover::Ours(Some(budget)) => format!("the prover with a budget of {}", bytes(budget)),
        Prover::Ours(None) => "the prover with all available memory".to_owned(),
    };
    // Progress goes to standard error too, one JSON object a line.
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with('{')).collect();
    Failure::Demonstration(format!("{name} failed: {}", said.join("\n")))
}

/// The figures of a report; `None`, if a phase that the subject has is missing.
fn taken(stdout: &str, peak_bytes: u64, subject: Subject<'_>) -> Option<Taken> {
    let output: serde_json::Value = serde_json::from_str(stdout).ok()?;
    let phases = output["report"]["phases"].as_array()?;
    let phase = |name: &str| {
        let found = phases
            .iter()
            .find(|phase| phase["name"].as_str().is_some_and(|known| known.ends_with(name)));
        found.cloned()
    };
    let seconds = |name: &str| phase(name)?["seconds"].as_f64();
    let proof = phase("prove")?;
    let keygen_seconds = match subject {
        Subject::BuiltIn { .. } => seconds("verifying key")? + seconds("proving key")?,
        Subject::Saved(_) => 0.0,
    };
    Some(Taken {
        keygen_seconds,
        prove_seconds: seconds("prove")?,
        peak_bytes,
        bytes_read: proof["bytes_read"].as_u64()?,
        bytes_written: proof["bytes_written"].as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let phase = |name: &str, seconds: f64| serde_json::json!({ "name": name, "seconds": seconds, "bytes_read": 7, "bytes_written": 8 });
        let phases = [
            phase("stock: parameters", 9.0),
            phase("stock: verifying key", 1.0),
            phase("stock: proving key", 2.0),
            phase("stock: prove", 4.0),
        ];
        let output = serde_json::json!({ "report": { "phases": phases } });
        let subject = Subject::BuiltIn {
            circuit: Kind::Chain,
            system: System::Axiom,
            k: 8,
        };
        let taken = taken(&output.to_string(), 5, subject).expect("a report");
        assert_eq!((taken.keygen_seconds, taken.prove_seconds), (3.0, 4.0));
        assert_eq!(
            (taken.peak_bytes, taken.bytes_read, taken.bytes_written),
            (5, 7, 8)
        );
        assert!(super::taken("{}", 0, subject).is_none());
    }
}
