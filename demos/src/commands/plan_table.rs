//! Plans as text: a table of steps, or of budgets, and what else is decided by a plan: the room on the disk,
//! and the part of a drive's life that the writes take.

use std::path::PathBuf;

use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::budget::{ByteSize, format_bytes};
use spillproof_engine::plan::{Plan, Rates, Step};

use crate::report::table::{bytes, bytes_up, duration, grid, wear};
use crate::run::Result;

const STEP_HEADINGS: [&str; 6] = ["step", "peak lease", "passes", "read", "written", "time"];
const RUNG_HEADINGS: [&str; 6] = ["budget", "peak lease", "read", "written", "on disk", "time"];

/// Where a plan is carried out.
pub struct Place {
    dir: PathBuf,
    free_bytes: Option<u64>,
    /// Whether parameters and keys are in files already, so that a plan is of a proof alone.
    has_keys: bool,
    /// Whether seconds follow from rates of this machine.
    is_measured: bool,
}

/// A plan within one budget.
#[derive(Clone, Debug, Serialize)]
pub struct Rung {
    budget_bytes: u64,
    peak_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    disk_bytes: u64,
    seconds: f64,
}

impl Rung {
    /// Whether another budget takes and moves the same.
    fn is_as(&self, other: &Self) -> bool {
        let moved = |rung: &Self| [rung.peak_bytes, rung.bytes_read, rung.bytes_written];
        moved(self) == moved(other)
    }
}

impl Place {
    /// The place of a session.
    pub fn of(session: &Session, has_keys: bool, is_measured: bool) -> Self {
        Self {
            dir: session.dir().to_owned(),
            free_bytes: session.storage().free_bytes(),
            has_keys,
            is_measured,
        }
    }

    /// The room on disk that a plan has to find.
    fn disk_bytes(&self, plan: &Plan) -> u64 {
        match self.has_keys {
            true => plan.proof_disk_bytes,
            false => plan.disk_bytes,
        }
    }

    /// The steps of a plan.
    pub fn steps(&self, plan: &Plan) -> String {
        let mut rows: Vec<[String; 6]> = Vec::new();
        let mut phase = None;
        for step in &plan.steps {
            if phase != Some(step.phase) {
                phase = Some(step.phase);
                rows.push(cells(step.phase.name(), &plan.of(phase)));
            }
            rows.push(cells(&format!("  {}", step.name), step));
        }
        let rule = rows.len();
        let total = plan.of(None);
        rows.push(cells("total", &total));
        let mut lines = vec![format!(
            "budget: {}; the smallest that works: {}",
            bytes(plan.budget_bytes),
            format_bytes(plan.smallest_budget_bytes)
        )];
        lines.push(self.disk(self.disk_bytes(plan)));
        lines.push(wear(total.bytes_written));
        lines.push(self.rates().to_owned());
        format!("{}{}", grid(&STEP_HEADINGS, &rows, rule), lines.join("\n"))
    }

    /// The budgets of a ladder.
    pub fn ladder(&self, rungs: &[Rung]) -> String {
        let row = |rung: &Rung| {
            [
                format_bytes(rung.budget_bytes),
                bytes(rung.peak_bytes),
                bytes(rung.bytes_read),
                bytes(rung.bytes_written),
                bytes_up(rung.disk_bytes),
                duration(rung.seconds),
            ]
        };
        let rows: Vec<_> = rungs.iter().map(row).collect();
        let most = rungs.iter().map(|rung| rung.disk_bytes).max().unwrap_or(0);
        let written = rungs.iter().map(|rung| rung.bytes_written).max().unwrap_or(0);
        let mut lines =
            vec!["the first budget is the smallest that works; name one with --memory".to_owned()];
        lines.push(self.disk(most));
        lines.push(wear(written));
        lines.push(self.rates().to_owned());
        format!("{}{}", grid(&RUNG_HEADINGS, &rows, rows.len()), lines.join("\n"))
    }

