//! What a run will take, before any work: leases, passes, bytes read and written, seconds, and the smallest budget that works.
//!
//! Algorithm: a [dry run](crate::dry) of the very code that works. The caller gives a closure over a dry
//! [`Workspace`]; [`Plan::new`] runs it within the budget, and within others to find the smallest. Each stage cuts
//! its work as in a real run, so a plan refuses what a real run would refuse, and does so before the first byte is read.
//!
//! Bytes that maps write out and read back (cells of the witness, of fixed columns, of copies) depend on which cells a circuit assigns,
//! and in which order; a dry run assumes that all cells are assigned, once and in order, and all of them copied. A circuit that copies
//! cells far apart with a small budget moves more, one that leaves columns empty less. Seconds are a guess from [`Rates`]: the
//! larger of disk and compute for each step, without the circuit's own synthesis.
//!
//! All of it is as the processor does it. Each step names the jobs that an accelerator is offered ([`Offer`]); the accelerator says what it
//! makes of them.
//!
//! Memory: a few hundred bytes a column.

mod rates;

use serde::Serialize;

pub use crate::dry::{Job, Offer, Phase};
pub use rates::Rates;

use crate::budget::Budget;
use crate::column::Workspace;
use crate::dry::{StepRecord, enter};
use crate::error::Invalid;
use crate::session::Task;
use crate::{Error, Result};

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
    /// What a second compute tier is offered, in the order in which it first is.
    pub offers: Vec<Offer>,
}

/// What a run will take.
///
/// ```
/// use ark_bn254::Fr;
/// use spillproof::column::{Placement, Workspace, Writer};
/// use spillproof::plan::{Plan, Rates};
/// use spillproof::step;
/// use spillproof::stream::{Transform, ntt};
///
/// // A column of 2^20 scalars is written and transformed.
/// let run = |workspace: &Workspace| {
///     let _step = step!(workspace, "transform");
///     let column = Writer::<Fr>::scratch(workspace, "values", 1 << 20, Placement::Disk)?.finish()?;
///     ntt(&column, &Transform::forward(20, spillproof::commit::omega(spillproof::commit::HALO2_ROOT_OF_UNITY, 20)?), Placement::Disk)?;
///     Ok(())
/// };
/// let plan = Plan::new(&run, 8 << 20, 2, &Rates::default())?;
/// assert!(plan.peak_bytes() <= 8 << 20);
/// assert!(plan.smallest_budget_bytes < 4 << 20);
/// assert!(Plan::new(&run, plan.smallest_budget_bytes / 2, 2, &Rates::default()).is_err());
/// # Ok::<(), spillproof::Error>(())
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
    /// In order.
    pub steps: Vec<Step>,
}

/// Budgets are searched in steps of so many bytes.
pub const GRAIN_BYTES: u64 = 64 << 10;
/// Reserves that are tried, besides none and all: a half of the budget, three quarters, and so on.
const RESERVES_LOG: u32 = 4;
/// Smaller budgets that are tried, down to a half, where one does not work and is not too small.
const SMALLER_BUDGETS: u64 = 16;
/// No circuit needs more than this.
const BUDGET_BYTES_MAX: u64 = 1 << 46;

/// A run over a dry workspace.
pub type DryRunOf<'a> = dyn Fn(&Workspace) -> Result<()> + Sync + 'a;

impl Plan {
    /// The plan for `run` within `budget_bytes` on `threads` threads.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest budget that works; other errors of `run`.
    pub fn new(run: &DryRunOf<'_>, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Threads {
                source: std::io::Error::other(error),
            })?;
        pool.install(|| {
            let smallest_budget_bytes = smallest_above(run, 0)?;
            let found = best_within(&[run], budget_bytes)?;
            let record = found.workspaces.first().and_then(Workspace::dry_run);
            let steps = record.map(|record| record.steps()).unwrap_or_default();
            Ok(Self {
                budget_bytes,
                smallest_budget_bytes,
                threads: rayon::current_num_threads(),
                disk_bytes: record.map_or(0, |record| record.disk_peak_bytes()),
                steps: steps.into_iter().map(|step| Step::new(step, rates)).collect(),
            })
        })
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
    fn new(record: StepRecord, rates: &Rates) -> Self {
        Self {
            phase: record.phase,
            name: record.name,
            peak_bytes: record.peak_bytes,
            passes: record.passes,
            bytes_read: record.bytes_read,
            bytes_written: record.bytes_written,
            seconds: rates.seconds(record.bytes_read, record.bytes_written, &record.work),
            offers: record.offers,
        }
    }
}

