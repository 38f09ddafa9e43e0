//! Frames: the unit of checking. A frame is written once, its digest is kept, and it never comes back unchecked.
//!
//! A digest binds a frame's bytes to its file, its epoch and its index, so a flipped bit, a torn write, a frame in the
//! wrong place and a frame of an earlier file are all the same error. Digests take 32 bytes a frame and are leased.
//! A set of frames lives in a file or, when it is small, in one leased buffer; no caller can tell. What never leaves memory is
//! not hashed: there a digest only says that its frame was written.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rayon::prelude::*;
use spillproof_format::FrameKey;

use super::Workspace;
use crate::budget::{Budget, Buffer, Lease, LeasedVec};
use crate::dry::DryRun;
use crate::error::Invalid;
use crate::storage::{File, Pending, Segment};
use crate::{Error, Result};

/// Bytes of one digest.
pub(crate) const DIGEST_BYTES: usize = 32;
/// Stands for the digest of a frame in memory that was written.
const WRITTEN: [u8; DIGEST_BYTES] = [1; DIGEST_BYTES];
/// Below this many bytes, hashing on one core is quicker than waking the others.
const PARALLEL_BYTES_MIN: usize = 256 * 1024;
/// What one core copies at a time.
const COPY_BYTES: usize = 64 * 1024;
/// What is transferred and hashed at a time in a caller's memory.
const PIECE_BYTES: usize = 1024 * 1024;

/// Neighbouring frames, and where they stand in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub frame: u64,
    pub frames: u64,
    pub buffer_offset: usize,
}

enum Backing {
    File {
        file: File,
        base_offset: u64,
    },
    Memory(RwLock<Buffer>),
    /// Nowhere: the frames of a dry run, which hold what frames with bytes would.
    Dry {
        file: Option<DryFile>,
        _held: [Option<Lease>; 2],
    },
}

/// The room on disk that a file of a dry run would take.
pub(super) struct DryFile {
    dry_run: Arc<DryRun>,
    bytes: u64,
}

impl DryFile {
    pub fn new(dry_run: &Arc<DryRun>, bytes: u64) -> Self {
        dry_run.disk_taken(bytes);
        Self {
            dry_run: Arc::clone(dry_run),
            bytes,
        }
    }
}

impl Drop for DryFile {
    fn drop(&mut self) {
        self.dry_run.disk_freed(self.bytes);
    }
}

/// A set of equal frames and their digests.
pub(crate) struct Frames {
    backing: Backing,
    key: FrameKey,
    frame_bytes: usize,
    frames: u64,
    name: String,
    /// No other frames of this process have it, before or after.
    id: u64,
    /// Whose threads hash.
    workspace: Workspace,
    digests: RwLock<LeasedVec<[u8; DIGEST_BYTES]>>,
}

impl Frames {
    /// Frames of `file` from `base_offset` on.
    pub fn in_file(
        workspace: &Workspace,
        file: File,
        base_offset: u64,
        frame_bytes: usize,
        key: FrameKey,
        digests: LeasedVec<[u8; DIGEST_BYTES]>,
    ) -> Self {
        let name = file.name().to_string();
        Self::new(
            workspace,
            Backing::File { file, base_offset },
            name,
            frame_bytes,
            key,
            digests,
        )
    }

    /// Frames in a buffer.
    pub fn in_memory(
        workspace: &Workspace,
        buffer: Buffer,
        name: String,
        frame_bytes: usize,
        key: FrameKey,
        digests: LeasedVec<[u8; DIGEST_BYTES]>,
    ) -> Self {
        debug_assert_eq!(buffer.len(), frame_bytes * digests.len());
        Self::new(
            workspace,
            Backing::Memory(RwLock::new(buffer)),
            name,
            frame_bytes,
            key,
            digests,
        )
    }

