//! Frames: the unit of checking. A frame is written once (but for [`Frames::rewritable`]), its digest is
//! kept, and it never comes back unchecked.
//!
//! A digest binds a frame's bytes to its file, its epoch and its index, so a flipped bit, a torn write, a
//! frame in the wrong place and a frame of an earlier file are all the same error. Digests of a container,
//! and of elements that fill their bytes, are in memory: 32 bytes a frame, leased. All other frames carry
//! theirs with them ([`super::tag`]), and take no memory. Scratch files are sealed instead ([`super::seal`]),
//! unless their session says otherwise: encrypted, and authenticated where others have a digest. A set of
//! frames lives in a file or, when it is small, in one leased buffer; no caller can tell. What never leaves
//! memory is not hashed: behind the frames there, a bit for each says that it was written. It can be moved to
//! a file later ([`Frames::move_to_disk`]), by a task that needs the memory.

mod in_memory;
mod landing;
mod pending;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use spillproof_format::FrameKey;

use super::Workspace;
use super::foreign::elements::Elements;
use super::seal::{Refused, Seal};
use super::tag::{DIGEST_BYTES, TagPlaces};
use crate::Error;
use crate::Result;
use crate::accelerator::Accelerator;
use crate::budget::{Buffer, Lease, LeasedVec};
use crate::dry::DryRun;
use crate::error::Invalid;
use crate::storage::{File, Segment};
pub(super) use in_memory::Slice;
pub use in_memory::memory_bytes;
use in_memory::{InMemory, Place};
pub(crate) use landing::LandingFrames;
pub(crate) use pending::PendingFrames;
use pending::State;
use spillproof_kernels::parallel::Parallel;
/// Below this many bytes, hashing on one core is quicker than waking the others.
const PARALLEL_BYTES_MIN: usize = 256 * 1024;
/// Bytes that one core copies at a time.
const COPY_BYTES: usize = 64 * 1024;
/// What is transferred and hashed at a time in a caller's memory.
const PIECE_BYTES: usize = 1024 * 1024;

/// Where the digests of frames in a file are.
pub(super) enum Digests {
    /// In memory.
    Table(RwLock<LeasedVec<[u8; DIGEST_BYTES]>>),
    /// In the frames.
    Tags(TagPlaces),
    /// Frames are sealed.
    Seal(Seal),
    /// There are none: another program wrote the file. Frames are read only.
    Foreign(Elements),
}

impl Digests {
    /// Room for those of `frames` frames that are to be written.
    pub fn in_memory(workspace: &Workspace, frames: u64) -> Result<Self> {
        let budget = &workspace.budget;
        let table = budget.vec(frames as usize, [0; DIGEST_BYTES], "frame digests")?;
        Ok(Self::Table(RwLock::new(table)))
    }
}

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
        digests: Digests,
    },
    Memory(InMemory),
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

    /// Takes more room.
    pub fn grow_to(&mut self, bytes: u64) {
        let more_bytes = bytes.saturating_sub(self.bytes);
        self.dry_run.disk_taken(more_bytes);
        self.bytes += more_bytes;
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
    id: Identity,
    /// Whose threads hash and encrypt.
    workspace: Workspace,
    /// The thread that asks does all of it.
    is_serial: bool,
}

impl Frames {
    /// `frames` frames of `frame_bytes` of `file` from `base_offset` on.
    pub fn in_file(
        workspace: &Workspace,
        (file, base_offset): (File, u64),
        (frames, frame_bytes): (u64, usize),
        key: FrameKey,
        digests: Digests,
    ) -> Self {
        let name = file.name().to_string();
        let backing = Backing::File {
            file,
            base_offset,
            digests,
        };
        Self::new(workspace, backing, name, (frames, frame_bytes), key)
    }

