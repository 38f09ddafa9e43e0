//! A run that is killed at any moment leaves no scratch file, no file beside its output, and an output that
//! is whole or not there.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::Rng;

use crate::{BINARY, seeded, variable};

/// How many runs are killed.
pub const KILLS: &str = "SPILLPROOF_TEST_KILLS";
const KILLS_DEFAULT: u64 = 12;

/// Begins a proof by `circuit`, with scratch files in `dir/scratch` and the output in `dir/out`.
fn begun(circuit: &str, dir: &Path) -> Child {
    let mut command = Command::new(BINARY);
    command.args(["prove", "--circuit", circuit]);
    command.args("--k 12 --seed 7 --memory 8MiB --dir scratch --out out/proof".split(' '));
    command
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("the binary runs")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

#[test]
fn runs_that_are_killed_leave_nothing() {
    let (seed, mut rng) = seeded();
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let (scratch, out, proof) = (dir.join("scratch"), dir.join("out"), dir.join("out/proof"));
    std::fs::create_dir(&scratch).expect("a directory");
    std::fs::create_dir(&out).expect("a directory");
    let circuits = ["chain", "lookups"].map(|circuit| {
        let since = Instant::now();
        let status = begun(circuit, dir).wait().expect("an end");
        assert!(status.success(), "{circuit}");
        (circuit, since.elapsed(), std::fs::read(&proof).expect("a proof"))
    });
    let mut killed = 0;
    for number in 0..variable(KILLS).unwrap_or(KILLS_DEFAULT) {
        let (circuit, took, expected) = &circuits[rng.gen_range(0..circuits.len())];
        std::fs::remove_file(&proof).ok();
        let mut run = begun(circuit, dir);
        let delay = took.mul_f64(rng.gen_range(0.0..1.05));
        std::thread::sleep(delay);
        let signal = ["-KILL", "-KILL", "-TERM", "-INT"][rng.gen_range(0..4)];
        let id = run.id().to_string();
        let sent = Command::new("kill")
            .args([signal, &id])
            .stderr(Stdio::null())
            .status();
        assert!(sent.is_ok());
        let status = run.wait().expect("an end");
        killed += u32::from(!status.success());
        let label = format!("seed {seed}, run {number}: {circuit}, {signal} after {delay:?}: {status}");
        // The kernel frees what a process held a moment after its end.
        let since = Instant::now();
        while !names(&scratch).is_empty() && since.elapsed() < Duration::from_secs(5) {
            std::thread::yield_now();
        }
        assert_eq!(names(&scratch), [""; 0], "{label}");
        match std::fs::read(&proof) {
            Ok(made) => assert!(made == *expected, "{label}: another proof"),
            // Between its link and its rename; the next run sweeps it.
            Err(_) => assert!(
                names(&out)
                    .iter()
                    .all(|name| name.starts_with(".proof.spillproof-partial-")),
                "{label}"
            ),
        }
    }
    println!("{killed} runs were killed before their end");
    assert!(killed > 0, "seed {seed}: all ended before the signal");
    for (circuit, _, expected) in &circuits {
        std::fs::remove_file(&proof).ok();
        assert!(begun(circuit, dir).wait().expect("an end").success());
        assert!(
            std::fs::read(&proof).expect("a proof") == *expected,
            "{circuit} afterwards"
        );
        assert_eq!(names(&out), ["proof"], "{circuit} afterwards");
    }
}
