//! Signals from outside. SIGINT and SIGTERM end the program as they end others: scratch files have no names,
//! and go with the process. SIGXFSZ (a file at the limit of its size) does nothing: the write that met the
//! limit fails, and that error is told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGXFSZ;

/// Begins to answer signals. Where that cannot be, they have their usual effect.
pub fn watch() {
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))) {
        tracing::debug!(%error, "a file at the limit of its size ends the program");
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
