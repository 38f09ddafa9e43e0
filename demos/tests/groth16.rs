//! `spillproof groth16` over files as circom and snarkjs write them.

use std::path::Path;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use spillproof_groth16::PairingCurve;

use crate::circom_files;
use crate::r1cs::{Circuit, Key, Secrets, Values};
use crate::runs::{self, run, succeeds};

/// The reason of a refusal.
fn refused(dir: &Path, line: &str) -> String {
    runs::refused(dir, line, 1)
}

fn read(dir: &Path, name: &str) -> Vec<u8> {
    std::fs::read(dir.join(name)).expect("a file")
}

/// Files of a circuit: `NAME.zkey` and `NAME.wtns`.
fn files<E: PairingCurve>(dir: &Path, name: &str, seed: u64, constraints: usize) -> Circuit<E::Scalar> {
    let circuit = Circuit::<E::Scalar>::random(seed, constraints, 2, Values::Full);
    let key = Key::<E>::new(&circuit, seed);
    let write = |ending: &str, bytes: Vec<u8>| std::fs::write(dir.join(format!("{name}.{ending}")), bytes);
    write("zkey", circom_files::zkey(&circuit, &key)).expect("a file");
    write("wtns", circom_files::wtns::<E>(&circuit.witness)).expect("a file");
    circuit
}

fn proves_and_verifies<E: PairingCurve>(curve: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let circuit = files::<E>(dir, "c", 1, 900);
    let told = succeeds(
        dir,
        "groth16 prove c.zkey c.wtns proof.json public.json --memory 8MiB",
    );
    assert!(
        told.contains("verifies") && told.contains("sum over B2"),
        "{told}"
    );
    succeeds(dir, "groth16 vkey c.zkey vkey.json");
    succeeds(dir, "groth16 verify vkey.json public.json proof.json");
    let public: Vec<String> = serde_json::from_slice(&read(dir, "public.json")).expect("a list");
    assert_eq!(
        public,
        [circuit.witness[1].to_string(), circuit.witness[2].to_string()]
    );
    let proof: serde_json::Value = serde_json::from_slice(&read(dir, "proof.json")).expect("JSON");
    assert_eq!(
        (proof["protocol"].as_str(), proof["curve"].as_str()),
        (Some("groth16"), Some(curve))
    );
    assert_eq!(proof["pi_b"].as_array().map(Vec::len), Some(3));

    // The same from a container; and with zero bytes at the end, as rapidsnark leaves them.
    let told = succeeds(dir, "groth16 import c.zkey --out c.key --memory 8MiB");
    assert!(told.contains("root") && !told.contains("INSECURE"), "{told}");
    succeeds(
        dir,
        "groth16 prove c.key c.wtns again.json public2.json --memory 8MiB",
    );
    assert!(read(dir, "public.json") == read(dir, "public2.json"));
    assert!(
        read(dir, "proof.json") != read(dir, "again.json"),
        "blinding is random"
    );
    let padded = [read(dir, "again.json"), vec![0; 100]].concat();
    std::fs::write(dir.join("padded.json"), padded).expect("a file");
    succeeds(dir, "groth16 verify vkey.json public.json padded.json");
    succeeds(dir, "groth16 vkey c.key vkey2.json");
    assert!(read(dir, "vkey.json") == read(dir, "vkey2.json"));

    for key in ["c.zkey", "c.key"] {
        let inspected = succeeds(dir, &format!("groth16 inspect {key} --json"));
        let inspected: serde_json::Value = serde_json::from_str(&inspected).expect("JSON");
        assert_eq!(
            inspected["result"]["signals"].as_u64(),
            Some(circuit.witness.len() as u64)
        );
        assert_eq!(inspected["result"]["log_domain"].as_u64(), Some(10));
        let planned = succeeds(dir, &format!("groth16 plan {key} --memory 8MiB --json"));
        let planned: serde_json::Value = serde_json::from_str(&planned).expect("JSON");
        let smallest = planned["result"]["plan"]["smallest_budget_bytes"]
            .as_u64()
            .expect("bytes");
        assert!(smallest < 4 << 20, "{smallest} bytes");
    }
}

