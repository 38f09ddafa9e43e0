//! What a machine cannot do is said aloud.

use std::io::Write as _;

/// Straight to standard error: the test runner would hide what `eprintln!` says.
pub fn skipped(why: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
