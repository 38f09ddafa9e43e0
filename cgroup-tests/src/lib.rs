//! Runs a program inside a memory control group with a hard limit, and reads the kernel's figures.
//!
//! ```text
//! Group::create(limit)          find v1 or v2, make a group, set the limit, read it back      group.rs
//!   group.run(command, timeout) join, exec, wait                                              run.rs
//!     -> Outcome                exit, peak bytes (page cache included), OOM kills             figures.rs
//! drop(group)                   kill what is left, remove the group
//! watched(command, timeout)     without a group: its resident memory, measured from outside       run.rs
//! SwapFile::on(folder, bytes)   a swap file that is removed, however the process ends             swap.rs, keeper.rs
//! SlowCores::of(cores)          each thread of a program gets a share of a core, as on a machine with more and slower cores  slow_cores.rs
//! ```
//!
//! `cgroups-rs` makes and removes the group. Every limit is read back from the kernel's own files, and every
//! figure is parsed from them; a file that cannot be read is an error (the crate swallows errors when limits
//! are set, and answers 0 for figures that it cannot read). Release 0.5 brings a D-Bus client of forty
//! packages along, so this is release 0.3.
//!
//! A machine where this cannot be done (no privilege, no memory controller, swap that cannot be limited) is a
//! [`Refusal::Unsupported`], which tests print as `SKIPPED: ...`.
//!
//! **Page cache** is charged to the group that touches a page first. [`cold`] evicts named files, so that a
//! run is charged for the files that it reads.
#![warn(missing_docs)]

pub mod cold;
mod figures;
mod group;
mod keeper;
mod run;
mod slow_cores;
mod swap;

pub use figures::Figures;
pub use group::{Group, Version};
pub use keeper::Keeper;
pub use run::{Ended, Outcome, watched, watched_with};
pub use slow_cores::SlowCores;
pub use swap::SwapFile;

use std::io::Write;
use std::path::PathBuf;

/// A group for a test; or `None`, after printing the reason on standard error, where no test runner hides it.
///
/// # Panics
/// If this machine can limit memory and still no group could be made: that is a failure, not a skip.
pub fn group_or_skip(limit_bytes: u64) -> Option<Group> {
    match Group::create(limit_bytes) {
        Ok(group) => Some(group),
        Err(Refusal::Unsupported(why)) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Why a group could not be made or read.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// This machine, or this user, cannot limit memory.
    #[error("memory cannot be limited here: {0}")]
    Unsupported(String),
    /// This machine, or this user, cannot limit the processor's time of a thread.
    #[error("more cores cannot be emulated here: {0}")]
    NoSlowCores(String),
    /// This machine, or this user, cannot turn swap on.
    #[error("no swap file can be used here: {0}")]
    NoSwap(String),
    /// The kernel took a limit and shows another.
    #[error("{}: wrote {wrote_bytes}, reads back {reads}", file.display())]
    NotTaken {
        /// The file of the limit.
        file: PathBuf,
        /// The written value.
        wrote_bytes: u64,
        /// Its present value.
        reads: String,
    },
    /// A figure cannot be read, or is no number.
    #[error("{}: {details}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The problem.
        details: String,
    },
    /// A program could not be started or waited for.
    #[error("{program}: {source}")]
    Program {
        /// The program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
}

/// `Result` with [`Refusal`].
pub type Result<T, E = Refusal> = std::result::Result<T, E>;
