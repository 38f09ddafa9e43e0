//! Phases and the steps inside them, while `create_proof` runs.
//!
//! The drop-in opens a tracing span of the target [`TARGET`] for each step (synthesis, lookups, quotient...),
//! and emits an event with the field `committed` for each commitment. A [`layer`] turns spans into [`Step`]s
//! for the table. With a plan ([`expect`]) a step has a fraction and a remaining time: on the terminal, and,
//! after [`print_events`], on standard error as JSON objects, one a line:
//!
//! ```json
//! {"event": "begin", "phase": "prove", "step": "commit advice", "column": 0, "fraction": 0.21, "eta_seconds": 14.2}
//! {"event": "at",    "phase": "prove", "step": "commit advice", "column": 2, "fraction": 0.25, "eta_seconds": 13.1}
//! {"event": "end",   "phase": "prove", "step": "commit advice", "column": 3, "fraction": 0.31, "eta_seconds": 11.9, "seconds": 1.6, ...}
//! ```
//!
//! After [`print_lines`], a line of text stands there for each phase and step that begins.
//!
//! A proof that goes on from a checkpoint says `{"event": "resumed", "rounds": 3, ...}`.
//!
//! `column` counts the step's commitments; a phase has no `step`. Without a plan there is neither `fraction`
//! nor `eta_seconds`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spillproof_engine::plan::Plan;
use spillproof_engine::storage::{IoStats, Storage};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::forecast::{Forecast, Now, WHOLE};
use super::progress::{self, say};
use super::spent::Spent;
use crate::event::{self, Fields, Value};

/// Spans and events of this target are steps.
pub const TARGET: &str = "spillproof::step";
/// Between two reports of progress.
const TICK: Duration = Duration::from_millis(500);

/// A part of a phase.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// When it began.
    pub started: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Spent before it.
    pub before: Spent,
    /// Spent when it ended.
    pub after: Spent,
}

struct Log {
    storage: Option<Storage>,
    steps: Vec<Step>,
    /// The phase under way.
    phase: Option<String>,
    /// The step under way.
    step: Option<&'static str>,
    /// Its commitments.
    column: u64,
    /// Rounds of proofs that earlier runs had kept.
    resumed_rounds: u64,
    forecast: Option<Forecast>,
    /// Bytes a second between the last two ticks, and the bytes at the last one.
    rate: Rate,
    /// Whether there is a thread that shows the progress.
    is_ticking: bool,
}

/// How quickly bytes move.
struct Rate {
    bytes_per_second: f64,
    last: Option<(Instant, u64)>,
}

impl Rate {
    /// A tick, by which so many bytes had moved.
    fn tick(&mut self, now: Instant, bytes: u64) {
        if let Some((then, before)) = self.last {
            let seconds = (now - then).as_secs_f64().max(1e-3);
            self.bytes_per_second = bytes.saturating_sub(before) as f64 / seconds;
        }
        self.last = Some((now, bytes));
    }
}

static LOG: Mutex<Log> = Mutex::new(Log {
    storage: None,
    steps: Vec::new(),
    phase: None,
    step: None,
    column: 0,
    resumed_rounds: 0,
    forecast: None,
    rate: Rate {
        bytes_per_second: 0.0,
        last: None,
    },
    is_ticking: false,
});
static PRINTS_EVENTS: AtomicBool = AtomicBool::new(false);
static PRINTS_LINES: AtomicBool = AtomicBool::new(false);
/// Whether a program has asked for the layer.
static HAS_LAYER: AtomicBool = AtomicBool::new(false);

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    fn moved(&self) -> IoStats {
        self.storage.as_ref().map(Storage::stats).unwrap_or_default()
    }

    fn now(&mut self) -> Option<Now> {
        Some(self.forecast.as_mut()?.now(Instant::now()))
    }

    /// Shows the progress of the run; as JSON with the fields of `more`, after [`print_events`].
    fn print(&mut self, kind: &str, more: &[(&'static str, Value<'_>)]) {
        let Some(phase) = self.phase.clone() else { return };
        let now = self.now();
        if let Some(now) = now {
            let step = self.step.map(|step| (step, self.column));
            progress::overall(&phase, step, &now, self.rate.bytes_per_second);
        } else if let Some(step) = self.step.filter(|_| kind == "begin") {
            progress::step(&phase, step);
        }
        if kind == "begin" && PRINTS_LINES.load(Ordering::Relaxed) {
            say(line(&phase, self.step, now));
        }
        if !PRINTS_EVENTS.load(Ordering::Relaxed) {
            return;
        }
        let mut fields: Fields<'_> = vec![("event", Value::Text(kind)), ("phase", Value::Text(&phase))];
        if let Some(step) = self.step {
            fields.extend([("step", Value::Text(step)), ("column", Value::Count(self.column))]);
        }
        if let Some(now) = now {
            fields.extend([
                ("fraction", Value::Number(now.fraction)),
                ("eta_seconds", Value::Number(now.eta_seconds)),
            ]);
        }
        fields.extend(more);
        say(event::object(&fields));
    }
}

