//! What a user reads when a run cannot succeed: an error with the file or the number, exit code 1, before any
//! work, and no file is left.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use spillproof_cli::signals::is_ignored;

use crate::{BINARY, Mounted, skipped};

/// The errors of a run in `dir` that fails with exit code 1.
fn error_of(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(BINARY);
    let output = command
        .args(arguments)
        .current_dir(dir)
        .env_remove("SPILLPROOF_DIR")
        .output()
        .expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
    assert!(
        errors.contains("error: ") && !errors.contains("panicked"),
        "{errors}"
    );
    errors
}

#[test]
fn places_that_take_no_files() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "here before").expect("a file");
    let chain = ["prove", "--circuit", "chain", "--k", "8", "--memory", "16MiB"];
    for (more, named) in [
        (["--out", "proof", "--dir", "file"], "file"),
        (["--out", "proof", "--dir", "/proc"], "/proc"),
        (["--out", "nowhere/proof", "--dir", "."], "nowhere/proof"),
        (["--out", "/", "--dir", "."], "/"),
    ] {
        let error = error_of(dir.path(), &[&chain[..], &more[..]].concat());
        assert!(error.contains(named), "{error}");
    }
    // The report's place is looked at before the proof is made.
    let report = ["--out", "proof", "--report", "nowhere/report.html"];
    let error = error_of(dir.path(), &[&chain[..], &report[..]].concat());
    assert!(error.contains("nowhere/report.html"), "{error}");
    let error = error_of(dir.path(), &["srs", "gen", "--k", "6", "--out", "/dev/null"]);
    assert!(
        error.contains("/dev/null") && error.contains("a device"),
        "{error}"
    );
    let left: Vec<_> = std::fs::read_dir(dir.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["file"]);
}

/// A parameter file mixed from two ceremonies has only points of the curve. It is refused before the keys are
/// made; in a budget without room for that check, the proof is, since it does not verify.
#[test]
fn parameters_that_do_not_belong_together() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = |command: &mut Command, arguments: &str| {
        let arguments = arguments.split_whitespace();
        command
            .args(arguments)
            .current_dir(dir.path())
            .output()
            .expect("the binary runs")
    };
    for seed in ["1", "2"] {
        let made = run(
            &mut Command::new(BINARY),
            &format!("srs gen --k 8 --seed {seed} --out {seed}.srs"),
        );
        assert!(made.status.success(), "{made:?}");
        let exported = format!("srs export {seed}.srs --out {seed}.params --format raw");
        assert!(run(&mut Command::new(BINARY), &exported).status.success());
    }
    let read = |name: &str| std::fs::read(dir.path().join(name)).expect("a file");
    let (mut mixed, other, half) = (read("1.params"), read("2.params"), 4 + (64 << 8));
    mixed[half..half + (64 << 8)].copy_from_slice(&other[half..half + (64 << 8)]);
    std::fs::write(dir.path().join("mixed.params"), mixed).expect("a file");

    let prove = "prove --circuit chain --k 8 --memory 16MiB --dir . --params mixed.params --out proof";
    let error = error_of(dir.path(), &prove.split_whitespace().collect::<Vec<_>>());
    assert!(
        error.contains("g_lagrange is not the Lagrange form of g"),
        "{error}"
    );
    let planned = run(
        &mut Command::new(BINARY),
        "plan --circuit chain --k 8 --memory 1GiB --threads 2 --json",
    );
    let plan: serde_json::Value = serde_json::from_slice(&planned.stdout).expect("JSON");
    let smallest = &plan["result"]["plan"]["smallest_budget_bytes"];
    let prove = format!(
        "prove --circuit chain --k 8 --memory {smallest} --threads 2 --dir . --params mixed.params --out proof"
    );
    let error = error_of(dir.path(), &prove.split_whitespace().collect::<Vec<_>>());
    assert!(error.contains("the proof does not verify"), "{error}");
    assert!(!dir.path().join("proof").exists());
    let mut trusting = Command::new(BINARY);
    let made = run(trusting.env("SPILLPROOF_SELF_VERIFICATION", "0"), &prove);
    assert!(made.status.success(), "{made:?}");
    assert!(dir.path().join("proof").exists());
}

/// A folder for scratch files has to be there, and stays.
#[test]
fn folders_of_scratch_files() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("here")).expect("a directory");
    let prove = ["prove", "--circuit", "chain", "--k", "8", "--out", "proof"];
    let error = error_of(
        dir.path(),
        &[&prove[..], &["--memory", "16MiB", "--dir", "not/mounted"]].concat(),
    );
    assert!(
        error.contains("`not/mounted`") && error.contains("make it, or mount its disk"),
        "{error}"
    );
    assert!(!dir.path().join("not").exists() && !dir.path().join("proof").exists());
    for memory in ["16MiB", "1MiB"] {
        let mut command = Command::new(BINARY);
        let output = command
            .args(prove)
            .args(["--memory", memory, "--dir", "here"])
            .current_dir(dir.path())
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.success(), memory == "16MiB", "{output:?}");
        let left = std::fs::read_dir(dir.path().join("here")).expect("a directory");
        assert_eq!(left.count(), 0, "{memory}");
    }
}

