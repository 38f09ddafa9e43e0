//! The commands of the `spillproof` binary, and what the benchmark shares with them.
//!
//! - [`args`]: the command line; [`commands`]: one file for each command; [`run`]: a session, a recorder, a
//!   result.
//! - [`inputs`], [`peers`]: points and scalars from a seed, and the same sum in memory by other libraries.
//! - [`systems`]: the proof systems, with the phases of keys, proof and verification; [`output`]: files that
//!   a command writes.
//! - [`ranks`]: this process as one of several; [`link`] and [`pace`]: what is between them, and how fast each is.
//! - [`signals`]: what signals do to the program.
//! - [`mod@log`]: the lines of the log; [`report`]: phases, memory curve, tables, pictures; [`failure`]:
//!   errors as a user sees them, and exit codes.

#![warn(missing_docs)]

pub mod args;
pub mod commands;
pub mod failure;
pub mod inputs;
mod limit;
pub mod link;
pub mod log;
pub mod output;
pub mod pace;
pub mod peers;
pub mod ranks;
mod read_once;
pub mod run;
pub mod signals;
pub mod systems;
mod trial;

pub use spillproof_report as report;

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::Resettable;
use failure::Failure;
use report::steps;
use spillproof_engine::budget::CountingAlloc;

/// Counts what the heap holds, so that a run can tell what it took outside of leases.
#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

/// Where the limit on stacks is below this, the program runs on a stack of its own: the command line alone
/// takes some tens of KiB.
const STACK_BYTES_MIN: u64 = 1 << 20;
/// As long as stacks usually are.
const STACK_BYTES: usize = 8 << 20;

/// A program: tracing is set up, `work` is done, its failure is printed. 0 for success, 1 for failure, 2 for
/// a wrong command line; a panic, which is a bug, is 101. The process leaves no core dump, unless
/// `SPILLPROOF_CORE_DUMPS=1` asks for one.
pub fn start(work: impl FnOnce() -> run::Result<()> + Send) -> ExitCode {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack);
    if limit.current.is_none_or(|bytes| bytes >= STACK_BYTES_MIN) {
        return started(work);
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, || started(work)) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
            Err(error) => {
                eprintln!(
                    "error: the limit on stacks is {} bytes, and there is no thread with a longer one: {error}; raise it (ulimit -s 8192)",
                    limit.current.unwrap_or_default()
                );
                ExitCode::FAILURE
            }
        }
    })
}

/// The command line of the process. Environment variables that are empty count as not set.
pub fn parsed<A: Parser>() -> A {
    parsed_by(A::command())
}

/// The same, by a description of the command line that may differ in its help.
pub fn parsed_by<A: Parser>(command: clap::Command) -> A {
    let matches = without_empty_variables(command).get_matches();
    A::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The description, of whose variables the empty ones are not read.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_empty = arg
            .get_env()
            .and_then(std::env::var_os)
            .is_some_and(|value| value.is_empty());
        match is_empty {
            true => arg.env(Resettable::Reset),
            false => arg,
        }
    });
    command.mut_subcommands(without_empty_variables)
}

fn started(work: impl FnOnce() -> run::Result<()>) -> ExitCode {
    // The first map with random hashes would panic.
    if let Err(error) = spillproof_engine::budget::random_bytes(&mut [0]) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    log::start();
    if std::env::var_os("SPILLPROOF_CORE_DUMPS").is_none_or(|asked| asked != "1") {
        spillproof_engine::storage::forbid_core_dumps();
    }
    CountingAlloc::on_exhaustion(end_without_memory);
    signals::watch();
    report::environment::leave_to_program();
    let done = caught(|| work().and_then(|()| run::written()));
    steps::unwatch();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.explain());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Does `work`. A panic whose payload is an error of the engine, where halo2's signatures have no place for
/// one, is that error.
fn caught(work: impl FnOnce() -> run::Result<()>) -> run::Result<()> {
    // Nothing is used after a panic but its payload.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| match payload.downcast() {
        Ok(error) => Err(Failure::Engine(*error)),
        Err(other) => panic::resume_unwind(other),
    })
}

/// The heap has no memory, so nothing here allocates.
extern "C" fn end_without_memory(bytes: usize) {
    let mut line = [0; 200];
    let mut rest = &mut line[..];
    let _ = writeln!(
        rest,
        "error: the system gives the program no {bytes} bytes: raise its limit of memory (ulimit -v), or free memory elsewhere"
    );
    let unused = rest.len();
    let _ = rustix::io::write(rustix::stdio::stderr(), &line[..line.len() - unused]);
    std::process::exit(1);
}
