//! The commands of the `spillproof` binary, and what the benchmark shares with them.
//!
//! - [`args`]: the command line; [`commands`]: one file for each command; [`run`]: a session, a recorder, a result.
//! - [`inputs`], [`peers`]: points and scalars from a seed, and the same sum in memory by other libraries.
//! - [`report`]: phases, memory curve, tables, pictures; [`failure`]: errors as a user sees them, and exit codes.

#![warn(missing_docs)]

pub mod args;
pub mod commands;
pub mod failure;
pub mod inputs;
pub mod peers;
mod read_once;
pub mod report;
pub mod run;

use std::process::ExitCode;

use report::steps;
use spillproof::budget::CountingAlloc;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Counts what the heap holds, so that a run can tell what it took outside of leases.
#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

/// A program: tracing is set up, `work` is done, its failure is printed. 0 for success, 1 for failure, 2 for a wrong command line.
pub fn start(work: impl FnOnce() -> run::Result<()>) -> ExitCode {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines.with_filter(level()))
        .with(steps::layer().with_filter(LevelFilter::INFO))
        .init();
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.explain());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// `SPILLPROOF_LOG=debug` shows the engine's plans; warnings are shown in any case.
fn level() -> LevelFilter {
    let asked = std::env::var("SPILLPROOF_LOG").ok();
    asked
        .and_then(|level| level.parse().ok())
        .unwrap_or(LevelFilter::WARN)
}
