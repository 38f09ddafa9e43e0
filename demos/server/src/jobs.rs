//! All jobs: their table, their queue, and the threads that prove.
//!
//! A job is admitted when its request begins (the table counts it, the queue has a place for it), waits for its place
//! in the queue once its witness is complete, and is run by one of a fixed number of threads. Beside each other, proofs take
//! turns in the session, and wait there for room in the budget. An ended job is kept for a while, and forgotten then,
//! or when newer results need its place.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spillproof_engine::Session;
use spillproof_engine::budget::random_bytes;
use spillproof_format::hex;
use tokio::sync::watch;

use crate::asked::Asked;
use crate::job::{Cause, Inner, Job, Outcome};
use crate::keys::OpenKey;
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};
use crate::queue::Queue;
use crate::settings::Settings;
use crate::state::{Counts, State};
use crate::system::SystemWitness;

/// Results take this part of the budget, and at least and at most so much.
const RESULTS_SHARE: u64 = 32;
const RESULTS_BYTES_MIN: u64 = 256 << 10;
const RESULTS_BYTES_MAX: u64 = 16 << 20;
/// Ended jobs that are kept at most.
const KEPT_JOBS_MAX: usize = 4096;
/// When to come again, at most.
const RETRY_SECONDS_MAX: f64 = 300.0;
/// The part of the mean that the latest job is.
const LATEST: f64 = 0.2;

/// What results may take of a budget.
pub(crate) fn results_bytes(limit_bytes: u64) -> u64 {
    (limit_bytes / RESULTS_SHARE).clamp(RESULTS_BYTES_MIN, RESULTS_BYTES_MAX)
}

/// All jobs.
pub(crate) struct Jobs {
    session: Arc<Session>,
    pub metrics: Arc<Metrics>,
    limits: Limits,
    /// Bytes of the budget that are neither for proofs nor for results.
    fixed_bytes: AtomicU64,
    table: Mutex<Table>,
    /// Tells threads of work, or of the end.
    work: Condvar,
    /// Jobs that have not ended.
    active: watch::Sender<usize>,
}

/// What is not to be exceeded.
struct Limits {
    proofs: usize,
    queue: usize,
    keep: Duration,
    job_timeout: Duration,
    results_bytes: usize,
}

#[derive(Default)]
struct Table {
    jobs: HashMap<String, Arc<Job>>,
    queue: Queue<Arc<Job>>,
    receiving: usize,
    running: Vec<Arc<Job>>,
    /// In the order in which they ended.
    ended: VecDeque<Arc<Job>>,
    ended_bytes: usize,
    repeats: HashMap<(String, String), Arc<Job>>,
    mean_seconds: f64,
    is_closed: bool,
    is_ending: bool,
}

/// What became of a request for a job.
pub(crate) enum Admitted {
    New(Receiving),
    /// One with the same idempotency key.
    Known(Arc<Job>),
}

