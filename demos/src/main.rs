//! The `spillproof` binary: see `spillproof --help`.

use std::process::ExitCode;

use spillproof_cli::args::Arguments;
use spillproof_cli::commands;

fn main() -> ExitCode {
    spillproof_cli::start(|| commands::dispatch(spillproof_cli::parsed::<Arguments>()))
}
