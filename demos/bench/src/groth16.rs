//! `spillproof-bench groth16`: proofs over `.zkey` and `.wtns` files, ours under a hard limit, beside other
//! libraries' in memory.
//!
//! Each proof is a process of its own, and the files are out of the page cache before it. Reading the key is
//! counted for ours, whose readings go on within the budget, and left out for the peers, which hold the key.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use spillproof_cgroup_tests::{Group, Refusal, cold, watched};
use spillproof_cli::args::{Global, Pairing, Values, name_of};
use spillproof_cli::commands::oom::BESIDE_BUDGET_BYTES;
use spillproof_cli::failure::Failure;
use spillproof_cli::report::progress::Progress;
use spillproof_cli::report::table::{bytes, grid};
use spillproof_cli::run::{Result, Run};
use spillproof_engine::budget::ByteSize;

use crate::args::{Groth16, Peer};
use crate::child::this_program;
use crate::median;
use crate::prover::Folder;

const MEMORY: ByteSize = ByteSize::Bytes(128 << 20);
const TIMEOUT: Duration = Duration::from_secs(3600);

/// A proof of one size.
#[derive(Debug, Serialize)]
struct Compared {
    values: Values,
    curve: Pairing,
    k: u32,
    budget_bytes: u64,
    /// On the whole process, page cache included; `None` where no group can be made.
    limit_bytes: Option<u64>,
    /// From a `.zkey` file.
    zkey: Taken,
    /// From a container.
    container: Taken,
    peers: Vec<ByPeer>,
}

/// A proof by a peer.
#[derive(Debug, Serialize)]
struct ByPeer {
    peer: Peer,
    /// Without a limit on its memory.
    taken: Taken,
    /// Under the same limit as ours.
    in_limit: Option<Ending>,
    /// Our seconds by the peer's.
    zkey_ratio: f64,
    container_ratio: f64,
}

/// Time and memory of a proof.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Taken {
    /// Reading key and witness.
    reading_seconds: f64,
    prove_seconds: f64,
    /// The most resident memory, or the most that the group was charged.
    peak_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
}

/// How a process under a limit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ending {
    Finished,
    Killed,
    Failed,
}

#[derive(Serialize)]
struct Outcome {
    runs: usize,
    proofs: Vec<Compared>,
}

/// Runs the proofs that were asked for, and prints their tables.
///
/// # Errors
/// The engine's; [`Failure::Demonstration`] for a process that fails.
pub fn run(global: &Global, args: &Groth16) -> Result<()> {
    if args.runs == 0 {
        return Err(Failure::Usage("--runs must be at least 1".into()));
    }
    let mut run = Run::start(global);
    let session = run.session(MEMORY)?;
    let budget_bytes = session.budget().limit_bytes();
    let folder = Folder::new(session.dir())?;
    let threads = session.threads();
    drop(session);
    run.say(format_args!("medians of {} runs, in turns", args.runs));
    let mut proofs = Vec::new();
    for &k in &args.k {
        for &values in &args.values {
            let files = Files::make(&folder.path, (k, values, args.curve), budget_bytes)?;
            let measured = Measured {
                files,
                global,
                budget_bytes,
                threads,
            };
            let compared = measured.compare(args, k, values)?;
            run.say(format_args!("\n{}", render(&compared, threads).trim_end()));
            proofs.push(compared);
        }
    }
    let outcome = Outcome {
        runs: args.runs,
        proofs,
    };
    run.finish("bench groth16", &outcome)?;
    Ok(())
}

/// The files of a circuit, which are removed on drop.
struct Files {
    dir: PathBuf,
    zkey: PathBuf,
    container: PathBuf,
    wtns: PathBuf,
    curve: String,
}

impl Files {
    fn make(folder: &Path, (k, values, curve): (u32, Values, Pairing), budget_bytes: u64) -> Result<Self> {
        let _line = Progress::start(&format!("a key of 2^{k} rows"));
        let dir = folder.join("groth16");
        fs::create_dir_all(&dir).map_err(Failure::file(&dir))?;
        let files = Self {
            zkey: dir.join("key.zkey"),
            container: dir.join("key.spill"),
            wtns: dir.join("witness.wtns"),
            dir,
            curve: name_of(&curve),
        };
        let [zkey, wtns, container] =
            [&files.zkey, &files.wtns, &files.container].map(|file| file.display().to_string());
        let (k, values, memory) = (k.to_string(), name_of(&values), budget_bytes.to_string());
        let dir = files.dir.display().to_string();
        for words in [
            vec![
                "example",
                &zkey,
                &wtns,
                "--k",
                &k,
                "--values",
                &values,
                "--curve",
                &files.curve,
            ],
            vec![
                "import", &zkey, "--out", &container, "--memory", &memory, "--dir", &dir,
            ],
        ] {
            let (program, arguments) = this_program(["spillproof", "groth16"], words)?;
            let ended = watched(program, arguments, &[], TIMEOUT)?;
            if !ended.status.success() {
                return Err(Failure::Demonstration(ended.stderr));
            }
        }
        Ok(files)
    }

