//! `spillproof demo oom --circuit`: keys and a proof under a hard limit on the whole process, page cache
//! counted.
//!
//! 1. The control: killed by the kernel. If not, the demonstration fails. It is the unmodified crate, by
//!    `spillproof-bench` in the folder of this program; without that, the drop-in without a session, which
//!    runs upstream's own prover.
//! 2. The drop-in in a session, in a group with the same limit: finishes.
//! 3. The unmodified crate, without a limit, verifies that proof.
//!
//! Parameters of zcash's halo2 and of midnight-proofs take the unmodified crates longer than a proof, so all
//! three read them from a file that is made first.

use std::path::{Path, PathBuf};

use serde::Serialize;
use spillproof_cgroup_tests::Group;
use spillproof_engine::budget::{ByteSize, Limit};

use super::oom::{child, row, succeeded, was_killed};
use super::srs;
use super::temporary::{Removed, scratch_file};
use crate::args::{Global, Shape, Statement, name_of};
use crate::failure::Failure;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run};
use crate::systems::{self, Verifier};
use spillproof_circuits::{Kind, System};

const LIMIT: ByteSize = ByteSize::Bytes(128 << 20);

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    system: System,
    k: u32,
    limit_bytes: u64,
    budget_bytes: u64,
    control: String,
    control_is_killed: bool,
    control_seconds_until_killed: f64,
    peak_bytes: u64,
    seconds: f64,
    proof_bytes: usize,
}

/// Runs the demo under `--limit` (or `--memory`, if that alone is given).
///
/// # Errors
/// [`Failure::Group`] without the right to set a limit, [`Failure::Demonstration`] for another outcome.
pub fn run(global: &Global, shape: &Shape) -> Result<()> {
    let Shape {
        k, circuit, system, ..
    } = *shape;
    let mut run = Run::start(global);
    let Limit {
        limit_bytes,
        budget_bytes,
        ..
    } = limit_and_budget(global)?;
    let program = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    run.say(format_args!(
        "keys and a proof of {circuit:?}, 2^{k} rows, under a hard limit of {}\n(page cache counts, no swap); budget {}\n",
        bytes(limit_bytes),
        bytes(budget_bytes)
    ));
    let proof_file = scratch_file(global, "proof");
    let proof_text = proof_file.display().to_string();
    let removed = Removed(&proof_file);
    let (k_text, limit) = (k.to_string(), limit_bytes.to_string());
    let (circuit_name, system_name) = (name_of(&circuit), name_of(&system));
    let mut statement = Statement::of(*shape);
    let params_file = scratch_file(global, "params");
    let _removed = match system {
        System::Axiom => None,
        System::Midnight | System::Zcash => {
            let session = run.session(ByteSize::Auto)?;
            let seed = statement.parameters.srs_seed();
            run.recorder.phase("parameters to a file", |_| match system {
                System::Zcash => srs::write_params(&session, k, &params_file),
                _ => srs::write_params_of_midnight(&session, (k, seed), &params_file),
            })?;
            statement.parameters.file = Some(params_file.clone());
            Some(Removed(&params_file))
        }
    };
    let params_text = params_file.display().to_string();
    let mut common = vec![
        "--circuit",
        &circuit_name,
        "--system",
        &system_name,
        "--k",
        &k_text,
    ];
    common.extend(["--out", &proof_text]);
    if statement.parameters.file.is_some() {
        common.extend(["--params", &params_text]);
    }

    let group = Group::create(limit_bytes)?;
    let control = Control::beside(&program, system);
    let killed = child(&group, &control.program, &[control.task, &common[..]].concat())?;
    was_killed(&killed, &control.name, limit_bytes, "--k")?;
    run.say(format_args!(
        "1. {}: killed by the kernel after {:.1} s",
        control.name, killed.seconds
    ));
    drop(group);

    let group = Group::create(limit_bytes)?;
    let dir = global.dir.as_ref().map(|dir| dir.display().to_string());
    let mut arguments = [&["prove"], &common[..]].concat();
    arguments.extend(["--limit", &limit]);
    if let Some(dir) = &dir {
        arguments.extend(["--dir", dir]);
    }
    let proved = child(&group, &program, &arguments)?;
    succeeded(&proved, "the proof in a session")?;
    drop(group);
    run.say(format_args!(
        "2. the drop-in in a session: finished after {:.1} s",
        proved.seconds
    ));

    let proof = std::fs::read(&proof_file).map_err(Failure::file(&proof_file))?;
    drop(removed);
    systems::verify_by_stock(&mut run.recorder, &statement, None, &[&proof])?;
    run.say("3. the unmodified crate, without a limit: accepts that proof\n");
    let rows = [
        row(&control.name, Some(limit_bytes), &killed, "killed"),
        row("spillproof", Some(limit_bytes), &proved, "proved, verified"),
    ];
    run.say(grid(&["", "limit", "peak", "seconds", "outcome"], &rows, usize::MAX).trim_end());
    let outcome = Outcome {
        circuit,
        system,
        k,
        limit_bytes,
        budget_bytes,
        control: control.name.clone(),
        control_is_killed: true,
        control_seconds_until_killed: killed.seconds,
        peak_bytes: proved.figures.peak_bytes,
        seconds: proved.seconds,
        proof_bytes: proof.len(),
    };
    run.finish_without_table("demo oom", &outcome)?;
    Ok(())
}

/// The limit on the whole process, and the budget that it leaves.
pub(super) fn limit_and_budget(global: &Global) -> Result<Limit> {
    let size = global.limit.or(global.memory).unwrap_or(LIMIT);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    Limit::new(size, threads).map_err(|error| Failure::Usage(error.to_string()))
}

/// The prover in memory.
struct Control {
    program: PathBuf,
    task: &'static [&'static str],
    name: String,
}

impl Control {
    fn beside(program: &Path, system: System) -> Self {
        let bench = program.with_file_name("spillproof-bench");
        if bench.is_file() {
            return Self {
                program: bench,
                task: &["stock"],
                name: format!("unmodified {}", systems::stock_name(system)),
            };
        }
        Self {
            program: program.to_owned(),
            task: &["prove", "--no-session"],
            name: match system {
                System::Axiom => systems::axiom::DropIn::NAME.to_owned(),
                System::Midnight => systems::midnight::DropIn::NAME.to_owned(),
                System::Zcash => systems::zcash::DropIn::NAME.to_owned(),
            },
        }
    }
}
