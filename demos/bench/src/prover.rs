//! The whole prover, keys included, against the unmodified one.
//!
//! Both read the same parameters from disk, past the page cache, in turns. `--curve` takes budgets from the
//! smallest one that the planner finds, doubled up to the memory of the unmodified prover, and then all
//! available memory. `--swap` runs the unmodified prover with a swap file, under the limit that spillproof
//! has as a whole process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use spillproof_cgroup_tests::{Group, Keeper, Refusal, SwapFile, watched};
use spillproof_circuits::{Kind, System};
use spillproof_cli::args::{Shape, name_of};
use spillproof_cli::commands::oom::BESIDE_BUDGET_BYTES;
use spillproof_cli::failure::Failure;
use spillproof_cli::report::progress::Progress;
use spillproof_cli::report::table::{bytes, grid};
use spillproof_cli::run::{Result, Run};
use spillproof_cli::systems;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::Rates;

use crate::args::Bench;
use crate::child::{Limited, Prover, Statement, Subject, Taken, this_program};

const MEMORY: ByteSize = ByteSize::Bytes(32 << 20);
const TIMEOUT: Duration = Duration::from_secs(3600);
/// A prover that swaps is stopped after this many times its time with enough memory.
const SWAP_PATIENCE: f64 = 20.0;

/// One circuit of one size on so many threads.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The circuit.
    pub circuit: Kind,
    /// Its proof system.
    pub system: System,
    /// log2 of its rows.
    pub k: u32,
    /// Of both provers.
    pub threads: usize,
    /// Ours, within the budget.
    pub ours: Point,
    /// The unmodified prover, without a limit on its memory.
    pub stock: Taken,
    /// Ours by theirs: keys.
    pub keygen_ratio: f64,
    /// Ours by theirs: the proof.
    pub prove_ratio: f64,
    /// Other budgets, if they were asked for, from the smallest one to all available memory.
    pub curve: Vec<Point>,
    /// The unmodified prover with swap, if that was asked for.
    pub swap: Option<Swapped>,
}

/// Ours with one budget.
#[derive(Debug, Serialize)]
pub struct Point {
    /// The budget; `None` is all available memory.
    pub budget_bytes: Option<u64>,
    /// Its figures.
    #[serde(flatten)]
    pub taken: Taken,
    /// The bytes of the proof at the measured rates of the disk: a lower bound of its time.
    pub disk_seconds: f64,
}

/// The unmodified prover with a swap file.
#[derive(Debug, Serialize)]
pub struct Swapped {
    /// The limit on the whole process, without swap.
    pub limit_bytes: u64,
    /// Ours in the same limit, without any swap.
    pub ours: Option<Taken>,
    /// The unmodified prover.
    pub stock: Option<Taken>,
    /// The outcome as a sentence, or why there is none.
    pub note: String,
}

struct Bencher<'a> {
    args: &'a Bench,
    session: Arc<Session>,
    rates: Rates,
    dir: Folder,
}

/// Runs the proofs that were asked for, and prints their tables.
///
/// # Errors
/// The engine's and halo2's; [`Failure::Demonstration`] for a child that fails.
pub fn run(run: &mut Run, args: &Bench) -> Result<Vec<Compared>> {
    if args.prove.is_empty() {
        return Ok(Vec::new());
    }
    let session = run.session(MEMORY)?;
    let rates = session.run(|| Rates::measure(session.workspace()))?;
    let dir = Folder::new(session.dir())?;
    let bencher = Bencher {
        args,
        session,
        rates,
        dir,
    };
    let cores = match args.cores.as_slice() {
        [] => vec![bencher.session.threads()],
        cores => cores.to_vec(),
    };
    let mut all = Vec::new();
    for &k in &args.k {
        let params = match &args.params {
            Some(file) => file.clone(),
            None => bencher.dir.params(args.system, k)?,
        };
        for &circuit in &args.prove {
            for &threads in &cores {
                let statement = Statement {
                    global: &run.global,
                    dir: &bencher.dir.path,
                    params: params.clone(),
                    subject: Subject::BuiltIn {
                        circuit,
                        system: args.system,
                        k,
                    },
                    threads,
                };
                let compared = bencher.compare((circuit, k), &statement)?;
                run.say(format_args!("\n{}", render(&compared).trim_end()));
                if let Some(swap) = &compared.swap {
                    run.say(&swap.note);
                }
                all.push(compared);
            }
        }
    }
    Ok(all)
}

