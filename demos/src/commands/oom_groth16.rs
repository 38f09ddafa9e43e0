//! `spillproof demo oom --groth16`: a Groth16 proof under a hard limit on the whole process, page cache
//! counted.
//!
//! 1. taceo-groth16 with the key in memory, by `spillproof-bench` in the folder of this program: killed by
//!    the kernel. If not, the demonstration fails.
//! 2. `spillproof groth16 prove`, in a group with the same limit: finishes.
//! 3. taceo-groth16, without a limit: proves too, in more memory.
//! 4. `spillproof groth16 verify` accepts the proof.

use std::path::Path;

use serde::Serialize;
use spillproof_cgroup_tests::Group;
use spillproof_circom::example::{Circuit, Values};
use spillproof_engine::budget::Limit;
use spillproof_format::Curve;

use super::oom::{child, row, succeeded, was_killed};
use super::oom_proof::limit_and_budget;
use super::temporary::{Removed, scratch_file};
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run};

const BUFFER_BYTES: usize = 1 << 20;
/// Room for the peer without a limit, in bytes for each row.
const PEER_BYTES_PER_ROW: u64 = 4 << 10;

#[derive(Serialize)]
struct Outcome {
    k: u32,
    limit_bytes: u64,
    budget_bytes: u64,
    control_is_killed: bool,
    control_seconds_until_killed: f64,
    peak_bytes: u64,
    seconds: f64,
    unlimited_peak_bytes: u64,
    unlimited_seconds: f64,
}

/// Runs the demo under `--limit` (or `--memory`, if that alone is given).
///
/// # Errors
/// [`Failure::Group`] without the right to set a limit, [`Failure::Demonstration`] for another outcome.
pub fn run(global: &Global, k: u32) -> Result<()> {
    let mut run = Run::start(global);
    let Limit {
        limit_bytes,
        budget_bytes,
        ..
    } = limit_and_budget(global)?;
    let program = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    let bench = program.with_file_name("spillproof-bench");
    if !bench.is_file() {
        return Err(Failure::Demonstration(format!(
            "the prover in memory is part of {}, which is not there: build it with `cargo build --release -p spillproof-bench`",
            bench.display()
        )));
    }
    run.say(format_args!(
        "a Groth16 proof, 2^{k} rows, under a hard limit of {}\n(page cache counts, no swap); budget {}\n",
        bytes(limit_bytes),
        bytes(budget_bytes)
    ));
    let files = ["zkey", "wtns", "vkey", "proof", "public"].map(|what| scratch_file(global, what));
    let _removed = files.each_ref().map(|file| Removed(file));
    let [key, witness, ..] = &files;
    run.recorder
        .phase("circuit to files", |_| write_circuit(k, key, witness))?;
    let texts = files.each_ref().map(|file| file.display().to_string());
    let [key, witness, vkey, proof, public] = texts.each_ref().map(String::as_str);
    let limit = limit_bytes.to_string();
    let dir = global.dir.as_ref().map(|dir| dir.display().to_string());
    let in_limit = |arguments: &[&'static str], files: &[&str]| -> Vec<String> {
        let mut all: Vec<String> = [arguments, files]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect();
        all.extend(["--limit".into(), limit.clone()]);
        if let Some(dir) = &dir {
            all.extend(["--dir".into(), dir.clone()]);
        }
        all
    };

    let peer = ["in-memory", key, witness, "--json"];
    let killed = child(&Group::create(limit_bytes)?, &bench, &peer)?;
    was_killed(&killed, "taceo-groth16", limit_bytes, "--k")?;
    run.say(format_args!(
        "1. taceo-groth16, with the key in memory: killed by the kernel after {:.1} s",
        killed.seconds
    ));

    let arguments = in_limit(&["groth16", "prove"], &[key, witness, proof, public]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proved = child(&Group::create(limit_bytes)?, &program, &arguments)?;
    succeeded(&proved, "the proof within the budget")?;
    run.say(format_args!(
        "2. spillproof, from disk: finished after {:.1} s",
        proved.seconds
    ));

    let room_bytes = limit_bytes + (PEER_BYTES_PER_ROW << k) + (512 << 20);
    let unlimited = child(&Group::create(room_bytes)?, &bench, &peer)?;
    succeeded(&unlimited, "taceo-groth16 without a limit")?;
    run.say(format_args!(
        "3. taceo-groth16, without the limit: finished after {:.1} s",
        unlimited.seconds
    ));

    for arguments in [
        in_limit(&["groth16", "vkey"], &[key, vkey]),
        in_limit(&["groth16", "verify"], &[vkey, public, proof]),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        succeeded(
            &child(&Group::create(room_bytes)?, &program, &arguments)?,
            "the verification",
        )?;
    }
    run.say("4. the proof verifies\n");
    let rows = [
        row("taceo-groth16", Some(limit_bytes), &killed, "killed"),
        row("spillproof", Some(limit_bytes), &proved, "proved, verified"),
        row("taceo-groth16", None, &unlimited, "proved"),
    ];
    run.say(grid(&["", "limit", "peak", "seconds", "outcome"], &rows, usize::MAX).trim_end());
    let outcome = Outcome {
        k,
        limit_bytes,
        budget_bytes,
        control_is_killed: true,
        control_seconds_until_killed: killed.seconds,
        peak_bytes: proved.figures.peak_bytes,
        seconds: proved.seconds,
        unlimited_peak_bytes: unlimited.figures.peak_bytes,
        unlimited_seconds: unlimited.seconds,
    };
    run.finish_without_table("demo oom", &outcome)?;
    Ok(())
}

fn write_circuit(k: u32, key: &Path, witness: &Path) -> Result<()> {
    let circuit = Circuit {
        k,
        values: Values::Full,
        seed: 1,
    };
    let mut witness_file = Output::create(witness)?.in_pieces(BUFFER_BYTES)?;
    circuit
        .write_witness(Curve::Bn254, &mut witness_file)
        .map_err(Failure::file(witness))?;
    witness_file.finish()?;
    let mut key_file = Output::create(key)?.in_pieces(BUFFER_BYTES)?;
    circuit
        .write_key(Curve::Bn254, &mut key_file)
        .map_err(Failure::file(key))?;
    key_file.finish()?;
    Ok(())
}
