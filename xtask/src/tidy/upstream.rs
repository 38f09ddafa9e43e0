//! No source of the grafted crate is kept in the tree: it is fetched, edited and compiled, never copied.
//!
//! Six consecutive lines of ours (blank lines, comments and lines of mere punctuation apart) that also stand, in that order, in the
//! upstream crate are a copy, if they hold enough letters to be no accident.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Finding;
use super::packages::metadata_with_dependencies;
use super::source::Source;

const PACKAGE: &str = "halo2-axiom";
const LINES_PER_WINDOW: usize = 6;
/// Letters and digits in a window, at least: six short closing lines happen to anyone.
const CHARACTERS_MIN: usize = 120;

/// The upstream crate, as the set of its windows.
pub struct Upstream {
    windows: HashSet<String>,
}

impl Upstream {
    /// Reads the crate's source from where cargo keeps it. The error is the reason for which the check is skipped.
    pub fn find(root: &Path) -> Result<Self, String> {
        let skipped = |why: String| format!("the search for copied upstream source: {why}");
        let metadata = metadata_with_dependencies(root).map_err(skipped)?;
        let source = source_folder(&metadata)
            .ok_or_else(|| skipped(format!("cargo knows no registry package {PACKAGE}")))?;
        if !source.is_dir() {
            return Err(skipped(format!("{PACKAGE}'s source has not been fetched yet")));
        }
        let files = Source::all(&source).map_err(skipped)?;
        let windows: HashSet<String> = files
            .iter()
            .flat_map(|file| windows(&file.text))
            .map(|(_, window)| window)
            .collect();
        if windows.is_empty() {
            return Err(skipped(format!("{PACKAGE}'s source folder is empty")));
        }
        Ok(Self { windows })
    }

    /// Where our files repeat upstream's. One finding for each run of copied lines.
    pub fn check(&self, sources: &[Source]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for source in sources {
            let mut copied_before = false;
            for (line, window) in windows(&source.text) {
                let copied = self.windows.contains(&window);
                if copied && !copied_before {
                    let message = format!(
                        "{LINES_PER_WINDOW} lines or more as they stand in {PACKAGE}: keep no upstream source"
                    );
                    findings.push(Finding::new(&source.file, line, message));
                }
                copied_before = copied;
            }
        }
        findings
    }
}

/// The folder of the registry's package (not of our drop-in, which has the same name).
fn source_folder(metadata: &Value) -> Option<PathBuf> {
    let packages = metadata["packages"].as_array()?;
    let upstream = packages
        .iter()
        .find(|package| package["name"] == PACKAGE && !package["source"].is_null())?;
    Some(
        Path::new(upstream["manifest_path"].as_str()?)
            .parent()?
            .join("src"),
    )
}

/// Each window of lines that say something, with the number of its first line.
fn windows(text: &str) -> Vec<(usize, String)> {
    let says_something =
        |line: &str| !line.is_empty() && !line.starts_with("//") && line.chars().any(char::is_alphanumeric);
    let lines: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.split_whitespace().collect::<Vec<_>>().join(" ")))
        .filter(|(_, line)| says_something(line))
        .collect();
    lines
        .windows(LINES_PER_WINDOW)
        .map(|window| {
            let joined = window
                .iter()
                .map(|(_, line)| line.as_str())
                .collect::<Vec<_>>()
                .join("\n");
            (window[0].0, joined)
        })
        .filter(|(_, joined)| joined.chars().filter(|c| c.is_alphanumeric()).count() >= CHARACTERS_MIN)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAM: &str = "
        fn commit_lagrange(&self, poly: &Polynomial<Scalar, LagrangeCoeff>) -> Point {
            let mut scalars = Vec::with_capacity(poly.len());
            scalars.extend(poly.iter());
            // a comment
            let bases = &self.g_lagrange;
            let size = scalars.len();
            assert!(bases.len() >= size);
            best_multiexp(&scalars, &bases[0..size])
        }";

    fn check(ours: &str) -> Vec<Finding> {
        let upstream = Upstream {
            windows: windows(UPSTREAM).into_iter().map(|(_, window)| window).collect(),
        };
        upstream.check(&[Source::parse("x.rs", ours).unwrap()])
    }

    #[test]
    fn a_copy_is_found_once_whatever_its_spacing() {
        let copy = format!(
            "fn ours() {{}}\n{}",
            UPSTREAM.replace("        ", "\t").replace("// a comment", "\n")
        );
        let findings = check(&copy);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3);
    }

    #[test]
    fn five_lines_are_no_copy() {
        let part: String = UPSTREAM
            .lines()
            .skip(1)
            .take(5)
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(check(&format!("{part} }}")).is_empty());
    }

    #[test]
    fn what_nobody_writes_twice_by_chance() {
        let short = "a\nb\nc\nd\ne\nf\n";
        assert!(windows(short).is_empty());
    }
}