    /// Frames over an array of another program's file, whose elements are checked when they are read.
    pub fn foreign(
        workspace: &Workspace,
        place: (File, u64),
        shape: (u64, usize),
        elements: Elements,
    ) -> Self {
        let key = FrameKey::new([0; 16], 0);
        Self::in_file(workspace, place, shape, key, Digests::Foreign(elements))
    }

    /// `frames` frames of `frame_bytes` of a new scratch file, sealed if the workspace has a key.
    pub fn scratch(
        workspace: &Workspace,
        what: &str,
        (frames, frame_bytes): (u64, usize),
        tags: Option<TagPlaces>,
    ) -> Result<Self> {
        let digests = match (workspace.sealing(), tags) {
            (Some(key), tags) => {
                let inside = tags.and_then(|places| places.beside_tail(frame_bytes));
                Digests::Seal(Seal::new(key, next_id(), frames, inside, &workspace.budget)?)
            }
            (None, Some(places)) => Digests::Tags(places),
            (None, None) => Digests::in_memory(workspace, frames)?,
        };
        let file = workspace.storage.scratch(what, frames * frame_bytes as u64)?;
        let key = FrameKey::new(rand::random(), rand::random());
        Ok(Self::in_file(
            workspace,
            (file, 0),
            (frames, frame_bytes),
            key,
            digests,
        ))
    }

    /// `frames` frames of `frame_bytes` of a new scratch file, which may be written more than once, and take
    /// room when they are. Their digests are in memory: a frame that carried its own would not tell from an
    /// earlier one. No other thread takes part: those of the pool may all wait for such a frame
    /// ([`super::addressed`]).
    pub fn rewritable(
        workspace: &Workspace,
        what: &str,
        (frames, frame_bytes): (u64, usize),
    ) -> Result<Self> {
        let digests = match workspace.sealing() {
            Some(key) => Digests::Seal(Seal::new(key, next_id(), frames, None, &workspace.budget)?),
            None => Digests::in_memory(workspace, frames)?,
        };
        let file = workspace.storage.scratch_closed_behind(what)?;
        let key = FrameKey::new(rand::random(), rand::random());
        let shape = (frames, frame_bytes);
        Ok(Self {
            is_serial: true,
            ..Self::in_file(workspace, (file, 0), shape, key, digests)
        })
    }

    /// `frames` frames of a dry run, which hold `held` of its budget.
    pub fn dry(
        workspace: &Workspace,
        file: Option<DryFile>,
        held: [Option<Lease>; 2],
        name: String,
        frames: (u64, usize),
    ) -> Self {
        let key = FrameKey::new([0; 16], 0);
        Self::new(workspace, Backing::Dry { file, _held: held }, name, frames, key)
    }

    fn new(
        workspace: &Workspace,
        backing: Backing,
        name: String,
        (frames, frame_bytes): (u64, usize),
        key: FrameKey,
    ) -> Self {
        Self {
            id: Identity {
                number: next_id(),
                accelerator: workspace.accelerator.clone(),
            },
            backing,
            key,
            frame_bytes,
            frames,
            name,
            workspace: workspace.clone(),
            is_serial: false,
        }
    }

    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u64 {
        self.id.number
    }

    /// The file and the offset of frame 0 in it, unless the frames are in memory, or were written there.
    pub fn file(&self) -> Option<(&File, u64)> {
        match &self.backing {
            Backing::File {
                file, base_offset, ..
            } => Some((file, *base_offset)),
            Backing::Memory(_) | Backing::Dry { .. } => None,
        }
    }

    /// Whether they would be in a file, or are.
    pub fn on_disk(&self) -> bool {
        match &self.backing {
            Backing::File { .. } => true,
            Backing::Memory(memory) => matches!(&*memory.read(), Place::Disk(_)),
            Backing::Dry { file, .. } => file.is_some(),
        }
    }