/// From now on, steps count the bytes that this storage moves.
pub fn watch(storage: &Storage) {
    log().storage = Some(storage.clone());
}

/// Lets the storage go, and with it a folder of scratch files that was made for the run.
pub fn unwatch() {
    let storage = log().storage.take();
    drop(storage);
}

/// The steps that ended since the last call, in the order in which they began.
pub fn take() -> Vec<Step> {
    let mut steps = std::mem::take(&mut log().steps);
    steps.sort_by_key(|step| step.started);
    steps
}

/// Rounds that proofs of this process took from checkpoints of earlier runs.
pub fn resumed_rounds() -> u64 {
    log().resumed_rounds
}

/// From now on, prints steps that begin, advance and end on standard error: one JSON object a line.
pub fn print_events() {
    PRINTS_EVENTS.store(true, Ordering::Relaxed);
}

/// From now on, prints a line on standard error for each phase and step that begins.
pub fn print_lines() {
    PRINTS_LINES.store(true, Ordering::Relaxed);
}

/// The line of a phase or a step that begins.
fn line(phase: &str, step: Option<&str>, now: Option<Now>) -> String {
    let step = step.map_or_else(String::new, |step| format!(": {step}"));
    let now = now.map_or_else(String::new, |now| {
        format!(
            " ({:.0} % done, {:.0} s left)",
            now.fraction * 100.0,
            now.eta_seconds
        )
    });
    format!("spillproof: {phase}{step}{now}")
}

/// From now on, shows the progress of the work of this plan, before which a phase takes about so many
/// seconds, until [`forget`].
pub fn expect(before: Option<(&'static str, f64)>, plan: &Plan) {
    let mut log = log();
    log.forecast = Some(Forecast::new(before, plan));
    if log.is_ticking {
        return;
    }
    let spawned = thread::Builder::new().name("progress".into()).spawn(tick);
    // Without a thread, only beginnings and ends are shown.
    log.is_ticking = spawned.is_ok();
}

/// Shows the progress from time to time, until there is no plan.
fn tick() {
    loop {
        let mut log = log();
        if log.forecast.is_none() {
            log.is_ticking = false;
            return;
        }
        let moved = log.moved();
        log.rate
            .tick(Instant::now(), moved.bytes_read + moved.bytes_written);
        log.print("at", &[]);
        drop(log);
        thread::sleep(TICK);
    }
}

/// The work of the plan is done.
pub fn forget() {
    log().forecast = None;
}

/// A phase begins.
pub fn begin(phase: &str) {
    let mut log = log();
    log.phase = Some(phase.to_owned());
    if let Some(forecast) = &mut log.forecast {
        forecast.begin(phase, WHOLE, Instant::now());
    }
    log.print("begin", &[]);
}

/// The phase has ended.
pub fn end(seconds: f64) {
    let mut log = log();
    log.print("end", &[("seconds", Value::Number(seconds))]);
    log.phase = None;
}

/// The layer that receives the drop-in's spans, which are at level info: a filter before the layer must let
/// that level of [`TARGET`] through.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    HAS_LAYER.store(true, Ordering::Relaxed);
    Watcher
}