    /// Takes the files out of the page cache.
    fn evict(&self) -> Result<()> {
        for file in [&self.zkey, &self.container, &self.wtns] {
            cold::evict(file).map_err(Failure::file(file))?;
        }
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The folder that it is in is removed at the end.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

struct Measured<'a> {
    files: Files,
    global: &'a Global,
    budget_bytes: u64,
    threads: usize,
}

impl Measured<'_> {
    fn compare(&self, args: &Groth16, k: u32, values: Values) -> Result<Compared> {
        let limit_bytes = self.budget_bytes + BESIDE_BUDGET_BYTES;
        let runs = args.runs;
        let mut taken = [const { Vec::new() }; 2];
        let mut by_peers = vec![Vec::new(); args.peers.len()];
        let mut is_limited = false;
        for turn in 1..=runs {
            let _line = Progress::start(&format!("2^{k} rows: ours and the peers, {turn} of {runs}"));
            for (key, taken) in [&self.files.zkey, &self.files.container]
                .into_iter()
                .zip(&mut taken)
            {
                let (run, in_group) = self.ours(key, limit_bytes)?;
                taken.push(run);
                is_limited = in_group;
            }
            for (peer, taken) in args.peers.iter().zip(&mut by_peers) {
                taken.push(self.peer(*peer)?);
            }
        }
        let [zkey, container] = taken.map(|runs| Taken::median(&runs));
        let seconds = |taken: &Taken| taken.reading_seconds + taken.prove_seconds;
        let by_peer = |(peer, runs): (&Peer, Vec<Taken>)| {
            let taken = Taken::median(&runs);
            Ok(ByPeer {
                peer: *peer,
                taken,
                in_limit: match is_limited {
                    true => Some(self.peer_in_limit(*peer, limit_bytes)?),
                    false => None,
                },
                zkey_ratio: seconds(&zkey) / taken.prove_seconds,
                container_ratio: seconds(&container) / taken.prove_seconds,
            })
        };
        Ok(Compared {
            values,
            curve: args.curve,
            k,
            budget_bytes: self.budget_bytes,
            limit_bytes: is_limited.then_some(limit_bytes),
            zkey,
            container,
            peers: (args.peers.iter().zip(by_peers))
                .map(by_peer)
                .collect::<Result<_>>()?,
        })
    }

    fn proof(&self) -> [String; 2] {
        ["proof.json", "public.json"].map(|name| self.files.dir.join(name).display().to_string())
    }

    /// A proof of ours, and whether it was under the limit.
    fn ours(&self, key: &Path, limit_bytes: u64) -> Result<(Taken, bool)> {
        self.files.evict()?;
        let [proof, public] = self.proof();
        let (memory, threads) = (self.budget_bytes.to_string(), self.threads.to_string());
        let [key, wtns, dir] =
            [key, &self.files.wtns, &self.files.dir].map(|path| path.display().to_string());
        let mut words = vec!["prove", &key, &wtns, &proof, &public, "--json"];
        words.extend(["--memory", &memory, "--dir", &dir, "--threads", &threads]);
        let scratch = self.global.scratch.map(|scratch| scratch.to_string());
        if let Some(scratch) = &scratch {
            words.extend(["--scratch", scratch]);
        }
        let (program, arguments) = this_program(["spillproof", "groth16"], words)?;
        let ended = match Group::create(limit_bytes) {
            Ok(group) => {
                let ended = group.run(program, arguments, &[], TIMEOUT)?;
                if ended.is_oom_killed() {
                    return Err(Failure::Demonstration(format!(
                        "the prover was killed under {}",
                        bytes(limit_bytes)
                    )));
                }
                (
                    ended.status,
                    ended.stdout,
                    ended.stderr,
                    ended.figures.peak_bytes,
                    true,
                )
            }
            Err(Refusal::Unsupported(_)) => {
                let ended = watched(program, arguments, &[], TIMEOUT)?;
                (ended.status, ended.stdout, ended.stderr, ended.peak_bytes, false)
            }
            Err(other) => return Err(other.into()),
        };
        let (status, stdout, stderr, peak_bytes, in_group) = ended;
        match Taken::of(&stdout, peak_bytes).filter(|_| status.success()) {
            Some(taken) => Ok((taken, in_group)),
            None => Err(Failure::Demonstration(format!("the prover failed: {stderr}"))),
        }
    }

    fn peer_command(&self, peer: Peer) -> Result<(PathBuf, Vec<String>)> {
        self.files.evict()?;
        let [zkey, wtns] = [&self.files.zkey, &self.files.wtns].map(|file| file.display().to_string());
        let peer = name_of(&peer);
        let words = [
            &zkey,
            &wtns,
            "--json",
            "--curve",
            &self.files.curve,
            "--peer",
            &peer,
        ];
        this_program(["in-memory"], words)
    }

