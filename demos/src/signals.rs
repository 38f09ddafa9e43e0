//! Signals from outside. SIGINT and SIGTERM end the program as they would anyway, after folders that it made
//! for scratch files are removed; the files themselves have no names, and go with the process. SIGXFSZ (a
//! file at the limit of its size) does nothing: the write that met the limit fails, and that error is told.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use spillproof_engine::storage::missing_folders;

/// Folders that a session makes, outermost first.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn made() -> MutexGuard<'static, Vec<PathBuf>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session is about to make `dir`, if it is missing. Those of earlier sessions are remembered too.
pub fn expect_folder(dir: &Path) {
    made().extend(missing_folders(dir));
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
            for dir in made().iter().rev() {
                // A folder with other files in it stays.
                let _ = std::fs::remove_dir(dir);
            }
            let _ = emulate_default_handler(signal);
        }
    };
    if let Err(error) = thread::Builder::new().name("signals".into()).spawn(answer) {
        tracing::debug!(%error, "folders stay after a signal");
    }
}

/// Whether the process was started so that a signal does nothing, as shells start what runs in the
/// background.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
