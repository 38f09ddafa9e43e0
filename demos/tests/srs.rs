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

/// Two imports of one file have roots of their own and one content; another SRS has another content.
#[test]
fn the_content_of_imports_has_one_digest() {
    let dir = tempfile::tempdir().expect("a directory");
    let verified = |name: &str| {
        let output = run(dir.path(), &["srs", "verify", name, "--json"]);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        ["root", "content_digest"].map(|field| value["result"][field].as_str().expect("a digest").to_owned())
    };
    for seed in ["1", "2"] {
        succeeds(
            dir.path(),
            &[
                "srs",
                "gen",
                "--k",
                "6",
                "--seed",
                seed,
                "--out",
                &format!("{seed}.srs"),
            ],
        );
    }
    succeeds(dir.path(), &["srs", "export", "1.srs", "--out", "1.params"]);
    for name in ["a.srs", "b.srs"] {
        succeeds(dir.path(), &["srs", "import", "1.params", "--out", name]);
    }
    let [first, second, made, other] = ["a.srs", "b.srs", "1.srs", "2.srs"].map(verified);
    assert_ne!(first[0], second[0]);
    assert_eq!(first[1], second[1]);
    assert_eq!(first[1], made[1]);
    assert_ne!(first[1], other[1]);
}
