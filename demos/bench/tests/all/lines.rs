//! The lines of `docs/cli.md` under "The benchmark" run, with small sizes, and so does what it says of a
//! program's own circuit.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use halo2_axiom::SerdeFormat;
use halo2_axiom::halo2curves::bn256::Fr;
use halo2_axiom::plonk::Circuit;
use halo2_axiom::spillproof::{save_described_key, save_witness};
use serde_json::Value;
use spillproof_circuits::Kind;
use spillproof_circuits::axiom::dropin::any::Any;
use spillproof_circuits::axiom::dropin::{proof, prover};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

use crate::BINARY;

const K: u32 = 8;

/// What the program prints as its result.
fn result_of(dir: &Path, words: &[&str]) -> Value {
    let output = Command::new(BINARY)
        .args(words)
        .current_dir(dir)
        .env("SPILLPROOF_DIR", dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    match words.contains(&"--json") {
        true => serde_json::from_slice::<Value>(&output.stdout).unwrap()["result"].take(),
        false => Value::Null,
    }
}

/// The line with sizes of a test: fewer rows, one run. A recorded command is another one.
fn small(line: &str) -> Vec<&str> {
    let line = line.split('#').next().unwrap_or_default();
    let (before, recorded) = line
        .split_once(" -- ")
        .map_or((line, None), |(before, command)| (before, Some(command)));
    let mut words: Vec<&str> = before.split_whitespace().skip(1).collect();
    for at in 1..words.len() {
        match words[at - 1] {
            "--msm" | "--ntt" | "--k" => words[at] = "8",
            "--runs" => words[at] = "1",
            "--out" => words[at] = "out",
            _ => {}
        }
    }
    if recorded.is_some() {
        words.extend(["--", BINARY, "--version"]);
    } else if !words.contains(&"stock") {
        words.extend(
            (!words.contains(&"--runs"))
                .then_some(["--runs", "1"])
                .into_iter()
                .flatten(),
        );
        words.push("--json");
    }
    words
}

#[test]
fn lines_of_the_benchmark_run() {
    let dir = tempfile::tempdir().unwrap();
    saved_circuit(dir.path());
    let tour = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md")).unwrap();
    let (_, section) = tour.split_once("\n## The benchmark\n").unwrap();
    let lines = section
        .lines()
        .filter(|line| line.starts_with("spillproof-bench "));
    // Those of a device have a test of their own.
    let lines: Vec<&str> = lines.filter(|line| !line.contains("--gpu")).collect();
    assert!(lines.len() >= 7, "{lines:?}");
    for line in lines {
        let result = result_of(dir.path(), &small(line));
        for prover in result["provers"].as_array().into_iter().flatten() {
            assert!(prover["prove_ratio"].as_f64().unwrap() > 0.0, "{line}: {prover}");
        }
    }
    for made in ["curve.svg", "scaling.svg", "out"] {
        assert!(dir.path().join(made).is_file(), "{made}");
    }
}

/// A program over the drop-in saves parameters, a key and a witness: `squares.params`, `squares.key`,
/// `squares.witness`.
fn saved_circuit(dir: &Path) {
    let session = Session::builder().memory(ByteSize::Bytes(32 << 20)).dir(dir);
    let _current = Arc::new(session.build().unwrap()).install();
    let params = proof::insecure_params(K, 1);
    let mut file = fs::File::create(dir.join("squares.params")).unwrap();
    params.write_custom(&mut file, SerdeFormat::RawBytes).unwrap();
    let vk = proof::verifying_key(&params, Kind::Lookups, K).unwrap();
    let pk = prover::proving_key(&params, vk, Kind::Lookups, K).unwrap();
    let circuit = Any::new(Kind::Lookups, K, 5);
    let instances = circuit.instances();
    let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    save_described_key(&pk, &circuit.without_witnesses(), dir.join("squares.key")).unwrap();
    save_witness(pk.get_vk(), &circuit, &columns, dir.join("squares.witness")).unwrap();
}

#[test]
fn a_saved_circuit_is_measured_beside_the_unmodified_crate() {
    let dir = tempfile::tempdir().unwrap();
    saved_circuit(dir.path());
    let files = "saved --key squares.key --witness squares.witness --srs squares.params --runs 1 --json";
    for scheme in ["shplonk", "gwc"] {
        let words: Vec<&str> = files.split(' ').chain(["--scheme", scheme]).collect();
        let result = result_of(dir.path(), &words);
        assert_eq!(result["k"], K);
        for prover in ["ours", "stock"] {
            assert!(
                result[prover]["prove_seconds"].as_f64().unwrap() > 0.0,
                "{result}"
            );
        }
    }
    let left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}
