//! The `spillproof` binary: see `spillproof --help`.

use std::process::ExitCode;

use clap::Parser;
use spillproof_cli::args::Arguments;
use spillproof_cli::commands;

fn main() -> ExitCode {
    spillproof_cli::start(|| commands::dispatch(Arguments::parse()))
}