impl Bencher<'_> {
    fn compare(&self, (circuit, k): (Kind, u32), statement: &Statement<'_>) -> Result<Compared> {
        let (system, threads) = (self.args.system, statement.threads);
        let budget_bytes = self.session.budget().limit_bytes();
        let name = format!("{circuit:?} 2^{k}");
        let prover = Prover::Ours(Some(budget_bytes));
        {
            let _line = Progress::start(&format!("{name}: a proof, verified by the unmodified crate"));
            statement.check(prover)?;
        }
        let (mut ours, mut stock) = (Vec::new(), Vec::new());
        for turn in 1..=self.args.runs {
            let _line = Progress::start(&format!("{name}: ours and stock, {turn} of {}", self.args.runs));
            ours.push(statement.prove(prover)?);
            stock.push(statement.prove(Prover::Stock)?);
        }
        let stock = Taken::median(&stock);
        let ours = self.point(Some(budget_bytes), &ours);
        let mut curve = Vec::new();
        if self.args.curve {
            for budget in self.budgets(&Shape::of(system, circuit, k), stock.peak_bytes)? {
                let label = budget.map_or("all memory".into(), bytes);
                let _line = Progress::start(&format!("{name}: budget {label}"));
                let runs: Vec<Taken> = (0..self.args.runs)
                    .map(|_| statement.prove(Prover::Ours(budget)))
                    .collect::<Result<_>>()?;
                curve.push(self.point(budget, &runs));
            }
        }
        let swap = match self.args.swap {
            true => {
                let _line = Progress::start(&format!("{name}: stock with a swap file"));
                Some(self.swapped(statement, budget_bytes, &stock)?)
            }
            false => None,
        };
        Ok(Compared {
            circuit,
            system,
            k,
            threads,
            keygen_ratio: ours.taken.keygen_seconds / stock.keygen_seconds,
            prove_ratio: ours.taken.prove_seconds / stock.prove_seconds,
            ours,
            stock,
            curve,
            swap,
        })
    }

    fn point(&self, budget_bytes: Option<u64>, runs: &[Taken]) -> Point {
        let taken = Taken::median(runs);
        Point {
            budget_bytes,
            taken,
            disk_seconds: taken.bytes_read as f64 / self.rates.bytes_read
                + taken.bytes_written as f64 / self.rates.bytes_written,
        }
    }

    /// From the smallest budget that works, doubled up to `most_bytes`; then all available memory.
    fn budgets(&self, shape: &Shape, most_bytes: u64) -> Result<Vec<Option<u64>>> {
        let plan = systems::plan(&self.session, shape, self.session.budget().limit_bytes())?;
        let doubled = std::iter::successors(Some(plan.smallest_budget_bytes), |bytes| bytes.checked_mul(2));
        let below = doubled.take_while(|bytes| *bytes < most_bytes).map(Some);
        Ok(below.chain([None]).collect())
    }

    fn swapped(&self, statement: &Statement<'_>, budget_bytes: u64, stock: &Taken) -> Result<Swapped> {
        let limit_bytes = budget_bytes + BESIDE_BUDGET_BYTES;
        let mut swapped = Swapped {
            limit_bytes,
            ours: None,
            stock: None,
            note: String::new(),
        };
        let ours = match Group::create(limit_bytes) {
            Ok(group) => statement.prove_in(&group, Prover::Ours(Some(budget_bytes)), TIMEOUT)?,
            Err(refusal @ Refusal::Unsupported(_)) => {
                swapped.note = format!("SKIPPED: {refusal}");
                return Ok(swapped);
            }
            Err(other) => return Err(other.into()),
        };
        if let Limited::Finished(taken) = ours {
            swapped.ours = Some(taken);
        }
        let swap_file = match SwapFile::on(self.session.dir(), stock.peak_bytes * 3 / 2) {
            Ok(file) => file,
            Err(refusal) => {
                swapped.note = format!("SKIPPED: {refusal}");
                return Ok(swapped);
            }
        };
        let patience = Duration::from_secs_f64(60.0 + SWAP_PATIENCE * stock.seconds());
        let group = Group::with_swap(limit_bytes)?;
        match statement.prove_in(&group, Prover::Stock, patience)? {
            Limited::Finished(taken) => {
                swapped.stock = Some(taken);
                let ratio = swapped.ours.map(|ours| ours.prove_seconds / taken.prove_seconds);
                let ratio = ratio.map_or(String::new(), |ratio| {
                    format!(", ours takes {ratio:.2} of its time")
                });
                swapped.note = format!(
                    "unmodified, swapping under {}: keys {:.1} s, proof {:.1} s{ratio}",
                    bytes(limit_bytes),
                    taken.keygen_seconds,
                    taken.prove_seconds
                );
            }
            Limited::Killed => {
                swapped.note = format!("unmodified, swapping under {}: killed", bytes(limit_bytes));
            }
            Limited::TimedOut => {
                swapped.note = format!(
                    "unmodified, swapping under {}: stopped after {:.0} s",
                    bytes(limit_bytes),
                    patience.as_secs_f64()
                );
            }
        }
        drop(group);
        drop(swap_file);
        Ok(swapped)
    }
}

