//! Frames on their way into memory that was lent for them, where they are checked.

use std::sync::Arc;

use super::{Backing, Digests, Frames, Run};
use crate::Result;
use crate::budget::Lent;
use crate::error::Invalid;
use crate::storage::{File, Pending, Segment};

/// Frames that land in memory. Dropping it is safe: the memory outlives the transfer.
pub(crate) struct LandingFrames {
    frames: Arc<Frames>,
    first: u64,
    state: State,
}

enum State {
    Flying(Pending),
    /// The memory, and whether all is there.
    Arrived(Result<(Lent, bool)>),
}

impl Frames {
    /// Whether frames `first ..`, as many as `memory` holds, can be read straight into it: frames in a file,
    /// and memory that transfers reach.
    pub fn land_in(&self, first: u64, memory: &[u8]) -> bool {
        let segments = self.segments_of(first, memory);
        segments.is_some_and(|(file, segments)| file.reaches(memory, &segments))
    }

    /// Begins to read frames `first ..` straight into `memory`, as many as it holds.
    pub fn read_lent(self: &Arc<Self>, first: u64, memory: Lent) -> LandingFrames {
        let begun = match self.segments_of(first, &memory) {
            Some((file, segments)) => file.read_lent(memory, segments),
            None => Err(memory),
        };
        LandingFrames {
            state: match begun {
                Ok(pending) => State::Flying(pending),
                Err(memory) => State::Arrived(Ok((memory, false))),
            },
            frames: Arc::clone(self),
            first,
        }
    }

    /// The segments of frames that are read into the start of memory.
    fn segments_of(&self, first: u64, memory: &[u8]) -> Option<(&File, Vec<Segment>)> {
        let run = self.run_at(first, 0, memory);
        match &self.backing {
            Backing::File {
                file,
                base_offset,
                digests: Digests::Foreign(elements),
            } => {
                let frames = run.frame..run.frame + run.frames;
                let segment = elements.segment(frames, 0, self.frame_bytes, *base_offset);
                Some((file, segment.into_iter().collect()))
            }
            Backing::File {
                file, base_offset, ..
            } => Some((file, self.segments(*base_offset, &[run]))),
            Backing::Memory(_) | Backing::Dry { .. } => None,
        }
    }
}

impl LandingFrames {
    /// Waits until the transfer is done, whatever came of it.
    pub fn arrive(&mut self) {
        let arrived = State::Arrived(Err(Invalid::BufferTaken.into()));
        self.state = match std::mem::replace(&mut self.state, arrived) {
            State::Flying(pending) => State::Arrived(match self.frames.file() {
                Some((file, _)) => file.wait_for_lent(pending),
                None => Err(Invalid::BufferTaken.into()),
            }),
            arrived => arrived,
        };
    }

    /// Checks the frames where they are. Where the kernel refused the memory they are read into a buffer of a frame,
    /// and copied.
    ///
    /// # Errors
    /// [`crate::Error::Io`] from the transfer; [`crate::Error::Damaged`] for a frame whose digest differs.
    pub fn settle(mut self) -> Result<()> {
        self.arrive();
        let State::Arrived(arrived) = self.state else {
            return Ok(());
        };
        let (mut memory, is_there) = arrived?;
        let run = self.frames.run_at(self.first, 0, &memory);
        if is_there {
            return self.frames.check(&mut memory, &[run]);
        }
        let budget = &self.frames.workspace.budget;
        let mut buffer = budget.buffer_to_fill(self.frames.frame_bytes, "column reader")?;
        for (frame, into) in (run.frame..).zip(memory.chunks_exact_mut(self.frames.frame_bytes)) {
            let run = Run {
                frame,
                frames: 1,
                buffer_offset: 0,
            };
            buffer = self.frames.read(buffer, vec![run]).wait()?;
            into.copy_from_slice(&buffer[..into.len()]);
        }
        Ok(())
    }
}
