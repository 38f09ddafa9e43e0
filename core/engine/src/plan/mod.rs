//! What a run will take, before any work: leases, passes, bytes read and written, seconds, and the smallest
//! budget that works.
//!
//! Algorithm: a [dry run](crate::dry) of the very code that works. The caller gives a closure over a dry
//! [`Workspace`]; [`Plan::new`] runs it within the budget, and within others to find the smallest. Each stage
//! cuts its work as in a real run, so a plan refuses what a real run would refuse, and does so before the
//! first byte is read.
//!
//! Bytes that maps write out and read back (cells of the witness, of fixed columns, of copies) depend on
//! which cells a circuit assigns, and in which order; a dry run assumes that all cells are assigned, once and
//! in order, and all of them copied. A circuit that copies cells far apart with a small budget moves more,
//! one that leaves columns empty less. Seconds are a guess from [`Rates`]: the larger of disk and compute for
//! each step, without the circuit's own synthesis.
//!
//! All of it is as the processor does it. Each step names the jobs that an accelerator is offered
//! ([`Offer`]); the accelerator says what it makes of them. Beside an accelerator ([`Workspace::beside`]) short columns
//! are worked on one by one, since each is offered.
//!
//! Memory: a few hundred bytes a column for each thread.

mod rates;
mod search;

use serde::Serialize;

pub use crate::dry::{Job, Offer, Phase};
pub use rates::Rates;

use search::{best_within, smallest};

use crate::Error;
use crate::Result;
use crate::column::Workspace;
use crate::dry::{Held, StepRecord, Work, enter};
use crate::session::{Task, threads_of};

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Where it belongs.
    pub phase: Phase,
    /// Its name, as in the tracing spans of the drop-in.
    pub name: &'static str,
    /// The most bytes of the budget that are held meanwhile.
    pub peak_bytes: u64,
    /// Passes over columns.
    pub passes: u64,
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// How long it takes, roughly.
    pub seconds: f64,
    #[serde(skip)]
    work: Work,
    /// What an accelerator is offered, in the order in which it first is.
    pub offers: Vec<Offer>,
}

/// What a run will take.
///
/// ```
/// use ark_bn254::Fr;
/// use spillproof_engine::column::{Placement, Workspace, Writer};
/// use spillproof_engine::plan::{Plan, Rates};
/// use spillproof_engine::step;
/// use spillproof_engine::stream::{Transform, ntt};
///
/// // A column of 2^20 scalars is written and transformed.
/// let run = |workspace: &Workspace| {
///     let _step = step!(workspace, "transform");
///     let column = Writer::<Fr>::scratch(workspace, "values", 1 << 20, Placement::Disk)?.finish()?;
///     ntt(&column, &Transform::forward(20, spillproof_commit::omega(spillproof_commit::HALO2_ROOT_OF_UNITY, 20)?), Placement::Disk)?;
///     Ok(())
/// };
/// let plan = Plan::new(&run, 8 << 20, 2, &Rates::default())?;
/// assert!(plan.peak_bytes() <= 8 << 20);
/// assert!(plan.smallest_budget_bytes < 4 << 20);
/// assert!(Plan::new(&run, plan.smallest_budget_bytes / 2, 2, &Rates::default()).is_err());
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The budget that it is for.
    pub budget_bytes: u64,
    /// The smallest budget that works, in whole [`GRAIN_BYTES`].
    pub smallest_budget_bytes: u64,
    /// Compute threads.
    pub threads: usize,
    /// The most that files take at one time, with the parameters.
    pub disk_bytes: u64,
    /// The most that files take at one time beside what is there when the proof begins: parameters and keys.
    pub proof_disk_bytes: u64,
    /// In order.
    pub steps: Vec<Step>,
}

/// Budgets are searched in steps of so many bytes.
pub const GRAIN_BYTES: u64 = 64 << 10;

/// A run over a dry workspace.
pub type DryRunOf<'a> = dyn Fn(&Workspace) -> Result<()> + Sync + 'a;

impl Plan {
    /// The plan for `run` within `budget_bytes` on `threads` threads.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest budget that works;
    /// [`Invalid::Setting`](crate::error::Invalid::Setting) for more than
    /// [`THREADS_MAX`](crate::session::THREADS_MAX) threads; other errors of `run`.
    pub fn new(run: &DryRunOf<'_>, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Self> {
        Self::of_ways(&[run], budget_bytes, threads, rates)
    }

