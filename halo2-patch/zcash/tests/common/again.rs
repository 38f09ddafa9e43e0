//! A test binary, upstream's tests and all, once more within a session.

use std::process::Command;

use super::session_variables::{active, DIR_VARIABLE, MEMORY_VARIABLE};

/// Runs the test binary, but for the test that asks for it, with a session by environment variables, and sees
/// to it that `tests` pass.
pub fn in_a_session(asking: &str, tests: &[&str]) {
    assert!(!active());
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", asking])
        .env(MEMORY_VARIABLE, "16MiB")
        .env(DIR_VARIABLE, dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    for test in tests {
        assert!(text.contains(&format!("{test} ... ok")), "{text}");
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "something is left on disk"
    );
}
