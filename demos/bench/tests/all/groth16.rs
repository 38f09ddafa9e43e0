//! `spillproof-bench groth16`, on small circuits: all its figures, beside the peers'.

use std::process::Command;

use serde_json::Value;

use crate::BINARY;

/// The proofs of a run.
fn proofs(words: &str) -> Vec<Value> {
    let mut command = Command::new(BINARY);
    command
        .args("groth16 --runs 1 --memory 8MiB --json".split_whitespace())
        .args(words.split_whitespace())
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all["result"]["proofs"].as_array().unwrap().clone()
}

#[test]
fn proofs_are_measured_beside_the_peers() {
    let mut proofs = proofs("--k 8,9");
    let sizes = proofs
        .iter()
        .map(|proof| (proof["k"].as_u64(), proof["values"].as_str()));
    let expected = [(8, "full"), (8, "bits"), (9, "full"), (9, "bits")];
    assert!(
        sizes.eq(expected.map(|(k, values)| (Some(k), Some(values)))),
        "{proofs:?}"
    );
    proofs.extend(self::proofs(
        "--k 8 --values full --curve bls12381 --peers taceo-groth16,ark-groth16",
    ));
    let last = proofs.last().unwrap();
    assert_eq!(last["curve"], "bls12381");
    let peers = last["peers"].as_array().unwrap().iter().map(|by| &by["peer"]);
    assert!(peers.eq(["taceo-groth16", "ark-groth16"]), "{last}");
    for proof in &proofs {
        let peers = proof["peers"].as_array().unwrap();
        let by_peers = peers.iter().map(|by| &by["taken"]);
        for taken in [&proof["zkey"], &proof["container"]].into_iter().chain(by_peers) {
            assert!(taken["prove_seconds"].as_f64() > Some(0.0), "{proof}");
            assert!(taken["peak_bytes"].as_u64() > Some(1 << 20), "{proof}");
        }
        if proof["limit_bytes"].is_null() {
            println!("SKIPPED: a limit on the process, since no control group can be made");
        } else {
            let peak_bytes = proof["zkey"]["peak_bytes"].as_u64();
            assert!(peak_bytes <= proof["limit_bytes"].as_u64(), "{proof}");
        }
    }
}
