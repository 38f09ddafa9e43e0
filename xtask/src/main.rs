//! The project's own checks: `cargo xtask tidy` looks at what a compiler does not check.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!(
            "usage: cargo xtask tidy\n\n  \
             tidy    directions of rooms, unsafe code, lints, file lengths, no upstream source in the tree"
        );
        return ExitCode::from(2);
    }
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
            eprintln!("tidy could not read the tree: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace: the folder above this package.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