#[test]
fn proofs_over_bn254_verify() {
    proves_and_verifies::<Bn254>("bn128");
}

#[test]
fn proofs_over_bls12_381_verify() {
    proves_and_verifies::<Bls12_381>("bls12381");
}

/// A key that is made of a circuit and a first phase proves; files of too few powers make none.
#[test]
fn keys_are_made() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let circuit = files::<Bn254>(dir, "c", 5, 100);
    let with = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).expect("a file");
    with("c.r1cs", &circom_files::r1cs::<Bn254>(&circuit));
    let secrets = Secrets::random(5);
    with("raw.ptau", &circom_files::ptau::<Bn254>(8, &secrets, false));
    with("prepared.ptau", &circom_files::ptau::<Bn254>(8, &secrets, true));
    with("small.ptau", &circom_files::ptau::<Bn254>(6, &secrets, true));
    for powers in ["raw", "prepared"] {
        let told = succeeds(
            dir,
            &format!("groth16 setup c.r1cs {powers}.ptau {powers}.zkey --memory 8MiB"),
        );
        assert!(
            told.contains("INSECURE") && told.contains("circuit hash"),
            "{told}"
        );
        // Without a contribution: each command says so, also quietly and in JSON.
        for line in [
            format!("groth16 prove {powers}.zkey c.wtns proof.json public.json --memory 8MiB"),
            format!("groth16 vkey {powers}.zkey vkey.json"),
            format!("groth16 inspect {powers}.zkey"),
            format!("groth16 plan {powers}.zkey"),
            format!("groth16 import {powers}.zkey --out c.key"),
            "groth16 inspect c.key".into(),
            "groth16 prove c.key c.wtns proof.json public.json".into(),
            "groth16 verify vkey.json public.json proof.json --allow-insecure".into(),
            format!("groth16 verify-key c.r1cs {powers}.ptau {powers}.zkey --allow-insecure"),
        ] {
            let told = succeeds(dir, &format!("{line} -q"));
            assert!(told.contains("INSECURE"), "{line}: {told}");
            let told = succeeds(dir, &format!("{line} --json"));
            let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
            let result = &told["result"];
            let key = result.get("key").filter(|key| key.is_object()).unwrap_or(result);
            assert_eq!(key["insecure"], true, "{line}: {told}");
        }
        for line in [
            "groth16 verify vkey.json public.json proof.json -q".to_owned(),
            format!("groth16 verify-key c.r1cs {powers}.ptau {powers}.zkey --json"),
        ] {
            let reason = refused(dir, &line);
            assert!(
                reason.contains("INSECURE") && reason.contains("--allow-insecure"),
                "{line}: {reason}"
            );
        }
    }
    assert!(read(dir, "raw.zkey") == read(dir, "prepared.zkey"));
    let reason = refused(dir, "groth16 setup c.r1cs small.ptau new.zkey");
    assert!(
        reason.contains("small.ptau") && reason.contains("take a first phase of power"),
        "{reason}"
    );
    let reason = refused(dir, "groth16 setup prepared.ptau c.r1cs new.zkey");
    assert!(reason.contains("prepared.ptau"), "{reason}");
    assert!(!dir.join("new.zkey").exists());
}

