//! The project's own checks and releases: `cargo xtask tidy` looks at what a compiler does not check,
//! `cargo xtask compiled` at where code was compiled, `cargo xtask package` at what would be published,
//! `cargo xtask dist` packs a release, `cargo xtask fixtures` fetches what is too large to commit.

mod compiled;
mod dist;
mod dist_node;
mod fixtures;
mod package;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy
       cargo xtask compiled
       cargo xtask package
       cargo xtask published
       cargo xtask dist DIR [node]
       cargo xtask fixtures DIR

  tidy      directions of rooms, circles of files, unsafe code, lints, file lengths, pages of the book, no upstream source in the tree
  compiled  bytes of kernels and proof systems that are compiled outside of their packages, in the last release build (takes nm)
  package   packs what would be published, without a build
  published names the packages that would be published, for cargo's --package
  dist      builds for release, and packs binary, C libraries and licences into DIR, with a SHA-256; or makes the folders of
            the Node.js package in DIR/npm
  fixtures  fetches keys of public ceremonies and snarkjs into DIR, for an ignored test (takes npm)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["compiled"] => say(compiled::check(&target())),
        ["package"] => say(package::run(root()).map(|names| format!("packaged: {}", names.join(", ")))),
        ["published"] => say(package::names(root()).map(|names| names.join("\n"))),
        ["dist", dir] => say(dist::run(root(), Path::new(dir)).map(|archive| archive.display().to_string())),
        ["dist", dir, "node"] => {
            say(dist_node::run(root(), Path::new(dir)).map(|package| package.display().to_string()))
        }
        ["fixtures", dir] => match fixtures::fetch(root(), Path::new(dir)) {
            Ok(_) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("the fixtures could not be written to {dir}: {problem}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn say(done: Result<String, String>) -> ExitCode {
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn tidy() -> ExitCode {
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

/// Cargo's folder of builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The workspace: the folder above this package.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
