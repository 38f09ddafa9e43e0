//! Circuits of programs' own: a program over the drop-in saves its key and its witness, and the binary plans,
//! proves and verifies them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use halo2_axiom::halo2curves::bn256::Fr;
use halo2_axiom::plonk::Circuit;
use halo2_axiom::poly::commitment::Params;
use halo2_axiom::spillproof::{save_described_key, save_proving_key, save_witness, set_reproducible};
use midnight_proofs::spillproof as of_midnight;
use serde_json::Value;
use spillproof_circuits::axiom::dropin::any::Any;
use spillproof_circuits::axiom::dropin::{proof, prover};
use spillproof_circuits::midnight::dropin as midnight;
use spillproof_circuits::{Kind, Scheme};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

use crate::BINARY;
use crate::plan::alone;

const K: u32 = 8;
const SEED: u64 = 7;
/// Of the insecure parameters.
pub const SRS_SEED: u64 = 3;

fn run(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SPILLPROOF_") {
            command.env_remove(name);
        }
    }
    let command = command.args(line.split_whitespace()).current_dir(dir);
    command.output().expect("the binary runs")
}

/// The JSON of a run that ends well.
fn result_of(dir: &Path, line: &str) -> Value {
    let output = run(dir, &format!("{line} --json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["result"].take()
}

/// A program that has a circuit of the kind. It saves `NAME.key`, `NAME.witness` and `NAME.params`, and gives its own proofs
/// by both openings.
pub fn program(dir: &Path, name: &str, kind: Kind, seed: u64) -> [Vec<u8>; 2] {
    // A process has one current session.
    let _alone = alone();
    let session = Session::builder().memory(ByteSize::Bytes(32 << 20)).dir(dir);
    let _current = Arc::new(session.build().expect("a session")).install();
    set_reproducible(true);
    let params = proof::insecure_params(K, SRS_SEED);
    let vk = proof::verifying_key(&params, kind, K).expect("a verifying key");
    let pk = prover::proving_key(&params, vk, kind, K).expect("a proving key");
    let circuit = Any::new(kind, K, seed);
    let instances = circuit.instances();
    let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let at = |kind: &str| dir.join(format!("{name}.{kind}"));
    save_described_key(&pk, &circuit.without_witnesses(), at("key")).expect("a key");
    save_witness(pk.get_vk(), &circuit, &columns, at("witness")).expect("a witness");
    save_proving_key(&pk, at("bare")).expect("a key");
    let mut file = fs::File::create(at("params")).expect("a file");
    params.write(&mut file).expect("parameters");
    [Scheme::Shplonk, Scheme::Gwc]
        .map(|scheme| prover::prove(&params, &pk, kind, K, seed, scheme).expect("a proof"))
}

#[test]
fn the_binary_makes_the_programs_proof() {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, kind) in [("sums", Kind::Chain), ("ranges", Kind::Lookups)] {
        let proofs = program(dir.path(), name, kind, SEED);
        let files = format!("--key {name}.key --witness {name}.witness --srs-seed {SRS_SEED}");
        for (scheme, expected) in ["shplonk", "gwc"].iter().zip(proofs) {
            let plan = result_of(
                dir.path(),
                &format!("plan --key {name}.key --scheme {scheme} --memory 32MiB"),
            );
            assert_eq!((&plan["k"], &plan["circuit"]), (&K.into(), &Value::Null));
            let steps = plan["plan"]["steps"].as_array().expect("steps");
            assert!(steps.iter().all(|step| step["phase"] == "proof"), "{steps:?}");
            let smallest = plan["plan"]["smallest_budget_bytes"].as_u64().expect("a number");

            let prove = format!(
                "prove {files} --scheme {scheme} --seed {SEED} --memory {smallest} --out made --public {name}.json"
            );
            let made = result_of(dir.path(), &prove);
            assert_eq!(made["witness"], format!("{name}.witness"));
            assert_eq!(made["scheme"], **scheme);
            let proof = fs::read(dir.path().join("made")).expect("a proof");
            assert!(
                proof == expected,
                "{name}, {scheme}: another proof than the program's"
            );
            let verified = result_of(dir.path(), &format!("verify {files} --scheme {scheme} made"));
            assert_eq!(verified["proof_bytes"], proof.len());
            let public = format!("--key {name}.key --public {name}.json --srs-seed {SRS_SEED}");
            result_of(dir.path(), &format!("verify {public} --scheme {scheme} made"));
        }
        // Without a seed, random values are the system's.
        let made = result_of(dir.path(), &format!("prove {files} --memory 32MiB --out secret"));
        assert_eq!(made["seed"], Value::Null);
        let again = run(
            dir.path(),
            &format!("prove {files} --memory 32MiB --out again --report run.html"),
        );
        assert!(again.status.success());
        let read = |name: &str| fs::read(dir.path().join(name)).expect("a file");
        assert!(read("secret") != read("again"));
        assert!(String::from_utf8_lossy(&read("run.html")).contains(&format!("the circuit of {name}.key")));
        result_of(dir.path(), &format!("verify {files} secret"));
    }
    // The last proof is of the second circuit. The first one's key and public inputs, other public inputs,
    // and what is none.
    let json = fs::read_to_string(dir.path().join("ranges.json")).expect("JSON");
    let public: Vec<Vec<String>> = serde_json::from_str(&json).expect("JSON");
    let first = &public[0][0];
    assert_eq!(first.len(), 64);
    for (name, changed) in [
        ("other.json", json.replacen(first.as_str(), &"0".repeat(64), 1)),
        ("large.json", json.replacen(first.as_str(), &"f".repeat(64), 1)),
        ("short.json", json.replacen(first.as_str(), "12", 1)),
        ("none.json", "[]".into()),
        ("junk.json", json[1..].into()),
    ] {
        fs::write(dir.path().join(name), changed).expect("a file");
    }
    for (line, said) in [
        ("--key sums.key --public sums.json", "refuses the proof"),
        ("--key ranges.key --public other.json", "does not hold"),
        ("--key ranges.key --public large.json", "large.json"),
        ("--key ranges.key --public short.json", "12 is no public input"),
        ("--key ranges.key --public none.json", "0 instance columns"),
        ("--key ranges.key --public junk.json", "junk.json"),
    ] {
        let output = run(
            dir.path(),
            &format!("verify {line} --srs-seed {SRS_SEED} --scheme gwc made"),
        );
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {words}");
        assert!(words.contains(said), "{line}: {words}");
    }
}

/// [`program`] over midnight-proofs, whose proofs have one opening. Of the instance columns, so many are
/// committed in its key, and none in its own proof.
fn midnight_program(dir: &Path, name: &str, kind: Kind, committed: usize) -> Vec<u8> {
    use midnight_proofs::plonk::Circuit as _;
    let _alone = alone();
    let session = Session::builder().memory(ByteSize::Bytes(32 << 20)).dir(dir);
    let _current = Arc::new(session.build().expect("a session")).install();
    of_midnight::set_reproducible(true);
    let params = midnight::proof::insecure_params(K, SRS_SEED);
    let vk = midnight::proof::verifying_key(&params, kind, K).expect("a verifying key");
    let pk = midnight::prover::proving_key(&params, vk, kind, K).expect("a proving key");
    let circuit = midnight::any::Any::new(kind, K, SEED);
    let instances = circuit.instances();
    let columns: Vec<&[midnight::dialect::Fr]> = instances.iter().map(Vec::as_slice).collect();
    let at = |kind: &str| dir.join(format!("{name}.{kind}"));
    midnight::any::Any::scope(kind, || {
        of_midnight::save_described_key(&pk, &circuit.without_witnesses(), committed, at("key"))
            .expect("a key");
        of_midnight::save_witness(pk.get_vk(), &circuit, &columns, at("witness")).expect("a witness");
    });
    let mut file = fs::File::create(at("params")).expect("a file");
    let raw = midnight_proofs::utils::SerdeFormat::RawBytes;
    params.write_custom(&mut file, raw).expect("parameters");
    midnight::prover::prove(&params, &pk, kind, K, SEED).expect("a proof")
}

#[test]
fn the_binary_makes_the_proof_of_a_program_over_midnight() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path();
    for (name, kind) in [("sums", Kind::Chain), ("ranges", Kind::Lookups)] {
        let expected = midnight_program(path, name, kind, 0);
        let plan = result_of(path, &format!("plan --key {name}.key --memory 64MiB"));
        assert_eq!((&plan["system"], &plan["k"]), (&"midnight".into(), &K.into()));
        let smallest = plan["plan"]["smallest_budget_bytes"].as_u64().expect("a number");
        result_of(path, &format!("srs import {name}.params --out {name}.srs"));
        for srs in [
            format!("--srs-seed {SRS_SEED} --memory {smallest}"),
            format!("--srs {name}.params --memory 64MiB"),
            format!("--srs {name}.srs --memory 64MiB"),
        ] {
            let prove = format!(
                "prove --key {name}.key --witness {name}.witness {srs} --seed {SEED} --out made --public {name}.json"
            );
            let made = result_of(path, &prove);
            assert_eq!(
                (&made["system"], &made["scheme"]),
                (&"midnight".into(), &"kzg".into())
            );
            let proof = fs::read(path.join("made")).expect("a proof");
            assert!(
                proof == expected,
                "{name}, {srs}: another proof than the program's"
            );
            for public in [
                format!("--witness {name}.witness"),
                format!("--public {name}.json"),
            ] {
                let verify = format!("verify --key {name}.key {public} {srs} made");
                assert_eq!(result_of(path, &verify)["proof_bytes"], proof.len());
            }
        }
    }
    // Committed instances: another proof, which verifies with their values.
    fs::write(
        path.join("values"),
        midnight_program(path, "hidden", Kind::Chain, 1),
    )
    .expect("a file");
    let key = format!("--key hidden.key --srs-seed {SRS_SEED}");
    let prove =
        format!("prove {key} --witness hidden.witness --memory 32MiB --out hidden --public hidden.json");
    result_of(path, &prove);
    result_of(path, &format!("verify {key} --witness hidden.witness hidden"));
    for (public, proof, is_taken) in [
        ("hidden", "hidden", true),
        ("hidden", "values", false),
        ("ranges", "hidden", false),
    ] {
        let verified = run(path, &format!("verify {key} --public {public}.json {proof}"));
        assert_eq!(verified.status.success(), is_taken, "{public}, {proof}");
    }
    // Without a seed, random values are the system's.
    let files = format!("--key sums.key --witness sums.witness --srs-seed {SRS_SEED}");
    result_of(path, &format!("prove {files} --memory 32MiB --out secret"));
    result_of(path, &format!("verify {files} secret"));
    program(path, "axiom", Kind::Chain, SEED);
    for (line, code, said) in [
        (
            format!("--key sums.key --witness ranges.witness --srs-seed {SRS_SEED}"),
            1,
            "ranges.witness: the witness of the key with the hash",
        ),
        (
            format!("--key sums.key --witness axiom.witness --srs-seed {SRS_SEED}"),
            1,
            "a Witness over Bls12381 is expected",
        ),
        (
            format!("--key axiom.key --witness sums.witness --srs-seed {SRS_SEED}"),
            1,
            "a Witness over Bn254 is expected",
        ),
        (
            "--key sums.key --witness sums.witness --srs axiom.params".into(),
            1,
            "parameters over BLS12-381 are needed",
        ),
        (
            "--key axiom.key --witness axiom.witness --srs sums.srs".into(),
            1,
            "sums.srs",
        ),
        (
            "--key sums.key --witness sums.witness --srs-seed 4".into(),
            1,
            "does not verify",
        ),
        (
            format!("{files} --scheme gwc"),
            2,
            "--scheme is for keys of halo2-axiom",
        ),
        (format!("{files} --gpu auto"), 2, "--gpu"),
    ] {
        let output = run(path, &format!("prove {line} --memory 32MiB --out out"));
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {words}");
        assert!(words.contains(said), "{line}: {words}");
        assert!(!path.join("out").exists(), "{line}");
    }
    let other = run(
        path,
        &format!("verify --key ranges.key --public ranges.json --srs-seed {SRS_SEED} secret"),
    );
    assert_eq!(other.status.code(), Some(1));
}

