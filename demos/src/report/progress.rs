//! Progress on a terminal (on stderr), and silence off it.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The line of a phase that is under way.
pub struct Progress {
    bar: ProgressBar,
}

/// The line that steps go to: that of the phase which began last.
static CURRENT: Mutex<Option<(String, ProgressBar)>> = Mutex::new(None);

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
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some((name.to_owned(), bar.clone()));
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
pub fn step(name: &str) {
    if let Some((phase, bar)) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_position(0);
        bar.reset_eta();
        bar.set_message(format!("{phase}: {name}"));
    }
}

/// The step under way has done so much of so much.
pub fn fraction(done: u64, total: u64) {
    if let Some((_, bar)) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
        measured(bar, total);
        bar.set_position(done);
    }
}

fn measured(bar: &ProgressBar, length: u64) {
    bar.set_length(length);
    bar.set_style(style("{spinner} {msg} {elapsed} [{bar:30}] {percent}% eta {eta}"));
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
