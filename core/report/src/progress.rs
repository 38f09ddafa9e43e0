//! Progress on a terminal (on stderr), and silence off it.

use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::forecast::Now;

/// The line of the current phase.
pub struct Progress {
    bar: ProgressBar,
}

/// The line of the phase that began last, which shows its steps.
static CURRENT: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Whether there are no lines, whatever standard error is.
static IS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// A line on standard error. A closed one is no error.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _closed = writeln!(std::io::stderr(), "{line}");
}

/// From now on, there are no lines.
pub fn hide() {
    IS_HIDDEN.store(true, Ordering::Relaxed);
}

impl Progress {
    /// A line with the phase's name and the elapsed time.
    pub fn start(name: &str) -> Self {
        if IS_HIDDEN.load(Ordering::Relaxed) || !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self { bar }
    }

    /// No line.
    pub fn hidden() -> Self {
        Self {
            bar: ProgressBar::hidden(),
        }
    }

    /// The line goes.
    pub fn clear(&self) {
        CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.bar.finish_and_clear();
    }

    /// The number of positions.
    pub fn length(&self, length: u64) {
        measured(&self.bar, length);
    }

    /// The position that is reached.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The current phase has begun a step.
pub fn step(phase: &str, name: &str) {
    if let Some(bar) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
        bar.set_message(format!("{phase}: {name}"));
    }
}

/// The progress of the run, its step, and the columns that the step has committed to.
pub fn overall(phase: &str, step: Option<(&str, u64)>, now: &Now) {
    if let Some(bar) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
        let step = match step {
            Some((name, 0)) => format!(": {name}"),
            Some((name, column)) => format!(": {name}, column {column}"),
            None => String::new(),
        };
        bar.set_style(style("{spinner} [{bar:30}] {percent}% {msg} {elapsed}"));
        bar.set_length(1000);
        bar.set_position((now.fraction * 1000.0) as u64);
        bar.set_message(format!("{phase}{step}, {:.0} s left,", now.eta_seconds));
    }
}

fn measured(bar: &ProgressBar, length: u64) {
    bar.set_length(length);
    bar.set_style(style("{spinner} {msg} {elapsed} [{bar:30}] {percent}% eta {eta}"));
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
