//! What a machine cannot do is said aloud.

use std::io::Write as _;

/// Straight to standard error: the test runner would hide what a test prints.
pub fn skipped(why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
