//! The `spillproof` binary: see `spillproof --help`.

use std::process::ExitCode;

use spillproof::budget::CountingAlloc;

/// Counts what the heap holds, so that a run can tell what it took outside of leases.
#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

fn main() -> ExitCode {
    spillproof_cli::main()
}
