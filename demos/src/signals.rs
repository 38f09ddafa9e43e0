//! Signals from outside. SIGINT and SIGTERM end the program as they end others, after a line on standard error
//! says so. A command that stops its own work on a signal, as `serve` does, calls [`hand_over`]. The system removes
//! scratch files without a name when the process ends; this program removes those with a name. SIGXFSZ
//! (a file at the limit of its size) does nothing: the write that met the limit fails, and that error is told.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// What SIGINT and SIGTERM do instead of ending the program, if a command has taken them over.
static TAKEN_OVER: Mutex<Option<Answer>> = Mutex::new(None);

type Answer = Box<dyn Fn() + Send>;

/// Scratch files with names.
static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command is about to make the scratch file `path`.
pub fn expect_file(path: &Path) {
    files().push(path.to_owned());
}

/// From now on, SIGINT and SIGTERM call this: the command ends the program itself.
pub fn hand_over(answer: impl Fn() + Send + 'static) {
    *TAKEN_OVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(answer));
}

/// Begins to answer signals. Where that cannot be, they have their usual effect.
pub fn watch() {
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))) {
        tracing::debug!(%error, "a file at the limit of its size ends the program");
    }
    let wanted: Vec<_> = [SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| !is_ignored(*signal))
        .collect();
    let answer = move || {
        let Ok(mut signals) = Signals::new(wanted) else {
            return;
        };
        for signal in signals.forever() {
            if let Some(answer) = &*TAKEN_OVER.lock().unwrap_or_else(PoisonError::into_inner) {
                answer();
                continue;
            }
            for file in files().iter() {
                // It may not have been made yet, or be gone.
                let _ = std::fs::remove_file(file);
            }
            say_the_end(signal);
            let _ = emulate_default_handler(signal);
        }
    };
    if let Err(error) = thread::Builder::new().name("signals".into()).spawn(answer) {
        tracing::debug!(%error, "files with names stay after a signal");
    }
}

/// The last line of a run that a signal ends. Results appear under their names when they are whole, so what
/// there is of them is whole.
fn say_the_end(signal: i32) {
    let name = if signal == SIGINT { "SIGINT" } else { "SIGTERM" };
    // A bar may stand on the line.
    let new_line = if std::io::stderr().is_terminal() { "\n" } else { "" };
    // A closed standard error is no error.
    let _ = writeln!(
        std::io::stderr(),
        "{new_line}spillproof: ended by {name}; scratch files are removed, and unfinished results are not written"
    );
}

/// Whether the process was started so that a signal does nothing, as shells start what runs in the
/// background.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
