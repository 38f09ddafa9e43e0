//! The demo: its claim in three lines, its picture, and which pictures it refuses before any work.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::BINARY;

fn run(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(dir);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SPILLPROOF_")) {
        command.env_remove(name);
    }
    command.output().expect("the binary runs")
}

const SMALL: [&str; 5] = ["demo", "--k", "8", "--memory", "16MiB"];

#[test]
fn the_demo_ends_with_its_claim_and_what_else_there_is() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("scratch")).expect("a folder");
    let output = run(dir.path(), &[&SMALL[..], &["--dir", "scratch"]].concat());
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<&str> = said.lines().collect();
    let [time, memory, process, "", next] = lines[lines.len() - 5..] else {
        panic!("{said}");
    };
    for (line, begins) in [
        (time, "time of the proof: "),
        (memory, "memory of the proof: "),
        (
            process,
            "the budget (16.0 MiB) + about 20 MiB is what the process takes",
        ),
        (next, "next: `spillproof new my-proof`"),
    ] {
        assert!(line.starts_with(begins), "{line}");
    }
    for line in [time, memory] {
        let ratio = line.rsplit_once("ratio ").expect(line).1;
        assert!(ratio.parse::<f64>().expect(line) > 0.0, "{line}");
    }
    for line in &lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Nothing but the picture, in the folder of scratch files, and the peer's sum is not in it.
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
    let files: Vec<_> = fs::read_dir(dir.path().join("scratch"))
        .expect("a folder")
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let picture = fs::read_to_string(dir.path().join("scratch/spillproof-demo.svg")).expect("a picture");
    for (name, is_shown) in [("prove, disk", true), ("prove, memory", true), ("MSM", false)] {
        assert_eq!(picture.contains(name), is_shown, "{name}");
    }
}

#[test]
fn the_demo_gives_its_figures_as_json() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = run(dir.path(), &[&SMALL[..], &["--json", "--svg", "my.svg"]].concat());
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let result = &printed["result"];
    for field in [
        "proof_seconds",
        "in_memory_proof_seconds",
        "msm_seconds",
        "peer_seconds",
    ] {
        assert!(result[field].as_f64().expect(field) > 0.0, "{result}");
    }
    for field in ["proof_peak_bytes", "in_memory_proof_peak_bytes"] {
        assert!(result[field].as_u64().expect(field) > 1 << 20, "{result}");
    }
    assert_eq!(result["msm_log_n"], 10);
    assert!(dir.path().join("my.svg").is_file());
}

/// A bare command line too: without this check, the picture failed after all of the work.
#[test]
fn a_picture_that_cannot_be_written_is_refused_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("spillproof-demo.svg")).expect("a folder in the picture's place");
    for arguments in [
        &["--dir", "."][..],
        &["demo", "--svg", "missing/my.svg"],
        &["demo", "--svg", "spillproof-demo.svg"],
    ] {
        let output = run(dir.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(".svg"), "{arguments:?}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(!printed.contains("proof"), "{arguments:?}: {printed}");
    }
}
