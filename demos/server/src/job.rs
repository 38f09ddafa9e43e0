//! One job: what is known of it, from the head of its request until it is forgotten.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use spillproof_circuits::Scheme;
use spillproof_engine::control::Control;
use tokio::sync::watch;

use crate::asked::Asked;
use crate::keys::OpenKey;
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};
use crate::state::State;
use crate::system::SystemWitness;

/// Why a job is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Deleted,
    ClientGone,
    Deadline,
    TimeLimit,
    Draining,
}

impl Cause {
    /// What a client is told.
    pub fn problem(self) -> Problem {
        match self {
            Self::Deleted => Problem::new(Code::Stopped, "a request deleted the job"),
            Self::ClientGone => Problem::new(Code::Stopped, "the client went away"),
            Self::Deadline => Problem::new(
                Code::Deadline,
                "the proof was not done at the deadline of the request (Spillproof-Deadline), and was stopped",
            ),
            Self::TimeLimit => Problem::new(
                Code::TimeLimit,
                "the proof took longer than the server lets a job take, and was stopped",
            ),
            Self::Draining => Problem::new(
                Code::Draining,
                "the server ends, and stopped the job: send it to another one, or later",
            )
            .retry_after(Duration::from_secs(10)),
        }
    }
}

/// A request that may come again: a key's name, and the idempotency key.
pub(crate) type Repeat = (String, String);

/// What becomes of a job.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// The result, as JSON text.
    Proof(Bytes),
    Problem(Problem),
}

impl Outcome {
    /// Bytes that it takes while it is kept.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Proof(text) => text.len(),
            Self::Problem(problem) => problem.detail.len(),
        }
    }
}

/// What waits for a job is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub is_ended: bool,
    pub is_stopping: bool,
}

/// A job.
pub(crate) struct Job {
    pub id: String,
    pub key: Arc<OpenKey>,
    pub control: Control,
    pub arrived: Instant,
    pub deadline: Option<Instant>,
    pub repeat: Option<Repeat>,
    /// The multi-opening argument that was asked for.
    pub scheme: Option<Scheme>,
    pub told: watch::Sender<Told>,
    clock: Arc<StepClock>,
    inner: Mutex<Inner>,
}

/// What changes.
pub(crate) struct Inner {
    pub state: State,
    pub started: Option<Instant>,
    pub ended: Option<Instant>,
    pub witness: Option<SystemWitness>,
    pub digest: Option<blake3::Hash>,
    pub outcome: Option<Outcome>,
    pub stop: Option<Cause>,
    /// Requests that wait for it.
    pub waiters: usize,
    /// It goes on without them.
    pub is_detached: bool,
}

impl Job {
    pub fn new(
        id: String,
        key: Arc<OpenKey>,
        asked: &Asked,
        repeat: Option<Repeat>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let arrived = Instant::now();
        let clock = Arc::new(StepClock {
            metrics: Arc::clone(metrics),
            now: Mutex::default(),
        });
        let of_control = Arc::clone(&clock);
        Self {
            id,
            key,
            control: Control::with_steps(move |step| of_control.begin(step)),
            arrived,
            deadline: asked.deadline.and_then(|deadline| arrived.checked_add(deadline)),
            repeat,
            scheme: asked.scheme,
            told: watch::Sender::default(),
            clock,
            inner: Mutex::new(Inner {
                state: State::Receiving,
                started: None,
                ended: None,
                witness: None,
                digest: None,
                outcome: None,
                stop: None,
                waiters: 0,
                is_detached: false,
            }),
        }
    }

    /// What changes. Where the table of all jobs is locked, too, it is locked before.
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self) -> State {
        self.inner().state
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.inner().outcome.clone()
    }

    /// No step is under way any more.
    pub fn end_step(&self) {
        self.clock.end();
    }

    /// The problem of a job that was stopped.
    pub fn stopped(&self) -> Problem {
        self.inner().stop.unwrap_or(Cause::Deleted).problem()
    }

    /// What is said of it, as JSON text.
    pub fn text(&self) -> String {
        let inner = self.inner();
        let (now, step) = (Instant::now(), self.clock.step());
        let end = inner.ended.unwrap_or(now);
        let waited = inner
            .started
            .unwrap_or(end)
            .saturating_duration_since(self.arrived);
        let ran = inner
            .started
            .map(|started| end.saturating_duration_since(started));
        let mut value = json!({
            "id": self.id,
            "key": self.key.name,
            "state": inner.state.text(),
            "stopping": inner.stop.is_some() && !inner.state.is_ended(),
            "seconds": {"waited": waited.as_secs_f64(), "ran": ran.map_or(0.0, |ran| ran.as_secs_f64())},
        });
        if let Some(step) = step.filter(|_| !inner.state.is_ended()) {
            value["step"] = Value::from(step);
        }
        match &inner.outcome {
            None => value.to_string(),
            Some(Outcome::Problem(problem)) => {
                value["error"] = problem.value();
                value.to_string()
            }
            // The proof is JSON already.
            Some(Outcome::Proof(proof)) => {
                let mut text = value.to_string();
                text.pop();
                text.push_str(",\"result\":");
                text.push_str(&String::from_utf8_lossy(proof));
                text.push('}');
                text
            }
        }
    }
}

/// The step that a job is at, and since when.
struct StepClock {
    metrics: Arc<Metrics>,
    now: Mutex<Option<(&'static str, Instant)>>,
}

impl StepClock {
    fn now(&self) -> MutexGuard<'_, Option<(&'static str, Instant)>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, step: &'static str) {
        let before = self.now().replace((step, Instant::now()));
        self.count(before);
    }

    fn end(&self) {
        let before = self.now().take();
        self.count(before);
    }

    fn count(&self, step: Option<(&'static str, Instant)>) {
        if let Some((step, since)) = step {
            self.metrics.stepped(step, since.elapsed());
        }
    }

    fn step(&self) -> Option<&'static str> {
        self.now().map(|(step, _)| step)
    }
}