    fn peer(&self, peer: Peer) -> Result<Taken> {
        let (program, arguments) = self.peer_command(peer)?;
        let threads = self.threads.to_string();
        let ended = watched(program, arguments, &[("RAYON_NUM_THREADS", &threads)], TIMEOUT)?;
        let taken = Taken::of(&ended.stdout, ended.peak_bytes).filter(|_| ended.status.success());
        taken.ok_or_else(|| Failure::Demonstration(format!("{} failed: {}", name_of(&peer), ended.stderr)))
    }

    fn peer_in_limit(&self, peer: Peer, limit_bytes: u64) -> Result<Ending> {
        let group = Group::create(limit_bytes)?;
        let (program, arguments) = self.peer_command(peer)?;
        let ended = group.run(program, arguments, &[], TIMEOUT)?;
        Ok(match ended.is_oom_killed() {
            true => Ending::Killed,
            false if ended.status.success() => Ending::Finished,
            false => Ending::Failed,
        })
    }
}

impl Taken {
    /// From a report.
    fn of(stdout: &str, peak_bytes: u64) -> Option<Self> {
        let output: serde_json::Value = serde_json::from_str(stdout).ok()?;
        let mut taken = Self {
            peak_bytes,
            ..Self::default()
        };
        for phase in output["report"]["phases"].as_array()? {
            let seconds = phase["seconds"].as_f64()?;
            match phase["name"].as_str()? {
                "prove" => taken.prove_seconds += seconds,
                _ => taken.reading_seconds += seconds,
            }
            taken.bytes_read += phase["bytes_read"].as_u64()?;
            taken.bytes_written += phase["bytes_written"].as_u64()?;
        }
        Some(taken)
    }

    /// Medians of seconds, and the highest of the rest.
    fn median(runs: &[Self]) -> Self {
        let seconds = |of: fn(&Self) -> f64| median(runs.iter().map(of).collect());
        let most = |of: fn(&Self) -> u64| runs.iter().map(of).max().unwrap_or(0);
        Self {
            reading_seconds: seconds(|run| run.reading_seconds),
            prove_seconds: seconds(|run| run.prove_seconds),
            peak_bytes: most(|run| run.peak_bytes),
            bytes_read: most(|run| run.bytes_read),
            bytes_written: most(|run| run.bytes_written),
        }
    }
}

fn render(compared: &Compared, threads: usize) -> String {
    let headings = [
        "",
        "reading, s",
        "prove, s",
        "peak",
        "read",
        "written",
        "by each peer's proof",
    ];
    let row = |name: String, taken: &Taken, ratio: Option<fn(&ByPeer) -> f64>| {
        let by = |ratio: fn(&ByPeer) -> f64| {
            let ratios = compared.peers.iter().map(|by| format!("{:.2}", ratio(by)));
            ratios.collect::<Vec<_>>().join(", ")
        };
        [
            name,
            format!("{:.2}", taken.reading_seconds),
            format!("{:.2}", taken.prove_seconds),
            bytes(taken.peak_bytes),
            bytes(taken.bytes_read),
            bytes(taken.bytes_written),
            ratio.map_or(String::new(), by),
        ]
    };
    let mut rows = vec![
        row("ours, .zkey".into(), &compared.zkey, Some(|by| by.zkey_ratio)),
        row(
            "ours, container".into(),
            &compared.container,
            Some(|by| by.container_ratio),
        ),
    ];
    rows.extend((compared.peers.iter()).map(|by| row(name_of(&by.peer), &by.taken, None)));
    let in_limit = (compared.peers.iter()).filter_map(|by| {
        let ending = match by.in_limit? {
            Ending::Finished => "a proof",
            Ending::Killed => "killed",
            Ending::Failed => "failed",
        };
        Some(format!("; {} under it: {ending}", name_of(&by.peer)))
    });
    let limit = match compared.limit_bytes {
        Some(limit_bytes) => format!(
            "ours under a limit of {}, page cache included{}",
            bytes(limit_bytes),
            in_limit.collect::<String>()
        ),
        None => "SKIPPED: a limit on the process, since no control group can be made".to_owned(),
    };
    format!(
        "{:?} values over {:?}, 2^{} rows, {threads} threads, budget {}\n{}{limit}",
        compared.values,
        compared.curve,
        compared.k,
        bytes(compared.budget_bytes),
        grid(&headings, &rows, 2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let phase = |name: &str, seconds: f64| serde_json::json!({ "name": name, "seconds": seconds, "bytes_read": 7, "bytes_written": 8 });
        let phases = [phase("key", 1.0), phase("witness", 2.0), phase("prove", 4.0)];
        let output = serde_json::json!({ "report": { "phases": phases } });
        let taken = Taken::of(&output.to_string(), 5).expect("a report");
        assert_eq!((taken.reading_seconds, taken.prove_seconds), (3.0, 4.0));
        assert_eq!(
            (taken.peak_bytes, taken.bytes_read, taken.bytes_written),
            (5, 21, 24)
        );
        assert!(Taken::of("{}", 0).is_none());
    }
}
