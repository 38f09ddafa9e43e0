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

/// Parameters of a known secret are marked, and what uses them says so, whatever the output.
#[test]
fn known_secrets_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let says = |line: &str, is_insecure: bool| {
        for option in ["-q", "--json"] {
            let line = words(&format!("{line} {option}"));
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let output = run(dir.path(), &line);
            assert!(output.status.success(), "{line:?}: {output:?}");
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_said = match option {
                "--json" => {
                    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
                    told["result"]["insecure"].as_bool().expect("a mark")
                }
                _ => told.contains("INSECURE"),
            };
            assert_eq!(is_said, is_insecure, "{line:?}: {told}");
        }
    };
    std::fs::write(dir.path().join("poly"), [[1; 32], [2; 32]].concat()).expect("a file");
    let ceremony = include_bytes!("../circom/tests/fixtures/ceremony_bn128.ptau");
    std::fs::write(dir.path().join("ceremony.ptau"), ceremony).expect("a file");
    says("srs gen --k 7 --out made.srs", true);
    says("srs lagrange made.srs --k 6 --out smaller.srs", true);
    for srs in ["made.srs", "smaller.srs"] {
        says(&format!("srs inspect {srs}"), true);
        says(&format!("srs verify {srs}"), true);
        says(&format!("keygen --k 6 --srs {srs} --out key --vk vk"), true);
        says(
            &format!("prove --k 6 --srs {srs} --memory 16MiB --out proof"),
            true,
        );
        says(&format!("verify --k 6 --srs {srs} --vk vk proof"), true);
        says(
            &format!("commit --srs {srs} --polynomial poly --open-at 5 --out opening"),
            true,
        );
        says(&format!("open verify --srs {srs} opening"), true);
        says(&format!("msm --log-n 4 --srs {srs} --memory 8MiB"), true);
    }
    // On the fly, and as a page.
    says("prove --k 6 --memory 16MiB --out proof --report page", true);
    let page = std::fs::read_to_string(dir.path().join("page")).expect("a page");
    assert!(page.contains("INSECURE"), "{page}");
    says("verify --k 6 proof", true);
    says("keygen --k 6 --out key", true);
    // A file of halo2 has no place for the mark.
    says("srs export made.srs --out made.params", true);
    says("srs import made.params --out again.srs", false);
    says("ptau import ceremony.ptau --out ceremony.srs", false);
    says("msm --log-n 2 --srs ceremony.srs --memory 8MiB", false);
    says("msm --log-n 4 --memory 8MiB", false);
    says("prove --k 6 --srs again.srs --memory 16MiB --out proof", false);
}

/// Files of midnight-proofs are recognised by their bytes, and go in and out as they are.
#[test]
fn files_of_midnight_proofs_go_in_and_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let told = |line: &[&str]| {
        let output = run(dir.path(), line);
        assert!(output.status.success(), "{line:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let made = told(&[
        "srs",
        "gen",
        "--curve",
        "bls12-381",
        "--k",
        "7",
        "--seed",
        "3",
        "--out",
        "made.srs",
    ]);
    assert!(made.contains("Bls12381") && made.contains("INSECURE"), "{made}");
    for format in ["raw", "processed", "raw-unchecked"] {
        let exported = told(&[
            "srs",
            "export",
            "made.srs",
            "--out",
            "bls_midnight_2p7",
            "--format",
            format,
        ]);
        assert!(
            exported.contains("midnight-proofs over BLS12-381, k = 7"),
            "{exported}"
        );
        let bytes = std::fs::read(dir.path().join("bls_midnight_2p7")).expect("a file");
        let inspected = told(&["srs", "inspect", "bls_midnight_2p7"]);
        assert!(
            inspected.contains("ParamsKZG of midnight-proofs over BLS12-381"),
            "{inspected}"
        );
        assert!(inspected.contains("g: 128 G1 (Monomial)"), "{inspected}");
        let imported = told(&[
            "srs",
            "import",
            "bls_midnight_2p7",
            "--out",
            "again.srs",
            "--memory",
            "16MiB",
        ]);
        assert!(
            imported.contains("over BLS12-381") && imported.contains("k = 7"),
            "{imported}"
        );
        told(&["srs", "verify", "again.srs"]);
        told(&["srs", "export", "again.srs", "--out", "again", "--format", format]);
        assert!(
            bytes == std::fs::read(dir.path().join("again")).expect("a file"),
            "{format}"
        );
        told(&[
            "srs",
            "lagrange",
            "bls_midnight_2p7",
            "--k",
            "5",
            "--out",
            "smaller.srs",
        ]);
        told(&["srs", "verify", "smaller.srs"]);
        if format != "processed" {
            let verified = told(&["srs", "verify", "bls_midnight_2p7"]);
            assert!(verified.contains("belong together"), "{verified}");
        }
    }
    let json: serde_json::Value =
        serde_json::from_str(&told(&["srs", "inspect", "bls_midnight_2p7", "--json"])).expect("JSON");
    let result = &json["result"];
    assert_eq!(
        (result["kind"].as_str(), result["curve"].as_str()),
        (Some("ParamsKZG"), Some("Bls12381"))
    );
    assert_eq!(result["sections"][1]["elements"], 128);
    // halo2's are told from them.
    told(&["srs", "gen", "--k", "7", "--out", "halo2.srs"]);
    told(&["srs", "export", "halo2.srs", "--out", "halo2.params"]);
    let inspected = told(&["srs", "inspect", "halo2.params"]);
    assert!(
        inspected.contains("ParamsKZG of halo2 over BN254, raw points"),
        "{inspected}"
    );
    told(&["srs", "verify", "halo2.params"]);
}
