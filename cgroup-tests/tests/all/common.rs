//! The real binary in a control group of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use spillproof_cgroup_tests::{Outcome, cold, group_or_skip};

pub const MIB: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(7200);

/// A program of the folder that `SPILLPROOF_TEST_BINARIES` names, or one that is built for the profile of
/// this test.
pub fn binary(name: &str) -> &'static Path {
    static BUILT: Mutex<BTreeMap<String, &'static Path>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = built.get(name) {
        return path;
    }
    let path = match std::env::var_os("SPILLPROOF_TEST_BINARIES") {
        Some(folder) => PathBuf::from(folder).join(name),
        None => build(name),
    };
    assert!(path.is_file(), "{} is missing", path.display());
    let path: &'static Path = Box::leak(path.into_boxed_path());
    built.insert(name.to_owned(), path);
    path
}

fn build(name: &str) -> PathBuf {
    // target/PROFILE/deps/all-HASH
    let this = std::env::current_exe().expect("this test has a path");
    let profile = this.ancestors().nth(2).expect("a profile's folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--workspace", "--bin", name]);
    if profile.file_name().is_some_and(|name| name == "release") {
        build.arg("--release");
    }
    // Cargo's lock is free while tests run.
    let target = profile.parent().expect("a target folder");
    let built = build
        .arg("--target-dir")
        .arg(target)
        .status()
        .expect("cargo runs");
    assert!(built.success(), "{name} does not build");
    profile.join(name)
}

static RUNNING: RwLock<()> = RwLock::new(());

/// Held while the binary runs: pages that another process has mapped cannot be evicted, and stay charged to
/// another group than the measured one. No test of the instrument runs meanwhile, either.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    RUNNING.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test of the instrument: several run beside each other, none beside the binary, whose limits a
/// swap file would lift.
pub fn without_the_binary() -> RwLockReadGuard<'static, ()> {
    RUNNING.read().unwrap_or_else(PoisonError::into_inner)
}

/// The binary in a group of its own, with the program's file out of the page cache first. Scratch goes to the
/// target folder's disk: the system's folder for temporary files may be memory.
pub fn spillproof(limit_bytes: u64, arguments: &str) -> Option<Outcome> {
    in_group(binary("spillproof"), limit_bytes, arguments, cold::evict)
}

/// The control: the same work in memory, by any program, which must be killed; none if no group can be had.
///
/// The limit does not count the program's code. If it did, and the data came to a rest just below it, the kernel would
/// take the code's pages from the group and read them again, for minutes, before it killed the program.
///
/// # Panics
/// If the program lives: then the limit limits nothing.
pub fn is_killed(program: &str, limit_bytes: u64, arguments: &str) -> Option<()> {
    let control = in_group(binary(program), limit_bytes, arguments, cold::read_in)?;
    assert!(
        control.is_oom_killed(),
        "vacuous: the same work in memory lives under this limit too: {control:?}"
    );
    Some(())
}

fn in_group(
    program: &Path,
    limit_bytes: u64,
    arguments: &str,
    prepare: fn(&Path) -> std::io::Result<()>,
) -> Option<Outcome> {
    let _alone = alone();
    let group = group_or_skip(limit_bytes)?;
    prepare(program).expect("the program's file can be read");
    let environment = [("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))];
    let outcome = group
        .run(program, arguments.split_whitespace(), &environment, TIMEOUT)
        .expect("runs and is measured");
    println!(
        "limit {} MiB, peak {:.1} MiB, {:.1} s, {}: {} {arguments}",
        limit_bytes / MIB,
        outcome.figures.peak_bytes as f64 / MIB as f64,
        outcome.seconds,
        if outcome.is_oom_killed() {
            "killed"
        } else {
            "not killed"
        },
        program.file_name().unwrap_or_default().display()
    );
    Some(outcome)
}
