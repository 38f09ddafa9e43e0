//! Columns of plain bytes on disk straight into memory that is lent: whole frames, checked where they land.
//! What is not a whole frame there goes through a buffer of one frame. (The other way is
//! [`Writer::push_in_place`](super::Writer::push_in_place).)
//!
//! Memory: that buffer, leased while its elements are on their way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Column;
use super::frames::{LandingFrames, PendingFrames, Run};
use crate::Error;
use crate::Result;
use crate::accelerator::{Arrivals, Piece};
use crate::budget::{Buffer, Lent, PAGE_BYTES};
use crate::control;
use crate::error::Invalid;

/// A column that is read from its start to its end, in parts of any length.
pub(crate) struct InPlace<const N: usize> {
    column: Column<[u8; N]>,
    /// The frame that the last part ended in.
    held: Option<(u64, Arc<OneFrame>)>,
}

/// A frame that two parts have elements of: it is read and checked once. Dropped, it waits for the disk.
struct OneFrame {
    state: Mutex<State>,
}

enum State {
    Flying(PendingFrames),
    There(Buffer),
    /// What the first part did not take yet.
    Failed(Option<Error>),
}

/// A part of a frame, and the memory that it goes to.
struct Edge {
    frame: Arc<OneFrame>,
    start: usize,
    memory: Lent,
}

impl<const N: usize> InPlace<N> {
    /// If frames of the column can land in memory like `memory`: a column in a file, memory aligned to pages,
    /// that holds a frame.
    pub fn of(column: &Column<[u8; N]>, memory: &Lent) -> Option<Self> {
        let frame_bytes = column.frames.frame_bytes();
        let fits = memory.as_ptr().addr().is_multiple_of(PAGE_BYTES) && memory.len() >= frame_bytes;
        (fits && memory.is_readable() && column.frames.file().is_some()).then(|| Self {
            column: column.clone(),
            held: None,
        })
    }

    /// Begins to fill `memory` with elements `first ..`, zeros behind the last. What is left of it where a frame
    /// came that cannot land there.
    ///
    /// # Errors
    /// Of the budget; [`Error::Stopped`].
    pub fn begin(&mut self, first: u64, mut memory: Lent, arrivals: &mut Arrivals) -> Result<Option<Lent>> {
        control::check()?;
        let frames = Arc::clone(&self.column.frames);
        let frame_bytes = frames.frame_bytes();
        let len_bytes = self.column.len * N as u64;
        let mut at = first * N as u64;
        while !memory.is_empty() {
            let left_bytes = usize::try_from(len_bytes.saturating_sub(at)).unwrap_or(usize::MAX);
            let coming_bytes = memory.len().min(left_bytes);
            if coming_bytes == 0 {
                memory.fill(0);
                break;
            }
            let frame = self.column.first_frame + at / frame_bytes as u64;
            let within = (at % frame_bytes as u64) as usize;
            let whole = (coming_bytes / frame_bytes * frame_bytes).min(frames.piece_bytes());
            let bytes = if within == 0 && whole > 0 {
                if !frames.land_in(frame, &memory[..whole]) {
                    return Ok(Some(memory));
                }
                arrivals.push(frames.read_lent(frame, memory.take_first(whole)));
                whole
            } else {
                let bytes = coming_bytes.min(frame_bytes - within);
                arrivals.push(Edge {
                    frame: self.frame(frame)?,
                    start: within,
                    memory: memory.take_first(bytes),
                });
                bytes
            };
            at += bytes as u64;
        }
        if at >= len_bytes {
            self.held = None;
        }
        Ok(None)
    }

    /// A frame that will be in a buffer.
    fn frame(&mut self, frame: u64) -> Result<Arc<OneFrame>> {
        if let Some((held, one)) = &self.held
            && *held == frame
        {
            return Ok(Arc::clone(one));
        }
        let budget = &self.column.workspace.budget;
        let buffer = budget.buffer_to_fill(self.column.frames.frame_bytes(), "column reader")?;
        let run = Run {
            frame,
            frames: 1,
            buffer_offset: 0,
        };
        let flying = self.column.frames.read(buffer, vec![run]);
        let one = Arc::new(OneFrame {
            state: Mutex::new(State::Flying(flying)),
        });
        self.held = Some((frame, Arc::clone(&one)));
        Ok(one)
    }
}

impl OneFrame {
    fn arrived(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = match std::mem::replace(&mut *state, State::Failed(None)) {
            State::Flying(pending) => match pending.wait() {
                Ok(buffer) => State::There(buffer),
                Err(error) => State::Failed(Some(error)),
            },
            arrived => arrived,
        };
        state
    }
}

impl Drop for OneFrame {
    fn drop(&mut self) {
        drop(self.arrived());
    }
}

impl Piece for Edge {
    fn arrive(&mut self) {
        drop(self.frame.arrived());
    }

    fn settle(mut self: Box<Self>) -> Result<()> {
        match &mut *self.frame.arrived() {
            State::There(buffer) => {
                let end = self.start + self.memory.len();
                self.memory.copy_from_slice(&buffer[self.start..end]);
                Ok(())
            }
            State::Failed(error) => Err(error.take().unwrap_or_else(|| Invalid::BufferTaken.into())),
            State::Flying(_) => Err(Invalid::BufferTaken.into()),
        }
    }
}

impl Piece for LandingFrames {
    fn arrive(&mut self) {
        Self::arrive(self);
    }

    fn settle(self: Box<Self>) -> Result<()> {
        Self::settle(*self)
    }
}
