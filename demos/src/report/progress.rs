//! Progress on a terminal (on stderr), and silence off it.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::forecast::Now;

/// The line of a phase that is under way.
pub struct Progress {
    bar: ProgressBar,
}

/// The line that steps go to: that of the phase which began last.
static CURRENT: Mutex<Option<ProgressBar>> = Mutex::new(None);

impl Progress {
    /// A line with the phase's name and the time that it has taken.
    pub fn start(name: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self {
                bar: ProgressBar::hidden(),
            };
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self { bar }
    }

    /// There will be `length` steps.
    pub fn length(&self, length: u64) {
        measured(&self.bar, length);
    }

    /// So many steps are done.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.bar.finish_and_clear();
    }
}

/// The phase under way has come to this step.
pub fn step(phase: &str, name: &str) {
    if let Some(bar) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
        bar.set_message(format!("{phase}: {name}"));
    }
}

/// The run is at this step, and at so many of its columns.
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
