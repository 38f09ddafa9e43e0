//! Columns in memory: a list of them, so that they can leave it.
//!
//! The [dry run](crate::plan::rehearse) of a task decides which of its columns stay in memory. Some columns
//! outlive their task, as those of a key do. A later task may need their memory. The columns then move to
//! disk, and handles of callers stay valid ([`Frames::move_to_disk`]).

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::Workspace;
use super::frames::Frames;
use crate::Result;

/// The columns of a workspace that were written to memory.
#[derive(Debug, Default)]
pub(super) struct Residents(Mutex<Vec<Weak<Frames>>>);

impl Residents {
    /// Enters the frames of a column that is written now, if they are in memory.
    pub fn enter(&self, frames: &Arc<Frames>) {
        if frames.can_move() {
            let mut entered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            entered.retain(|frames| frames.strong_count() > 0);
            entered.push(Arc::downgrade(frames));
        }
    }
}

impl Workspace {
    /// Moves columns from memory to disk; all but those of which a slice is lent, or that are being read.
    ///
    /// # Errors
    /// [`crate::Error::Io`], [`crate::Error::OverBudget`]: columns that are not moved yet stay in memory.
    pub fn move_columns_to_disk(&self) -> Result<()> {
        let entered = self
            .residents
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut columns = entered.iter().filter_map(Weak::upgrade);
        columns.try_for_each(|frames| frames.move_to_disk())
    }
}
