//! The binary and the drop-in as one program: plans held to runs, and runs under a fake device.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod checkpoints;
#[path = "../circom/tests/common/circom_files.rs"]
mod circom_files;
mod conventions;
mod disks;
mod documents;
mod failures;
mod gpu;
mod gpu_plan;
mod gpu_support;
mod groth16;
mod kills;
mod new;
mod of_program;
mod patches;
mod plan;
#[path = "../circom/tests/common/r1cs.rs"]
#[allow(dead_code, reason = "the engine's tests use all of it")]
mod r1cs;
mod refusals;
mod report;
mod secrets;
mod srs;
#[path = "../../core/tests/common/unmount.rs"]
mod unmount;
mod zcash;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::SeedableRng;
use rand::rngs::StdRng;

/// The number in a variable of the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A generator, and its seed, which is printed.
fn seeded() -> (u64, StdRng) {
    let seed = variable("SPILLPROOF_TEST_SEED").unwrap_or_else(rand::random);
    println!("SPILLPROOF_TEST_SEED={seed}");
    (seed, StdRng::seed_from_u64(seed))
}

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

impl<'a> Mounted<'a> {
    /// A new file system of `bytes` bytes in the file `image`, made by `mkfs`; `None` where that fails.
    fn image(mkfs: &str, image: &Path, bytes: u64, place: &'a Path) -> Option<Self> {
        let file = std::fs::File::create(image).expect("an image");
        file.set_len(bytes).expect("a sparse file");
        let mut words = mkfs.split(' ');
        let mut command = Command::new(words.next()?);
        command.args(words).arg(image);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let is_made = command.status().is_ok_and(|status| status.success());
        let arguments = format!("-o loop {}", image.display());
        is_made.then(|| Self::new(&arguments, place)).flatten()
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let unmounted = unmount::within_patience(self.0);
        assert!(std::thread::panicking() || unmounted, "umount");
    }
}

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_spillproof");
