//! The kernel's figures, parsed from its own files.

use std::fs;
use std::path::Path;

use crate::{Group, Refusal, Result, Version};

/// Figures of a group over its whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// The most memory that was charged at one time, page cache included, in bytes.
    pub peak_bytes: u64,
    /// How often the limit was reached; if reclaim helped, this is not a failure.
    pub limit_hits: u64,
    /// Processes killed because no page could be reclaimed.
    pub oom_kills: u64,
}

impl Group {
    /// The figures as they are now.
    ///
    /// # Errors
    /// [`Refusal::Unreadable`], never a zero in its place.
    pub fn figures(&self) -> Result<Figures> {
        let file = |name: &str| self.folder().join(name);
        Ok(match self.version() {
            Version::V1 => Figures {
                peak_bytes: number(&file("memory.max_usage_in_bytes"))?,
                limit_hits: number(&file("memory.failcnt"))?,
                oom_kills: field(&file("memory.oom_control"), "oom_kill")?,
            },
            Version::V2 => Figures {
                peak_bytes: number(&file("memory.peak"))?,
                limit_hits: field(&file("memory.events"), "max")?,
                oom_kills: field(&file("memory.events"), "oom_kill")?,
            },
        })
    }
}

fn number(file: &Path) -> Result<u64> {
    let text = read(file)?;
    text.trim()
        .parse()
        .map_err(|_| unreadable(file, format!("`{}` is no number", text.trim())))
}

/// A line `name value` in a file of such lines.
fn field(file: &Path, name: &str) -> Result<u64> {
    let text = read(file)?;
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| unreadable(file, format!("has no number `{name}`")))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|error| unreadable(file, error.to_string()))
}

fn unreadable(file: &Path, details: String) -> Refusal {
    Refusal::Unreadable {
        file: file.to_owned(),
        details,
    }
}
