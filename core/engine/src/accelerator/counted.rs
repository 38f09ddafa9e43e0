//! A session's accelerator, and the count of its jobs for each task.
//!
//! The results of an accelerator are trusted until a proof that depends on them is verified. So a task whose
//! proof will be verified asks its own session's accelerator only, and counts the jobs that were done
//! ([`TaskAccelerator`]); a task that cannot be verified asks none. If a verification fails, the accelerator
//! is [distrusted](CountedAccelerator::distrust). A job that is not offered counts as declined.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::{Accelerator, Answer, Constraints, Coset, Panel, ReadElements, Sums, Totals, Transform};
use crate::Result;
use crate::budget::Budget;

/// The reason of a refusal.
const PAUSED: &str = "offload paused: a running proof cannot verify accelerator results";

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<TaskAccelerator>> = const { RefCell::new(None) };
}

/// Proofs of this process that no session makes.
static OUTSIDE: AtomicUsize = AtomicUsize::new(0);

/// An accelerator whose jobs are counted, and that may be left out.
#[derive(Debug)]
pub struct CountedAccelerator {
    accelerator: Arc<dyn Accelerator>,
    jobs: AtomicU64,
    distrusted: AtomicBool,
}

/// The accelerator that a task may ask, and the number of jobs done for the task.
#[derive(Clone, Debug)]
pub struct TaskAccelerator {
    /// The only one that may be.
    accelerator: Option<Arc<CountedAccelerator>>,
    jobs: Arc<AtomicU64>,
}

/// While it lives, stages that this thread begins or works on are the task's.
#[must_use = "the thread's stages belong to no task when this is dropped"]
#[derive(Debug)]
pub struct TaskAcceleratorGuard {
    before: Option<TaskAccelerator>,
    /// It is the thread's.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// While it lives, no accelerator does what belongs to no task.
#[must_use = "accelerators are asked again when this is dropped"]
#[derive(Debug)]
pub struct ProcessorOnly(());

/// A proof outside of all sessions: it is not verified, and its stages may begin on any thread. So
/// accelerators are left out of what belongs to no task until the guard goes.
pub fn processor_only() -> ProcessorOnly {
    OUTSIDE.fetch_add(1, Ordering::SeqCst);
    ProcessorOnly(())
}

impl Drop for ProcessorOnly {
    fn drop(&mut self) {
        OUTSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TaskAccelerator {
    /// A task that may ask this accelerator, or none.
    pub fn new(accelerator: Option<Arc<CountedAccelerator>>) -> Self {
        Self {
            accelerator,
            jobs: Arc::default(),
        }
    }

    /// How many jobs an accelerator did for it.
    pub fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::SeqCst)
    }

    /// Makes the stages that this thread begins the task's.
    pub fn enter(&self) -> TaskAcceleratorGuard {
        TaskAcceleratorGuard {
            before: OF_THIS_THREAD.replace(Some(self.clone())),
            _not_send: std::marker::PhantomData,
        }
    }

    /// A task that asks none, though the task that this thread is inside of may.
    pub fn none() -> Self {
        Self::new(None)
    }

    /// How many jobs an accelerator did for the task that this thread is inside of; none outside of tasks.
    pub fn jobs_of_this_thread() -> Option<u64> {
        OF_THIS_THREAD.with_borrow(|of_this_thread| of_this_thread.as_ref().map(Self::jobs))
    }

    /// The one that this thread has entered.
    pub(crate) fn of_this_thread() -> Option<Self> {
        OF_THIS_THREAD.with_borrow(Clone::clone)
    }
}

impl Drop for TaskAcceleratorGuard {
    fn drop(&mut self) {
        OF_THIS_THREAD.set(self.before.take());
    }
}

impl CountedAccelerator {
    /// An accelerator that did nothing yet.
    pub fn new(accelerator: Arc<dyn Accelerator>) -> Arc<Self> {
        Arc::new(Self {
            accelerator,
            jobs: AtomicU64::new(0),
            distrusted: AtomicBool::new(false),
        })
    }

    /// How many jobs it did.
    pub fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::SeqCst)
    }

    /// From now on the processor does everything. The accelerator hears of it, and keeps nothing for later jobs.
    pub fn distrust(&self) {
        self.distrusted.store(true, Ordering::SeqCst);
        self.accelerator.distrust();
    }

    /// Whether [`Self::distrust`] was said.
    pub fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::SeqCst)
    }

    /// Why it is not asked, if it is not.
    fn is_left_out(&self) -> Option<&'static str> {
        if self.is_distrusted() {
            return Some("the accelerator computed wrong before");
        }
        let may_ask = match TaskAccelerator::of_this_thread() {
            Some(task_accelerator) => task_accelerator
                .accelerator
                .is_some_and(|accelerator| std::ptr::eq(&*accelerator, self)),
            None => OUTSIDE.load(Ordering::SeqCst) == 0,
        };
        (!may_ask).then_some(PAUSED)
    }

    fn ask<T>(&self, ask: impl FnOnce(&dyn Accelerator) -> Result<Answer<T>>) -> Result<Answer<T>> {
        if let Some(why) = self.is_left_out() {
            return Ok(Answer::Declined(why.into()));
        }
        let answer = ask(&*self.accelerator)?;
        let task_accelerator = TaskAccelerator::of_this_thread();
        if matches!(answer, Answer::Done(_)) {
            self.jobs.fetch_add(1, Ordering::SeqCst);
            if let Some(task_accelerator) = task_accelerator {
                task_accelerator.jobs.fetch_add(1, Ordering::SeqCst);
            }
        }
        Ok(answer)
    }
}

impl Accelerator for CountedAccelerator {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> Result<Answer<Totals>> {
        self.ask(|accelerator| accelerator.sums(job, budget))
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.ask(|accelerator| accelerator.transform(job, budget))
    }

    fn panel(&self, job: &mut Panel<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.ask(|accelerator| accelerator.panel(job, budget))
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.ask(|accelerator| accelerator.quotient(job, budget))
    }

    fn quotient_of(
        &self,
        job: &mut Coset<'_>,
        inputs: &mut [Box<dyn ReadElements + '_>],
        budget: &Budget,
    ) -> Result<Answer<()>> {
        self.ask(|accelerator| accelerator.quotient_of(job, inputs, budget))
    }

    fn constraints(&self, job: &mut Constraints<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.ask(|accelerator| accelerator.constraints(job, budget))
    }

    fn forget(&self, frames: u64) {
        self.accelerator.forget(frames);
    }

    fn distrust(&self) {
        Self::distrust(self);
    }

    fn may_be_asked(&self) -> bool {
        self.is_left_out().is_none()
    }

    fn would_transform(&self, log_n: u32, budget: &Budget) -> bool {
        self.may_be_asked() && self.accelerator.would_transform(log_n, budget)
    }
}
