//! Progress on a terminal (on stderr), and silence off it.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The line of a phase that is under way.
pub struct Progress {
    bar: ProgressBar,
}

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
        Self { bar }
    }

    /// There will be `length` steps.
    pub fn length(&self, length: u64) {
        self.bar.set_length(length);
        self.bar
            .set_style(style("{spinner} {msg} {elapsed} [{bar:30}] {percent}% eta {eta}"));
    }

    /// So many steps are done.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