/// Whether the program has asked for the [`layer`].
pub(crate) fn has_layer() -> bool {
    HAS_LAYER.load(Ordering::Relaxed)
}

struct Watcher;

struct Begun {
    started: Instant,
    before: Spent,
    /// The step around this one.
    outer: Option<&'static str>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Watcher {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() != TARGET {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let mut log = log();
        let (started, before) = (Instant::now(), Spent::with_queue(log.moved()));
        if let Log {
            phase: Some(phase),
            forecast: Some(forecast),
            ..
        } = &mut *log
        {
            forecast.begin(phase, span.name(), started);
        }
        let outer = log.step.replace(span.name());
        log.column = 0;
        log.print("begin", &[]);
        span.extensions_mut().insert(Begun {
            started,
            before,
            outer,
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(begun) = span.extensions_mut().remove::<Begun>() else {
            return;
        };
        let mut log = log();
        let step = Step {
            name: span.name(),
            started: begun.started,
            ended: Instant::now(),
            before: begun.before,
            after: Spent::with_queue(log.moved()),
        };
        let (before, after) = (&step.before.io, &step.after.io);
        let fields = [
            (
                "seconds",
                Value::Number((step.ended - step.started).as_secs_f64()),
            ),
            ("bytes_read", Value::Count(after.bytes_read - before.bytes_read)),
            (
                "bytes_written",
                Value::Count(after.bytes_written - before.bytes_written),
            ),
        ];
        log.step = Some(step.name);
        log.print("end", &fields);
        log.step = begun.outer;
        log.steps.push(step);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut counts = Counts::default();
        event.record(&mut counts);
        if counts.committed > 0 {
            let mut log = log();
            log.column += counts.committed;
            log.print("at", &[]);
        }
        if counts.resumed_rounds > 0 {
            let mut log = log();
            log.resumed_rounds += counts.resumed_rounds;
            log.print("resumed", &[("rounds", Value::Count(counts.resumed_rounds))]);
        }
    }
}

/// What an event counts.
#[derive(Default)]
struct Counts {
    committed: u64,
    resumed_rounds: u64,
}

impl Visit for Counts {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "committed" => self.committed = value,
            "resumed_rounds" => self.resumed_rounds = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn a_line_has_its_phase_and_its_step() {
        let now = Now {
            fraction: 0.206,
            elapsed_seconds: 3.7,
            eta_seconds: 14.2,
        };
        assert_eq!(line("prove", None, None), "spillproof: prove");
        let with_plan = line("prove", Some("lookups"), Some(now));
        assert_eq!(with_plan, "spillproof: prove: lookups (21 % done, 14 s left)");
    }

    #[test]
    fn a_rate_is_of_the_last_two_ticks() {
        let (mut rate, begun) = (
            Rate {
                bytes_per_second: 0.0,
                last: None,
            },
            Instant::now(),
        );
        let rates = [(0, 100), (2, 500), (4, 500), (5, 100)].map(|(seconds, bytes)| {
            rate.tick(begun + Duration::from_secs(seconds), bytes);
            rate.bytes_per_second
        });
        // Another storage may have moved fewer.
        assert_eq!(rates, [0.0, 200.0, 0.0, 0.0]);
    }

    #[test]
    fn spans_of_the_target_are_steps_and_others_are_not() {
        let subscriber = tracing_subscriber::registry().with(layer());
        tracing::subscriber::with_default(subscriber, || {
            let outer = tracing::info_span!(target: TARGET, "outer step").entered();
            let inner = tracing::info_span!(target: TARGET, "inner step").entered();
            tracing::info!(target: TARGET, committed = 1u64);
            drop(inner);
            drop(tracing::info_span!("something else").entered());
            drop(outer);
        });
        let names: Vec<_> = take().iter().map(|step| step.name).collect();
        assert_eq!(names, ["outer step", "inner step"]);
    }
}
