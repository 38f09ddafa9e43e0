//! `spillproof demo oom --circuit`: keys and a proof under a hard limit on the whole process, page cache counted.
//!
//! 1. The unmodified halo2-axiom: killed by the kernel. If not, the demonstration fails.
//! 2. The drop-in in a session, in a group with the same limit: finishes.
//! 3. The unmodified crate, without a limit, verifies that proof.

use std::path::Path;

use serde::Serialize;
use spillproof::budget::ByteSize;
use spillproof_cgroup_tests::Group;

use super::oom::{BESIDE_BUDGET_BYTES, child, row};
use super::prove::verify_phases;
use crate::args::{Global, Shape, Statement};
use crate::failure::Failure;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run};
use spillproof_circuits::{Kind, Scheme};

const LIMIT: ByteSize = ByteSize::Bytes(128 << 20);

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    k: u32,
    limit_bytes: u64,
    budget_bytes: u64,
    stock_is_killed: bool,
    stock_seconds_until_killed: f64,
    peak_bytes: u64,
    seconds: f64,
    proof_bytes: usize,
}

/// Runs the demo; `--memory` is the limit on the whole process.
///
/// # Errors
/// [`Failure::Group`] without the right to set a limit, [`Failure::Demonstration`] for another outcome.
pub fn run(global: &Global, circuit: Kind, k: u32) -> Result<()> {
    let mut run = Run::start(global);
    let limit_bytes = global.memory.unwrap_or(LIMIT).resolve()?;
    let Some(budget_bytes) = limit_bytes
        .checked_sub(BESIDE_BUDGET_BYTES)
        .filter(|bytes| *bytes > 0)
    else {
        return Err(Failure::Usage(format!(
            "--memory {} leaves no budget beside the {} for code, stacks and heap: take more",
            bytes(limit_bytes),
            bytes(BESIDE_BUDGET_BYTES)
        )));
    };
    let program = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    run.say(format_args!(
        "keys and a proof of {circuit:?}, 2^{k} rows, under a hard limit of {}\n(page cache counts, no swap); budget {}\n",
        bytes(limit_bytes),
        bytes(budget_bytes)
    ));
    let proof_file = scratch_file(global, "proof");
    let proof_text = proof_file.display().to_string();
    let removed = Removed(&proof_file);
    let (k_text, budget) = (k.to_string(), budget_bytes.to_string());
    let name = clap::ValueEnum::to_possible_value(&circuit)
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default();
    let common = ["prove", "--circuit", &name, "--k", &k_text, "--out", &proof_text];

    let group = Group::create(limit_bytes)?;
    let mut arguments = common.to_vec();
    arguments.push("--stock");
    let killed = child(&group, &program, &arguments)?;
    if !killed.is_oom_killed() {
        return Err(Failure::Demonstration(format!(
            "the unmodified prover was not killed at {}: take a larger --k or a smaller --memory ({:?}, {})",
            bytes(limit_bytes),
            killed.status,
            killed.stderr.trim()
        )));
    }
    run.say(format_args!(
        "1. unmodified halo2-axiom 0.5.3: killed by the kernel after {:.1} s",
        killed.seconds
    ));
    drop(group);

    let group = Group::create(limit_bytes)?;
    let dir = global.dir.as_ref().map(|dir| dir.display().to_string());
    let mut arguments = common.to_vec();
    arguments.extend(["--memory", &budget]);
    if let Some(dir) = &dir {
        arguments.extend(["--dir", dir]);
    }
    let proved = child(&group, &program, &arguments)?;
    if !proved.status.success() {
        let killed = if proved.is_oom_killed() {
            ", killed by the kernel"
        } else {
            ""
        };
        return Err(Failure::Demonstration(format!(
            "the proof in a session failed ({}{killed}, peak {}): {}",
            proved.status,
            bytes(proved.figures.peak_bytes),
            proved.stderr.trim()
        )));
    }
    drop(group);
    // Of the child's output, the table of phases: not the line with the file, which is removed, and not the steps.
    let table = proved
        .stdout
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("  "));
    run.say(format_args!(
        "2. the drop-in in a session: finished after {:.1} s\n{}\n",
        proved.seconds,
        table.collect::<Vec<_>>().join("\n")
    ));

    let proof = std::fs::read(&proof_file).map_err(Failure::file(&proof_file))?;
    drop(removed);
    let statement = Statement {
        shape: Shape {
            k,
            circuit,
            scheme: Scheme::Shplonk,
        },
        seed: 1,
        params: None,
        srs_seed: 1,
    };
    verify_phases(&mut run.recorder, &statement, &[&proof])?;
    run.say("3. the unmodified crate, without a limit: accepts that proof\n");
    let rows = [
        row("halo2-axiom", Some(limit_bytes), &killed, "killed"),
        row("spillproof", Some(limit_bytes), &proved, "proved, verified"),
    ];
    run.say(grid(&["", "limit", "peak", "seconds", "outcome"], &rows, usize::MAX).trim_end());
    let outcome = Outcome {
        circuit,
        k,
        limit_bytes,
        budget_bytes,
        stock_is_killed: true,
        stock_seconds_until_killed: killed.seconds,
        peak_bytes: proved.figures.peak_bytes,
        seconds: proved.seconds,
        proof_bytes: proof.len(),
    };
    run.finish("demo oom", &outcome)?;
    Ok(())
}

fn scratch_file(global: &Global, what: &str) -> std::path::PathBuf {
    let dir = global.dir.clone().unwrap_or_else(std::env::temp_dir);
    dir.join(format!("spillproof-{what}-{}.bin", std::process::id()))
}

/// Removes a file on drop.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // If it was never made, there is nothing to remove.
        let _ = std::fs::remove_file(self.0);
    }
}
