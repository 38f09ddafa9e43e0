//! Keys and proofs within a hard limit on the whole process, page cache counted, and verified by the unmodified crate.
//!
//! The control is the unmodified prover with the same circuit in a group with the same limit: it must be killed, or the limit limits
//! nothing, and the test fails as vacuous.
//!
//! Sizes are small by default; those of the acceptance list are ignored, and run with
//! `cargo test --release -p spillproof-cgroup-tests --test proofs -- --ignored --nocapture --test-threads 1`.
#![allow(clippy::expect_used)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{MIB, alone, binary, spillproof};

/// Proves `circuit` with `2^k` rows within `memory` under `limit_bytes`, has the proof verified, and gives the peak.
fn proves_within(circuit: &str, k: u32, memory: &str, limit_bytes: u64) -> Option<u64> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{circuit}-{k}-{memory}.proof"));
    let file = file.to_str().expect("a plain path");
    let statement = format!("--circuit {circuit} --k {k}");
    let proved = spillproof(
        limit_bytes,
        &format!("prove {statement} --json --memory {memory} --out {file}"),
    )?;
    assert!(proved.status.success(), "{proved:?}");
    let alone = alone();
    let verified = Command::new(binary())
        .args(format!("verify {statement} {file}").split_whitespace())
        .output()
        .expect("the binary runs");
    drop(alone);
    assert!(verified.status.success(), "{verified:?}");
    std::fs::remove_file(file).expect("the file is there");
    Some(proved.figures.peak_bytes)
}

/// The control: panics unless the unmodified prover is killed under `limit_bytes`; none if no group can be had.
fn stock_is_killed(circuit: &str, k: u32, limit_bytes: u64) -> Option<()> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{circuit}-{k}-stock.proof"));
    let file = file.to_str().expect("a plain path");
    let arguments = format!("prove --stock --circuit {circuit} --k {k} --json --out {file}");
    let stock = spillproof(limit_bytes, &arguments)?;
    assert!(
        stock.is_oom_killed(),
        "vacuous: the unmodified prover lives under this limit too: {stock:?}"
    );
    Some(())
}

#[test]
fn a_proof_holds_its_budget_and_the_unmodified_prover_is_killed() {
    let limit_bytes = 64 * MIB;
    for circuit in ["chain", "lookups"] {
        if stock_is_killed(circuit, 16, limit_bytes).is_some() {
            proves_within(circuit, 16, "24MiB", limit_bytes);
        }
    }
}

#[test]
#[ignore = "an hour: cargo test --release -p spillproof-cgroup-tests --test proofs -- --ignored --nocapture --test-threads 1"]
fn full_size_chain_holds_its_budget() {
    let limit_bytes = 128 * MIB;
    if stock_is_killed("chain", 18, limit_bytes).is_none() {
        return;
    }
    let peaks = [18, 20, 22].map(|k| proves_within("chain", k, "96MiB", limit_bytes));
    let [Some(small), _, Some(large)] = peaks.map(|peak| peak.map(|bytes| bytes as f64)) else {
        return;
    };
    let growth = large / small;
    assert!(
        growth <= 1.10,
        "from k = 18 to k = 22 the peak grows by a factor of {growth:.3}"
    );
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test proofs -- --ignored --nocapture --test-threads 1"]
fn full_size_lookups_hold_their_budget() {
    if stock_is_killed("lookups", 20, 128 * MIB).is_some() {
        proves_within("lookups", 20, "96MiB", 128 * MIB);
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test proofs -- --ignored --nocapture --test-threads 1"]
fn full_size_wide_gate_holds_its_budget() {
    if stock_is_killed("wide", 18, 256 * MIB).is_some() {
        proves_within("wide", 18, "224MiB", 256 * MIB);
    }
}
