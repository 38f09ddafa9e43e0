//! Why a proof cannot go on from its checkpoint.

use std::path::PathBuf;

/// Why a proof cannot go on with its checkpoint. Nothing was proved.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Checkpoint {
    /// The first note of the log does not open.
    #[error(
        "{}: the checkpoint does not open with this key: name the key that it was made with, or, if it was the same, the log is damaged: remove \
         the folder, and the proof begins anew",
        folder.display()
    )]
    AnotherKey {
        /// The folder of the checkpoint.
        folder: PathBuf,
    },
    /// A note of the log is not the one that was written.
    #[error(
        "{}: the note at offset {offset} is damaged: the disk or a copy changed it; remove the folder {}, and the proof begins anew",
        file.display(),
        file.parent().unwrap_or(file).display()
    )]
    Damaged {
        /// The log.
        file: PathBuf,
        /// Where the note begins.
        offset: u64,
    },
    /// The proof is not the one that was begun.
    #[error(
        "{}: the checkpoint was made with another {what}, and going on would use its random values in two transcripts: prove as before, or \
         remove the folder, and the proof begins anew",
        folder.display()
    )]
    Differs {
        /// The folder of the checkpoint.
        folder: PathBuf,
        /// The input that is another one.
        what: &'static str,
    },
    /// A proof has come out of it.
    #[error(
        "{}: a proof has come out of this checkpoint already (it was copied back), and going on would use its random values in two \
         transcripts: remove the folder, and the proof begins anew",
        folder.display()
    )]
    Used {
        /// The folder of the checkpoint.
        folder: PathBuf,
    },
    /// The disk under the checkpoints has no room left.
    #[error(
        "{}: the disk of this folder of checkpoints is full ({reason}): free some, or name a folder on another disk; the next run goes on from the \
         last round that was kept",
        folder.display()
    )]
    Full {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// The operation that failed, and the system's words.
        reason: String,
    },
    /// Another proof of the same statement goes on.
    #[error(
        "{}: another proof of the same statement uses this checkpoint: wait until it ends, or name another folder",
        folder.display()
    )]
    InUse {
        /// The folder of the checkpoint.
        folder: PathBuf,
    },
}
