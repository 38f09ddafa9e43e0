//! Runs of the binary in a folder.

use std::path::Path;
use std::process::{Command, Output};

use crate::BINARY;

/// A command line, with scratch files in the folder too, and no budget from the environment.
pub fn run(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    command
        .args(line.split_whitespace())
        .current_dir(dir)
        .env_remove("SPILLPROOF_MEMORY")
        .env("SPILLPROOF_DIR", dir);
    command.output().expect("the binary runs")
}

/// What a run that has to end well prints.
pub fn succeeds(dir: &Path, line: &str) -> String {
    let output = run(dir, line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The reason of a refusal with this exit code.
pub fn refused(dir: &Path, line: &str, code: i32) -> String {
    let output = run(dir, line);
    assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
