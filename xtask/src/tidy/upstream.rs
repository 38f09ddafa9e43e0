//! No source of the grafted crates is kept in the tree: it is fetched, edited and compiled, never copied.
//!
//! Six consecutive lines of ours (blank lines, comments and lines of mere punctuation apart) that also stand,
//! in that order, in the upstream crates are a copy, if they hold enough letters to be no accident.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Finding;
use super::packages::metadata_with_dependencies;
use super::source::Source;

/// The grafted crates.
const PACKAGES: &[&str] = &["halo2-axiom", "halo2_proofs", "midnight-proofs"];
const LINES_PER_WINDOW: usize = 6;
/// Letters and digits in a window, at least: six short closing lines happen to anyone.
const CHARACTERS_MIN: usize = 120;

/// The upstream crates, as their windows and the crate that each is from.
pub struct Upstream {
    windows: HashMap<String, &'static str>,
}

impl Upstream {
    /// Reads the crates' source from where cargo keeps it. The error is the reason for which the check is
    /// skipped.
    pub fn find(root: &Path) -> Result<Self, String> {
        let skipped = |why: String| format!("the search for copied upstream source: {why}");
        let metadata = metadata_with_dependencies(root).map_err(skipped)?;
        let mut windows_of_all = HashMap::new();
        for &package in PACKAGES {
            let releases = source_folders(&metadata, package);
            if releases.is_empty() {
                return Err(skipped(format!("cargo knows no registry package {package}")));
            }
            for source in releases {
                if !source.is_dir() {
                    return Err(skipped(format!("{package}'s source has not been fetched yet")));
                }
                let files = Source::all(&source).map_err(skipped)?;
                if files.is_empty() {
                    return Err(skipped(format!("{package}'s source folder is empty")));
                }
                for file in &files {
                    let found = windows(&file.text).into_iter();
                    windows_of_all.extend(found.map(|(_, window)| (window, package)));
                }
            }
        }
        let windows = windows_of_all;
        Ok(Self { windows })
    }

    /// Where our files repeat upstream's. One finding for each run of copied lines.
    pub fn check(&self, sources: &[Source]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for source in sources {
            let mut copied_before = false;
            for (line, window) in windows(&source.text) {
                let copied = self.windows.get(&window);
                if let (Some(package), false) = (copied, copied_before) {
                    let message = format!(
                        "{LINES_PER_WINDOW} lines or more as they stand in {package}: keep no upstream source"
                    );
                    findings.push(Finding::new(&source.file, line, message));
                }
                copied_before = copied.is_some();
            }
        }
        findings
    }
}

/// The folders of a registry's package (not of our drop-in, which has the same name), one for each release.
fn source_folders(metadata: &Value, package: &str) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let upstream = packages.filter(|found| found["name"] == package && !found["source"].is_null());
    let folder = |release: &Value| {
        let manifest = Path::new(release["manifest_path"].as_str()?);
        Some(manifest.parent()?.join("src"))
    };
    upstream.filter_map(folder).collect()
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
            windows: windows(UPSTREAM)
                .into_iter()
                .map(|(_, window)| (window, "upstream"))
                .collect(),
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