/// A ceremony: each key proves and verifies, and a key of another circuit's contributions does not.
#[test]
fn keys_are_contributed_to() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let circuit = files::<Bn254>(dir, "c", 6, 60);
    let with = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).expect("a file");
    with("c.r1cs", &circom_files::r1cs::<Bn254>(&circuit));
    with(
        "c.ptau",
        &circom_files::ptau::<Bn254>(7, &Secrets::random(6), false),
    );
    succeeds(dir, "groth16 setup c.r1cs c.ptau 0.zkey");
    let told = succeeds(dir, "groth16 verify-key c.r1cs c.ptau 0.zkey --allow-insecure");
    assert!(told.contains("INSECURE") && told.contains("verifies"), "{told}");
    succeeds(
        dir,
        "groth16 contribute 0.zkey 1.zkey --name first --entropy text --memory 8MiB",
    );
    let told = succeeds(dir, "groth16 beacon 1.zkey 2.zkey 0a0b0c 10 --name last");
    assert!(told.contains("contribution 2"), "{told}");
    let verified = succeeds(
        dir,
        "groth16 verify-key c.r1cs c.ptau 2.zkey --memory 8MiB --json",
    );
    let verified: serde_json::Value = serde_json::from_str(&verified).expect("JSON");
    let contributions = verified["result"]["contributions"].as_array().expect("a list");
    let names: Vec<_> = contributions.iter().map(|one| one["name"].as_str()).collect();
    assert_eq!(names, [Some("first"), Some("last")]);
    assert_eq!(contributions[1]["beacon"].as_str(), Some("0a0b0c"));
    let told = succeeds(dir, "groth16 prove 2.zkey c.wtns proof.json public.json");
    assert!(!told.contains("INSECURE"), "{told}");
    succeeds(dir, "groth16 vkey 2.zkey vkey.json");
    succeeds(dir, "groth16 verify vkey.json public.json proof.json");

    let refused_as = |line: &str, part: &str| {
        let reason = refused(dir, line);
        assert!(reason.contains(part), "{line}: {reason}");
    };
    let other = files::<Bn254>(dir, "other", 7, 60);
    with("other.r1cs", &circom_files::r1cs::<Bn254>(&other));
    refused_as(
        "groth16 verify-key other.r1cs c.ptau 2.zkey",
        "do not follow from the circuit",
    );
    let mut key = read(dir, "2.zkey");
    let at = key.len() - 20;
    key[at] ^= 1;
    with("changed.zkey", &key);
    refused_as("groth16 verify-key c.r1cs c.ptau changed.zkey", "contribution");
    let output = run(dir, "groth16 beacon 1.zkey x.zkey 0a0b0 10");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("BEACON"),
        "{output:?}"
    );
    refused_as("groth16 contribute c.ptau x.zkey", "c.ptau");
    let long = "x".repeat(65);
    refused_as(
        &format!("groth16 contribute 1.zkey x.zkey --name {long}"),
        "64 characters",
    );
    assert!(!dir.join("x.zkey").exists());
}

/// First phases: prepared, verified, and as an SRS.
#[test]
fn powers_of_tau_are_prepared_and_imported() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let with = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).expect("a file");
    let secrets = Secrets::random(8);
    let raw = circom_files::ptau::<Bn254>(6, &secrets, false);
    with("raw.ptau", &raw);
    succeeds(dir, "ptau prepare raw.ptau prepared.ptau --memory 8MiB");
    assert!(read(dir, "prepared.ptau") == circom_files::ptau::<Bn254>(6, &secrets, true));
    for (file, bases) in [("raw", "without"), ("prepared", "with the right")] {
        let reason = refused(dir, &format!("ptau verify {file}.ptau --memory 8MiB -q"));
        assert!(reason.contains("INSECURE") && reason.contains(file), "{reason}");
        let line = format!("ptau verify {file}.ptau --memory 8MiB --allow-insecure");
        let told = succeeds(dir, &format!("{line} --json"));
        assert!(told.contains("\"insecure\": true"), "{told}");
        let told = succeeds(dir, &line);
        assert!(told.contains(bases), "{told}");
        assert!(told.contains("INSECURE"), "there is no contribution: {told}");
    }
    let ceremony = include_bytes!("../circom/tests/fixtures/ceremony_bn128.ptau");
    with("ceremony.ptau", ceremony);
    let told = succeeds(dir, "ptau verify ceremony.ptau --memory 8MiB");
    for words in [
        "contribution 1, first: aab1f200",
        "contribution 2, without a name: aeb2aac8",
        "contribution 3, last: 75c993e7",
        "the beacon 0102030405060708, hashed 2^10 times",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("INSECURE"), "{told}");
    let mut changed = ceremony.to_vec();
    // Of the last contribution, whose parameters take 18 bytes: a byte of the next challenge.
    let place = changed.len() - 18 - 8 - 1;
    changed[place] ^= 1;
    with("changed.ptau", &changed);
    let reason = refused(dir, "ptau verify changed.ptau");
    assert!(reason.contains("contribution 3"), "{reason}");
    succeeds(
        dir,
        "ptau truncate prepared.ptau cut.ptau --power 4 --memory 8MiB",
    );
    let told = succeeds(dir, "ptau verify cut.ptau --allow-insecure --memory 8MiB");
    assert!(told.contains("cut from the file of a ceremony of 2^6"), "{told}");
    let reason = refused(dir, "ptau truncate prepared.ptau x.ptau --power 6");
    assert!(
        reason.contains("prepared.ptau") && reason.contains("from 1 to 5"),
        "{reason}"
    );
    assert!(!dir.join("x.ptau").exists());
    succeeds(dir, "ptau import raw.ptau --out srs -k 5 --memory 8MiB");
    succeeds(dir, "srs verify srs");
    let mut changed = raw;
    let second = 12 + 12 + 44 + 12 + 64;
    let third: [u8; 64] = *changed[second + 64..].first_chunk().expect("a point");
    changed[second..second + 64].copy_from_slice(&third);
    with("changed.ptau", &changed);
    for line in ["ptau verify changed.ptau", "ptau import changed.ptau --out new"] {
        let reason = refused(dir, line);
        assert!(reason.contains("changed.ptau"), "{line}: {reason}");
    }
    let reason = refused(dir, "ptau import raw.ptau --out new -k 7");
    assert!(reason.contains("raw.ptau"), "{reason}");
    assert!(!dir.join("new").exists());
}

