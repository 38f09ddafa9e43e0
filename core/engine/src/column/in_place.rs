//! Columns of plain bytes straight into memory that a caller lends: whole frames, checked where they land.
//! What is not a whole frame there goes through a buffer of one frame. (The other way is
//! [`Writer::push_in_place`](super::Writer::push_in_place).)
//!
//! Memory: that buffer, leased while it is needed. Frames are read while the caller waits; there is no
//! read-ahead beyond the call.

use std::sync::Arc;

use super::Column;
use super::frames::Run;
use crate::Result;
use crate::budget::{Buffer, PAGE_BYTES};

/// A column that is read from its start to its end, in parts of any length.
pub(crate) struct InPlace<const N: usize> {
    column: Column<[u8; N]>,
    /// The frame that the last part ended in.
    held: Option<(u64, Buffer)>,
}

impl<const N: usize> InPlace<N> {
    /// If frames of the column can land in memory like `into`: a column in a file, memory aligned to pages,
    /// that holds a frame.
    pub fn of(column: &Column<[u8; N]>, into: &[u8]) -> Option<Self> {
        let frame_bytes = column.frames.frame_bytes();
        let fits = into.as_ptr().addr().is_multiple_of(PAGE_BYTES) && into.len() >= frame_bytes;
        (fits && column.frames.file().is_some()).then(|| Self {
            column: column.clone(),
            held: None,
        })
    }

    /// Fills `into` with elements `first ..`, zeros behind the last; how many bytes of it were filled before
    /// a frame came that cannot land in this memory.
    pub fn read(&mut self, first: u64, into: &mut [u8]) -> Result<usize> {
        let frame_bytes = self.column.frames.frame_bytes();
        let len_bytes = self.column.len * N as u64;
        let (mut at, mut done) = (first * N as u64, 0);
        while done < into.len() {
            let rest = &mut into[done..];
            let left_bytes = usize::try_from(len_bytes.saturating_sub(at)).unwrap_or(usize::MAX);
            let coming_bytes = rest.len().min(left_bytes);
            if coming_bytes == 0 {
                rest.fill(0);
                return Ok(into.len());
            }
            let frame = self.column.first_frame + at / frame_bytes as u64;
            let within = (at % frame_bytes as u64) as usize;
            let whole = coming_bytes / frame_bytes * frame_bytes;
            let bytes = if within == 0 && whole > 0 {
                if !self.column.frames.read_in_place(frame, &mut rest[..whole])? {
                    return Ok(done);
                }
                whole
            } else {
                let bytes = coming_bytes.min(frame_bytes - within);
                rest[..bytes].copy_from_slice(&self.frame(frame)?[within..within + bytes]);
                bytes
            };
            (at, done) = (at + bytes as u64, done + bytes);
        }
        if at >= len_bytes {
            self.held = None;
        }
        Ok(done)
    }

    /// One frame, in a buffer.
    fn frame(&mut self, frame: u64) -> Result<&[u8]> {
        let buffer = match self.held.take() {
            Some((held, buffer)) if held == frame => buffer,
            other => {
                let frame_bytes = self.column.frames.frame_bytes();
                let buffer = match other {
                    Some((_, buffer)) => buffer,
                    None => {
                        let budget = &self.column.workspace.budget;
                        budget.buffer_to_fill(frame_bytes, "column reader")?
                    }
                };
                let run = Run {
                    frame,
                    frames: 1,
                    buffer_offset: 0,
                };
                Arc::clone(&self.column.frames).read(buffer, vec![run]).wait()?
            }
        };
        Ok(&self.held.insert((frame, buffer)).1)
    }
}
