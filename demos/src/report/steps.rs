//! Steps inside a phase: what the drop-in is doing while `create_proof` runs.
//!
//! The drop-in opens a tracing span of the target [`TARGET`] for each step (synthesis, lookups, quotient...) and may tell
//! how far it is with events that have the fields `done` and `total`. A [`layer`] turns spans into [`Step`]s for the
//! table, moves the line on the terminal, and prints a JSON object a line on standard error if asked to
//! ([`print_events`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use spillproof::storage::{IoStats, Storage};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::progress;

/// Spans and events of this target are steps.
pub const TARGET: &str = "spillproof::step";

/// Something that began and ended inside a phase.
#[derive(Debug, Clone)]
pub struct Step {
    /// What was done.
    pub name: &'static str,
    /// When it began.
    pub started: Instant,
    /// When it ended.
    pub ended: Instant,
    /// What had moved before.
    pub before: IoStats,
    /// What had moved after.
    pub after: IoStats,
}

struct Log {
    storage: Option<Storage>,
    steps: Vec<Step>,
}

static LOG: Mutex<Log> = Mutex::new(Log {
    storage: None,
    steps: Vec::new(),
});
static PRINTS_EVENTS: AtomicBool = AtomicBool::new(false);

/// From now on, steps count what this storage moves.
pub fn watch(storage: &Storage) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).storage = Some(storage.clone());
}

/// The steps that ended since the last call, in the order in which they began.
pub fn take() -> Vec<Step> {
    let mut steps = std::mem::take(&mut LOG.lock().unwrap_or_else(PoisonError::into_inner).steps);
    steps.sort_by_key(|step| step.started);
    steps
}

/// From now on, say on standard error what begins, ends and advances: one JSON object a line.
pub fn print_events() {
    PRINTS_EVENTS.store(true, Ordering::Relaxed);
}

/// Prints an event, if somebody asked for them.
pub fn event(kind: &str, name: &str, fields: serde_json::Value) {
    if PRINTS_EVENTS.load(Ordering::Relaxed) {
        let mut event = serde_json::json!({ "event": kind, "name": name });
        if let (Some(event), serde_json::Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        eprintln!("{event}");
    }
}

/// The layer that sees the drop-in's spans.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Watcher
}

struct Watcher;

struct Begun {
    started: Instant,
    before: IoStats,
}

fn moved() -> IoStats {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    log.storage.as_ref().map(Storage::stats).unwrap_or_default()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Watcher {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() != TARGET {
            return;
        }
        if let Some(span) = context.span(id) {
            progress::step(span.name());
            event("begin", span.name(), serde_json::json!({}));
            span.extensions_mut().insert(Begun {
                started: Instant::now(),
                before: moved(),
            });
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(begun) = span.extensions_mut().remove::<Begun>() else {
            return;
        };
        let step = Step {
            name: span.name(),
            started: begun.started,
            ended: Instant::now(),
            before: begun.before,
            after: moved(),
        };
        let fields = serde_json::json!({
            "seconds": (step.ended - step.started).as_secs_f64(),
            "bytes_read": step.after.bytes_read - step.before.bytes_read,
            "bytes_written": step.after.bytes_written - step.before.bytes_written,
        });
        event("end", step.name, fields);
        LOG.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .steps
            .push(step);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fraction = Fraction::default();
        event.record(&mut fraction);
        if let Fraction {
            done: Some(done),
            total: Some(total),
        } = fraction
        {
            progress::fraction(done, total);
            let name = context.event_span(event).map_or("", |span| span.name());
            self::event("at", name, serde_json::json!({ "done": done, "total": total }));
        }
    }
}

#[derive(Default)]
struct Fraction {
    done: Option<u64>,
    total: Option<u64>,
}

impl Visit for Fraction {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "done" => self.done = Some(value),
            "total" => self.total = Some(value),
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_u64(field, u64::try_from(value).unwrap_or(0));
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn spans_of_the_target_are_steps_and_others_are_not() {
        let subscriber = tracing_subscriber::registry().with(layer());
        tracing::subscriber::with_default(subscriber, || {
            let outer = tracing::info_span!(target: TARGET, "outer step").entered();
            let inner = tracing::info_span!(target: TARGET, "inner step").entered();
            tracing::info!(target: TARGET, done = 1u64, total = 2u64);
            drop(inner);
            drop(tracing::info_span!("something else").entered());
            drop(outer);
        });
        let names: Vec<_> = take().iter().map(|step| step.name).collect();
        assert_eq!(names, ["outer step", "inner step"]);
    }
}
