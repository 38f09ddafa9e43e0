//! What unit tests share.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Mutex;

/// Says once that something is not tested on this machine, and why: straight to standard error, since the
/// test runner would hide a printed line.
pub fn skipped(why: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().is_ok_and(|mut said| said.insert(why.to_owned())) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
    }
}
