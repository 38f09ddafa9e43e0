//! `spillproof-bench`: spillproof from disk within a budget, beside the libraries that do the same in memory,
//! in turns, in one run.
//!
//! | file | content |
//! |---|---|
//! | [`args`] | the command line |
//! | [`kernels`] | MSM and NTT, in this process |
//! | [`prover`] | keys and proofs, each in a process of its own: sizes, threads, the budget's curve, swap |
//! | [`child`] | that process: its command line, its figures |
//! | [`groth16`] | `spillproof-bench groth16`: proofs over `.zkey` and `.wtns` files |
//! | [`in_memory`] | the peers of these |
//! | [`stock`] | a proof by an unmodified halo2, which `spillproof` itself has for verification only |
//! | [`saved`] | `spillproof-bench saved`: proofs with a key and a witness that a program saved |
//! | [`device`] | with `--gpu`: the rates of a device, and MSM and NTT with it, beside the processor's |
//! | [`peers`] | halo2curves with assembly, which `spillproof` itself does not contain |
//! | [`scaling`] | `spillproof-bench scaling`: keys and a proof on several numbers of cores, step by step |
//! | [`timeline`] | busy cores over time, from the samples of a run |
//! | [`picture`], [`chart`] | the results as an SVG |
//! | [`record`] | a run of any command as an animated SVG |

mod args;
mod chart;
mod child;
mod device;
mod groth16;
mod in_memory;
mod kernels;
mod peers;
mod picture;
mod prover;
mod record;
mod saved;
mod scaling;
mod stock;
mod timeline;

use std::fs;
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use spillproof_circuits::Kind;
use spillproof_cli::args::Global;
use spillproof_cli::commands;
use spillproof_cli::failure::Failure;
use spillproof_cli::run::{Result, Run};

use args::{Arguments, Bench, Task};

fn main() -> ExitCode {
    spillproof_cli::start(|| {
        let Arguments { global, bench, task } = spillproof_cli::parsed();
        match task {
            None => measure(&global, bench),
            Some(Task::Record(record)) => record::run(&record),
            Some(Task::Scaling(scaling)) => scaling::run(&global, &scaling),
            Some(Task::Groth16(groth16)) => groth16::run(&global, &groth16),
            Some(Task::Saved(saved)) => saved::run(&global, &saved),
            Some(Task::StockSaved(saved)) => saved::prove_by_stock(&global, &saved),
            Some(Task::InMemory(in_memory)) => in_memory::run(&global, &in_memory),
            Some(Task::Stock(stock)) => stock::run(&global, &stock),
            Some(Task::Spillproof { words }) => {
                let words = std::iter::once("spillproof".into()).chain(words);
                commands::dispatch(spillproof_cli::args::Arguments::parse_from(words))
            }
        }
    })
}

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
fn measure(global: &Global, mut args: Bench) -> Result<()> {
    if args.runs == 0 {
        return Err(Failure::Usage("--runs must be at least 1".into()));
    }
    if let Some(choice) = args.gpu.clone() {
        return device::run(global, &args, &choice);
    }
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
