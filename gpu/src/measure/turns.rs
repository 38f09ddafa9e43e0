//! Several makers of the same jobs, one after the other, in one session: whose turn it is changes, the columns stay.

use std::sync::{Arc, Mutex, MutexGuard};

use ark_bn254::G1Projective;
use spillproof::budget::Budget;
use spillproof::tier::{Answer, Coset, Sums, Tier, Transform};

use crate::lock::locked;

/// A session's tier that asks whoever has the turn; nobody is the processor.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<dyn Tier>>,
    outcome: Outcome,
}

/// What became of the jobs since the turn was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    /// There was none, or the processor had the turn.
    #[default]
    NotAsked,
    /// All were done by whoever had the turn.
    Done,
    /// One was left to the processor, for this reason.
    Declined(String),
}

impl Turns {
    /// From now on this one is asked; or nobody.
    pub fn give_to(&self, tier: Option<Arc<dyn Tier>>) {
        *self.state() = State {
            current: tier,
            outcome: Outcome::NotAsked,
        };
    }

    /// What became of the jobs since the turn was given, or since this was asked.
    pub fn take_outcome(&self) -> Outcome {
        std::mem::take(&mut self.state().outcome)
    }

    fn ask<T>(
        &self,
        job: impl FnOnce(&dyn Tier) -> spillproof::Result<Answer<T>>,
    ) -> spillproof::Result<Answer<T>> {
        // Not held while the job runs.
        let current = self.state().current.clone();
        let Some(tier) = current else {
            return Ok(Answer::Declined("it is the processor's turn".into()));
        };
        let answer = job(&*tier);
        let outcome = match &answer {
            Ok(Answer::Done(_)) => Outcome::Done,
            Ok(Answer::Declined(why)) => Outcome::Declined(why.clone()),
            Err(error) => Outcome::Declined(error.to_string()),
        };
        let mut state = self.state();
        if !matches!(state.outcome, Outcome::Declined(_)) {
            state.outcome = outcome;
        }
        answer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Tier for Turns {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof::Result<Answer<Vec<G1Projective>>> {
        self.ask(|tier| tier.sums(job, budget))
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof::Result<Answer<()>> {
        self.ask(|tier| tier.transform(job, budget))
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof::Result<Answer<()>> {
        self.ask(|tier| tier.quotient(job, budget))
    }
}
