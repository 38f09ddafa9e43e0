//! The budget holds: the real binary, in a control group with a hard limit that the kernel enforces, page
//! cache counted.
//!
//! Each test has its control: the same work in memory, in a group with the same limit, which must be killed.
//! If it is not, the limit limits nothing, and the test fails as vacuous.
//!
//! Sizes are small by default; those of the acceptance list are ignored, and run with
//! `cargo test --release -p spillproof-cgroup-tests --test all budget:: -- --ignored --nocapture`.
use std::path::Path;
use std::process::Command;

use crate::common::{MIB, alone, binary, is_killed, spillproof};
use spillproof_cgroup_tests::Outcome;

/// The point that a run printed as JSON.
fn point(outcome: &Outcome) -> &str {
    assert!(outcome.status.success(), "{outcome:?}");
    let marker = "\"point\": \"";
    let start = outcome.stdout.find(marker).expect("a point in the output") + marker.len();
    outcome.stdout[start..].split('"').next().expect("a quoted point")
}

/// The sum as a library computes it in memory, without a limit.
fn oracle(log_n: u32, peer: &str) -> String {
    let _alone = alone();
    let output = Command::new(binary("spillproof"))
        .args([
            "msm",
            "--in-memory",
            "--json",
            "--peer",
            peer,
            "--log-n",
            &log_n.to_string(),
        ])
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("JSON");
    let marker = "\"point\": \"";
    let start = text.find(marker).expect("a point in the output") + marker.len();
    text[start..]
        .split('"')
        .next()
        .expect("a quoted point")
        .to_owned()
}

/// Streams MSMs of two sizes within `memory` under `limit_bytes`; checks points, peaks, and the control of
/// size `control`.
fn msm_holds_its_budget(sizes: [u32; 2], control: u32, memory: &str, limit_bytes: u64) {
    let [small, large] = sizes;
    let in_memory = format!("msm --in-memory --json --log-n {control}");
    if is_killed("spillproof", limit_bytes, &in_memory).is_none() {
        return;
    }

    let mut peaks = Vec::new();
    for log_n in [small, large] {
        let arguments = format!("msm --json --memory {memory} --log-n {log_n}");
        let Some(streamed) = spillproof(limit_bytes, &arguments) else {
            return;
        };
        assert!(!streamed.is_oom_killed(), "{streamed:?}");
        let point = point(&streamed);
        for peer in ["ark", "halo2curves"] {
            assert_eq!(point, oracle(log_n, peer), "2^{log_n} against {peer}");
        }
        peaks.push(streamed.figures.peak_bytes as f64);
    }
    let growth = peaks[1] / peaks[0];
    assert!(
        growth <= 1.10,
        "from 2^{small} to 2^{large} the peak grows by a factor of {growth:.3}"
    );
}

#[test]
fn an_msm_holds_its_budget_and_the_twin_in_memory_is_killed() {
    // 2^19 points and scalars take 48 MiB; what the limit leaves beside the budget is the debug build's code.
    msm_holds_its_budget([17, 19], 19, "16MiB", 48 * MIB);
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all full_size_msm -- --ignored --nocapture"]
fn full_size_msm_holds_its_budget() {
    msm_holds_its_budget([22, 24], 22, "96MiB", 128 * MIB);
}

#[test]
fn a_budget_that_is_too_small_is_refused_before_the_work() {
    let Some(outcome) = spillproof(64 * MIB, "msm --log-n 18 --memory 256k") else {
        return;
    };
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("--memory") || outcome.stderr.contains("budget"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn an_srs_is_made_and_verified_within_its_budget() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("budget.srs");
    let path = path.to_str().expect("a plain path");
    // 2^18 points in two bases: the file has 32 MiB.
    let Some(made) = spillproof(32 * MIB, &format!("srs gen --k 18 --memory 12MiB --out {path}")) else {
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let Some(verified) = spillproof(24 * MIB, &format!("srs verify --memory 8MiB {path}")) else {
        return;
    };
    assert!(verified.status.success(), "{verified:?}");
    assert!(std::fs::metadata(path).expect("the file is there").len() > 32 * MIB);
    std::fs::remove_file(path).expect("the file is there");
}
