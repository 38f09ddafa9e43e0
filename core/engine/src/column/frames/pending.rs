//! Frames on their way.

use std::sync::Arc;

use super::{Frames, Run};
use crate::Error;
use crate::Result;
use crate::budget::Buffer;
use crate::control;
use crate::error::Invalid;
use crate::storage::Pending;

pub(super) enum State {
    Flying(Pending),
    Done(Buffer),
    /// No bytes.
    Dry,
    Failed(Error),
}

impl State {
    pub fn of(copied: Result<()>, buffer: Buffer) -> Self {
        match copied {
            Ok(()) => Self::Done(buffer),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Frames on their way. Dropping it is safe: the buffer outlives the transfer.
pub(crate) struct PendingFrames {
    pub(super) frames: Arc<Frames>,
    pub(super) state: State,
    pub(super) runs: Vec<Run>,
    /// Whether digests are compared.
    pub(super) check: bool,
}

impl PendingFrames {
    /// Waits, checks what was read, and gives the buffer back.
    ///
    /// # Errors
    /// [`Error::Io`] from the transfer; [`Error::Damaged`] for a frame whose digest differs; [`Error::Stopped`].
    pub fn wait(self) -> Result<Buffer> {
        let mut buffer = match self.state {
            State::Flying(pending) => pending.wait()?,
            State::Done(buffer) => buffer,
            State::Dry => {
                return Err(Invalid::DryRun {
                    column: self.frames.name.clone(),
                }
                .into());
            }
            State::Failed(error) => return Err(error),
        };
        if self.check {
            self.frames.check(&mut buffer, &self.runs)?;
        }
        control::check()?;
        Ok(buffer)
    }
}