/// A run that is long enough to be stopped, in `dir`, with scratch files in `folder`.
fn long_run(dir: &Path, folder: &Path) -> Child {
    let mut command = Command::new(BINARY);
    command.args("prove --circuit chain --k 17 --memory 64MiB --out proof --dir".split(' '));
    command.arg(folder).current_dir(dir);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary runs")
}

/// SIGTERM and SIGINT end a run as they end other programs, and no file is left.
#[test]
fn a_signal_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("here");
    std::fs::create_dir(&folder).expect("a directory");
    for (name, number) in [("-TERM", 15), ("-INT", 2)] {
        if is_ignored(number) {
            skipped(format_args!(
                "signal {number} was ignored when the tests were started"
            ));
            continue;
        }
        let mut child = long_run(dir.path(), &folder);
        std::thread::sleep(Duration::from_millis(500));
        let id = child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill");
        assert!(sent.success(), "the run ended before the signal");
        let status = child.wait().expect("an end");
        assert_eq!(status.signal(), Some(number), "{status}");
        for (folder, entries) in [(dir.path(), 1), (&folder, 0)] {
            let left = std::fs::read_dir(folder).expect("a directory");
            assert_eq!(left.count(), entries, "{name}: {}", folder.display());
        }
    }
}

/// How a short run ends in a shell that has said `limit`, and its errors. No file is left.
fn limited(limit: &str, memory: &str) -> (ExitStatus, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, BINARY, "--memory", memory]);
    command.args("prove --circuit chain --k 12 --out proof --dir .".split(' '));
    let output = command.current_dir(dir.path()).output().expect("a shell");
    if !output.status.success() {
        let left = std::fs::read_dir(dir.path()).expect("a directory");
        assert_eq!(left.count(), 0, "{limit}");
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, errors)
}

/// The command line alone would take more of a stack than such a limit leaves.
#[test]
fn a_limit_on_stacks() {
    for kib in [64, 256] {
        let (status, errors) = limited(&format!("ulimit -s {kib}"), "8MiB");
        assert!(status.success(), "{kib} KiB, {status}: {errors}");
    }
}

/// A limit on the size of files is an error, as a full disk is.
#[test]
fn a_limit_on_the_size_of_files() {
    let (status, errors) = limited("ulimit -f 8", "8MiB");
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("error: ") && errors.contains("too large"),
        "{errors}"
    );
}

/// Memory that the system does not give is an error, also that of the heap.
#[test]
fn a_limit_on_the_memory_of_the_process() {
    let program_kib = std::fs::metadata(BINARY).expect("the binary").len() >> 10;
    let mut ends = Vec::new();
    for more_mib in [16, 32, 64, 96, 160, 400, 1600] {
        let (status, errors) = limited(&format!("ulimit -v {}", program_kib + (more_mib << 10)), "8MiB");
        // The loader and the first thread may need more than the limit: then the program has not begun.
        let has_begun = !errors.contains("shared libraries") && !errors.is_empty();
        if has_begun && !status.success() {
            assert_eq!(status.code(), Some(1), "{more_mib} MiB more, {status}: {errors}");
            assert!(errors.contains("error: "), "{more_mib} MiB more: {errors}");
        }
        ends.push((more_mib, status.code()));
    }
    assert!(ends.iter().any(|(_, code)| *code == Some(1)), "{ends:?}");
}

/// Before a proof begins, the room that it takes is compared with that which the disk has.
#[test]
fn a_disk_with_too_little_room() {
    let dir = tempfile::tempdir().expect("a directory");
    let (place, out) = (dir.path().join("place"), dir.path().join("proof"));
    std::fs::create_dir(&place).expect("a directory");
    let Some(mounted) = Mounted::new("-t tmpfs -o size=24m none", &place) else {
        return skipped("a small tmpfs cannot be mounted here (needs root)");
    };
    let mut command = Command::new(BINARY);
    command.args("prove --circuit chain --k 16 --memory 16MiB --dir".split(' '));
    let output = command.arg(&place).arg("--out").arg(&out).output();
    drop(mounted);
    let output = output.expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("bytes of disk") && errors.contains("--dir"),
        "{errors}"
    );
    assert!(!out.exists());
}

#[test]
fn more_rows_than_the_field_has_roots_for() {
    let error = error_of(
        Path::new("."),
        &["plan", "--circuit", "chain", "--k", "28", "--memory", "1GiB"],
    );
    assert!(
        error.contains("2^28 rows") && error.contains("at most 2^27 rows"),
        "{error}"
    );
}