    /// Where a frame begins in its file.
    pub fn offset(&self, frame: u64) -> u64 {
        let base_offset = self.file().map_or(0, |(_, base_offset)| base_offset);
        let lead_bytes = match &self.backing {
            Backing::File {
                digests: Digests::Foreign(elements),
                ..
            } => elements.lead_bytes(),
            _ => 0,
        };
        (base_offset + frame * self.frame_bytes as u64).saturating_sub(lead_bytes)
    }

    fn damaged(&self, frame: u64) -> Error {
        Error::Damaged {
            file: self.name.clone(),
            frame,
            offset: self.offset(frame),
        }
    }

    /// Copies of the digests of frames `first ..` of a container, as many as `out` holds.
    pub fn copy_digests(&self, first: u64, out: &mut [[u8; DIGEST_BYTES]]) {
        if let Backing::File {
            digests: Digests::Table(digests),
            ..
        } = &self.backing
        {
            let digests = digests.read().unwrap_or_else(PoisonError::into_inner);
            out.copy_from_slice(&digests[first as usize..first as usize + out.len()]);
        }
    }

    /// Starts reading `runs` into `buffer`, one behind the other from its start; nothing is checked before
    /// [`PendingFrames::wait`].
    pub fn read(self: &Arc<Self>, mut buffer: Buffer, runs: Vec<Run>) -> PendingFrames {
        let state = match &self.backing {
            Backing::File {
                file,
                base_offset,
                digests: Digests::Foreign(elements),
            } => {
                let segment = |run: &Run| {
                    let frames = run.frame..run.frame + run.frames;
                    elements.segment(frames, run.buffer_offset, self.frame_bytes, *base_offset)
                };
                State::Flying(file.read(buffer, runs.iter().filter_map(segment).collect::<Vec<_>>()))
            }
            Backing::File {
                file, base_offset, ..
            } => State::Flying(file.read(buffer, self.segments(*base_offset, &runs))),
            Backing::Memory(memory) => {
                let place = memory.read();
                let memory = match &*place {
                    Place::Buffer(memory) => memory,
                    Place::Disk(frames) => return frames.read(buffer, runs),
                };
                let written =
                    (runs.iter()).try_for_each(|run| self.check_marks(memory, run.frame, run.frames));
                let copied = written.and_then(|()| {
                    self.copy(
                        runs.iter().map(|run| &memory[self.bytes_of(run)]),
                        parts_of(&mut buffer, runs.iter().map(|run| self.buffer_bytes_of(run))),
                    )
                });
                State::of(copied, buffer)
            }
            Backing::Dry { .. } => State::Dry,
        };
        PendingFrames {
            frames: Arc::clone(self),
            state,
            runs,
            check: self.on_disk(),
        }
    }

    /// Takes the digests of `runs`, which stand in `buffer` one behind the other from its start, and starts
    /// writing them. Where the frames `are_shared` with other writers, no other thread takes part while they
    /// are held.
    pub fn write(self: &Arc<Self>, mut buffer: Buffer, runs: Vec<Run>, are_shared: bool) -> PendingFrames {
        let state = match &self.backing {
            Backing::File {
                file, base_offset, ..
            } => match self.take_digests(&mut buffer, &runs) {
                Ok(()) => State::Flying(file.write(buffer, self.segments(*base_offset, &runs))),
                Err(error) => State::Failed(error),
            },
            Backing::Memory(memory) => {
                let mut place = memory.place.write().unwrap_or_else(PoisonError::into_inner);
                let memory = match &mut *place {
                    Place::Buffer(memory) => memory,
                    Place::Disk(frames) => return frames.write(buffer, runs, are_shared),
                };
                let mut ascending: Vec<&Run> = runs.iter().collect();
                ascending.sort_unstable_by_key(|run| run.frame);
                let from = ascending.iter().map(|run| &buffer[self.buffer_bytes_of(run)]);
                let to = parts_of(memory, ascending.iter().map(|run| self.bytes_of(run)));
                let copied = match are_shared {
                    true => {
                        from.zip(to).for_each(|(from, to)| to.copy_from_slice(from));
                        Ok(())
                    }
                    false => self.copy(from, to),
                };
                let marks = &mut memory[self.frames as usize * self.frame_bytes..];
                for frame in frames_of(&runs) {
                    marks[frame as usize / 8] |= 1 << (frame % 8);
                }
                State::of(copied, buffer)
            }
            Backing::Dry { .. } => State::Dry,
        };
        PendingFrames {
            frames: Arc::clone(self),
            state,
            runs,
            check: false,
        }
    }

