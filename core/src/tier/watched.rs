//! A session's tier, and what is known of it: how many jobs it did, and whether it is asked at all.
//!
//! What a tier did is believed until something that can be checked came of it. So whoever proves lets no tier take part but its own
//! session's ([`pause_all`]), sees whether there is anything to check ([`jobs_of_all`]: keys may come from another session), and says
//! [`Watched::distrust`] if the check fails. Not asked is the same as declined.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ark_bn254::G1Projective;

use super::{Answer, Coset, Sums, Tier, Transform};
use crate::Result;
use crate::budget::Budget;

/// A tier that is counted, and that may be left out.
#[derive(Debug)]
pub struct Watched {
    tier: Arc<dyn Tier>,
    jobs: AtomicU64,
    pauses: AtomicU64,
    distrusted: AtomicBool,
}

/// While it lives, the tier is not asked.
#[must_use = "the tier is asked again when this is dropped"]
#[derive(Debug)]
pub struct Pause {
    tier: Arc<Watched>,
}

/// Those of this process; of which some may be gone.
static ALL: Mutex<Vec<Weak<Watched>>> = Mutex::new(Vec::new());
/// Jobs of all of them, those that are gone included.
static JOBS: AtomicU64 = AtomicU64::new(0);

/// How many jobs were not the processor's so far, in all sessions of this process.
pub fn jobs_of_all() -> u64 {
    JOBS.load(Ordering::SeqCst)
}

/// Until the guards go, no session's tier is asked, except this one.
pub fn pause_all(except: Option<&Arc<Watched>>) -> Vec<Pause> {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|tier| tier.strong_count() > 0);
    let others = all.iter().filter_map(Weak::upgrade);
    let others = others.filter(|tier| except.is_none_or(|except| !Arc::ptr_eq(except, tier)));
    others.map(|tier| tier.pause()).collect()
}

impl Watched {
    /// A tier that did nothing yet.
    pub fn new(tier: Arc<dyn Tier>) -> Arc<Self> {
        let watched = Arc::new(Self {
            tier,
            jobs: AtomicU64::new(0),
            pauses: AtomicU64::new(0),
            distrusted: AtomicBool::new(false),
        });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::downgrade(&watched));
        watched
    }

    /// How many jobs were not the processor's so far.
    pub fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::SeqCst)
    }

    /// From now on the processor does everything.
    pub fn distrust(&self) {
        self.distrusted.store(true, Ordering::SeqCst);
    }

    /// Whether [`Self::distrust`] was said.
    pub fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::SeqCst)
    }

    /// Until the guard goes the processor does everything, for all who use the session.
    pub fn pause(self: Arc<Self>) -> Pause {
        self.pauses.fetch_add(1, Ordering::SeqCst);
        Pause { tier: self }
    }

    fn ask<T>(&self, ask: impl FnOnce(&dyn Tier) -> Result<Answer<T>>) -> Result<Answer<T>> {
        if self.is_distrusted() {
            return Ok(Answer::Declined("the tier computed wrong before".into()));
        }
        if self.pauses.load(Ordering::SeqCst) > 0 {
            let why = "somebody proves meanwhile, and could not verify what the tier does here";
            return Ok(Answer::Declined(why.into()));
        }
        let answer = ask(&*self.tier)?;
        if matches!(answer, Answer::Done(_)) {
            self.jobs.fetch_add(1, Ordering::SeqCst);
            JOBS.fetch_add(1, Ordering::SeqCst);
        }
        Ok(answer)
    }
}

impl Tier for Watched {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> Result<Answer<Vec<G1Projective>>> {
        self.ask(|tier| tier.sums(job, budget))
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.ask(|tier| tier.transform(job, budget))
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.ask(|tier| tier.quotient(job, budget))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.tier.pauses.fetch_sub(1, Ordering::SeqCst);
    }
}