    /// `frames` frames of a dry run, which hold `held` of its budget.
    pub fn dry(
        workspace: &Workspace,
        file: Option<DryFile>,
        held: [Option<Lease>; 2],
        name: String,
        (frames, frame_bytes): (u64, usize),
    ) -> Result<Self> {
        let digests = Budget::unlimited().vec(0, [0; DIGEST_BYTES], "frame digests")?;
        let key = FrameKey::new([0; 16], 0);
        let mut made = Self::new(
            workspace,
            Backing::Dry { file, _held: held },
            name,
            frame_bytes,
            key,
            digests,
        );
        made.frames = frames;
        Ok(made)
    }

    fn new(
        workspace: &Workspace,
        backing: Backing,
        name: String,
        frame_bytes: usize,
        key: FrameKey,
        digests: LeasedVec<[u8; DIGEST_BYTES]>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let frames = digests.len() as u64;
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            backing,
            key,
            frame_bytes,
            frames,
            name,
            workspace: workspace.clone(),
            digests: RwLock::new(digests),
        }
    }

    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// The file and the offset of frame 0 in it, unless the frames are in memory.
    pub fn file(&self) -> Option<(&File, u64)> {
        match &self.backing {
            Backing::File { file, base_offset } => Some((file, *base_offset)),
            Backing::Memory(_) | Backing::Dry { .. } => None,
        }
    }

    /// Whether they would be in a file, or are.
    pub fn on_disk(&self) -> bool {
        match &self.backing {
            Backing::File { .. } => true,
            Backing::Memory(_) => false,
            Backing::Dry { file, .. } => file.is_some(),
        }
    }

    /// Where frame 0 is, if the frames are in memory, else null. Reading there is sound once no thread writes frames.
    pub fn memory_start(&self) -> *const u8 {
        match &self.backing {
            Backing::File { .. } | Backing::Dry { .. } => std::ptr::null(),
            Backing::Memory(memory) => memory.read().unwrap_or_else(PoisonError::into_inner).as_ptr(),
        }
    }

    /// Refuses `frames` frames in memory, from `first` on, if one of them was not written.
    pub fn check_written(&self, first: u64, frames: u64) -> Result<()> {
        let digests = self.digests.read().unwrap_or_else(PoisonError::into_inner);
        let unwritten = (first..first + frames).find(|frame| digests[*frame as usize] != WRITTEN);
        unwritten.map_or(Ok(()), |frame| Err(self.damaged(frame)))
    }

    fn damaged(&self, frame: u64) -> Error {
        let base_offset = match &self.backing {
            Backing::File { base_offset, .. } => *base_offset,
            Backing::Memory(_) | Backing::Dry { .. } => 0,
        };
        Error::Damaged {
            file: self.name.clone(),
            frame,
            offset: base_offset + frame * self.frame_bytes as u64,
        }
    }

    /// Copies of the digests of frames `first ..`, as many as `out` holds.
    pub fn copy_digests(&self, first: u64, out: &mut [[u8; DIGEST_BYTES]]) {
        let digests = self.digests.read().unwrap_or_else(PoisonError::into_inner);
        out.copy_from_slice(&digests[first as usize..first as usize + out.len()]);
    }

    /// Starts reading `runs` into `buffer`; nothing is checked before [`PendingFrames::wait`].
    pub fn read(self: &Arc<Self>, mut buffer: Buffer, runs: Vec<Run>) -> PendingFrames {
        let state = match &self.backing {
            Backing::File { file, base_offset } => {
                State::Flying(file.read(buffer, self.segments(*base_offset, &runs)))
            }
            Backing::Memory(memory) => {
                let memory = memory.read().unwrap_or_else(PoisonError::into_inner);
                let copied = self.copy(
                    runs.iter().map(|run| &memory[self.bytes_of(run)]),
                    parts_of(&mut buffer, runs.iter().map(|run| self.buffer_bytes_of(run))),
                );
                State::of(copied, buffer)
            }
            Backing::Dry { .. } => State::Dry,
        };
        PendingFrames {
            frames: Arc::clone(self),
            state,
            runs,
            check: true,
        }
    }

    /// Takes the digests of `runs` in `buffer` and starts writing them.
    pub fn write(self: &Arc<Self>, buffer: Buffer, runs: Vec<Run>) -> PendingFrames {
        let taken = match self.backing {
            Backing::Dry { .. } => Ok(()),
            _ => self.take_digests(&buffer, &runs),
        };
        let state = match (&self.backing, taken) {
            (_, Err(error)) => State::Failed(error),
            (Backing::File { file, base_offset }, Ok(())) => {
                State::Flying(file.write(buffer, self.segments(*base_offset, &runs)))
            }
            (Backing::Memory(memory), Ok(())) => {
                let mut memory = memory.write().unwrap_or_else(PoisonError::into_inner);
                let mut ascending: Vec<&Run> = runs.iter().collect();
                ascending.sort_unstable_by_key(|run| run.frame);
                let copied = self.copy(
                    ascending.iter().map(|run| &buffer[self.buffer_bytes_of(run)]),
                    parts_of(&mut memory, ascending.iter().map(|run| self.bytes_of(run))),
                );
                State::of(copied, buffer)
            }
            (Backing::Dry { .. }, Ok(())) => State::Dry,
        };
        PendingFrames {
            frames: Arc::clone(self),
            state,
            runs,
            check: false,
        }
    }

    /// Reads frames `first ..` straight into `into`, as many as it holds, and checks them there; `false` where that cannot be, and what
    /// `into` holds is undefined: frames in memory, and memory that transfers do not reach.
    pub fn read_in_place(&self, first: u64, into: &mut [u8]) -> Result<bool> {
        let Backing::File { file, base_offset } = &self.backing else {
            return Ok(false);
        };
        let offset = base_offset + first * self.frame_bytes as u64;
        file.read_in_place(offset, into, self.piece_bytes(), |at, piece| {
            self.check(piece, &[self.run_at(first, at, piece)])
        })
    }

    /// Takes the digests of frames `first ..` in `from`, and writes them from there; `false` as [`Self::read_in_place`], and nothing is
    /// written.
    pub fn write_in_place(&self, first: u64, from: &[u8]) -> Result<bool> {
        let Backing::File { file, base_offset } = &self.backing else {
            return Ok(false);
        };
        let offset = base_offset + first * self.frame_bytes as u64;
        file.write_in_place(offset, from, self.piece_bytes(), |at, piece| {
            self.take_digests(piece, &[self.run_at(first, at, piece)])
        })
    }

    /// Whole frames.
    fn piece_bytes(&self) -> usize {
        (PIECE_BYTES / self.frame_bytes).max(1) * self.frame_bytes
    }

    /// The frames of a piece, `at` bytes behind the start of frame `first`.
    fn run_at(&self, first: u64, at: usize, piece: &[u8]) -> Run {
        debug_assert!(piece.len().is_multiple_of(self.frame_bytes));
        Run {
            frame: first + (at / self.frame_bytes) as u64,
            frames: (piece.len() / self.frame_bytes) as u64,
            buffer_offset: 0,
        }
    }

    fn take_digests(&self, buffer: &[u8], runs: &[Run]) -> Result<()> {
        let taken = self.hash(buffer, runs)?;
        let mut digests = self.digests.write().unwrap_or_else(PoisonError::into_inner);
        for (frame, digest) in taken {
            digests[frame as usize] = digest;
        }
        Ok(())
    }

    fn segments(&self, base_offset: u64, runs: &[Run]) -> Vec<Segment> {
        runs.iter()
            .map(|run| {
                debug_assert!(run.frame + run.frames <= self.frames);
                Segment {
                    file_offset: base_offset + run.frame * self.frame_bytes as u64,
                    buffer_offset: run.buffer_offset,
                    bytes: run.frames as usize * self.frame_bytes,
                }
            })
            .collect()
    }

    fn hash(&self, buffer: &[u8], runs: &[Run]) -> Result<Vec<(u64, [u8; DIGEST_BYTES])>> {
        if let Backing::Memory(_) = self.backing {
            let frames = runs.iter().flat_map(|run| run.frame..run.frame + run.frames);
            return Ok(frames.map(|frame| (frame, WRITTEN)).collect());
        }
        let each: Vec<(u64, usize)> = runs
            .iter()
            .flat_map(|run| {
                (0..run.frames).map(|i| (run.frame + i, run.buffer_offset + i as usize * self.frame_bytes))
            })
            .collect();
        let digest =
            |&(frame, at): &(u64, usize)| (frame, self.key.digest(frame, &buffer[at..at + self.frame_bytes]));
        if each.len() * self.frame_bytes < PARALLEL_BYTES_MIN {
            Ok(each.iter().map(digest).collect())
        } else {
            let hash = || each.par_iter().with_min_len(4).map(digest).collect();
            self.workspace.spread(hash)
        }
    }

    /// Where a run's bytes are in memory.
    fn bytes_of(&self, run: &Run) -> Range<usize> {
        let start = run.frame as usize * self.frame_bytes;
        start..start + run.frames as usize * self.frame_bytes
    }

    /// Where a run's bytes are in a buffer.
    fn buffer_bytes_of(&self, run: &Run) -> Range<usize> {
        run.buffer_offset..run.buffer_offset + run.frames as usize * self.frame_bytes
    }

    /// Copies part for part, on all cores if it is much.
    fn copy<'a>(&self, from: impl Iterator<Item = &'a [u8]>, to: Vec<&mut [u8]>) -> Result<()> {
        let mut pieces: Vec<(&[u8], &mut [u8])> = Vec::new();
        for (from, to) in from.zip(to) {
            pieces.extend(from.chunks(COPY_BYTES).zip(to.chunks_mut(COPY_BYTES)));
        }
        let copy = |(from, to): (&[u8], &mut [u8])| to.copy_from_slice(from);
        let bytes: usize = pieces.iter().map(|(from, _)| from.len()).sum();
        if bytes < 2 * PARALLEL_BYTES_MIN {
            pieces.into_iter().for_each(copy);
            return Ok(());
        }
        let pieces_min = (COPY_BYTES * pieces.len() / bytes).max(1);
        (self.workspace).spread(|| pieces.into_par_iter().with_min_len(pieces_min).for_each(copy))
    }

    fn check(&self, buffer: &[u8], runs: &[Run]) -> Result<()> {
        let found = self.hash(buffer, runs)?;
        let digests = self.digests.read().unwrap_or_else(PoisonError::into_inner);
        match found
            .iter()
            .find(|(frame, digest)| digests[*frame as usize] != *digest)
        {
            None => Ok(()),
            Some(&(frame, _)) => Err(self.damaged(frame)),
        }
    }
}

