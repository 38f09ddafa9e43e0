//! `spillproof-bench stock`: keys and a proof by the unmodified halo2-axiom, in memory.

use std::fs;

use serde::Serialize;
use spillproof_circuits::stock::{proof, prover};
use spillproof_cli::args::{Global, Shape};
use spillproof_cli::commands::prove::stock_params;
use spillproof_cli::failure::Failure;
use spillproof_cli::run::{Result, Run};

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
    let mut run = Run::start(global);
    let Shape { k, circuit, scheme } = args.statement.shape;
    let recorder = &mut run.recorder;
    let params = recorder.phase("stock: parameters", |_| stock_params(&args.statement))?;
    let key = recorder.phase("stock: verifying key", |_| {
        proof::verifying_key(&params, circuit, k).map_err(Failure::halo2("stock's verifying key"))
    })?;
    let key = recorder.phase("stock: proving key", |_| {
        prover::proving_key(&params, key, circuit, k).map_err(Failure::halo2("stock's proving key"))
    })?;
    let proof = recorder.phase("stock: prove", |_| {
        prover::prove(&params, &key, circuit, k, args.statement.seed, scheme)
            .map_err(Failure::halo2("stock's proof"))
    })?;
    fs::write(&args.out, &proof).map_err(Failure::file(&args.out))?;
    let outcome = Outcome {
        proof_bytes: proof.len(),
        file: args.out.display().to_string(),
    };
    run.say(format_args!(
        "{}: a proof of {} bytes by the unmodified halo2-axiom 0.5.3",
        outcome.file, outcome.proof_bytes
    ));
    run.finish("stock", &outcome)?;
    Ok(())
}
