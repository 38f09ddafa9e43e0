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
        bar.set_style(style("{spinner} {msg}, {elapsed} elapsed"));
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

/// The progress of the run, its step and the columns that the step has committed to, and the bytes that move
/// in a second.
pub fn overall(phase: &str, step: Option<(&str, u64)>, now: &Now, bytes_per_second: f64) {
    if let Some(bar) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
        bar.set_style(style("{spinner} [{bar:8}] {percent:>3}% {wide_msg}"));
        bar.set_length(1000);
        bar.set_position((now.fraction * 1000.0) as u64);
        bar.set_message(message(phase, step, now, bytes_per_second));
    }
}

/// The words behind a bar. On a narrow terminal their end is cut.
fn message(phase: &str, step: Option<(&str, u64)>, now: &Now, bytes_per_second: f64) -> String {
    let step = match step {
        Some((name, 0)) => format!(": {name}"),
        Some((name, column)) => format!(": {name} {column}"),
        None => String::new(),
    };
    format!(
        "{} elapsed, {} left, {:.0} MiB/s  {phase}{step}",
        clock(now.elapsed_seconds),
        clock(now.eta_seconds),
        bytes_per_second / f64::from(1 << 20)
    )
}

/// Seconds as minutes and seconds, or hours before them.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else {
        format!("{minutes}:{:02}", seconds % 60)
    }
}

fn measured(bar: &ProgressBar, length: u64) {
    bar.set_length(length);
    bar.set_style(style(
        "{spinner} [{bar:8}] {percent:>3}% {elapsed} elapsed, {eta} left  {msg}",
    ));
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_labelled_and_fit_80_columns() {
        let now = Now {
            fraction: 0.42,
            elapsed_seconds: 754.4,
            eta_seconds: 661.0,
        };
        let said = message("prove", Some(("commit advice", 12)), &now, 1234.0 * 1048576.0);
        assert_eq!(
            said,
            "12:34 elapsed, 11:01 left, 1234 MiB/s  prove: commit advice 12"
        );
        // The spinner, the bar and the percentage take 18.
        assert!(18 + said.chars().count() <= 80, "{said}");
        assert_eq!([0.4, 59.6, 3661.0].map(clock), ["0:00", "1:00", "1:01:01"]);
        assert!(message("prove", None, &now, 0.0).ends_with("0 MiB/s  prove"));
    }
}
