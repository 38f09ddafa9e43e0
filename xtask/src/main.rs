//! The project's own chores. `cargo xtask tidy` checks the habits that a compiler does not; `cargo xtask record` makes an animated
//! picture of a command's run.

mod record;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, [])) if command == "tidy" => tidy_command(),
        Some((command, rest)) if command == "record" => match record::run(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("record: {problem}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!(
                "usage: cargo xtask tidy\n       cargo xtask record --out FILE [--title TEXT] -- COMMAND ...\n\n  \
                 tidy    rooms, unsafe code, lints, file lengths, no upstream source in the tree\n  \
                 record  a run of a command as an animated SVG"
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
