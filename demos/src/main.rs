//! The `spillproof` binary: see `spillproof --help`.
//!
//! - [`args`]: the command line; [`commands`]: what it does; [`run`]: a session, a recorder, a result.
//! - [`inputs`], [`peers`]: points and scalars from a seed, and the libraries that we compare with.
//! - [`report`]: phases, memory curve, tables, pictures; [`failure`]: what went wrong, in plain words.

mod args;
mod commands;
mod failure;
mod inputs;
mod peers;
mod read_once;
mod report;
mod run;

use std::process::ExitCode;

use clap::Parser;
use report::steps;
use spillproof::budget::CountingAlloc;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Counts what the heap holds, so that a run can tell what it took outside of leases.
#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

/// 0 for success, 1 for failure, 2 for a wrong command line.
fn main() -> ExitCode {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines.with_filter(level()))
        .with(steps::layer().with_filter(LevelFilter::INFO))
        .init();
    match commands::dispatch(args::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.explain());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// `SPILLPROOF_LOG=debug` tells what the engine plans; warnings are told in any case.
fn level() -> LevelFilter {
    let asked = std::env::var("SPILLPROOF_LOG").ok();
    asked
        .and_then(|level| level.parse().ok())
        .unwrap_or(LevelFilter::WARN)
}
