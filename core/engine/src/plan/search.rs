//! In how much of a budget a task is to work, and how much of that its columns in memory leave free: found by
//! running it dry.
//!
//! A task may go several ways (a key does not say by which multi-opening its proofs are opened). All of them
//! have to work in the part of the budget that is found, and the time of all of them decides.
//!
//! Memory: that of a dry run for each thread, and the records of two for each way and reserve.

use super::{DryRunOf, GRAIN_BYTES, Rates};
use crate::Error;
use crate::Result;
use crate::budget::{Budget, Reserve};
use crate::column::Workspace;
use crate::dry::{Held, Phase, StepRecord};
use crate::error::Invalid;
use spillproof_kernels::parallel::Parallel;

/// Reserves that are tried, in sixteenths of the budget, besides no reserve and the whole budget.
const RESERVES_TRIED: [u64; 9] = [1, 2, 4, 6, 8, 10, 12, 14, 15];
/// For columns that are read once or twice, beside the best reserve for others, in quarters of the budget.
const PASSING_RESERVES_TRIED: [u64; 3] = [1, 2, 3];
/// Smaller budgets that are tried, down to a half, where one does not work and is not too small.
const SMALLER_BUDGETS: u64 = 16;
/// Columns in memory that spare less than this part of the time are not worth their memory.
const GAIN_MIN: f64 = 0.0002;
/// Keys are made once, and proofs many times: a second of a proof counts as so many of keys.
const PROOFS_OF_KEYS: f64 = 8.0;
/// No circuit needs more than this.
const BUDGET_BYTES_MAX: u64 = 1 << 46;

/// Dry runs that end well, one of each way.
pub(super) struct Found {
    pub workspaces: Vec<Workspace>,
    /// What columns in memory have to leave free.
    pub reserve: Reserve,
    /// What of the budget has to be left unused.
    pub unused_bytes: u64,
}