    /// The plan for the first of the ways that a task may go, in a budget in which all of them work.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn of_ways(ways: &[&DryRunOf<'_>], budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Self> {
        pool(threads)?.install(|| {
            let smallest_budget_bytes = smallest(ways)?;
            let found = best_within(ways, budget_bytes, None)?;
            let record = found.workspaces.first().and_then(Workspace::dry_run);
            let steps = record.map(|record| record.steps()).unwrap_or_default();
            Ok(Self {
                budget_bytes,
                smallest_budget_bytes,
                threads: rayon::current_num_threads(),
                disk_bytes: record.map_or(0, |record| record.disk_peak_bytes()),
                proof_disk_bytes: record
                    .and_then(|record| record.disk_growth_bytes(Phase::Proof))
                    .unwrap_or(0),
                steps: steps.into_iter().map(|step| Step::new(step, rates)).collect(),
            })
        })
    }

    /// The same plan, with the seconds that it takes at other rates.
    #[must_use]
    pub fn at(mut self, rates: &Rates) -> Self {
        for step in &mut self.steps {
            step.seconds = rates.seconds(step.bytes_read, step.bytes_written, &step.work);
        }
        self
    }

    /// The most bytes of the budget that are held at one time.
    pub fn peak_bytes(&self) -> u64 {
        self.of(None).peak_bytes
    }

    /// Sums over the steps of one phase, or of all; the peak is the highest.
    pub fn of(&self, phase: Option<Phase>) -> Step {
        let mut total = Step {
            phase: phase.unwrap_or(Phase::Proof),
            name: "total",
            peak_bytes: 0,
            passes: 0,
            bytes_read: 0,
            bytes_written: 0,
            seconds: 0.0,
            work: Work::default(),
            offers: Vec::new(),
        };
        let wanted = |step: &&Step| phase.is_none_or(|phase| step.phase == phase);
        for step in self.steps.iter().filter(wanted) {
            total.peak_bytes = total.peak_bytes.max(step.peak_bytes);
            total.passes += step.passes;
            total.bytes_read += step.bytes_read;
            total.bytes_written += step.bytes_written;
            total.seconds += step.seconds;
            step.offers
                .iter()
                .for_each(|offer| enter(&mut total.offers, *offer));
        }
        total
    }
}

impl Step {
    /// How long the disk alone takes.
    pub fn disk_seconds(&self, rates: &Rates) -> f64 {
        rates.seconds(self.bytes_read, self.bytes_written, &Work::default())
    }

    fn new(record: StepRecord, rates: &Rates) -> Self {
        Self {
            phase: record.phase,
            name: record.name,
            peak_bytes: record.peak_bytes,
            passes: record.passes,
            bytes_read: record.bytes_read,
            bytes_written: record.bytes_written,
            seconds: rates.seconds(record.bytes_read, record.bytes_written, &record.work),
            work: record.work,
            offers: record.offers,
        }
    }
}

/// The smallest budget in which `run` works on `threads` threads, in whole [`GRAIN_BYTES`].
///
/// # Errors
/// [`Invalid::NoBudget`](crate::error::Invalid::NoBudget), if there is none; errors of `run` other than
/// refusals.
pub fn smallest_budget_bytes(run: &DryRunOf<'_>, threads: usize) -> Result<u64> {
    pool(threads)?.install(|| smallest(&[run]))
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads_of(threads)?)
        .build()
        .map_err(|error| Error::Threads {
            source: std::io::Error::other(error),
        })
}

/// Runs a task dry before it begins, in each of the ways that it may go, and chooses the reserve with the
/// shortest estimated time: the bytes that columns in memory leave free. A larger reserve puts more columns
/// on disk. Columns that are read once or twice may have a larger one than other columns. A budget in which
/// the cuts of one stage leave too little for another is used in part. Columns that earlier tasks left in
/// memory are moved to disk, if there is too little room beside them. Beside other tasks nothing is run:
/// there, all columns are on disk.
///
/// The task is one `phase` of the runs. A proof for which the folder's disk has no room is refused. Keys,
/// whose selectors may become fewer columns than a dry run has, are made, with a warning.
///
/// # Errors
/// [`Error::BudgetTooSmall`], with the smallest budget in which the task works; [`Error::DiskTooSmall`];
/// other errors of the runs; those of columns on their way to disk.
pub fn rehearse(task: &Task, phase: Phase, ways: &[&DryRunOf<'_>]) -> Result<()> {
    if task.account().has_shared() {
        return Ok(());
    }
    let workspace = task.session().workspace();
    let budget = &workspace.budget;
    let accelerator = workspace.accelerator.as_ref();
    let ways = ways
        .iter()
        .map(|way| move |dry: &Workspace| way(&dry.beside(accelerator)));
    let ways: Vec<_> = ways.collect();
    let ways: Vec<&DryRunOf<'_>> = ways.iter().map(|way| way as _).collect();
    let find = || {
        let bytes = budget.held_bytes();
        let held = Some(Held { phase, bytes }).filter(|held| held.bytes > 0);
        workspace.spread(|| best_within(&ways, budget.limit_bytes(), held))?
    };
    let mut found = find();
    if matches!(found, Err(Error::BudgetTooSmall { .. })) && budget.held_bytes() > 0 {
        workspace.move_columns_to_disk()?;
        found = find();
    }
    let found = found?;
    task.account().reserve(found.reserve);
    task.account().leave_unused(found.unused_bytes);
    let records = found.workspaces.iter().filter_map(Workspace::dry_run);
    let growths = records.filter_map(|record| record.disk_growth_bytes(phase));
    let growth_bytes = growths.max().unwrap_or(0);
    match workspace.storage.check_room(phase.name(), growth_bytes) {
        Err(error) if phase != Phase::Proof => {
            tracing::warn!("{error}");
            Ok(())
        }
        checked => checked,
    }
}
