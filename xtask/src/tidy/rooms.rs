//! One way through `core/engine`: a room (top-level module) may use the rooms before it, never the reverse.
//!
//! A use is a path that starts at the crate (`crate::storage::..`, or enough `super`s to get there), in any
//! code that ships, macros included. The error type and its `Result` may be named from everywhere.

use super::Finding;
use super::source::{Source, Token};

/// A room of the engine, and the rooms that it may use.
type Room = (&'static str, &'static [&'static str]);

/// In the order in which data flows. A new room is added here, on purpose.
const ROOMS: &[Room] = &[
    ("error", &[]),
    ("compiled", &[]),
    ("control", &[]),
    ("budget", &["control"]),
    ("storage", &["budget"]),
    ("accelerator", &["budget"]),
    ("dry", &["budget", "accelerator"]),
    ("column", &["control", "budget", "storage", "dry", "accelerator"]),
    ("checkpoint", &["budget", "storage", "column"]),
    ("stream", &["budget", "storage", "dry", "accelerator", "column"]),
    (
        "session",
        &["budget", "storage", "accelerator", "column", "checkpoint"],
    ),
    ("plan", &["budget", "dry", "column", "session"]),
];

/// Rooms that own system calls.
const MAY_CALL_THE_SYSTEM: &[&str] = &["budget", "storage"];

/// Names at the crate's root that every room may use.
const EVERYWHERE: &[&str] = &["error", "Error", "Result", "step"];

/// Ways to the system. `std::fs` is written as a path, the others are crates.
const SYSTEM_CRATES: &[&str] = &["rustix", "libc", "nix", "memmap2", "io_uring"];

/// Every use against the direction, and every system call outside its owner.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .flat_map(|source| check_engine(source).into_iter().chain(check_others(source)))
        .collect()
}

fn check_engine(source: &Source) -> Vec<Finding> {
    let Some(mut module) = source.below("core/engine/src") else {
        return Vec::new();
    };
    if module.last().is_some_and(|name| name == "mod" || name == "lib") {
        module.pop();
    }
    let Some(name) = module.first() else {
        return Vec::new();
    };
    let Some((room, may_use)) = ROOMS.iter().find(|(room, _)| room == name) else {
        return vec![Finding::new(
            &source.file,
            0,
            format!(
                "room `{name}` has no place in the direction of rooms: give it one in xtask/src/tidy/rooms.rs"
            ),
        )];
    };
    let mut findings = Vec::new();
    for used in roots_used(&source.tokens, module.len()) {
        let name = used.text.as_str();
        if name != *room && !EVERYWHERE.contains(&name) && !may_use.contains(&name) {
            let message = format!(
                "`{}` must not use `crate::{name}`: rooms use those before them",
                room
            );
            findings.push(Finding::new(&source.file, used.line, message));
        }
    }
    if !MAY_CALL_THE_SYSTEM.contains(room) {
        findings.extend(system_calls(source));
    }
    findings
}

/// Packages that leave files to the engine.
const NO_FILES: &[&str] = &[
    "disk-format/src",
    "core/kernels/src",
    "core/commit/src",
    "core/plonk/src",
    "core/groth16/src",
];

fn check_others(source: &Source) -> Vec<Finding> {
    if NO_FILES.iter().any(|folder| source.below(folder).is_some()) {
        system_calls(source)
    } else {
        Vec::new()
    }
}

fn system_calls(source: &Source) -> Vec<Finding> {
    let tokens = &source.tokens;
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| token.text.as_str());
    (0..tokens.len())
        .filter(|&at| {
            let is_crate = SYSTEM_CRATES.contains(&text(at))
                && text(at + 1) == "::"
                && (at == 0 || text(at - 1) != "::");
            let is_std_fs = text(at) == "std" && text(at + 1) == "::" && text(at + 2) == "fs";
            is_crate || is_std_fs
        })
        .map(|at| {
            let message = format!("`{}` here: system calls belong to storage (and budget)", text(at));
            Finding::new(&source.file, tokens[at].line, message)
        })
        .collect()
}

/// Names that are reached from the crate's root: after `crate::`, or after exactly `depth` times `super::`.
fn roots_used(tokens: &[Token], depth: usize) -> Vec<&Token> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut used = Vec::new();
    for at in 0..tokens.len() {
        if at > 0 && text(at - 1) == "::" {
            continue;
        }
        let mut next = at;
        let mut supers = 0;
        while text(next) == "super" && text(next + 1) == "::" {
            (supers, next) = (supers + 1, next + 2);
        }
        let from_crate = text(at) == "crate" && text(at + 1) == "::";
        if from_crate {
            next = at + 2;
        } else if supers == 0 || supers != depth {
            continue;
        }
        match text(next) {
            "{" => used.extend(first_names(&tokens[next + 1..])),
            _ => used.extend(tokens.get(next)),
        }
    }
    used
}

/// The first name of each branch of a use group: `a, b` of `{a::x, b::{y, z}}`.
fn first_names(tokens: &[Token]) -> Vec<&Token> {
    let mut names = Vec::new();
    let (mut depth, mut starts) = (0usize, true);
    for token in tokens {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "," if depth == 0 => starts = true,
            _ if depth == 0 && starts => {
                names.push(token);
                starts = false;
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(file: &str, text: &str) -> Vec<String> {
        check(&[Source::parse(file, text).unwrap()])
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn earlier_rooms_may_be_used() {
        let text = "use crate::{Error, budget::{Budget, Lease}};\nuse crate::storage::File; fn f() -> crate::Result<()> {}";
        assert_eq!(findings("core/engine/src/column/reader.rs", text), [""; 0]);
    }

    #[test]
    fn later_rooms_may_not() {
        let text = "\nuse crate::{error::Error, column::Column};";
        let found = findings("core/engine/src/storage/mod.rs", text);
        assert_eq!(
            found,
            [
                "core/engine/src/storage/mod.rs:2: `storage` must not use `crate::column`: rooms use those before them"
            ]
        );
    }

    #[test]
    fn supers_that_reach_the_root_count() {
        assert_eq!(
            findings(
                "core/engine/src/stream/ntt/plan.rs",
                "use super::super::super::session::Session;"
            )
            .len(),
            1
        );
        assert_eq!(
            findings(
                "core/engine/src/stream/ntt/plan.rs",
                "use super::super::session::Session;"
            )
            .len(),
            0
        );
    }

    #[test]
    fn macros_count_too() {
        assert_eq!(
            findings(
                "core/engine/src/budget/size.rs",
                "macro_rules! m { () => { $crate::storage::open() } }"
            )
            .len(),
            1
        );
    }

    #[test]
    fn system_calls_have_owners() {
        assert_eq!(
            findings("core/kernels/src/poly.rs", "use std::fs::File;").len(),
            1
        );
        assert_eq!(
            findings("core/engine/src/column/map.rs", "fn f() { rustix::fs::sync() }").len(),
            1
        );
        assert_eq!(
            findings("core/engine/src/storage/pread.rs", "use rustix::fs;").len(),
            0
        );
        assert_eq!(findings("disk-format/src/header.rs", "use std::fs;").len(), 1);
    }

    #[test]
    fn unknown_rooms_are_named() {
        assert!(findings("core/engine/src/attic.rs", "")[0].contains("room `attic` has no place"));
    }
}