/// Runs a task dry before it begins, in each of the ways (`runs`) that it may go: columns that may be in memory or on disk will leave as much
/// free as its later steps need; the more they leave, the more of them are on disk. The way that needs most counts. A budget in which the cuts
/// of one stage leave too little for another is used in part. Columns that earlier tasks left in memory are
/// moved to disk, if there is too little room beside them. Beside other tasks nothing is run: there, all columns are on disk.
///
/// The task is one `phase` of the run. Gives the bytes that the phase adds on disk, for [`check_room`].
///
/// # Errors
/// [`Error::BudgetTooSmall`], with the smallest budget in which the task works; other errors of `runs`; those of columns on their way to disk.
pub fn rehearse(task: &Task, phase: Phase, runs: &[&DryRunOf<'_>]) -> Result<u64> {
    if task.account().has_shared() {
        return Ok(0);
    }
    let workspace = task.session().workspace();
    let budget = &workspace.budget;
    let within = |bytes: u64| workspace.spread(|| best_within(runs, bytes))?;
    let beside_held = || within(budget.limit_bytes().saturating_sub(budget.held_bytes()));
    let is_too_little = |found: &Result<_>| matches!(found, Err(Error::BudgetTooSmall { .. }));
    let mut found = beside_held();
    if is_too_little(&found) && budget.held_bytes() > 0 {
        workspace.move_columns_to_disk()?;
        found = beside_held();
    }
    if is_too_little(&found) {
        // Part of what is held may be what the run would hold: then the limit decides.
        found = within(budget.limit_bytes());
    }
    let found = found?;
    task.account().reserve(found.reserve_bytes);
    task.account().leave_unused(found.unused_bytes);
    let records = found.workspaces.iter().filter_map(Workspace::dry_run);
    let growths = records.filter_map(|record| record.disk_growth_bytes(phase));
    Ok(growths.max().unwrap_or(0))
}

/// Whether the folder's disk has room for what a phase adds. A proof is refused if not; keys, whose selectors may become fewer columns than
/// a dry run has, are made, with a warning.
///
/// # Errors
/// [`Error::DiskTooSmall`].
pub fn check_room(task: &Task, phase: Phase, growth_bytes: u64) -> Result<()> {
    let storage = &task.session().workspace().storage;
    match storage.check_room(phase.name(), growth_bytes) {
        Err(error) if phase != Phase::Proof => {
            tracing::warn!("{error}");
            Ok(())
        }
        checked => checked,
    }
}

/// Dry runs that end well, one of each way.
struct Found {
    workspaces: Vec<Workspace>,
    /// What columns in memory have to leave free.
    reserve_bytes: u64,
    /// What of the budget has to be left unused.
    unused_bytes: u64,
}

/// Dry runs in as much of `budget_bytes` as they all end well in. What a stage leases grows with the budget, in steps, and may at a step
/// leave less for another stage than a smaller budget does.
fn best_within(runs: &[&DryRunOf<'_>], budget_bytes: u64) -> Result<Found> {
    let refusal = match all_within(runs, budget_bytes, budget_bytes) {
        Err(refusal @ Error::BudgetTooSmall { .. }) => refusal,
        found => return found,
    };
    let smallest = |run: &&DryRunOf<'_>| smallest_above(*run, 0);
    let smallest_bytes = runs.iter().map(smallest).collect::<Result<Vec<_>>>()?;
    let needed_bytes = smallest_bytes.into_iter().max().unwrap_or(0);
    if needed_bytes <= budget_bytes {
        let parts =
            (1..=SMALLER_BUDGETS).map(|part| budget_bytes - budget_bytes * part / (2 * SMALLER_BUDGETS));
        let parts = parts.filter(|bytes| *bytes > needed_bytes);
        for bytes in parts.chain([needed_bytes]) {
            match all_within(runs, bytes, budget_bytes) {
                Err(Error::BudgetTooSmall { .. }) => {}
                found => return found,
            }
        }
    }
    Err(match refusal {
        Error::BudgetTooSmall {
            what,
            needed_bytes: of_step,
            ..
        } => Error::BudgetTooSmall {
            what,
            needed_bytes: match needed_bytes > budget_bytes {
                true => needed_bytes,
                false => of_step,
            },
            limit_bytes: budget_bytes,
        },
        other => other,
    })
}

/// Dry runs within `bytes` of `budget_bytes`.
fn all_within(runs: &[&DryRunOf<'_>], bytes: u64, budget_bytes: u64) -> Result<Found> {
    let mut found = Found {
        workspaces: Vec::with_capacity(runs.len()),
        reserve_bytes: 0,
        unused_bytes: budget_bytes - bytes,
    };
    for run in runs {
        let (workspace, reserve_bytes) = with_least_reserve(*run, bytes)?;
        found.workspaces.push(workspace);
        found.reserve_bytes = found.reserve_bytes.max(reserve_bytes);
    }
    Ok(found)
}

/// The dry run with the least reserve that ends well, and the reserve. The one that keeps no column in memory has to end well too:
/// no budget below the smallest works because columns in memory happened to fit.
fn with_least_reserve(run: &DryRunOf<'_>, budget_bytes: u64) -> Result<(Workspace, u64)> {
    let without_columns = dry_run(run, budget_bytes, budget_bytes)?;
    let reserves =
        std::iter::once(0).chain((1..=RESERVES_LOG).map(|log| budget_bytes - (budget_bytes >> log)));
    for reserve_bytes in reserves {
        match dry_run(run, budget_bytes, reserve_bytes) {
            Ok(workspace) => return Ok((workspace, reserve_bytes)),
            Err(Error::BudgetTooSmall { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok((without_columns, budget_bytes))
}

/// Runs dry within `budget_bytes`, where columns that may be in memory or on disk leave `reserve_bytes` free.
///
/// # Errors
/// Those of the run; [`Error::BudgetTooSmall`] for every refusal, with the name of the step.
fn dry_run(run: &DryRunOf<'_>, budget_bytes: u64, reserve_bytes: u64) -> Result<Workspace> {
    let workspace = Workspace::dry(Budget::with_reserve(budget_bytes, reserve_bytes));
    let step = || {
        workspace
            .dry_run()
            .map(|record| record.step_name())
            .unwrap_or_default()
    };
    match run(&workspace) {
        Ok(()) => Ok(workspace),
        Err(Error::BudgetTooSmall { needed_bytes, .. }) => Err(Error::BudgetTooSmall {
            what: step(),
            needed_bytes,
            limit_bytes: budget_bytes,
        }),
        Err(Error::OverBudget {
            asked_bytes,
            held_bytes,
            ..
        }) => Err(Error::BudgetTooSmall {
            what: step(),
            needed_bytes: held_bytes.saturating_add(asked_bytes),
            limit_bytes: budget_bytes,
        }),
        Err(other) => Err(other),
    }
}

/// The smallest budget above `budget_bytes` with which a dry run ends well that keeps no column in memory: the first one on the way up,
/// in steps of a 32nd, and then the end of that step.
fn smallest_above(run: &DryRunOf<'_>, budget_bytes: u64) -> Result<u64> {
    let works = |grains: u64| match dry_run(run, grains * GRAIN_BYTES, grains * GRAIN_BYTES) {
        Ok(_) => Ok(true),
        Err(Error::BudgetTooSmall { .. }) => Ok(false),
        Err(other) => Err(other),
    };
    let mut below = budget_bytes / GRAIN_BYTES;
    let mut enough = below + 1;
    while !works(enough)? {
        if enough * GRAIN_BYTES > BUDGET_BYTES_MAX {
            return Err(Invalid::NoBudget {
                limit_bytes: BUDGET_BYTES_MAX,
            }
            .into());
        }
        (below, enough) = (enough, enough + (enough / 32).max(1));
    }
    while below + 1 < enough {
        let middle = below + (enough - below) / 2;
        if works(middle)? {
            enough = middle;
        } else {
            below = middle;
        }
    }
    Ok(enough * GRAIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of a power of two, up to three quarters of the budget, and 100 KiB beside it: works from 256 KiB on, but not from 342 to 355.
    fn table_and_tile(workspace: &Workspace) -> Result<()> {
        let _step = crate::step!(workspace, "table");
        let budget = &workspace.budget;
        let table_log = (budget.limit_bytes() * 3 / 4).checked_ilog2().unwrap_or(0);
        let _table = budget.lease(1 << table_log, "table")?;
        let _tile = budget.lease(100 << 10, "tile")?;
        Ok(())
    }

    #[test]
    fn a_budget_that_a_stage_would_cut_badly_is_used_in_part() {
        let unused = |kib: u64| best_within(&[&table_and_tile], kib << 10).map(|found| found.unused_bytes);
        assert_eq!(unused(256).unwrap(), 0);
        assert_eq!(unused(340).unwrap(), 0);
        assert!(dry_run(&table_and_tile, 352 << 10, 0).is_err());
        assert_eq!(unused(352).unwrap(), 11 << 10, "a 32nd");
        assert_eq!(unused(356).unwrap(), 0);
        let refused = |kib: u64| match unused(kib) {
            Err(Error::BudgetTooSmall {
                needed_bytes,
                limit_bytes,
                ..
            }) => (needed_bytes >> 10, limit_bytes >> 10),
            found => unreachable!("{found:?}"),
        };
        assert_eq!(refused(192), (256, 192));
    }

    #[test]
    fn each_way_of_a_task_has_to_work_in_the_part_that_is_used() {
        let whole = |workspace: &Workspace| {
            let _step = crate::step!(workspace, "whole");
            workspace.budget.lease(352 << 10, "whole").map(drop)
        };
        assert!(best_within(&[&whole], 352 << 10).is_ok());
        assert!(best_within(&[&table_and_tile], 352 << 10).is_ok());
        let refused = best_within(&[&table_and_tile, &whole], 352 << 10);
        assert!(matches!(refused, Err(Error::BudgetTooSmall { .. })));
        assert!(best_within(&[&table_and_tile, &whole], 356 << 10).is_ok());
    }
}
