//! `spillproof bench`: ours from disk within a budget, beside the libraries that do the same in memory, in turns, in one run.
//!
//! | file | what |
//! |---|---|
//! | [`kernels`] | MSM and NTT, in this process |
//! | [`prover`] | keys and proofs, each in a process of its own: sizes, threads, the budget's curve, swap |
//! | [`child`] | that process: what it is told, what it took |
//! | [`device`] | with `--gpu`: what a device does in a second, and MSM and NTT with it, beside the processor's |
//! | [`picture`] | all of it as an SVG |

mod child;
mod device;
mod kernels;
mod picture;
mod prover;

use std::fs;

use serde::Serialize;
use spillproof_cli::circuits::Kind;

use crate::args::{Bench, Global};
use crate::failure::Failure;
use crate::run::{Result, Run};

#[derive(Serialize)]
struct Outcome {
    runs: usize,
    kernels: Vec<kernels::Line>,
    provers: Vec<prover::Compared>,
}

/// Runs the benchmarks.
///
/// # Errors
/// The engine's and halo2's; [`Failure::Different`] if a peer has another result.
pub fn run(global: &Global, args: &Bench) -> Result<()> {
    if args.runs == 0 {
        return Err(Failure::Usage("--runs 0 measures nothing".into()));
    }
    if let Some(choice) = &args.gpu {
        return device::run(global, args, choice);
    }
    let mut args = args.clone();
    if args.msm.is_empty() && args.ntt.is_empty() && args.prove.is_empty() {
        args.msm = vec![20, 22];
        args.ntt = vec![22];
        args.prove = vec![Kind::Chain];
    }
    let mut run = Run::start(global);
    run.say(format_args!("medians of {} runs, in turns", args.runs));
    let kernels = kernels::run(&mut run, &args)?;
    if !kernels.is_empty() {
        run.say(format_args!("\n{}", kernels::render(&kernels).trim_end()));
    }
    let provers = prover::run(&mut run, &args)?;
    if let Some(path) = &args.svg {
        fs::write(path, picture::render(&kernels, &provers)).map_err(Failure::file(path))?;
    }
    let outcome = Outcome {
        runs: args.runs,
        kernels,
        provers,
    };
    run.finish("bench", &outcome)?;
    Ok(())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    let (below, above) = (
        seconds.get((seconds.len().max(1) - 1) / 2),
        seconds.get(seconds.len() / 2),
    );
    match (below, above) {
        (Some(below), Some(above)) => (below + above) / 2.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(super::median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(super::median(vec![4.0, 1.0]), 2.5);
        assert_eq!(super::median(vec![]), 0.0);
    }
}