/// The parts of `bytes` that ascending `ranges` name.
fn parts_of<'a>(mut bytes: &'a mut [u8], ranges: impl Iterator<Item = Range<usize>>) -> Vec<&'a mut [u8]> {
    let mut done = 0;
    let part = |range: Range<usize>| {
        let (part, rest) = std::mem::take(&mut bytes)[range.start - done..].split_at_mut(range.len());
        (bytes, done) = (rest, range.end);
        part
    };
    ranges.map(part).collect()
}

enum State {
    Flying(Pending),
    Done(Buffer),
    /// No bytes.
    Dry,
    Failed(Error),
}

impl State {
    fn of(copied: Result<()>, buffer: Buffer) -> Self {
        match copied {
            Ok(()) => Self::Done(buffer),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Frames on their way. Dropping it is safe: the buffer outlives the transfer.
pub(crate) struct PendingFrames {
    frames: Arc<Frames>,
    state: State,
    runs: Vec<Run>,
    check: bool,
}

impl PendingFrames {
    /// Waits, checks what was read, and gives the buffer back.
    ///
    /// # Errors
    /// [`Error::Io`] from the transfer; [`Error::Damaged`] for a frame whose digest differs.
    pub fn wait(self) -> Result<Buffer> {
        let buffer = match self.state {
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
            self.frames.check(&buffer, &self.runs)?;
        }
        Ok(buffer)
    }
}
