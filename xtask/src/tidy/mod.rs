//! Tidy: reads the tree, returns a list of findings.
//!
//! | check | rule |
//! |---|---|
//! | [`packages`] | which room (package) may use which, and that each has its lints |
//! | [`rooms`] | inside `core`: which module may use which, and which may make system calls |
//! | [`circles`] | files of a package import each other in one direction |
//! | [`unsafety`] | `unsafe` only in the leaves that are listed |
//! | [`upstream`] | no source of the crate that we graft onto is kept in the tree |
//! | [`book`] | every document is a page of the book |
//! | [`length`] | files of at most 700 lines (a warning) |
//!
//! The checks see tokens ([`source`]), not text: comments and strings never count.

mod book;
mod circles;
mod length;
mod packages;
mod paths;
mod rooms;
mod source;
mod unsafety;
mod upstream;

use std::fmt;
use std::path::{Path, PathBuf};

pub use packages::{metadata, metadata_with_dependencies};
use source::Source;

/// A violation and its place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the workspace's root.
    pub file: PathBuf,
    /// Line, from 1; 0 is the whole file.
    pub line: usize,
    /// The rule that is violated, and the remedy.
    pub message: String,
}

impl Finding {
    fn new(file: &Path, line: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}",
            self.file.display(),
            self.line.max(1),
            self.message
        )
    }
}

/// The result of all checks.
#[derive(Debug, Default)]
pub struct Report {
    /// Violations.
    pub errors: Vec<Finding>,
    /// Files that may need a change.
    pub warnings: Vec<Finding>,
    /// Checks that could not run here, and why.
    pub skipped: Vec<String>,
    /// How many source files were read.
    pub files: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.errors
            .iter()
            .try_for_each(|finding| writeln!(f, "error: {finding}"))?;
        self.warnings
            .iter()
            .try_for_each(|finding| writeln!(f, "warning: {finding}"))?;
        self.skipped
            .iter()
            .try_for_each(|reason| writeln!(f, "SKIPPED: {reason}"))?;
        let (files, errors, warnings) = (self.files, self.errors.len(), self.warnings.len());
        writeln!(f, "tidy: {files} files, {errors} errors, {warnings} warnings")
    }
}

/// Checks the workspace at `root`. The error is a tree that cannot be read, not a finding.
pub fn run(root: &Path) -> Result<Report, String> {
    let metadata = metadata(root)?;
    let sources = Source::all(root)?;
    let mut report = Report {
        files: sources.len(),
        ..Report::default()
    };
    report.errors.extend(packages::check(root, &metadata)?);
    report.errors.extend(rooms::check(&sources));
    report.errors.extend(circles::check(&sources));
    report.errors.extend(unsafety::check(&sources));
    report.errors.extend(book::check(root)?);
    match upstream::Upstream::find(root) {
        Ok(upstream) => report.errors.extend(upstream.check(&sources)),
        Err(reason) => report.skipped.push(reason),
    }
    report.warnings.extend(length::check(&sources));
    report.errors.sort();
    Ok(report)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let report = super::run(crate::root()).expect("tidy can look");
        println!("{report}");
        assert!(report.files > 10, "tidy found no sources to look at");
        assert!(report.errors.is_empty(), "{report}");
    }
}
