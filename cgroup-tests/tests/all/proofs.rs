//! Keys and proofs within a hard limit on the whole process, page cache counted, and verified by the
//! unmodified crate.
//!
//! The control is the unmodified prover with the same circuit in a group with the same limit: it must be
//! killed, or the limit limits nothing, and the test fails as vacuous.
//!
//! Sizes are small by default; those of the acceptance list are ignored, and run with `cargo test --release
//! -p spillproof-cgroup-tests --test all proofs:: -- --ignored --nocapture --test-threads 1`.
use std::process::Command;

use crate::common::{MIB, alone, binary, is_killed, spillproof};

/// A circuit of `2^k` rows over a proof system, and parameters for it in a file that all provers read: the
/// unmodified crate takes minutes to make its own.
struct Statement {
    system: &'static str,
    circuit: &'static str,
    k: u32,
    params: tempfile::TempPath,
}

impl Statement {
    fn new(circuit: &'static str, k: u32) -> Self {
        Self::over("axiom", circuit, k)
    }

    fn over(system: &'static str, circuit: &'static str, k: u32) -> Self {
        let folder = env!("CARGO_TARGET_TMPDIR");
        let named = || {
            tempfile::NamedTempFile::new_in(folder)
                .expect("a file")
                .into_temp_path()
        };
        let (srs, params) = (named(), named());
        let (srs_file, params_file) = (srs.to_string_lossy(), params.to_string_lossy());
        run(&format!(
            "srs gen --system {system} --k {k} --memory 512MiB --out {srs_file}"
        ));
        run(&format!(
            "srs export {srs_file} --memory 512MiB --out {params_file}"
        ));
        Self {
            system,
            circuit,
            k,
            params,
        }
    }

    fn arguments(&self) -> String {
        let Self {
            system,
            circuit,
            k,
            params,
        } = self;
        format!(
            "--system {system} --circuit {circuit} --k {k} --params {}",
            params.display()
        )
    }

    /// Proves within `memory` under `limit_bytes`, has the proof verified, and gives the peak.
    fn proves_within(&self, memory: &str, limit_bytes: u64) -> Option<u64> {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
        let (statement, file) = (self.arguments(), file.path().display());
        let proved = spillproof(
            limit_bytes,
            &format!("prove {statement} --json --memory {memory} --out {file}"),
        )?;
        assert!(proved.status.success(), "{proved:?}");
        run(&format!("verify {statement} {file}"));
        Some(proved.figures.peak_bytes)
    }

    /// The control: panics unless the unmodified prover is killed under `limit_bytes`; none if no group can
    /// be had.
    fn stock_is_killed(&self, limit_bytes: u64) -> Option<()> {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
        let (statement, file) = (self.arguments(), file.path().display());
        is_killed(
            "spillproof-bench",
            limit_bytes,
            &format!("stock {statement} --json --out {file}"),
        )
    }
}

/// The binary, without a limit.
fn run(arguments: &str) {
    let _alone = alone();
    let output = Command::new(binary("spillproof"))
        .args(arguments.split_whitespace())
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{arguments}: {output:?}");
}

#[test]
fn a_proof_holds_its_budget_and_the_unmodified_prover_is_killed() {
    for (circuit, limit_bytes) in [("chain", 64 * MIB), ("lookups", 56 * MIB)] {
        let statement = Statement::new(circuit, 16);
        if statement.stock_is_killed(limit_bytes).is_some() {
            statement.proves_within("24MiB", limit_bytes);
        }
    }
}

#[test]
fn a_proof_over_zcash_holds_its_budget_and_the_unmodified_prover_is_killed() {
    let statement = Statement::over("zcash", "chain", 14);
    if statement.stock_is_killed(56 * MIB).is_some() {
        statement.proves_within("16MiB", 56 * MIB);
    }
}

#[test]
fn a_proof_over_midnight_holds_its_budget_and_the_unmodified_prover_is_killed() {
    let statement = Statement::over("midnight", "chain", 15);
    if statement.stock_is_killed(56 * MIB).is_some() {
        statement.proves_within("16MiB", 56 * MIB);
    }
}

/// `chain` with 2^18 rows, then more rows, in about the same memory.
fn chain_holds_its_budget(system: &'static str, larger: &[u32]) {
    let limit_bytes = 128 * MIB;
    let chain = |k| {
        let statement = Statement::over(system, "chain", k);
        statement.stock_is_killed(limit_bytes).map(|()| statement)
    };
    let peak_bytes = chain(18).and_then(|small| small.proves_within("96MiB", limit_bytes));
    let Some(peak_bytes) = peak_bytes else { return };
    // A tenth more is enough for four and sixteen times the rows. A limit, and no comparison of peaks: file
    // systems and read-ahead put into the page cache what there is room for.
    let limit_bytes = limit_bytes.min(peak_bytes / 10 * 11);
    for &k in larger {
        if let Some(large) = chain(k) {
            large.proves_within("96MiB", limit_bytes);
        }
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all proofs:: -- --ignored --nocapture --test-threads 1"]
fn full_size_chain_over_zcash_holds_its_budget() {
    chain_holds_its_budget("zcash", &[20]);
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all proofs:: -- --ignored --nocapture --test-threads 1"]
fn full_size_chain_over_midnight_holds_its_budget() {
    chain_holds_its_budget("midnight", &[20]);
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all proofs:: -- --ignored --nocapture --test-threads 1"]
fn full_size_chain_holds_its_budget() {
    chain_holds_its_budget("axiom", &[20, 22]);
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all proofs:: -- --ignored --nocapture --test-threads 1"]
fn full_size_lookups_hold_their_budget() {
    let statement = Statement::new("lookups", 20);
    if statement.stock_is_killed(128 * MIB).is_some() {
        statement.proves_within("96MiB", 128 * MIB);
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all proofs:: -- --ignored --nocapture --test-threads 1"]
fn full_size_wide_gate_holds_its_budget() {
    let statement = Statement::new("wide", 18);
    if statement.stock_is_killed(256 * MIB).is_some() {
        statement.proves_within("224MiB", 256 * MIB);
    }
}
