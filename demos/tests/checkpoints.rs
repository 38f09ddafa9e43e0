//! Proofs that are killed and go on from their checkpoints: after each round, and at any moment. What comes
//! out is the very same proof, and nothing is left but the list of used checkpoints.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::Rng;

use crate::kills::KILLS;
use crate::{BINARY, seeded, variable};

/// How many proofs are killed at random moments.
const KILLS_DEFAULT: u64 = 6;
/// How many series of kills there are at most, and after how many different notes a proof is to be killed.
const SERIES_MAX: u32 = 40;
const PLACES_MIN: usize = 8;
/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Begins a proof by `circuit` in `dir`, which has the key.
fn begun(circuit: &str, dir: &Path) -> Child {
    let mut command = Command::new(BINARY);
    command.args(["prove", "--circuit", circuit]);
    command.args(
        "--k 12 --seed 7 --memory 8MiB --dir scratch --out proof --checkpoint kept --checkpoint-key key"
            .split(' '),
    );
    command
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().expect("the binary runs")
}

fn new_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("scratch")).expect("a directory");
    std::fs::write(dir.path().join("key"), [0x5a; 32]).expect("a key");
    dir
}

/// A proof from its beginning, and how long it took.
fn whole(circuit: &str) -> (Vec<u8>, Duration) {
    let (dir, since) = (new_dir(), Instant::now());
    let output = begun(circuit, dir.path()).wait_with_output().expect("an end");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (
        std::fs::read(dir.path().join("proof")).expect("a proof"),
        since.elapsed(),
    )
}

/// The folder of the checkpoint, while there is one.
fn folder(dir: &Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir.join("kept")).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.is_dir())
}

/// The length of the log.
fn log_bytes(dir: &Path) -> u64 {
    let log = folder(dir).and_then(|folder| std::fs::metadata(folder.join("log")).ok());
    log.map_or(0, |log| log.len())
}

/// Waits until the log is longer than `bytes`, and kills the run then; `false` if it ended before.
fn killed_after(mut run: Child, dir: &Path, bytes: u64) -> bool {
    let since = Instant::now();
    loop {
        if run.try_wait().expect("a child").is_some() {
            return false;
        }
        if log_bytes(dir) > bytes {
            run.kill().expect("a child");
            return !run.wait().expect("an end").success();
        }
        assert!(since.elapsed() < PATIENCE, "a proof hangs");
        std::thread::yield_now();
    }
}

fn ends_with(expected: &[u8], circuit: &str, dir: &Path, label: &str) {
    let output = begun(circuit, dir).wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{label}: {said}");
    let proof = std::fs::read(dir.join("proof")).expect("a proof");
    assert!(proof == expected, "{label}: another proof");
    assert_eq!(folder(dir), None, "{label}: the checkpoint is left");
    let scratch = std::fs::read_dir(dir.join("scratch")).expect("a directory");
    assert_eq!(scratch.count(), 0, "{label}: scratch files are left");
}

/// Each run of a series is killed when the log has grown, the last one ends. By how many notes it has grown
/// by then follows from the machine, so there are as many series as it takes.
#[test]
fn a_proof_that_is_killed_after_its_notes_is_the_same() {
    for circuit in ["chain", "lookups"] {
        let (expected, _) = whole(circuit);
        let (mut places, mut series) = (BTreeSet::new(), 0);
        while places.len() < PLACES_MIN {
            series += 1;
            assert!(series <= SERIES_MAX, "{circuit}: killed at {places:?} only");
            let (dir, mut bytes) = (new_dir(), 0);
            while killed_after(begun(circuit, dir.path()), dir.path(), bytes) {
                let now = log_bytes(dir.path());
                if now == 0 {
                    // Between the end of the proof and that of the process.
                    break;
                }
                assert!(now > bytes, "{circuit}: the log did not grow");
                bytes = now;
                places.insert(bytes);
            }
            let label = format!("{circuit}, series {series}");
            if let Ok(proof) = std::fs::read(dir.path().join("proof")) {
                assert!(proof == expected, "{label}: another proof");
            }
            ends_with(&expected, circuit, dir.path(), &label);
        }
        println!("{circuit}: killed at {} places in {series} series", places.len());
    }
}

#[test]
fn a_proof_that_is_killed_at_any_moment_is_the_same() {
    let (seed, mut rng) = seeded();
    let circuits = ["chain", "lookups"].map(|circuit| (circuit, whole(circuit)));
    let mut killed = 0;
    for number in 0..variable(KILLS).unwrap_or(KILLS_DEFAULT) {
        let (circuit, (expected, took)) = &circuits[rng.gen_range(0..circuits.len())];
        let dir = new_dir();
        for _ in 0..rng.gen_range(1..4) {
            let mut run = begun(circuit, dir.path());
            std::thread::sleep(took.mul_f64(rng.gen_range(0.3..1.05)));
            run.kill().ok();
            killed += u32::from(!run.wait().expect("an end").success());
        }
        ends_with(
            expected,
            circuit,
            dir.path(),
            &format!("seed {seed}, proof {number}, {circuit}"),
        );
    }
    println!("{killed} runs were killed before their end");
    assert!(killed > 0, "seed {seed}: all ended before they were killed");
}

#[test]
fn keys_and_folders_that_do_not_go_together_are_refused() {
    let dir = new_dir();
    let said = |arguments: &str| {
        let mut command = Command::new(BINARY);
        command.args("prove --circuit chain --k 10 --memory 8MiB --dir scratch --out proof".split(' '));
        let output = command
            .args(arguments.split(' '))
            .current_dir(dir.path())
            .output()
            .expect("the binary runs");
        assert!(!output.status.success(), "{arguments}");
        assert!(!dir.path().join("proof").exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    std::fs::create_dir(dir.path().join("kept")).expect("a directory");
    std::fs::write(dir.path().join("kept/key"), [1; 32]).expect("a key");
    std::fs::write(dir.path().join("short"), [1; 31]).expect("a key");
    for (arguments, expected) in [
        ("--checkpoint kept", "there is none for checkpoints in kept"),
        ("--checkpoint-key key", "no folder of checkpoints"),
        (
            "--checkpoint kept --checkpoint-key kept/key",
            "keep the key elsewhere",
        ),
        (
            "--checkpoint kept --checkpoint-key short",
            "31 bytes that are no key",
        ),
        (
            "--checkpoint kept --checkpoint-key missing",
            "missing: No such file",
        ),
        ("--checkpoint key --checkpoint-key key", "keep the key elsewhere"),
        (
            "--checkpoint kept --checkpoint-key key --no-session",
            "cannot be used with",
        ),
    ] {
        let said = said(arguments);
        assert!(said.contains(expected), "{arguments}: {said}");
        assert!(!said.contains("panicked"), "{arguments}: {said}");
    }
}