/// The largest part of `limit_bytes` in which every dry run succeeds, given the bytes already held when a
/// phase begins. A stage leases more from a larger budget, in steps; so a larger budget may leave less for
/// another stage than a smaller one.
///
/// # Errors
/// [`Error::BudgetTooSmall`] with the smallest budget that works; other errors of the runs.
pub(super) fn best_within(ways: &[&DryRunOf<'_>], limit_bytes: u64, held: Option<Held>) -> Result<Found> {
    let held_bytes = held.map_or(0, |held| held.bytes);
    let left_bytes = limit_bytes.saturating_sub(held_bytes);
    let refusal = match best_of_reserves(ways, limit_bytes, held) {
        Err(refusal @ Error::BudgetTooSmall { .. }) => refusal,
        found => return found,
    };
    let smallest_bytes = smallest(ways)?;
    if smallest_bytes <= left_bytes {
        let parts =
            (1..=SMALLER_BUDGETS).map(|part| limit_bytes - limit_bytes * part / (2 * SMALLER_BUDGETS));
        let parts = parts.filter(|bytes| bytes.saturating_sub(held_bytes) > smallest_bytes);
        for bytes in parts.chain([smallest_bytes + held_bytes]) {
            match best_of_reserves(ways, bytes, held) {
                Err(Error::BudgetTooSmall { .. }) => {}
                found => {
                    return found.map(|found| Found {
                        unused_bytes: limit_bytes - bytes,
                        ..found
                    });
                }
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
            needed_bytes: match smallest_bytes > left_bytes {
                true => smallest_bytes,
                false => of_step,
            },
            limit_bytes: left_bytes,
        },
        other => other,
    })
}

/// Compares dry runs within `budget_bytes` that differ in their reserve, and finds the quickest. Columns in
/// memory spare the disk; the steps between them spare it, too, if they have room. With nothing held and no
/// column in memory the runs have to end well: otherwise a budget below the smallest would work now and then,
/// because its columns in memory happen to fit.
fn best_of_reserves(ways: &[&DryRunOf<'_>], budget_bytes: u64, held: Option<Held>) -> Result<Found> {
    let with_reserve = |reserve, held| Try {
        budget_bytes,
        reserve,
        held,
    };
    let (whole, none) = (Reserve::of(budget_bytes), Reserve::of(0));
    let mut tries = vec![with_reserve(whole, None), with_reserve(none, held)];
    if held.is_some() {
        tries.push(with_reserve(whole, held));
    }
    let mut ended = dry_runs(ways, &tries).into_iter();
    let mut next = || ended.next().unwrap_or_else(|| Ok(Vec::new()));
    let (unheld_without_columns, without_reserve) = (next()?, next());
    let without_columns = match held {
        None => Ok(unheld_without_columns),
        Some(_) => next(),
    };
    let found = |workspaces, reserve| Found {
        workspaces,
        reserve,
        unused_bytes: 0,
    };
    // Here a column is in memory if it is a small part of what is left. Nothing is quicker than what writes
    // no file, and most runs in plenty of memory are so.
    let without_reserve = match ended_well(without_reserve)? {
        Some(workspaces) if writes_nothing(&workspaces) => return Ok(found(workspaces, none)),
        others => others,
    };
    let found = match without_columns {
        Err(other) if !matches!(other, Error::BudgetTooSmall { .. }) => return Err(other),
        ended => ended.map(|workspaces| found(workspaces, whole)),
    };
    let mut best = Quickest::new(found);
    let part_of =
        |part: u64, whole: u64| (u128::from(budget_bytes) * u128::from(part) / u128::from(whole)) as u64;
    // First, columns that are read once or twice are on disk.
    let parts = RESERVES_TRIED.into_iter().rev();
    let tries = parts.map(|part| {
        let reserve = Reserve {
            column_bytes: part_of(part, 16),
            ..whole
        };
        with_reserve(reserve, held)
    });
    best.compare_all(ways, &tries.collect::<Vec<_>>())?;
    if let Some(workspaces) = without_reserve {
        best.compare(workspaces, none);
    }
    let column_bytes = best.found.as_ref().map_or(0, |found| found.reserve.column_bytes);
    let parts = PASSING_RESERVES_TRIED.into_iter().rev();
    let tries = parts.map(|part| {
        // A column that is read more often spares more of the disk, so its reserve is no larger.
        let passing_bytes = part_of(part, 4);
        let reserve = Reserve {
            column_bytes: column_bytes.min(passing_bytes),
            passing_bytes,
        };
        with_reserve(reserve, held)
    });
    best.compare_all(ways, &tries.collect::<Vec<_>>())?;
    best.found
}

/// The quickest dry runs so far.
struct Quickest {
    found: Result<Found>,
    seconds: f64,
}

impl Quickest {
    fn new(found: Result<Found>) -> Self {
        Self {
            seconds: (found.as_ref()).map_or(f64::INFINITY, |found| seconds(&found.workspaces)),
            found,
        }
    }

    /// Takes these, if they are quicker.
    fn compare(&mut self, workspaces: Vec<Workspace>, reserve: Reserve) {
        let seconds = seconds(&workspaces);
        tracing::debug!(?reserve, seconds, "dry run");
        if seconds < self.seconds * (1.0 - GAIN_MIN) {
            self.seconds = seconds;
            self.found = Ok(Found {
                workspaces,
                reserve,
                unused_bytes: 0,
            });
        }
    }

    /// Runs dry in each of these budgets, in some of which the runs may not end.
    fn compare_all(&mut self, ways: &[&DryRunOf<'_>], tries: &[Try]) -> Result<()> {
        for (each, ended) in tries.iter().zip(dry_runs(ways, tries)) {
            if let Some(workspaces) = ended_well(ended)? {
                self.compare(workspaces, each.reserve);
            }
        }
        Ok(())
    }
}

/// Whether dry runs had everything in memory.
fn writes_nothing(workspaces: &[Workspace]) -> bool {
    let records = workspaces.iter().filter_map(Workspace::dry_run);
    records
        .flat_map(|record| record.steps())
        .all(|step| step.bytes_written == 0)
}

/// How long dry runs would take, with as many proofs as keys are used for, on the threads of the pool and a
/// disk of the usual rates: enough to compare runs.
fn seconds(workspaces: &[Workspace]) -> f64 {
    let rates = Rates::usual(rayon::current_num_threads());
    let seconds = |step: &StepRecord| {
        let once = rates.seconds(step.bytes_read, step.bytes_written, &step.work);
        match step.phase {
            Phase::Proof => once * PROOFS_OF_KEYS,
            _ => once,
        }
    };
    let records = workspaces.iter().filter_map(Workspace::dry_run);
    records
        .map(|record| record.steps().iter().map(seconds).sum::<f64>())
        .sum()
}

/// A budget to run dry in.
#[derive(Clone, Copy)]
struct Try {
    budget_bytes: u64,
    reserve: Reserve,
    /// So much is held when a phase begins.
    held: Option<Held>,
}

impl Try {
    /// `grains` of [`GRAIN_BYTES`], all columns on disk.
    fn of_grains(grains: u64) -> Self {
        Self {
            budget_bytes: grains * GRAIN_BYTES,
            reserve: Reserve::of(grains * GRAIN_BYTES),
            held: None,
        }
    }

    fn workspace(self) -> Workspace {
        let budget = Budget::with_reserve(self.budget_bytes, self.reserve);
        Workspace::dry_beside(budget, self.held)
    }
}

/// Runs each way dry in each budget, on all threads of the pool: for each budget the runs of all ways.
///
/// # Errors
/// For each budget, of the first way that fails: those of the run; [`Error::BudgetTooSmall`] for every
/// refusal, with the name of the step.
fn dry_runs(ways: &[&DryRunOf<'_>], tries: &[Try]) -> Vec<Result<Vec<Workspace>>> {
    let of_each = tries
        .iter()
        .flat_map(|each| ways.iter().map(move |way| (*way, *each)));
    let of_each: Vec<_> = of_each.collect();
    let ended = of_each.into_iter().parallel();
    let mut ended = ended
        .map(|(way, each)| dry_run(way, each.workspace()))
        .into_iter();
    let of_one = |_| ended.by_ref().take(ways.len()).collect::<Vec<_>>();
    tries
        .iter()
        .map(of_one)
        .map(|ended| ended.into_iter().collect())
        .collect()
}

/// Runs dry in `workspace`.
///
/// # Errors
/// Those of the run; [`Error::BudgetTooSmall`] for every refusal, with the name of the step.
fn dry_run(run: &DryRunOf<'_>, workspace: Workspace) -> Result<Workspace> {
    let budget_bytes = workspace.budget.limit_bytes();
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

/// The runs, or `None` where the budget is too small for one of them.
fn ended_well<T>(runs: Result<T>) -> Result<Option<T>> {
    match runs {
        Ok(runs) => Ok(Some(runs)),
        Err(Error::BudgetTooSmall { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The smallest budget with which the dry runs of all ways end well that keep no column in memory, in
/// whole [`GRAIN_BYTES`]: the first one on the way up, in steps of a 32nd, and then the end of that step.
///
/// # Errors
/// [`Invalid::NoBudget`], if there is none; errors of the runs other than refusals.
pub(super) fn smallest(ways: &[&DryRunOf<'_>]) -> Result<u64> {
    let work = |grains: &[u64]| {
        let tries: Vec<_> = grains.iter().copied().map(Try::of_grains).collect();
        let ended = dry_runs(ways, &tries).into_iter();
        ended
            .map(|ended| ended_well(ended).map(|runs| runs.is_some()))
            .collect::<Result<Vec<_>>>()
    };
    // Up to the first that is too large: a thousand threads would try a thousand at a time.
    let next =
        |grains: &u64| (grains * GRAIN_BYTES <= BUDGET_BYTES_MAX).then(|| grains + (grains / 32).max(1));
    let mut ascending = std::iter::successors(Some(1), next);
    let (mut below, mut enough) = (0, 0);
    while enough == 0 {
        if below * GRAIN_BYTES > BUDGET_BYTES_MAX {
            return Err(Invalid::NoBudget {
                limit_bytes: BUDGET_BYTES_MAX,
            }
            .into());
        }
        let grains: Vec<u64> = ascending.by_ref().take(rayon::current_num_threads()).collect();
        match work(&grains)?.iter().position(|works| *works) {
            None => below = grains.last().copied().unwrap_or(below),
            Some(first) => {
                below = first.checked_sub(1).map_or(below, |before| grains[before]);
                enough = grains[first];
            }
        }
    }
    while below + 1 < enough {
        let middle = below + (enough - below) / 2;
        match work(&[middle])?[..] {
            [true] => enough = middle,
            _ => below = middle,
        }
    }
    Ok(enough * GRAIN_BYTES)
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;

    use super::*;
    use crate::column::{Placement, Writer};

    /// A table of a power of two, up to three quarters of the budget, and 100 KiB beside it: works from 256
    /// KiB on, but not from 342 to 355.
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
        let unused =
            |kib: u64| best_within(&[&table_and_tile], kib << 10, None).map(|found| found.unused_bytes);
        assert_eq!(unused(256).unwrap(), 0);
        assert_eq!(unused(340).unwrap(), 0);
        let in_352_kib = Try {
            budget_bytes: 352 << 10,
            reserve: Reserve::of(0),
            held: None,
        };
        assert!(dry_runs(&[&table_and_tile], &[in_352_kib])[0].is_err());
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
    fn dry_runs_side_by_side_find_what_one_after_the_other_find() {
        let found = [1, 2, 7].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| {
                let smallest_bytes = smallest(&[&table_and_tile, &column_and_stage]).unwrap();
                let best = best_within(&[&column_and_stage], 1536 << 10, None).unwrap();
                (smallest_bytes, best.reserve, best.unused_bytes)
            })
        });
        assert!(found.iter().all(|each| *each == found[0]), "{found:?}");
    }

    /// A column of a mebibyte, and a stage that moves sixteen, unless two are free.
    fn column_and_stage(workspace: &Workspace) -> Result<()> {
        let _step = crate::step!(workspace, "stage");
        let column = Writer::<Fr>::scratch(workspace, "column", 1 << 15, Placement::Auto)?.finish()?;
        let is_tight = workspace.budget.available_bytes() < 2 << 20;
        if let (true, Some(record)) = (is_tight, workspace.dry_run()) {
            record.moved(8 << 20, 8 << 20);
        }
        drop(column);
        Ok(())
    }

    #[test]
    fn columns_stay_in_memory_where_they_spare_more_of_the_disk_than_the_room_they_take() {
        let moved = |kib: u64| {
            let found = best_within(&[&column_and_stage], kib << 10, None).unwrap();
            let steps = found.workspaces[0].dry_run().map(|record| record.steps());
            let moved = |step: &StepRecord| (step.bytes_read + step.bytes_written) >> 20;
            steps.unwrap_or_default().iter().map(moved).sum::<u64>()
        };
        assert_eq!(
            moved(1536),
            16,
            "the column in memory, since there is no room for the stage"
        );
        assert_eq!(moved(2560), 1, "the column on disk, the stage in memory");
        assert_eq!(moved(4096), 0);
    }

    /// A key of a mebibyte, in memory or on disk, and a proof that needs two.
    fn key_and_proof(workspace: &Workspace) -> Result<()> {
        let step = crate::step!(workspace, "key");
        let _key = Writer::<Fr>::scratch(workspace, "key", 1 << 15, Placement::Auto)?.finish()?;
        drop(step);
        workspace.phase(Phase::Proof)?;
        let _step = crate::step!(workspace, "proof");
        workspace.budget.lease(2 << 20, "proof").map(drop)
    }

    #[test]
    fn a_phase_counts_what_is_held_once_whether_its_run_holds_it_or_others() {
        let held = |kib: u64| {
            Some(Held {
                phase: Phase::Proof,
                bytes: kib << 10,
            })
        };
        let found =
            |limit_kib: u64, held_kib| best_within(&[&key_and_proof], limit_kib << 10, held(held_kib));
        let peak_kib = |found: Result<Found>| {
            let workspaces = found.unwrap().workspaces;
            workspaces[0].dry_run().unwrap().steps()[1].peak_bytes >> 10
        };
        let peak = peak_kib(found(3200, 0));
        let key = peak - 2048;
        assert!(key >= 1024, "the key is in memory");
        assert_eq!(peak_kib(found(3200, key)), peak, "it is what is held");
        assert_eq!(peak_kib(found(3200, key + 72)), peak + 72, "and more is");
        let refused = found(3200, 1400);
        assert!(
            matches!(refused, Err(Error::BudgetTooSmall { needed_bytes, limit_bytes, .. })
            if limit_bytes == 1800 << 10 && (2048 << 10..2176 << 10).contains(&needed_bytes))
        );
    }

    #[test]
    fn each_way_of_a_task_has_to_work_in_the_part_that_is_used() {
        let whole = |workspace: &Workspace| {
            let _step = crate::step!(workspace, "whole");
            workspace.budget.lease(352 << 10, "whole").map(drop)
        };
        assert!(best_within(&[&whole], 352 << 10, None).is_ok());
        assert!(best_within(&[&table_and_tile], 352 << 10, None).is_ok());
        let refused = best_within(&[&table_and_tile, &whole], 352 << 10, None);
        let needed = |refused: &Result<Found>| match refused {
            Err(Error::BudgetTooSmall { needed_bytes, .. }) => *needed_bytes,
            _ => 0,
        };
        assert!(needed(&refused) >= 356 << 10);
        assert!(best_within(&[&table_and_tile, &whole], 356 << 10, None).is_ok());
    }
}
