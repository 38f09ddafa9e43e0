//! `srs lagrange`: the SRS that it makes is the one that is generated with both bases.

use std::path::Path;
use std::process::{Command, Output};

use crate::BINARY;

fn run(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .current_dir(dir)
        .env_remove("SPILLPROOF_DIR");
    command.output().expect("the binary runs")
}

fn succeeds(dir: &Path, arguments: &[&str]) {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[test]
fn lagrange_points_of_a_prefix_are_those_of_the_smaller_srs() {
    let dir = tempfile::tempdir().expect("a directory");
    let exported = |name: &str| {
        succeeds(
            dir.path(),
            &["srs", "export", name, "--out", "points", "--format", "raw"],
        );
        std::fs::read(dir.path().join("points")).expect("a file")
    };
    succeeds(
        dir.path(),
        &["srs", "gen", "--k", "9", "--seed", "3", "--out", "large.srs"],
    );
    succeeds(
        dir.path(),
        &[
            "srs",
            "export",
            "large.srs",
            "--out",
            "large.params",
            "--format",
            "raw",
        ],
    );
    for k in ["1", "7", "9"] {
        succeeds(
            dir.path(),
            &["srs", "gen", "--k", k, "--seed", "3", "--out", "wanted.srs"],
        );
        for source in ["large.srs", "large.params"] {
            succeeds(
                dir.path(),
                &[
                    "srs", "lagrange", source, "--k", k, "--memory", "32MiB", "--out", "made.srs",
                ],
            );
            // Containers have ids of their own.
            assert!(
                exported("made.srs") == exported("wanted.srs"),
                "k = {k} from {source}"
            );
        }
    }
    let refused = run(
        dir.path(),
        &["srs", "lagrange", "large.srs", "--k", "10", "--out", "none.srs"],
    );
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("k = 9"), "{words}");
    assert!(!dir.path().join("none.srs").exists());
}