impl Jobs {
    /// Begins with none. So many bytes of results may be kept.
    pub fn new(session: Arc<Session>, settings: &Settings, results_bytes: usize) -> Self {
        Self {
            session,
            metrics: Arc::default(),
            limits: Limits {
                proofs: settings.proofs,
                queue: settings.queue,
                keep: settings.keep,
                job_timeout: settings.job_timeout,
                results_bytes,
            },
            fixed_bytes: AtomicU64::default(),
            table: Mutex::default(),
            work: Condvar::new(),
            active: watch::Sender::new(0),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The budget that a server needs for a proof of this minimum.
    pub fn needed_bytes(&self, minimum_bytes: u64) -> u64 {
        let bytes = minimum_bytes.saturating_add(self.fixed_bytes.load(Relaxed));
        // Of a budget of bytes + results, results are a part.
        let results_bytes = results_bytes(bytes.saturating_mul(RESULTS_SHARE) / (RESULTS_SHARE - 1) + 1);
        bytes.saturating_add(results_bytes)
    }

    /// All that is held now, before the first job, stays held.
    pub fn fix_held(&self) {
        let held_bytes = self.session.budget().held_bytes();
        let results_bytes = self.limits.results_bytes as u64;
        self.fixed_bytes
            .store(held_bytes.saturating_sub(results_bytes), Relaxed);
    }

    /// A place in the queue for a request, or the job of an earlier one with its idempotency key.
    ///
    /// # Errors
    /// [`Code::Draining`], [`Code::QueueFull`], [`Code::Internal`].
    pub fn admit(self: &Arc<Self>, key: &Arc<OpenKey>, asked: &Asked) -> Result<Admitted, Problem> {
        let repeat = asked
            .idempotency_key
            .clone()
            .map(|repeat| (key.name.clone(), repeat));
        let id = random_id()?;
        let mut table = self.table();
        if table.is_closed {
            return Err(draining());
        }
        let known = repeat.as_ref().and_then(|repeat| table.repeats.get(repeat));
        // One that is being stopped gives no proof: it is made anew.
        let goes_on = |known: &&Arc<Job>| {
            let inner = known.inner();
            inner.stop.is_none() || inner.state.is_ended()
        };
        if let Some(known) = known.filter(goes_on) {
            return Ok(Admitted::Known(Arc::clone(known)));
        }
        if table.receiving + table.queue.len() >= self.limits.queue {
            let seconds = table.mean_seconds * (table.queue.len() + table.running.len()) as f64;
            let seconds = (seconds / self.limits.proofs as f64).clamp(1.0, RETRY_SECONDS_MAX);
            let detail = format!(
                "{} jobs wait, which is the most that this server lets wait",
                self.limits.queue
            );
            let problem = Problem::new(Code::QueueFull, detail);
            return Err(problem.retry_after(Duration::from_secs(seconds.ceil() as u64)));
        }
        let job = Job::new(id.clone(), Arc::clone(key), asked, repeat, &self.metrics);
        let job = Arc::new(job);
        if let Some(repeat) = &job.repeat {
            table.repeats.insert(repeat.clone(), Arc::clone(&job));
        }
        table.jobs.insert(id, Arc::clone(&job));
        table.receiving += 1;
        self.active.send_modify(|active| *active += 1);
        Ok(Admitted::New(Receiving {
            jobs: Arc::clone(self),
            job,
        }))
    }

    /// A job that is not forgotten.
    pub fn get(&self, id: &str) -> Option<Arc<Job>> {
        self.table().jobs.get(id).cloned()
    }

    /// Runs jobs until [`Self::end_threads`].
    pub fn work(&self) {
        while let Some((job, witness)) = self.next() {
            let proved = {
                let _entered = job.control.enter();
                // Nothing of a proof that panics is used; its files and leases go as the stack unwinds.
                catch_unwind(AssertUnwindSafe(|| {
                    job.key.key.prove(&self.session, &witness, job.scheme)
                }))
            };
            drop(witness);
            let outcome = match proved {
                Ok(Ok(proof)) => Outcome::Proof(proof),
                Ok(Err(problem)) => Outcome::Problem(problem),
                // Where halo2 has no error, a drop-in panics with the engine's.
                Err(panic) if panic.is::<spillproof_engine::Error>() => {
                    let limit_bytes = self.session.budget().limit_bytes();
                    let error = panic.downcast_ref::<spillproof_engine::Error>();
                    let problem = error.map(|error| Problem::of_engine(error, limit_bytes));
                    Outcome::Problem(problem.unwrap_or_else(|| job.stopped()))
                }
                Err(_) => {
                    tracing::error!(
                        job = job.id,
                        "a proof panicked: this is a defect, please report it"
                    );
                    Outcome::Problem(Problem::new(
                        Code::Internal,
                        "the proof met a defect of the server",
                    ))
                }
            };
            self.end(&job, outcome);
        }
    }

    fn next(&self) -> Option<(Arc<Job>, SystemWitness)> {
        let mut table = self.table();
        loop {
            if table.is_ending {
                return None;
            }
            while let Some(job) = table.queue.pop() {
                let mut inner = job.inner();
                // What was stopped in the queue is not in it any more.
                if let Some(witness) = inner.witness.take() {
                    inner.state = State::Running;
                    inner.started = Some(Instant::now());
                    drop(inner);
                    table.running.push(Arc::clone(&job));
                    return Some((job, witness));
                }
            }
            table = self.work.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The job has ended so. Of a job that was stopped, an error is that it was.
    fn end(&self, job: &Arc<Job>, outcome: Outcome) {
        job.end_step();
        let mut table = self.table();
        self.end_in(&mut table, job, outcome);
    }

    fn end_in(&self, table: &mut Table, job: &Arc<Job>, outcome: Outcome) {
        let mut inner = job.inner();
        if inner.state.is_ended() {
            return;
        }
        let (state, outcome) = match (outcome, inner.stop) {
            (Outcome::Problem(_), Some(cause)) => (State::Stopped, Outcome::Problem(cause.problem())),
            (problem @ Outcome::Problem(_), None) => (State::Failed, problem),
            (proof @ Outcome::Proof(_), _) => (State::Done, proof),
        };
        table.leave(job, inner.state);
        inner.state = state;
        let now = Instant::now();
        inner.ended = Some(now);
        inner.witness = None;
        let ran = inner
            .started
            .map(|started| now.saturating_duration_since(started));
        let waited = inner
            .started
            .unwrap_or(now)
            .saturating_duration_since(job.arrived);
        let bytes = outcome.bytes();
        inner.outcome = Some(outcome);
        drop(inner);
        if let (State::Done, Some(ran)) = (state, ran) {
            let latest = ran.as_secs_f64();
            table.mean_seconds = match table.mean_seconds {
                0.0 => latest,
                mean => mean + (latest - mean) * LATEST,
            };
        }
        // A request that did not get a proof may come again as a new one.
        if state != State::Done {
            table.forget_repeat(job);
        }
        self.metrics.ended(state, waited, ran);
        table.ended.push_back(Arc::clone(job));
        table.ended_bytes += bytes;
        while table.ended.len() > 1
            && (table.ended.len() > KEPT_JOBS_MAX || table.ended_bytes > self.limits.results_bytes)
        {
            table.forget_oldest();
        }
        job.told.send_modify(|told| told.is_ended = true);
        self.active.send_modify(|active| *active -= 1);
        tracing::info!(
            job = job.id,
            key = job.key.name,
            state = state.text(),
            waited_seconds = waited.as_secs_f64(),
            ran_seconds = ran.map_or(0.0, |ran| ran.as_secs_f64()),
            "a job ended"
        );
    }

    /// Stops a job. In the queue it ends at once, elsewhere within moments.
    pub fn stop(&self, job: &Arc<Job>, cause: Cause) {
        let mut table = self.table();
        self.stop_in(&mut table, job, cause);
    }

    fn stop_in(&self, table: &mut Table, job: &Arc<Job>, cause: Cause) {
        let state = {
            let mut inner = job.inner();
            if inner.state.is_ended() {
                return;
            }
            inner.stop.get_or_insert(cause);
            inner.state
        };
        job.control.stop();
        job.told.send_modify(|told| told.is_stopping = true);
        if state == State::Waiting {
            self.end_in(table, job, Outcome::Problem(job.stopped()));
        }
    }

    /// Forgets a job that has ended; `false` if it has not.
    pub fn forget(&self, job: &Arc<Job>) -> bool {
        let mut table = self.table();
        let is_ended = job.state().is_ended();
        if is_ended {
            table.ended.retain(|other| !Arc::ptr_eq(other, job));
            table.forget(job);
        }
        is_ended
    }

    /// Stops jobs that are past their time limit. Forgets results that are older than the settings keep them.
    pub fn tick(&self) {
        let now = Instant::now();
        let mut table = self.table();
        let over: Vec<_> = table
            .jobs
            .values()
            .filter_map(|job| Some((Arc::clone(job), self.is_over(job, &job.inner(), now)?)))
            .collect();
        for (job, cause) in over {
            self.stop_in(&mut table, &job, cause);
        }
        let is_kept = |job: &Arc<Job>| {
            let ended = job.inner().ended;
            ended.is_some_and(|ended| now.saturating_duration_since(ended) < self.limits.keep)
        };
        while table.ended.front().is_some_and(|job| !is_kept(job)) {
            table.forget_oldest();
        }
    }

    fn is_over(&self, job: &Job, inner: &Inner, now: Instant) -> Option<Cause> {
        if inner.state.is_ended() || inner.stop.is_some() {
            return None;
        }
        if job.deadline.is_some_and(|deadline| now >= deadline) {
            return Some(Cause::Deadline);
        }
        let ran = inner
            .started
            .map(|started| now.saturating_duration_since(started));
        ran.filter(|ran| *ran >= self.limits.job_timeout)
            .map(|_| Cause::TimeLimit)
    }

    /// Takes no new jobs from now on.
    pub fn close(&self) {
        self.table().is_closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.table().is_closed
    }

    /// Stops all jobs.
    pub fn stop_all(&self) {
        let mut table = self.table();
        let jobs: Vec<_> = table.jobs.values().cloned().collect();
        for job in jobs {
            self.stop_in(&mut table, &job, Cause::Draining);
        }
    }

    /// Waits until all jobs have ended.
    pub async fn all_ended(&self) {
        let mut active = self.active.subscribe();
        // The sender is there as long as this is.
        let _is_there = active.wait_for(|active| *active == 0).await.is_ok();
    }

    /// Lets the threads of [`Self::work`] end.
    pub fn end_threads(&self) {
        self.table().is_ending = true;
        self.work.notify_all();
    }

    pub fn counts(&self) -> Counts {
        let table = self.table();
        Counts {
            receiving: table.receiving,
            waiting: table.queue.len(),
            running: table.running.len(),
            ended: table.ended.len(),
            queue_limit: self.limits.queue,
            results_bytes: table.ended_bytes,
        }
    }
}

impl Table {
    /// Takes a job from where jobs of this state are.
    fn leave(&mut self, job: &Arc<Job>, state: State) {
        let is_other = |other: &Arc<Job>| !Arc::ptr_eq(other, job);
        match state {
            State::Receiving => self.receiving -= 1,
            State::Waiting => self.queue.retain(is_other),
            State::Running => self.running.retain(is_other),
            State::Done | State::Failed | State::Stopped => {}
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(job) = self.ended.pop_front() {
            self.forget(&job);
        }
    }

    fn forget(&mut self, job: &Arc<Job>) {
        if self.jobs.remove(&job.id).is_some() {
            let bytes = job.inner().outcome.as_ref().map_or(0, Outcome::bytes);
            self.ended_bytes = self.ended_bytes.saturating_sub(bytes);
            self.forget_repeat(job);
        }
    }

    fn forget_repeat(&mut self, job: &Arc<Job>) {
        if let Some(repeat) = &job.repeat
            && self
                .repeats
                .get(repeat)
                .is_some_and(|known| Arc::ptr_eq(known, job))
        {
            self.repeats.remove(repeat);
        }
    }
}

pub(crate) fn draining() -> Problem {
    Problem::new(
        Code::Draining,
        "the server ends: send the request to another one, or later",
    )
    .retry_after(Duration::from_secs(10))
}

fn random_id() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    random_bytes(&mut bytes).map_err(|error| Problem::internal(&error))?;
    Ok(hex(&bytes))
}

/// A job whose witness is on its way. Dropped before the witness is there, the job is stopped: its client is gone.
pub(crate) struct Receiving {
    jobs: Arc<Jobs>,
    job: Arc<Job>,
}

impl Receiving {
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The witness is there: the job goes to the queue.
    pub fn queue(self, witness: SystemWitness, digest: blake3::Hash) {
        let mut table = self.jobs.table();
        let mut inner = self.job.inner();
        if inner.state != State::Receiving || inner.stop.is_some() {
            return;
        }
        inner.state = State::Waiting;
        inner.witness = Some(witness);
        inner.digest = Some(digest);
        drop(inner);
        // The step was that of the witness.
        self.job.end_step();
        table.receiving -= 1;
        table.queue.push(self.job.key.need.work, Arc::clone(&self.job));
        self.jobs.work.notify_one();
    }

    /// There will be no witness.
    pub fn fail(self, problem: Problem) {
        self.jobs.end(&self.job, Outcome::Problem(problem));
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if self.job.state() == State::Receiving {
            self.jobs.stop(&self.job, Cause::ClientGone);
            self.jobs.end(&self.job, Outcome::Problem(self.job.stopped()));
        }
    }
}

/// A request that waits for a job. When the last one goes before the job has ended, the job is stopped, unless it was
/// to go on.
pub(crate) struct Waiter {
    jobs: Arc<Jobs>,
    job: Arc<Job>,
}

impl Waiter {
    pub fn new(jobs: &Arc<Jobs>, job: &Arc<Job>) -> Self {
        job.inner().waiters += 1;
        Self {
            jobs: Arc::clone(jobs),
            job: Arc::clone(job),
        }
    }

    /// Waits for the end of the job.
    pub async fn ended(&self) {
        let mut told = self.job.told.subscribe();
        let _is_there = told.wait_for(|told| told.is_ended).await.is_ok();
    }

    /// From now on, the job goes on without requests that wait.
    pub fn detach(&self) {
        self.job.inner().is_detached = true;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let is_alone = {
            let mut inner = self.job.inner();
            inner.waiters -= 1;
            inner.waiters == 0 && !inner.is_detached && !inner.state.is_ended()
        };
        if is_alone {
            self.jobs.stop(&self.job, Cause::ClientGone);
        }
    }
}
