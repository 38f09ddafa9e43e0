//! Several accelerators in one session, one after the other; the columns stay.

use std::sync::{Arc, Mutex, MutexGuard};

use spillproof_engine::accelerator::{
    Accelerator, Answer, Constraints, Coset, Panel, ReadElements, Sums, Totals, Transform,
};
use spillproof_engine::budget::Budget;

use crate::lock::locked;

/// A session's accelerator that forwards each job to the current one; without one it declines, and the
/// processor does the job.
#[derive(Debug, Default)]
pub struct AcceleratorSwitch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<dyn Accelerator>>,
    outcome: Outcome,
}

/// The outcome of the jobs since the current accelerator was set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    /// No job came, or no accelerator was set.
    #[default]
    NotAsked,
    /// The current accelerator did all jobs.
    Done,
    /// A job was left to the processor, for this reason.
    Declined(String),
}

impl AcceleratorSwitch {
    /// Sets the current accelerator, or none.
    pub fn set(&self, accelerator: Option<Arc<dyn Accelerator>>) {
        *self.state() = State {
            current: accelerator,
            outcome: Outcome::NotAsked,
        };
    }

    /// Takes the outcome of the jobs since the accelerator was set, or since the last call.
    pub fn take_outcome(&self) -> Outcome {
        std::mem::take(&mut self.state().outcome)
    }

    /// Has the current accelerator do a job, and records what became of it.
    fn ask<T>(
        &self,
        job: impl FnOnce(&dyn Accelerator) -> spillproof_engine::Result<Answer<T>>,
    ) -> spillproof_engine::Result<Answer<T>> {
        let Some(accelerator) = self.current() else {
            return Ok(Answer::Declined(
                "no accelerator is set: the processor does the job".into(),
            ));
        };
        let answer = job(&*accelerator);
        self.record(match &answer {
            Ok(Answer::Done(_)) => Outcome::Done,
            Ok(Answer::Declined(why)) => Outcome::Declined(why.clone()),
            Err(error) => Outcome::Declined(error.to_string()),
        });
        answer
    }

    /// The same for a job that is offered again in another way if it is declined: that is no outcome.
    fn ask_first(
        &self,
        job: impl FnOnce(&dyn Accelerator) -> spillproof_engine::Result<Answer<()>>,
    ) -> spillproof_engine::Result<Answer<()>> {
        let Some(accelerator) = self.current() else {
            return Ok(Answer::Declined("no accelerator is set".into()));
        };
        let answer = job(&*accelerator)?;
        if matches!(answer, Answer::Done(())) {
            self.record(Outcome::Done);
        }
        Ok(answer)
    }

    /// What was declined stays the outcome.
    fn record(&self, outcome: Outcome) {
        let mut state = self.state();
        if !matches!(state.outcome, Outcome::Declined(_)) {
            state.outcome = outcome;
        }
    }

    /// The current one. The lock is not held while it works.
    fn current(&self) -> Option<Arc<dyn Accelerator>> {
        self.state().current.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Accelerator for AcceleratorSwitch {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<Totals>> {
        self.ask(|accelerator| accelerator.sums(job, budget))
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.ask(|accelerator| accelerator.transform(job, budget))
    }

    fn panel(&self, job: &mut Panel<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.ask(|accelerator| accelerator.panel(job, budget))
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.ask(|accelerator| accelerator.quotient(job, budget))
    }

    fn quotient_of(
        &self,
        job: &mut Coset<'_>,
        inputs: &mut [Box<dyn ReadElements + '_>],
        budget: &Budget,
    ) -> spillproof_engine::Result<Answer<()>> {
        self.ask_first(|accelerator| accelerator.quotient_of(job, inputs, budget))
    }

    fn constraints(
        &self,
        job: &mut Constraints<'_>,
        budget: &Budget,
    ) -> spillproof_engine::Result<Answer<()>> {
        self.ask_first(|accelerator| accelerator.constraints(job, budget))
    }

    fn forget(&self, frames: u64) {
        if let Some(accelerator) = self.current() {
            accelerator.forget(frames);
        }
    }

    fn distrust(&self) {
        if let Some(accelerator) = self.current() {
            accelerator.distrust();
        }
    }

    fn may_be_asked(&self) -> bool {
        self.current()
            .is_some_and(|accelerator| accelerator.may_be_asked())
    }

    fn would_transform(&self, log_n: u32, budget: &Budget) -> bool {
        self.current()
            .is_some_and(|accelerator| accelerator.would_transform(log_n, budget))
    }
}
