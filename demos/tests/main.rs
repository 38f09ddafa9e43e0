//! The binary and the drop-in as one program: plans held to runs, and runs under a fake device.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod failures;
mod gpu;
mod gpu_plan;
mod gpu_support;
mod kills;
mod plan;
mod secrets;
mod srs;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Straight to standard error: the test runner would hide a printed line.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// A file system, unmounted when it goes.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// `mount` with these arguments, and the folder behind them; `None` where it fails.
    fn new(arguments: &str, place: &'a Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command
            .args(arguments.split(' '))
            .arg(place)
            .stderr(Stdio::null());
        command
            .status()
            .is_ok_and(|status| status.success())
            .then_some(Self(place))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0).status();
        assert!(
            std::thread::panicking() || unmounted.is_ok_and(|status| status.success()),
            "umount"
        );
    }
}

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_spillproof");