/// One ceremony in four kinds of file: each gives the same proof and the same commitment.
#[test]
fn an_srs_is_read_from_whichever_file_has_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let with = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).expect("a file");
    with(
        "c.ptau",
        &circom_files::ptau::<Bn254>(7, &Secrets::random(9), true),
    );
    with("polynomial", &[[1; 32], [2; 32], [3; 32]].concat());
    succeeds(dir, "ptau import c.ptau --out c.srs -k 7");
    succeeds(dir, "srs export c.srs --out c.params --format raw");
    std::fs::create_dir(dir.join("params")).expect("a folder");
    std::fs::copy(dir.join("c.params"), dir.join("params/kzg_bn254_7.srs")).expect("a copy");
    let entries = || std::fs::read_dir(dir).expect("a folder").count();
    let mut made = entries();
    let mut first = None;
    for srs in ["c.srs", "c.params", "c.ptau", "params"] {
        let of_system = format!("--k 6 --srs {srs} --memory 16MiB");
        succeeds(dir, &format!("keygen {of_system} --out key --vk vk"));
        succeeds(dir, &format!("prove {of_system} --out proof"));
        succeeds(dir, &format!("verify --k 6 --srs {srs} --vk vk proof"));
        if srs != "params" {
            let committed = format!("commit --srs {srs} --polynomial polynomial --open-at 5 --out opening");
            succeeds(dir, &committed);
            succeeds(dir, &format!("open verify --srs {srs} opening"));
            let told = succeeds(dir, &format!("msm --log-n 5 --srs {srs} --memory 8MiB --quiet"));
            with("sum", told.as_bytes());
        }
        let results = ["vk", "proof", "opening", "sum"].map(|name| read(dir, name));
        if let Some(first) = &first {
            assert!(*first == results, "{srs}");
        } else {
            // And the key, whose root is its own.
            made += results.len() + 1;
            first = Some(results);
        }
        assert_eq!(entries(), made, "{srs}: files are left");
    }
    for (line, reason) in [
        ("prove --k 8 --srs c.ptau --out new", "c.ptau"),
        ("prove --k 8 --srs params --out new", "kzg_bn254_8.srs"),
        ("prove --k 6 --srs c.ptau --no-session --out new", "ptau import"),
        ("verify --k 6 --srs c.ptau proof", "--vk"),
        ("prove --k 6 --system zcash --srs c.ptau --out new", "c.ptau"),
        ("prove --k 6 --system midnight --srs c.ptau --out new", "c.ptau"),
        ("msm --log-n 8 --srs c.ptau", "c.ptau"),
    ] {
        let refusal = refused(dir, line);
        assert!(refusal.contains(reason), "{line}: {refusal}");
    }
    assert_eq!(entries(), made, "files are left");
}

