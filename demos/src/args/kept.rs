//! Where a proof keeps what it has done.

use std::path::PathBuf;

use clap::Args;
use spillproof_engine::Result;
use spillproof_engine::checkpoint::Checkpoints;

/// A checkpoint and its key.
#[derive(Debug, Clone, Args)]
pub struct Kept {
    /// Keep what the proof has done in this folder, sealed, so that after a crash the same command goes on
    /// from there. Else the variable SPILLPROOF_CHECKPOINT names the folder, if it is set.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// The key of the checkpoint: a file of 32 random bytes, or 64 hexadecimal digits, in another folder.
    /// Else the variable SPILLPROOF_CHECKPOINT_KEY_FILE names the file, or SPILLPROOF_CHECKPOINT_KEY is the
    /// key.
    #[arg(long, value_name = "FILE")]
    pub checkpoint_key: Option<PathBuf>,
}

impl Kept {
    /// Whether an option asks for it.
    pub fn is_asked(&self) -> bool {
        self.checkpoint.is_some() || self.checkpoint_key.is_some()
    }

    /// Those of the options, or of the environment.
    ///
    /// # Errors
    /// Those of [`Checkpoints::configured`].
    pub fn checkpoints(&self) -> Result<Option<Checkpoints>> {
        Checkpoints::configured(self.checkpoint.as_deref(), self.checkpoint_key.as_deref())
    }
}
