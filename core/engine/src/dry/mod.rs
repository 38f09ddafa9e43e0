//! A dry run: what a run would hold, move and compute, recorded instead of done.
//!
//! A dry [`Workspace`](crate::column::Workspace) has a ledger and no files. A stage that is asked to work in
//! one cuts its work by the function that cuts it in a real run, takes the same leases, notes passes, bytes
//! and work here, and gives columns without values. So whatever is written over stages, keygen and the rounds
//! of a proof, is planned by running it.
//!
//! Bytes are those of files: what is in memory moves for nothing. Memory: a few hundred bytes a step.
//!
//! Architecture invariant: this room knows no columns and no rounds.

mod offer;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

pub(crate) use offer::enter;
pub use offer::{Job, Offer};

use crate::Result;
use crate::budget::{Budget, Lease};

/// The part of the work that a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The verifying key.
    VerifyingKey,
    /// The proving key, from a verifying key.
    ProvingKey,
    /// The proof.
    Proof,
}

impl Phase {
    /// The phase in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::VerifyingKey => "verifying key",
            Self::ProvingKey => "proving key",
            Self::Proof => "prove",
        }
    }
}

/// Arithmetic, in the units that [`Rates`](crate::plan::Rates) are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Batched additions of points.
    pub additions: f64,
    /// Butterflies of transforms.
    pub butterflies: f64,
    /// Products of scalars.
    pub products: f64,
}

impl Work {
    /// So many products.
    pub fn products(products: f64) -> Self {
        Self {
            products,
            ..Self::default()
        }
    }

    /// So many butterflies.
    pub fn butterflies(butterflies: f64) -> Self {
        Self {
            butterflies,
            ..Self::default()
        }
    }

    /// So many additions of points.
    pub fn additions(additions: f64) -> Self {
        Self {
            additions,
            ..Self::default()
        }
    }
}

/// One step of a dry run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// The part of the work that it belongs to.
    pub phase: Phase,
    /// Its name, as in the tracing spans of a real run.
    pub name: &'static str,
    /// The most bytes of the budget that are held meanwhile.
    pub peak_bytes: u64,
    /// Passes over columns.
    pub passes: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// What is computed.
    pub work: Work,
    /// The jobs that an accelerator is offered, in the order in which each is offered first.
    pub offers: Vec<Offer>,
}

/// What is held of the budget when a phase begins: by columns that earlier phases have left in memory, or by
/// others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub phase: Phase,
    pub bytes: u64,
}

/// The record of a dry run.
#[derive(Debug)]
pub struct DryRun {
    budget: Budget,
    held: Option<Held>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    steps: Vec<StepRecord>,
    disk_bytes: u64,
    disk_peak_bytes: u64,
    /// Per phase: disk bytes at its start, and the peak until its end.
    disk_of_phases: Vec<(Phase, u64, u64)>,
    /// What is held when a phase begins, as far as earlier phases of the dry run hold less.
    held: Option<Lease>,
}

impl DryRun {
    /// An empty record of a run that holds what it holds of `budget`. When the phase of `held` begins, at
    /// least so much is held until the end of the run.
    pub(crate) fn new(budget: Budget, held: Option<Held>) -> Self {
        Self {
            budget,
            held,
            state: Mutex::new(State {
                phase: Phase::VerifyingKey,
                steps: Vec::new(),
                disk_bytes: 0,
                disk_peak_bytes: 0,
                disk_of_phases: Vec::new(),
                held: None,
            }),
        }
    }

    /// The steps so far, in the order in which each was begun last.
    pub fn steps(&self) -> Vec<StepRecord> {
        let mut state = self.state();
        self.note_peak(&mut state);
        state.steps.clone()
    }

    /// The most bytes that files took at one time.
    pub fn disk_peak_bytes(&self) -> u64 {
        self.state().disk_peak_bytes
    }

    /// The room on disk that a phase takes besides what files take when it begins; `None` if it was not
    /// begun.
    pub fn disk_growth_bytes(&self, phase: Phase) -> Option<u64> {
        let state = self.state();
        let found = state.disk_of_phases.iter().find(|(begun, ..)| *begun == phase);
        found.map(|(_, before_bytes, peak_bytes)| peak_bytes - before_bytes)
    }

    /// The step that is under way, in words.
    pub fn step_name(&self) -> String {
        let state = self.state();
        let name = state.steps.last().map_or("start", |step| step.name);
        format!("the step \"{name}\" of the {}", state.phase.name())
    }

    /// The next phase begins.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], if the budget has no room for what is held then.
    pub(crate) fn begin_phase(&self, phase: Phase) -> Result<()> {
        let mut state = self.state();
        let disk_bytes = state.disk_bytes;
        state.phase = phase;
        state.disk_of_phases.push((phase, disk_bytes, disk_bytes));
        if let Some(held) = self.held.filter(|held| held.phase == phase) {
            let missing_bytes = held.bytes.saturating_sub(self.budget.held_bytes());
            state.held = Some(self.budget.lease(missing_bytes, "held when the phase begins")?);
        }
        Ok(())
    }

    /// The next step begins. Steps of one name in one phase are one.
    pub(crate) fn begin_step(&self, name: &'static str) {
        let mut state = self.state();
        self.note_peak(&mut state);
        let phase = state.phase;
        let known = (state.steps.iter()).position(|step| (step.phase, step.name) == (phase, name));
        let step = match known {
            Some(at) => state.steps.remove(at),
            None => StepRecord {
                phase,
                name,
                peak_bytes: 0,
                passes: 0,
                bytes_read: 0,
                bytes_written: 0,
                work: Work::default(),
                offers: Vec::new(),
            },
        };
        state.steps.push(step);
        self.budget.restart_peak();
    }

    /// Bytes go from and to files.
    pub fn moved(&self, read: u64, written: u64) {
        self.in_step(|step| {
            step.bytes_read += read;
            step.bytes_written += written;
        });
    }

    /// Columns are gone over.
    pub(crate) fn passed(&self, passes: u64) {
        self.in_step(|step| step.passes += passes);
    }

    /// Something is computed.
    pub(crate) fn computed(&self, work: Work) {
        self.in_step(|step| {
            step.work.additions += work.additions;
            step.work.butterflies += work.butterflies;
            step.work.products += work.products;
        });
    }

    /// An accelerator is offered `job` with the budget's free bytes, less `held_bytes`.
    pub fn offered(&self, job: Job, held_bytes: u64) {
        let offer = Offer {
            job,
            count: 1,
            available_bytes: self.budget.available_bytes().saturating_sub(held_bytes),
        };
        self.in_step(|step| enter(&mut step.offers, offer));
    }

    /// Files grow.
    pub fn disk_taken(&self, bytes: u64) {
        let mut state = self.state();
        state.disk_bytes += bytes;
        let disk_bytes = state.disk_bytes;
        state.disk_peak_bytes = state.disk_peak_bytes.max(disk_bytes);
        if let Some((_, _, peak_bytes)) = state.disk_of_phases.last_mut() {
            *peak_bytes = disk_bytes.max(*peak_bytes);
        }
    }

    /// Files go.
    pub fn disk_freed(&self, bytes: u64) {
        let mut state = self.state();
        state.disk_bytes = state.disk_bytes.saturating_sub(bytes);
    }

    fn in_step(&self, note: impl FnOnce(&mut StepRecord)) {
        if let Some(step) = self.state().steps.last_mut() {
            note(step);
        }
    }

    fn note_peak(&self, state: &mut State) {
        if let Some(step) = state.steps.last_mut() {
            step.peak_bytes = step.peak_bytes.max(self.budget.peak_bytes());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