#[test]
fn other_keys_and_witnesses_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    program(dir.path(), "a", Kind::Chain, SEED);
    program(dir.path(), "b", Kind::Lookups, SEED);
    let at = |name: &str| dir.path().join(name);
    let witness = fs::read(at("a.witness")).expect("a file");
    let key = fs::read(at("a.key")).expect("a file");
    let flipped = |name: &str, bytes: &[u8], place: usize| {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= 1;
        fs::write(at(name), bytes).expect("a file");
    };
    fs::write(at("short.witness"), &witness[..witness.len() / 2]).expect("a file");
    fs::write(at("short.key"), &key[..key.len() / 2]).expect("a file");
    // The first column behind the header and the statement's frame; the public inputs.
    flipped("advice.witness", &witness, 4096 + (16 << 10) + 33);
    flipped("public.witness", &witness, 4096 + 70);
    flipped("changed.key", &key, 4096 + 20);
    fs::write(at("out"), "kept").expect("a file");

    let srs = format!("--srs-seed {SRS_SEED}");
    for (line, code, said) in [
        (
            format!("--key a.key --witness b.witness {srs}"),
            1,
            "b.witness: the witness of the key with the hash",
        ),
        (
            format!("--key b.key --witness a.witness {srs}"),
            1,
            "save the witness with this key",
        ),
        (
            format!("--key a.bare --witness a.witness {srs}"),
            1,
            "a.bare: the proving key of a program's circuit, without a description",
        ),
        (
            format!("--key short.key --witness a.witness {srs}"),
            1,
            "short.key",
        ),
        (
            format!("--key changed.key --witness a.witness {srs}"),
            1,
            "changed.key",
        ),
        (format!("--key nowhere --witness a.witness {srs}"), 1, "nowhere"),
        (
            format!("--key a.witness --witness a.witness {srs}"),
            1,
            "a.witness is a Witness over Bn254",
        ),
        (
            format!("--key a.key --witness a.key {srs}"),
            1,
            "a Witness over Bn254 is expected",
        ),
        (
            format!("--key a.key --witness short.witness {srs}"),
            1,
            "short.witness",
        ),
        (
            format!("--key a.key --witness advice.witness {srs}"),
            1,
            "advice.witness",
        ),
        (
            format!("--key a.key --witness public.witness {srs}"),
            1,
            "public.witness",
        ),
        (format!("--key a.key --witness nowhere {srs}"), 1, "nowhere"),
        (
            "--key a.key --witness a.witness --srs-seed 4".into(),
            1,
            "does not verify",
        ),
        (
            format!("--key a.key --witness a.witness {srs} --memory 1MiB"),
            1,
            "--memory",
        ),
        ("--key a.key --witness a.witness".into(), 2, "--srs is missing"),
        (format!("--witness a.witness {srs}"), 2, "--key"),
        (
            format!("--key a.key --witness a.witness {srs} --k 8"),
            2,
            "cannot be used",
        ),
        (
            format!("--key a.key --witness a.witness {srs} --no-session"),
            2,
            "cannot be used",
        ),
        (format!("--key a.key {srs}"), 2, "--k is missing"),
    ] {
        let output = run(dir.path(), &format!("prove {line} --out out"));
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {words}");
        assert!(words.contains(said), "{line}: {words}");
        assert_eq!(fs::read(at("out")).expect("a file"), b"kept", "{line}");
    }
    for (line, said) in [
        ("plan --key a.key --k 8", "cannot be used"),
        ("verify --key a.key --srs-seed 3 out", "--public is missing"),
        (
            "prove --key a.key --witness a.witness --srs-seed 3 --out x --public x",
            "same file",
        ),
        (
            "prove --key a.key --witness a.witness --srs-seed 3 --out a.witness",
            "same file",
        ),
    ] {
        let output = run(dir.path(), line);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {words}");
        assert!(words.contains(said), "{line}: {words}");
    }
    // What does not satisfy the circuit: public inputs of another witness.
    let session = Session::builder()
        .memory(ByteSize::Bytes(32 << 20))
        .dir(dir.path());
    let session = Arc::new(session.build().expect("a session"));
    {
        let _alone = alone();
        let _current = session.install();
        let params = proof::insecure_params(K, SRS_SEED);
        let vk = proof::verifying_key(&params, Kind::Chain, K).expect("a key");
        let (circuit, other) = (
            Any::new(Kind::Chain, K, 1),
            Any::new(Kind::Chain, K, 2).instances(),
        );
        let columns: Vec<&[Fr]> = other.iter().map(Vec::as_slice).collect();
        save_witness(&vk, &circuit, &columns, at("wrong.witness")).expect("a witness");
    }
    for variable in ["0", "1"] {
        let mut command = Command::new(BINARY);
        let line = format!(
            "prove --key a.key --witness wrong.witness {srs} --memory 32MiB --out out --report failed.html"
        );
        let command = command.args(line.split_whitespace()).current_dir(dir.path());
        let output = command
            .env("SPILLPROOF_SELF_VERIFICATION", variable)
            .output()
            .expect("the binary runs");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("Nothing was written"), "{words}");
        assert!(
            words.contains("MockProver shows where") && words.contains(" (failed)"),
            "{words}"
        );
        let page = fs::read_to_string(at("failed.html")).expect("a page");
        assert!(
            page.contains("<td>verdict</td><td>failed: the witness does not satisfy"),
            "{page}"
        );
        assert_eq!(fs::read(at("out")).expect("a file"), b"kept");
    }
}

#[test]
fn the_example_is_proved_by_the_binary() {
    let Some(mut example) = crate::new::example("axiom_circuit") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let text = crate::new::said(example.args(["8", "16MiB", "squares"]).current_dir(dir.path()));
    assert!(
        text.contains("saved squares.params, squares.key and squares.witness"),
        "{text}"
    );
    let files = "--key squares.key --witness squares.witness --srs squares.params";
    let plan = result_of(dir.path(), "plan --key squares.key --memory 16MiB");
    assert_eq!(plan["k"], 8);
    result_of(
        dir.path(),
        &format!("prove {files} --memory 16MiB --out squares.proof"),
    );
    result_of(dir.path(), &format!("verify {files} squares.proof"));
}