    /// What `plan` gives within the smallest budget that works, within powers of two above it, and within
    /// the budget asked for, up to the memory that is there. A budget that changes nothing any more ends it.
    ///
    /// # Errors
    /// Those of `plan`.
    pub fn climb(
        &self,
        asked: &Plan,
        rates: &Rates,
        plan: impl Fn(u64) -> Result<Plan>,
    ) -> Result<Vec<Rung>> {
        let there_bytes = ByteSize::Auto.resolve().unwrap_or(0);
        let mut rungs = Vec::new();
        for budget_bytes in budgets(
            asked.smallest_budget_bytes,
            asked.budget_bytes,
            there_bytes.max(asked.budget_bytes),
        ) {
            let plan = plan(budget_bytes)?.at(rates);
            let total = plan.of(None);
            let rung = Rung {
                budget_bytes,
                peak_bytes: total.peak_bytes,
                bytes_read: total.bytes_read,
                bytes_written: total.bytes_written,
                disk_bytes: self.disk_bytes(&plan),
                seconds: total.seconds,
            };
            let is_spare = rungs.last().is_some_and(|last: &Rung| last.is_as(&rung));
            if is_spare {
                break;
            }
            rungs.push(rung);
        }
        Ok(rungs)
    }

    /// The room that files take, beside the room that is there.
    fn disk(&self, disk_bytes: u64) -> String {
        let (of, unless) = match self.has_keys {
            true => ("beside parameters and keys", ""),
            false => ("parameters and keys included", " if these are not there yet"),
        };
        let taken = format!("on disk at most: {}, {of}", bytes_up(disk_bytes));
        match self.free_bytes {
            None => taken,
            Some(free) if free < disk_bytes => format!(
                "{taken}; {} has {} free, which is too little{unless}: free some, or name another folder (--dir)",
                self.dir.display(),
                bytes(free)
            ),
            Some(free) => format!("{taken}; {} has {} free", self.dir.display(), bytes(free)),
        }
    }

    fn rates(&self) -> &'static str {
        match self.is_measured {
            true => "times are estimated from rates measured now, without the circuit's own synthesis",
            false => "times are estimated from rates of a usual machine, without the circuit's own synthesis",
        }
    }
}

fn cells(name: &str, step: &Step) -> [String; 6] {
    [
        name.to_owned(),
        bytes(step.peak_bytes),
        step.passes.to_string(),
        bytes(step.bytes_read),
        bytes(step.bytes_written),
        duration(step.seconds),
    ]
}

/// The budgets of a ladder, ascending.
fn budgets(smallest: u64, asked: u64, most: u64) -> Vec<u64> {
    let powers = (0..u64::BITS).map(|log| 1u64 << log);
    let mut budgets: Vec<u64> = powers.filter(|power| (smallest..=most).contains(power)).collect();
    // A budget that the machine chose is no number to type.
    budgets.extend(
        [smallest]
            .into_iter()
            .chain(Some(asked).filter(|asked| asked.is_multiple_of(1 << 10))),
    );
    budgets.retain(|budget| (smallest..=most.max(smallest)).contains(budget));
    budgets.sort_unstable();
    budgets.dedup();
    budgets
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn budgets_are_numbers_to_type() {
        let smallest = 3456 << 10;
        assert_eq!(
            budgets(smallest, 24 * MIB, 64 * MIB),
            [smallest, 4 * MIB, 8 * MIB, 16 * MIB, 24 * MIB, 32 * MIB, 64 * MIB]
        );
        assert_eq!(
            budgets(smallest, 12_345_678, 8 * MIB),
            [smallest, 4 * MIB, 8 * MIB]
        );
        assert_eq!(budgets(4 * MIB, 4 * MIB, 4 * MIB), [4 * MIB]);
        assert_eq!(budgets(4 * MIB, MIB, MIB), [4 * MIB]);
    }

    #[test]
    fn room_is_compared_with_what_is_free() {
        let place_for = |has_keys, free_bytes| Place {
            dir: "/scratch".into(),
            free_bytes,
            has_keys,
            is_measured: true,
        };
        let place = |free_bytes| place_for(false, free_bytes);
        let line = place(Some(2 << 30)).disk(3 << 29);
        assert!(
            line.contains("at most: 1.5 GiB") && line.ends_with("/scratch has 2.0 GiB free"),
            "{line}"
        );
        let line = place(Some(1 << 30)).disk(3 << 29);
        assert!(line.contains("too little") && line.contains("--dir"), "{line}");
        let line = place_for(true, Some(1 << 30)).disk(3 << 29);
        assert!(
            line.contains("beside parameters and keys") && line.contains("too little:"),
            "{line}"
        );
        assert!(!place(None).disk(5).contains("free"));
    }
}
