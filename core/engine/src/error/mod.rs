//! One error type for the engine. Every variant names what a person needs to act: file, offset, bytes asked
//! and held, and what would help.

mod checkpoint;
mod environment;
mod invalid;

use std::path::PathBuf;

pub use checkpoint::Checkpoint;
pub(crate) use environment::{OfEnvironment, of_environment};
pub use invalid::Invalid;
use spillproof_kernels::error::{RootOfUnityError, WorkspaceError};
use spillproof_ranks::RankError;

/// `Result` with the engine's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong in the engine.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed; it is final and was not retried.
    #[error(
        "{operation} of {bytes} bytes at offset {offset} of {file}: {source}{}",
        hint(source)
    )]
    Io {
        /// `read` or `write`.
        operation: &'static str,
        /// The file, or what a nameless scratch file holds.
        file: String,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// An operation on a whole file or folder failed; it is final and was not retried.
    #[error("cannot {operation} {file}: {source}{}", hint(source))]
    File {
        /// `open`, `create`, `fsync`, `rename`, ...
        operation: &'static str,
        /// The file, or what a nameless scratch file holds.
        file: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A frame that came back from disk is not the one that was written.
    #[error(
        "{file}: frame {frame} at offset {offset} is damaged (its digest differs): the disk or a copy changed it; \
         restore the file, or import it again"
    )]
    Damaged {
        /// The file, or what a nameless scratch file holds.
        file: String,
        /// Index of the frame.
        frame: u64,
        /// Offset of the frame in bytes.
        offset: u64,
    },
    /// A file is not what it should be.
    #[error("{}: {source}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and where.
        source: spillproof_format::FormatError,
    },
    /// The system does not offer what was asked for.
    #[error("{what} is not available here ({source}): {remedy}")]
    Unavailable {
        /// `io_uring`, ...
        what: &'static str,
        /// What the kernel said.
        source: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The system had no memory for a buffer that the budget allows.
    #[error(
        "{what}: the system gave no {bytes} bytes of memory ({source}): lower the memory budget, or free memory elsewhere"
    )]
    Memory {
        /// What the memory was for.
        what: String,
        /// How much was asked for.
        bytes: u64,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A lease was refused.
    #[error(
        "{what} needs {asked_bytes} bytes, and {held_bytes} of the budget's {limit_bytes} bytes are held \
         ({holders}): raise the memory budget{}",
        environment::memory(*limit_bytes)
    )]
    OverBudget {
        /// What asked.
        what: String,
        /// How much it asked for.
        asked_bytes: u64,
        /// What is held already.
        held_bytes: u64,
        /// The budget.
        limit_bytes: u64,
        /// Who holds it, largest first.
        holders: String,
    },
    /// The budget is below the smallest that works.
    #[error(
        "{what} needs at least {needed_bytes} bytes, the memory budget has {limit_bytes}: raise the memory budget{}",
        environment::memory(*limit_bytes)
    )]
    BudgetTooSmall {
        /// What was planned.
        what: String,
        /// The smallest budget that works.
        needed_bytes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// The disk under the folder of scratch files has too little room for what is planned.
    #[error(
        "the phase \"{what}\" takes {needed_bytes} bytes of disk, and {} has {free_bytes} bytes left: free some, or name a folder on another disk{}",
        dir.display(),
        environment::dir(dir)
    )]
    DiskTooSmall {
        /// The phase that was planned.
        what: &'static str,
        /// The folder.
        dir: PathBuf,
        /// The room that it takes.
        needed_bytes: u64,
        /// The room that is left.
        free_bytes: u64,
    },
    /// The process was forked from the one that made the session, or what belongs to it.
    #[error(
        "this belongs to process {maker}, whose threads do the work: a process that was forked from it has to make a session of its own"
    )]
    Forked {
        /// The process that made it.
        maker: u32,
    },
    /// A thread could not be started.
    #[error(
        "cannot start a thread: {source}: processes (pids.max of the control group, docker run --pids-limit, ulimit -u) or addresses (ulimit -v) \
         may be limited; raise that limit, or ask for fewer compute threads"
    )]
    Threads {
        /// What the system said.
        source: std::io::Error,
    },
    /// A proof, or keys, begun inside of another one, or of `Session::run`, where it cannot wait for room.
    #[error(
        "a proof was begun inside of another one, or of `Session::run`, and the budget of {limit_bytes} bytes has no room for it now: \
         prove from threads of your own (one at a time inside of `Session::run`), or from a pool that a circuit's synthesis does not \
         use, or raise the memory budget{}",
        environment::memory(*limit_bytes)
    )]
    NestedTask {
        /// The budget.
        limit_bytes: u64,
    },
    /// The caller has stopped the work with [`Control::stop`](crate::control::Control::stop).
    #[error("the work was stopped by its caller")]
    Stopped,
    /// A proof cannot go on from its checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] Checkpoint),
    /// A job of several ranks cannot go on.
    #[error(transparent)]
    Ranks(#[from] RankError),
    /// A mistake in a call or a setting.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl From<RootOfUnityError> for Error {
    fn from(error: RootOfUnityError) -> Self {
        Self::Invalid(error.into())
    }
}

impl From<WorkspaceError> for Error {
    fn from(error: WorkspaceError) -> Self {
        Self::BudgetTooSmall {
            what: format!(
                "MSM over {} columns with {} threads",
                error.columns, error.threads
            ),
            needed_bytes: error.needed_bytes,
            limit_bytes: error.limit_bytes,
        }
    }
}

/// Whether a disk, or the user's share of it, is full.
pub(crate) fn is_full(source: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(source.kind(), StorageFull | QuotaExceeded)
}

/// What would help, where the kernel's words alone do not say it.
fn hint(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match source.kind() {
        _ if is_full(source) => ": free space there, or choose another folder",
        ErrorKind::PermissionDenied => ": choose a folder that this user may write to",
        ErrorKind::UnexpectedEof => ": the file is shorter than it should be; restore it, or import it again",
        _ => "",
    }
}
