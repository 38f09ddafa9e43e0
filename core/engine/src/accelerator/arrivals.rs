//! Elements on their way into memory that an accelerator lends.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Result;
use spillproof_kernels::parallel::Parallel;

/// Elements of one piece of memory.
pub(crate) trait Piece: Send + Sync {
    /// Waits for the disk, whatever comes of it.
    fn arrive(&mut self);

    /// Checks what has arrived, and brings it to its place.
    fn settle(self: Box<Self>) -> Result<()>;
}

/// Runs work where its parallel parts find threads.
pub(crate) type Spread = Arc<dyn Fn(&mut (dyn FnMut() + Send)) -> Result<()> + Send + Sync>;

/// Elements that [`ReadElements::begin`](super::ReadElements::begin) began to read. Dropped, it waits for the
/// disk, and the memory is given back.
#[must_use = "elements are not there before they are settled"]
#[derive(Default)]
pub struct Arrivals {
    pieces: VecDeque<Box<dyn Piece>>,
    spread: Option<Spread>,
}

impl Arrivals {
    /// None yet, which the threads of `spread` will settle.
    pub(crate) fn by(spread: Spread) -> Self {
        Self {
            pieces: VecDeque::new(),
            spread: Some(spread),
        }
    }

    pub(crate) fn push(&mut self, piece: impl Piece + 'static) {
        self.pieces.push_back(Box::new(piece));
    }

    /// Whether all elements are there.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// These, and then `others`.
    pub fn append(&mut self, mut others: Self) {
        self.pieces.append(&mut others.pieces);
        self.spread = self.spread.take().or(others.spread.take());
    }

    /// Waits for all elements. One thread waits for the disk, in the order in which pieces were begun, while the
    /// others of the session check what is there.
    ///
    /// # Errors
    /// That of the first piece that has one: of the disk, of frames that are damaged, of the budget.
    pub fn settle(mut self) -> Result<()> {
        let mut settled = Ok(());
        let is_shared = self.pieces.len() > 1;
        let pieces = &mut self.pieces;
        let mut all = || {
            let arrived = std::mem::take(pieces).into_iter().map(|mut piece| {
                piece.arrive();
                piece
            });
            settled = arrived.parallel().try_for_each(|piece| piece.settle());
        };
        match &self.spread {
            Some(spread) if is_shared => spread(&mut all)?,
            _ => all(),
        }
        settled
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.pieces.iter_mut().for_each(|piece| piece.arrive());
    }
}

impl std::fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arrivals")
            .field("pieces", &self.pieces.len())
            .finish_non_exhaustive()
    }
}