    /// Takes the digests of frames `first ..` in `from`, and writes them from there; `false` where that cannot be:
    /// frames in memory, memory that transfers do not reach, and digests that go into the frames, which are not
    /// this function's to change. Then nothing is written.
    pub fn write_in_place(&self, first: u64, from: &[u8]) -> Result<bool> {
        let Backing::File {
            file,
            base_offset,
            digests: Digests::Table(digests),
        } = &self.backing
        else {
            return Ok(false);
        };
        let offset = base_offset + first * self.frame_bytes as u64;
        file.write_in_place(offset, from, self.piece_bytes(), |at, piece| {
            let runs = [self.run_at(first, at, piece)];
            self.note(digests, &runs, self.hash(piece, &runs)?);
            Ok(())
        })
    }

    /// Whole frames.
    pub fn piece_bytes(&self) -> usize {
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

    fn take_digests(&self, buffer: &mut [u8], runs: &[Run]) -> Result<()> {
        match &self.backing {
            Backing::File {
                digests: Digests::Table(digests),
                ..
            } => self.note(digests, runs, self.hash(buffer, runs)?),
            Backing::File {
                digests: Digests::Tags(places),
                ..
            } => {
                let tag = |(frame, bytes): (u64, &mut [u8])| {
                    let digest = self.key.digest(frame, bytes);
                    places.put(&digest, bytes)
                };
                if !self
                    .each_frame(buffer, runs, tag)?
                    .into_iter()
                    .all(|are_free| are_free)
                {
                    return Err(Invalid::UsedSpareBits {
                        column: self.name.clone(),
                    }
                    .into());
                }
            }
            Backing::File {
                digests: Digests::Seal(seal),
                ..
            } => {
                let cipher = seal.cipher()?;
                let close = |(frame, bytes): (u64, &mut [u8])| {
                    let closed = seal.close(&cipher, frame, bytes);
                    closed.map_err(|refused| match refused {
                        Refused::WrittenBefore => Invalid::WrittenBefore {
                            column: self.name.clone(),
                            frame,
                        },
                        Refused::UsedSpareBits => Invalid::UsedSpareBits {
                            column: self.name.clone(),
                        },
                    })
                };
                let closed = self.each_frame(buffer, runs, close)?;
                closed.into_iter().collect::<Result<(), _>>()?;
            }
            Backing::Memory(_) | Backing::Dry { .. } => {}
            Backing::File {
                digests: Digests::Foreign(_),
                ..
            } => debug_assert!(false, "{} is written", self.name),
        }
        Ok(())
    }

    /// Enters the digests of `runs`.
    fn note(
        &self,
        table: &RwLock<LeasedVec<[u8; DIGEST_BYTES]>>,
        runs: &[Run],
        taken: Vec<[u8; DIGEST_BYTES]>,
    ) {
        let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
        for (frame, digest) in frames_of(runs).zip(taken) {
            table[frame as usize] = digest;
        }
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

    /// The digests of `runs`, in their order.
    fn hash(&self, buffer: &[u8], runs: &[Run]) -> Result<Vec<[u8; DIGEST_BYTES]>> {
        let each: Vec<(u64, &[u8])> = frames_of(runs)
            .zip(buffer.chunks_exact(self.frame_bytes))
            .collect();
        let digest = |(frame, bytes): (u64, &[u8])| self.key.digest(frame, bytes);
        self.spread(each, digest)
    }

    /// What `work` makes of each frame of `runs`, which stand in `buffer` one behind the other from its
    /// start.
    fn each_frame<R: Send>(
        &self,
        buffer: &mut [u8],
        runs: &[Run],
        work: impl Fn((u64, &mut [u8])) -> R + Sync + Send,
    ) -> Result<Vec<R>> {
        debug_assert!(runs.windows(2).all(|two| two[0].buffer_offset
            + two[0].frames as usize * self.frame_bytes
            == two[1].buffer_offset));
        let bytes = buffer.chunks_exact_mut(self.frame_bytes);
        self.spread(frames_of(runs).zip(bytes).collect(), work)
    }

    /// Works on frames, on all cores if it is much.
    fn spread<J: Send, R: Send>(
        &self,
        frames: Vec<J>,
        work: impl Fn(J) -> R + Sync + Send,
    ) -> Result<Vec<R>> {
        if self.is_serial || frames.len() * self.frame_bytes < PARALLEL_BYTES_MIN {
            return Ok(frames.into_iter().map(work).collect());
        }
        self.workspace
            .spread(|| frames.into_iter().parallel().in_runs_of(4).map(work))
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
        (self.workspace).spread(|| {
            pieces
                .into_iter()
                .parallel()
                .in_runs_of(pieces_min)
                .for_each(copy)
        })
    }

    /// Checks frames of a file, and clears their tags.
    fn check(&self, buffer: &mut [u8], runs: &[Run]) -> Result<()> {
        let Backing::File { digests, .. } = &self.backing else {
            return Ok(());
        };
        let good: Vec<bool> = match digests {
            Digests::Table(table) => {
                let found = self.hash(buffer, runs)?;
                let table = table.read().unwrap_or_else(PoisonError::into_inner);
                let frames = frames_of(runs).zip(found);
                frames
                    .map(|(frame, digest)| table[frame as usize] == digest)
                    .collect()
            }
            Digests::Tags(places) => self.each_frame(buffer, runs, |(frame, bytes)| {
                let tag = places.take(bytes);
                places.fits(&tag, &self.key.digest(frame, bytes))
            })?,
            Digests::Seal(seal) => {
                let cipher = seal.cipher()?;
                self.each_frame(buffer, runs, |(frame, bytes)| seal.open(&cipher, frame, bytes))?
            }
            Digests::Foreign(elements) => {
                let checked = self.each_frame(buffer, runs, |(frame, bytes)| elements.check(frame, bytes))?;
                let refused = checked.into_iter().find_map(Result::err);
                return refused.map_or(Ok(()), |source| {
                    Err(Error::Format {
                        file: self.name.clone().into(),
                        source,
                    })
                });
            }
        };
        match frames_of(runs).zip(good).find(|(_, good)| !good) {
            None => Ok(()),
            Some((frame, _)) => Err(self.damaged(frame)),
        }
    }
}

/// The number of frames, which no other frames of this process have, before or after.
struct Identity {
    number: u64,
    /// May have kept elements under the number.
    accelerator: Option<Arc<dyn Accelerator>>,
}

impl Drop for Identity {
    fn drop(&mut self) {
        if let Some(accelerator) = &self.accelerator {
            accelerator.forget(self.number);
        }
    }
}

/// A number that no frames of this process have, before or after.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The parts of `bytes` that ascending `ranges` name.
fn parts_of(mut bytes: &mut [u8], ranges: impl Iterator<Item = Range<usize>>) -> Vec<&mut [u8]> {
    let mut done = 0;
    let part = |range: Range<usize>| {
        let (part, rest) = std::mem::take(&mut bytes)[range.start - done..].split_at_mut(range.len());
        (bytes, done) = (rest, range.end);
        part
    };
    ranges.map(part).collect()
}

/// The numbers of the frames of `runs`.
fn frames_of(runs: &[Run]) -> impl Iterator<Item = u64> + '_ {
    runs.iter().flat_map(|run| run.frame..run.frame + run.frames)
}