/// The built-in circuit proves on both curves, with both kinds of values.
#[test]
fn examples_prove() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for curve in ["bn128", "bls12381"] {
        for values in ["full", "bits"] {
            let options = format!("--k 9 --values {values} --curve {curve}");
            let files = "e.zkey e.wtns --r1cs e.r1cs --ptau e.ptau";
            let told = succeeds(dir, &format!("groth16 example {files} {options}"));
            assert!(
                told.contains("INSECURE") && told.contains("510 constraints"),
                "{told}"
            );
            succeeds(dir, "groth16 import e.zkey --out e.key --memory 8MiB");
            succeeds(
                dir,
                "groth16 prove e.zkey e.wtns proof.json public.json --memory 8MiB",
            );
            succeeds(dir, "groth16 vkey e.key vkey.json");
            succeeds(dir, "groth16 verify vkey.json public.json proof.json");

            succeeds(dir, "groth16 setup e.r1cs e.ptau made.zkey --memory 8MiB");
            succeeds(dir, "groth16 verify-key e.r1cs e.ptau made.zkey --allow-insecure");
            succeeds(dir, "groth16 prove made.zkey e.wtns proof.json public.json");
        }
    }
    let reason = refused(dir, "groth16 example none/e.zkey e.wtns --k 9");
    assert!(reason.contains("none/e.zkey"), "{reason}");
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    files::<Bn254>(dir, "c", 1, 100);
    files::<Bn254>(dir, "other", 2, 101);
    files::<Bls12_381>(dir, "bls", 3, 100);
    succeeds(dir, "groth16 prove c.zkey c.wtns proof.json public.json");
    succeeds(dir, "groth16 vkey c.zkey vkey.json");
    succeeds(dir, "groth16 vkey other.zkey other.json");
    succeeds(dir, "groth16 vkey bls.zkey bls.json");

    let refused_as = |line: &str, part: &str| {
        let reason = refused(dir, line);
        assert!(reason.contains(part), "{line}: {reason}");
    };
    refused_as(
        "groth16 prove c.zkey other.wtns x.json y.json",
        "values of a witness",
    );
    refused_as("groth16 prove c.zkey bls.wtns x.json y.json", "is over Bls12381");
    refused_as("groth16 prove c.wtns c.zkey x.json y.json", "c.wtns");
    refused_as("groth16 prove none.zkey c.wtns x.json y.json", "none.zkey");
    refused_as("groth16 prove c.zkey c.wtns x.json none/y.json", "none/y.json");
    refused_as("groth16 import vkey.json --out x.json", "vkey.json");
    refused_as(
        "groth16 verify other.json public.json proof.json",
        "does not verify",
    );
    refused_as("groth16 verify bls.json public.json proof.json", "another curve");
    refused_as("groth16 verify vkey.json proof.json public.json", "proof");
    let public = read(dir, "public.json");
    let with = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).expect("a file");
    with("one.json", b"[\"1\"]");
    refused_as(
        "groth16 verify vkey.json one.json proof.json",
        "1 public signals, and the key is for 2",
    );
    with("wrong.json", b"[\"1\", \"2\"]");
    refused_as(
        "groth16 verify vkey.json wrong.json proof.json",
        "does not verify",
    );
    let modulus = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    with("large.json", format!("[\"{modulus}\", \"2\"]").as_bytes());
    refused_as(
        "groth16 verify vkey.json large.json proof.json",
        "not below the modulus",
    );
    with("text.json", b"[\"one\", \"2\"]");
    refused_as("groth16 verify vkey.json text.json proof.json", "a number");

    // A witness that does not satisfy the circuit, and a damaged key: nothing is written.
    let mut wtns = read(dir, "c.wtns");
    let at = wtns.len() - 32 * 50;
    wtns[at] ^= 1;
    with("wrong.wtns", &wtns);
    refused_as(
        "groth16 prove c.zkey wrong.wtns x.json y.json",
        "does not satisfy",
    );
    let mut zkey = read(dir, "c.zkey");
    let at = zkey.len() - 68 - 12 - 500;
    zkey[at] ^= 1;
    with("wrong.zkey", &zkey);
    refused_as(
        "groth16 prove wrong.zkey c.wtns x.json y.json",
        "not on the curve",
    );
    assert!(!dir.join("x.json").exists() && !dir.join("y.json").exists());
    assert!(read(dir, "public.json") == public);
}
