//! Frames that were written to memory: behind them, a bit for each says that it was. They can be moved to a
//! scratch file later, by a task that needs the memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use spillproof_format::FrameKey;

use super::super::Workspace;
use super::super::tag::TagPlaces;
use super::{Backing, Frames, Run};
use crate::Result;
use crate::budget::{Buffer, PAGE_BYTES};

/// Bytes of a buffer for frames in memory: theirs, and a bit for each.
pub fn memory_bytes(frames: u64, frame_bytes: u64) -> u64 {
    (frames * frame_bytes + frames.div_ceil(8)).next_multiple_of(PAGE_BYTES as u64)
}

/// Frames that were written to memory.
pub(super) struct InMemory {
    pub place: RwLock<Place>,
    /// Where their digests go once they are in a file; `None`: into memory.
    tags: Option<TagPlaces>,
    /// Slices of the buffer that are lent.
    slices: AtomicUsize,
}

pub(super) enum Place {
    /// The frames, and then a bit for each.
    Buffer(Buffer),
    /// They were moved.
    Disk(Arc<Frames>),
}

impl InMemory {
    pub fn read(&self) -> RwLockReadGuard<'_, Place> {
        self.place.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frames in memory that stay there while this lives.
pub(in super::super) struct Slice {
    frames: Arc<Frames>,
    start: *const u8,
}

impl Slice {
    /// Where frame 0 is. Reading there is sound once no thread writes frames.
    pub fn start(&self) -> *const u8 {
        self.start
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        if let Backing::Memory(memory) = &self.frames.backing {
            memory.slices.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Frames {
    /// `frames` frames of `frame_bytes`, of which none is written, in a buffer of [`memory_bytes`]. `tags` is
    /// for a file that they are moved to.
    pub fn in_memory(
        workspace: &Workspace,
        mut buffer: Buffer,
        name: String,
        (frames, frame_bytes): (u64, usize),
        tags: Option<TagPlaces>,
    ) -> Self {
        buffer[frames as usize * frame_bytes..].fill(0);
        let key = FrameKey::new([0; 16], 0);
        let backing = Backing::Memory(InMemory {
            place: RwLock::new(Place::Buffer(buffer)),
            tags,
            slices: AtomicUsize::new(0),
        });
        Self::new(workspace, backing, name, (frames, frame_bytes), key)
    }

    /// Whether they are in memory, and could be on disk.
    pub fn can_move(&self) -> bool {
        matches!(&self.backing, Backing::Memory(memory) if matches!(&*memory.read(), Place::Buffer(_)))
    }

    /// A slice of frames that are in memory, of which those from `first` on, `frames` of them, were all
    /// written; `None` if they are elsewhere.
    pub fn slice(self: &Arc<Self>, first: u64, frames: u64) -> Result<Option<Slice>> {
        if let Backing::Memory(memory) = &self.backing
            && let Place::Buffer(buffer) = &*memory.read()
        {
            self.check_marks(buffer, first, frames)?;
            // Behind the lock that a move takes.
            memory.slices.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(Slice {
                frames: Arc::clone(self),
                start: buffer.as_ptr(),
            }));
        }
        Ok(None)
    }

    /// Moves frames from memory to a scratch file, and gives their memory back. Frames of which a slice is
    /// lent, or that a thread reads at this moment, stay in memory, as do those of which one was not written.
    /// No thread may write frames.
    ///
    /// # Errors
    /// Those of the file, and [`crate::Error::OverBudget`] for a buffer: the frames stay in memory.
    pub fn move_to_disk(self: &Arc<Self>) -> Result<()> {
        let Backing::Memory(memory) = &self.backing else {
            return Ok(());
        };
        match &*memory.read() {
            Place::Buffer(buffer) if self.check_marks(buffer, 0, self.frames).is_ok() => {}
            _ => return Ok(()),
        }
        let shape = (self.frames, self.frame_bytes);
        let moved = Arc::new(Self::scratch(&self.workspace, &self.name, shape, memory.tags)?);
        let chunk_frames = self.workspace.sequential_bytes(self.frame_bytes) / self.frame_bytes;
        let budget = &self.workspace.budget;
        let mut buffer =
            budget.buffer_to_fill(chunk_frames * self.frame_bytes, "column on its way to disk")?;
        for first in (0..self.frames).step_by(chunk_frames) {
            let run = Run {
                frame: first,
                frames: (self.frames - first).min(chunk_frames as u64),
                buffer_offset: 0,
            };
            buffer = self.read(buffer, vec![run]).wait()?;
            buffer = moved.write(buffer, vec![run], false).wait()?;
        }
        // Without waiting: std's lock lets no reader in while a writer waits, and a reader on top of another
        // on one stack never ends then.
        if let Ok(mut place) = memory.place.try_write()
            && memory.slices.load(Ordering::Acquire) == 0
        {
            *place = Place::Disk(moved);
        }
        Ok(())
    }

    /// Copies bytes from `start` on, on all cores if it is much; `false` if the frames are not in memory.
    pub fn copy_out(&self, start: u64, into: &mut [u8]) -> Result<bool> {
        let Backing::Memory(memory) = &self.backing else {
            return Ok(false);
        };
        let place = memory.read();
        let Place::Buffer(memory) = &*place else {
            return Ok(false);
        };
        let (frame_bytes, end) = (self.frame_bytes as u64, start + into.len() as u64);
        let first = start / frame_bytes;
        self.check_marks(memory, first, end.div_ceil(frame_bytes) - first)?;
        let from = std::iter::once(&memory[start as usize..end as usize]);
        self.copy(from, vec![into])?;
        Ok(true)
    }

    /// Refuses `frames` frames of a buffer of all frames and their bits, from `first` on, if one of them was
    /// not written.
    pub(super) fn check_marks(&self, memory: &[u8], first: u64, frames: u64) -> Result<()> {
        let marks = &memory[self.frames as usize * self.frame_bytes..];
        let is_written = |frame: u64| marks[frame as usize / 8] >> (frame % 8) & 1 == 1;
        let unwritten = (first..first + frames).find(|frame| !is_written(*frame));
        unwritten.map_or(Ok(()), |frame| Err(self.damaged(frame)))
    }
}
