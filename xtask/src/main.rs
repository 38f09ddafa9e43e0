//! The project's own chores. `cargo xtask tidy` checks the habits that a compiler does not.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("tidy"), None) => tidy_command(),
        _ => {
            eprintln!(
                "usage: cargo xtask tidy\n\n  tidy  rooms, unsafe code, lints, file lengths, no upstream source in the tree"
            );
            ExitCode::from(2)
        }
    }
}

fn tidy_command() -> ExitCode {
    match tidy::run(root()) {
        Ok(report) => {
            print!("{report}");
            if report.errors.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(problem) => {
            eprintln!("tidy could not look: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace: the folder above this package.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