fn render(compared: &Compared) -> String {
    let headings = [
        "",
        "keys, s",
        "prove, s",
        "disk alone, s",
        "peak",
        "read",
        "written",
        "keys by stock",
        "prove by stock",
    ];
    let stock = &compared.stock;
    let row = |name: String, taken: &Taken, disk_seconds: Option<f64>| -> [String; 9] {
        let ratio = |ours: f64, theirs: f64| format!("{:.2}", ours / theirs);
        [
            name,
            format!("{:.2}", taken.keygen_seconds),
            format!("{:.2}", taken.prove_seconds),
            disk_seconds.map_or(String::new(), |seconds| format!("{seconds:.2}")),
            bytes(taken.peak_bytes),
            bytes(taken.bytes_read),
            bytes(taken.bytes_written),
            ratio(taken.keygen_seconds, stock.keygen_seconds),
            ratio(taken.prove_seconds, stock.prove_seconds),
        ]
    };
    let point = |point: &Point| {
        let budget = point.budget_bytes.map_or("all memory".into(), bytes);
        row(format!("budget {budget}"), &point.taken, Some(point.disk_seconds))
    };
    let mut rows = vec![
        point(&compared.ours),
        row(
            format!("unmodified {}", systems::stock_name(compared.system)),
            stock,
            None,
        ),
    ];
    rows.extend(compared.curve.iter().map(point));
    let swap = compared.swap.as_ref();
    let limited = |name: &str, taken: &Taken| row(name.into(), taken, None);
    rows.extend(swap.and_then(|swap| Some(limited("ours, hard limit", swap.ours.as_ref()?))));
    rows.extend(swap.and_then(|swap| Some(limited("unmodified, limit and swap", swap.stock.as_ref()?))));
    format!(
        "{:?}, 2^{} rows, {} threads\n{}",
        compared.circuit,
        compared.k,
        compared.threads,
        grid(&headings, &rows, 2)
    )
}

/// A folder that is removed on drop, and if the process is interrupted.
pub struct Folder {
    /// Where.
    pub path: PathBuf,
    _keeper: Keeper,
}

impl Folder {
    /// In `parent`.
    pub fn new(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("spillproof-bench-{}", std::process::id()));
        let keeper = Keeper::new(r#"rm -rf "$0""#, &path)?;
        std::fs::create_dir_all(&path).map_err(Failure::file(&path))?;
        Ok(Self {
            path,
            _keeper: keeper,
        })
    }

    /// A file of parameters; of KZG, INSECURE ones.
    pub fn params(&self, system: System, k: u32) -> Result<PathBuf> {
        let _line = Progress::start(&format!("parameters of 2^{k}"));
        let system = name_of(&system);
        let file = self.path.join(format!("{k}.params"));
        let srs = self.path.join(format!("{k}.srs"));
        let (k, srs_text, text) = (
            k.to_string(),
            srs.display().to_string(),
            file.display().to_string(),
        );
        for arguments in [
            vec!["gen", "--system", &system, "--k", &k, "--out", &srs_text],
            vec!["export", &srs_text, "--out", &text],
        ] {
            let (program, arguments) = this_program(["spillproof", "srs"], arguments)?;
            let ended = watched(program, arguments, &[], TIMEOUT)?;
            if !ended.status.success() {
                return Err(Failure::Demonstration(ended.stderr));
            }
        }
        std::fs::remove_file(&srs).map_err(Failure::file(&srs))?;
        Ok(file)
    }
}
