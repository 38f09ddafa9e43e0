//! The real binary in a control group of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use spillproof_cgroup_tests::{Outcome, cold, group_or_skip};

pub const MIB: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(7200);

/// The binary that `SPILLPROOF_TEST_BINARY` names, or one that is built for the profile of this test.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(binary) = std::env::var_os("SPILLPROOF_TEST_BINARY") {
            let binary = PathBuf::from(binary);
            assert!(
                binary.is_file(),
                "SPILLPROOF_TEST_BINARY: {} is missing",
                binary.display()
            );
            return binary;
        }
        // target/PROFILE/deps/budget-HASH
        let this = std::env::current_exe().expect("this test has a path");
        let profile = this.ancestors().nth(2).expect("a profile's folder");
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            "spillproof-cli",
            "--bin",
            "spillproof",
        ]);
        if profile.file_name().is_some_and(|name| name == "release") {
            build.arg("--release");
        }
        // Cargo's lock is free while tests run; whatever is built already is not built again.
        let target = profile.parent().expect("a target folder");
        let built = build
            .arg("--target-dir")
            .arg(target)
            .status()
            .expect("cargo runs");
        assert!(built.success(), "the binary does not build");
        profile.join("spillproof")
    })
}

/// Held while the binary runs: pages that another process has mapped cannot be evicted, and stay charged to another group than the
/// measured one.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The binary in a group of its own, with the program's file out of the page cache first. Scratch goes to the target folder's disk:
/// the system's folder for temporary files may be memory.
pub fn spillproof(limit_bytes: u64, arguments: &str) -> Option<Outcome> {
    let _alone = alone();
    let group = group_or_skip(limit_bytes)?;
    cold::evict(binary()).expect("the program's file can leave the page cache");
    let environment = [("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))];
    let outcome = group
        .run(binary(), arguments.split_whitespace(), &environment, TIMEOUT)
        .expect("runs and is measured");
    println!(
        "limit {} MiB, peak {:.1} MiB, {:.1} s, {}: spillproof {arguments}",
        limit_bytes / MIB,
        outcome.figures.peak_bytes as f64 / MIB as f64,
        outcome.seconds,
        if outcome.is_oom_killed() {
            "killed"
        } else {
            "not killed"
        }
    );
    Some(outcome)
}
