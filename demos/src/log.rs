//! The log on standard error, and the level that it has: that of the variable `SPILLPROOF_LOG`, until the
//! command line says another one.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use halo2_axiom::spillproof::PANICS;
use tracing_subscriber::filter::{FilterExt, LevelFilter, dynamic_filter_fn, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, reload};

use crate::report::steps;

type SetLevel = Box<dyn Fn(LevelFilter) + Send + Sync>;

static SET_LEVEL: OnceLock<SetLevel> = OnceLock::new();
/// Whether steps are passed over.
static WITHOUT_STEPS: AtomicBool = AtomicBool::new(false);

/// Begins the log, and the watch on steps.
pub fn start() {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let (level, handle) = reload::Layer::new(of_environment());
    let in_lines = level.and(filter_fn(|event| event.target() != PANICS));
    let noted = dynamic_filter_fn(|_, _| !WITHOUT_STEPS.load(Ordering::Relaxed));
    tracing_subscriber::registry()
        .with(lines.with_filter(in_lines))
        .with(steps::layer().with_filter(LevelFilter::INFO.and(noted)))
        .init();
    let set: SetLevel = Box::new(move |level| {
        // The subscriber stays until the process ends.
        let _is_there = handle.reload(level);
    });
    let _is_the_first = SET_LEVEL.set(set);
}

/// From now on, steps are not watched, for a command without an end: their list would grow.
pub fn without_steps() {
    WITHOUT_STEPS.store(true, Ordering::Relaxed);
}

/// From now on, the log has this level.
pub fn at(level: LevelFilter) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// `SPILLPROOF_LOG=debug` shows the engine's plans; warnings are shown without it.
fn of_environment() -> LevelFilter {
    let asked = std::env::var("SPILLPROOF_LOG").ok();
    asked
        .and_then(|level| level.parse().ok())
        .unwrap_or(LevelFilter::WARN)
}
