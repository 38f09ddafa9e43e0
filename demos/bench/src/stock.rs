//! `spillproof-bench stock`: keys and a proof by an unmodified halo2, in memory.

use std::fs;
use std::path::Path;

use serde::Serialize;
use spillproof_circuits::System;
use spillproof_cli::args::Global;
use spillproof_cli::failure::Failure;
use spillproof_cli::run::{Result, Run};
use spillproof_cli::systems;

use crate::args::Stock;

#[derive(Serialize)]
struct Outcome {
    proof_bytes: usize,
    file: String,
}

/// Proves.
///
/// # Errors
/// halo2's; of files that cannot be read or written.
pub fn run(global: &Global, args: &Stock) -> Result<()> {
    let statement = args.statement.statement()?;
    compute_on(global.threads);
    let mut run = Run::start(global);
    let proof = systems::prove_by_stock(&mut run.recorder, &statement)?;
    finish(run, "stock", (&args.out, &proof), statement.shape.system)
}

/// Has libraries that have no session compute on `threads` threads; 0 is for as many as rayon takes.
pub fn compute_on(threads: usize) {
    if threads > 0 {
        // Refused only where there is a pool: nothing in this program makes one before.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().ok();
    }
}

/// Writes the proof of a run, and says so.
///
/// # Errors
/// Of a file that cannot be written.
pub fn finish(run: Run, task: &str, (out, proof): (&Path, &[u8]), system: System) -> Result<()> {
    fs::write(out, proof).map_err(Failure::file(out))?;
    let outcome = Outcome {
        proof_bytes: proof.len(),
        file: out.display().to_string(),
    };
    run.say(format_args!(
        "{}: a proof of {} bytes by the unmodified {}",
        outcome.file,
        outcome.proof_bytes,
        systems::stock_name(system)
    ));
    run.finish(task, &outcome)?;
    Ok(())
}
