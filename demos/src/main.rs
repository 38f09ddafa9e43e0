//! The `spillproof` binary: see `spillproof --help`.

use std::process::ExitCode;

use clap::CommandFactory;
use spillproof_cli::args::{self, Arguments};
use spillproof_cli::commands;

fn main() -> ExitCode {
    spillproof_cli::start(|| {
        let command = args::for_help(Arguments::command());
        commands::dispatch(spillproof_cli::parsed_by::<Arguments>(command))
    })
}
