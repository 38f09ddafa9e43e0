//! One transfer: a buffer, a file, many segments, and what becomes of them. Shared by all backends.
//!
//! A [`Batch`] is born with its buffer inside. A backend makes a [`Transfer`] of each segment, asks it for
//! the next [`Attempt`], does that, and reports what the kernel said, until the transfer is done; the last
//! one done finishes the batch and wakes the waiter. Each `Transfer` keeps its batch alive, and the batch its
//! buffer: so a backend that keeps the `Transfer` until the kernel is done keeps the memory too.
//!
//! [`write_pieces`] writes a caller's memory instead of a buffer. It does not return, and does not unwind, before
//! the kernel is done with all of it. What is read into a caller's memory is read into a buffer of
//! [`Lent`](crate::budget::Lent) memory.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::ftruncate;
use rustix::io::Errno;

use super::handle::{Handle, Segment};
use super::{Counters, Fault};
use crate::budget::{Budget, Buffer, PAGE_BYTES};
use crate::error::{Error, Invalid, Result};

/// The kernel says "try again" for want of resources; past this many times in a row it is an error.
const AGAIN_ATTEMPTS_MAX: u32 = 10_000;
/// The kernel transfers less than 2 GiB in one call.
const ATTEMPT_BYTES_MAX: usize = 1 << 30;
/// Pieces of a caller's memory that are under way at one time.
const PIECES_MAX: usize = 32;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A transfer of many segments between one file and one buffer.
pub(super) struct Batch {
    pub(super) direction: Direction,
    pub(super) handle: Arc<Handle>,
    segments: Vec<Segment>,
    /// One for each segment, or none at all.
    faults: Vec<Option<Fault>>,
    counters: Arc<Counters>,
    /// Start of the buffer in `outcome`, or of a caller's memory.
    start: *mut u8,
    in_place: bool,
    unfinished: AtomicUsize,
    failed: AtomicBool,
    outcome: Mutex<Outcome>,
    finished: Condvar,
}

// SAFETY: `start` points into the buffer that the batch owns, or into memory that `UnderWay` keeps borrowed.
// Only the kernel, through attempts on segments, which share no byte if they are read, and `Transfer` when
// the kernel is not at that segment, touch it until `unfinished` is zero; then the buffer is handed out under
// the mutex.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

struct Outcome {
    buffer: Option<Buffer>,
    error: Option<Error>,
    finished: bool,
}

impl Batch {
    /// `segments` have been checked against buffer and alignment.
    pub(super) fn new(
        direction: Direction,
        handle: Arc<Handle>,
        buffer: Buffer,
        segments: Vec<Segment>,
        faults: Vec<Option<Fault>>,
        counters: Arc<Counters>,
    ) -> Self {
        debug_assert!(faults.is_empty() || faults.len() == segments.len());
        debug_assert!(
            segments
                .iter()
                .all(|s| s.bytes > 0 && s.buffer_offset + s.bytes <= buffer.len())
        );
        Self {
            direction,
            handle,
            faults,
            counters,
            start: buffer.start(),
            in_place: buffer.is_lent(),
            unfinished: AtomicUsize::new(segments.len()),
            failed: AtomicBool::new(false),
            outcome: Mutex::new(Outcome {
                buffer: Some(buffer),
                error: None,
                finished: segments.is_empty(),
            }),
            segments,
            finished: Condvar::new(),
        }
    }

    /// One segment of a caller's memory, to be written to the file.
    ///
    /// # Safety
    /// `memory` is valid for `segment.bytes` bytes, and no other code writes there, until the batch is finished.
    unsafe fn in_place(order: &Order<'_>, memory: *mut u8, segment: Segment) -> Self {
        Self {
            direction: Direction::Write,
            handle: order.handle.clone(),
            faults: order.fault.map(Some).into_iter().collect(),
            counters: order.counters.clone(),
            start: memory,
            in_place: true,
            unfinished: AtomicUsize::new(1),
            failed: AtomicBool::new(false),
            outcome: Mutex::new(Outcome {
                buffer: None,
                error: None,
                finished: false,
            }),
            segments: vec![segment],
            finished: Condvar::new(),
        }
    }

    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// How many segments are not done.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished.load(Relaxed)
    }

    /// The transfer of segment `index`; each may be made once.
    pub(super) fn transfer(self: &Arc<Self>, index: usize) -> Transfer {
        let segment = self.segments[index];
        let fault = self.faults.get(index).copied().flatten();
        let mut transfer = Transfer {
            batch: self.clone(),
            segment,
            done_bytes: 0,
            again_attempts: 0,
            fault,
            file_offset: segment.file_offset,
        };
        transfer.before();
        transfer
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of it, once the kernel is done; blocks until then.
    fn finished_outcome(&self) -> MutexGuard<'_, Outcome> {
        let mut outcome = self.outcome();
        if outcome.finished {
            return outcome;
        }
        let since = Instant::now();
        while !outcome.finished {
            outcome = self
                .finished
                .wait(outcome)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match self.direction {
            Direction::Read => &self.counters.read_wait_nanos,
            Direction::Write => &self.counters.write_wait_nanos,
        }
        .fetch_add(nanos, Relaxed);
        outcome
    }

    /// A segment is done; the first error of a batch is the one that is told.
    fn segment_done(&self, error: Option<Error>) {
        if let Some(error) = error {
            self.failed.store(true, Relaxed);
            self.outcome().error.get_or_insert(error);
        }
        if self.unfinished.fetch_sub(1, AcqRel) == 1 {
            let mut outcome = self.outcome();
            outcome.finished = true;
            drop(outcome);
            self.finished.notify_all();
        }
    }
}

/// What to do next for a segment.
pub(super) struct Attempt {
    pub(super) file_offset: u64,
    /// Valid for `bytes` bytes as long as the transfer lives.
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
}

/// Ends the process when a thread that makes transfers panics: unwinding would free buffers that the kernel
/// has, and callers would wait for ever.
pub(super) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is more to do: ask for the next attempt.
    Again,
    /// This segment is finished, well or not; the batch knows.
    Done,
}

/// A segment on its way.
pub(super) struct Transfer {
    batch: Arc<Batch>,
    segment: Segment,
    done_bytes: usize,
    again_attempts: u32,
    fault: Option<Fault>,
    /// The segment's offset, unless a fault sends it elsewhere.
    file_offset: u64,
}

impl Transfer {
    pub(super) fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// The next attempt; `None` if there is none: the batch has failed already and the segment is given up,
    /// or a fault loses the transfer.
    pub(super) fn next(&mut self) -> Option<Attempt> {
        if self.done_bytes == 0 && self.batch.failed.load(Relaxed) {
            self.after();
            self.batch.segment_done(None);
            return None;
        }
        if self.fault == Some(Fault::Lost) {
            self.succeed();
            return None;
        }
        let mut bytes = (self.segment.bytes - self.done_bytes).min(ATTEMPT_BYTES_MAX);
        match self.fault {
            Some(Fault::Short(most_bytes)) => bytes = bytes.min(self.aligned(most_bytes)),
            Some(Fault::Torn) => bytes = bytes.min(self.aligned(self.segment.bytes / 2)),
            _ => {}
        }
        Some(Attempt {
            file_offset: self.file_offset + self.done_bytes as u64,
            start: self.buffer_at(self.done_bytes),
            bytes,
        })
    }

    /// The segment fails, and was never handed to the kernel.
    pub(super) fn refuse(mut self, errno: Errno) {
        self.fail(errno.into());
    }

    /// The segment fails, and the kernel may go on with it at any time: its buffer is never freed. A caller's
    /// own memory cannot be kept from the caller, so for that the process says why and ends.
    #[allow(clippy::print_stderr)]
    pub(super) fn abandon(mut self, errno: Errno) {
        match self.batch.outcome().buffer.take() {
            Some(buffer) => std::mem::forget(buffer),
            // Another segment of the batch had it.
            None if !self.batch.in_place => {}
            None => {
                eprintln!(
                    "spillproof: the kernel stopped a transfer of {} ({errno}), and may still use the memory that was lent for it. The \
                     process aborts, since that memory cannot be taken back.",
                    self.batch.handle.name()
                );
                std::process::abort();
            }
        }
        self.fail(errno.into());
    }

    /// Takes what the kernel said of the last attempt.
    pub(super) fn report(&mut self, mut result: Result<usize, Errno>) -> Step {
        match self.fault {
            Some(Fault::Io) => result = Err(Errno::IO),
            Some(Fault::NoSpace) => result = Err(Errno::NOSPC),
            Some(Fault::Unsupported) => result = Err(Errno::OPNOTSUPP),
            Some(Fault::BadAddress) if self.batch.in_place => result = Err(Errno::FAULT),
            Some(Fault::Interrupted) => {
                self.fault = None;
                result = Err(Errno::INTR);
            }
            Some(Fault::Truncate) if self.batch.direction == Direction::Read => result = Ok(0),
            Some(Fault::Torn) if result.is_ok() => result = Ok(self.segment.bytes),
            Some(Fault::Overstated) => result = result.map(|_| self.segment.bytes + PAGE_BYTES),
            _ => {}
        }
        match result {
            Err(Errno::INTR) => Step::Again,
            Err(Errno::AGAIN) if self.again_attempts < AGAIN_ATTEMPTS_MAX => {
                self.again_attempts += 1;
                std::thread::yield_now();
                Step::Again
            }
            Err(errno) => self.fail(errno.into()),
            Ok(0) => self.fail(match self.batch.direction {
                Direction::Read => {
                    std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file ends here")
                }
                Direction::Write => std::io::Error::new(std::io::ErrorKind::WriteZero, "nothing was written"),
            }),
            // A filter of system calls, or a file system in user space, may answer anything.
            Ok(bytes) if bytes > self.segment.bytes - self.done_bytes => self.fail(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!("the system says that {bytes} bytes were transferred"),
            )),
            Ok(bytes) => {
                self.again_attempts = 0;
                self.done_bytes += bytes;
                let rest_bytes = self.segment.bytes - self.done_bytes;
                if rest_bytes == 0 {
                    self.succeed()
                } else if self.batch.handle.is_direct() && !bytes.is_multiple_of(PAGE_BYTES) {
                    // Direct transfers stop off the grid only at the end of the file.
                    self.fail(std::io::Error::new(
                        std::io::ErrorKind::UnexpectedEof,
                        "the file ends inside",
                    ))
                } else {
                    Step::Again
                }
            }
        }
    }

    fn succeed(&mut self) -> Step {
        self.after();
        let (bytes, counters) = (self.segment.bytes as u64, &self.batch.counters);
        let handle = &self.batch.handle;
        let mut error = None;
        if self.batch.in_place {
            let in_place = match self.batch.direction {
                Direction::Read => &counters.bytes_read_in_place,
                Direction::Write => &counters.bytes_written_in_place,
            };
            in_place.fetch_add(bytes, Relaxed);
        }
        match self.batch.direction {
            Direction::Read => {
                counters.reads.fetch_add(1, Relaxed);
                counters.bytes_read.fetch_add(bytes, Relaxed);
                handle
                    .cache
                    .after_read(handle.fd(), self.segment.file_offset, bytes);
            }
            Direction::Write => {
                counters.writes.fetch_add(1, Relaxed);
                counters.bytes_written.fetch_add(bytes, Relaxed);
                handle.grown_to(self.segment.file_offset + bytes);
                if let Err(errno) = handle.cache.after_write(handle.fd(), bytes) {
                    error = Some(self.error("write-out", errno.into()));
                }
                if self.fault == Some(Fault::Truncate)
                    && ftruncate(handle.fd(), self.segment.file_offset).is_err()
                {
                    tracing::warn!("the truncate fault could not truncate");
                }
            }
        }
        self.batch.segment_done(error);
        Step::Done
    }

    fn fail(&mut self, source: std::io::Error) -> Step {
        self.after();
        self.batch
            .segment_done(Some(self.error(self.batch.direction.name(), source)));
        Step::Done
    }

    fn error(&self, operation: &'static str, source: std::io::Error) -> Error {
        Error::Io {
            operation,
            file: self.batch.handle.name().to_owned(),
            offset: self.segment.file_offset + self.done_bytes as u64,
            bytes: (self.segment.bytes - self.done_bytes) as u64,
            source,
        }
    }

    fn buffer_at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.segment.bytes);
        // SAFETY: the segment was checked against the buffer, and `offset` is inside the segment.
        unsafe { self.batch.start.add(self.segment.buffer_offset + offset) }
    }

    /// A fault's number of bytes, at least one unit and whole units where the file asks for it.
    fn aligned(&self, bytes: usize) -> usize {
        let unit_bytes = if self.batch.handle.is_direct() {
            PAGE_BYTES
        } else {
            1
        };
        (bytes / unit_bytes * unit_bytes).max(unit_bytes)
    }

    /// Faults that must be there before the first attempt.
    fn before(&mut self) {
        if let Some(Fault::SwapFrames(frame_bytes)) = self.fault
            && frame_bytes * 2 > self.segment.bytes
        {
            self.file_offset ^= frame_bytes as u64;
        }
        if self.batch.direction == Direction::Write {
            self.disturb();
        }
    }

    /// Faults that must be there after the last attempt; what was changed for a write is changed back.
    fn after(&mut self) {
        self.disturb();
    }

    /// Changes the bytes of the segment; twice is as they were.
    fn disturb(&mut self) {
        match self.fault {
            Some(Fault::FlipByte(at)) => {
                let byte = self.buffer_at(at % self.segment.bytes);
                // SAFETY: inside the segment, and the kernel is not at it: before the first attempt, or after
                // the last.
                unsafe { *byte ^= 0x10 };
            }
            Some(Fault::SwapFrames(frame_bytes))
                if frame_bytes > 0 && frame_bytes * 2 <= self.segment.bytes =>
            {
                // SAFETY: both frames are inside the segment, they do not overlap, and the kernel is not at
                // them.
                unsafe {
                    std::ptr::swap_nonoverlapping(
                        self.buffer_at(0),
                        self.buffer_at(frame_bytes),
                        frame_bytes,
                    );
                }
            }
            _ => {}
        }
    }
}

/// A transfer that was begun. [`Pending::wait`] gives the buffer back; dropped without it, the transfer still
/// runs to its end, and the buffer is freed (or returns to its pool) after that.
#[must_use = "the transfer may still be running: wait for it to know how it ended"]
pub struct Pending {
    state: State,
}

/// A transfer that failed, and its buffer if it was begun.
pub(crate) struct Failed {
    pub error: Error,
    pub buffer: Option<Buffer>,
}

enum State {
    Begun(Arc<Batch>),
    Refused(Error),
}

impl Pending {
    pub(super) fn begun(batch: Arc<Batch>) -> Self {
        Self {
            state: State::Begun(batch),
        }
    }

    pub(super) fn refused(error: Error) -> Self {
        Self {
            state: State::Refused(error),
        }
    }

    /// Whether [`Pending::wait`] would not block.
    pub fn is_finished(&self) -> bool {
        match &self.state {
            State::Begun(batch) => batch.outcome().finished,
            State::Refused(_) => true,
        }
    }

    /// Blocks until every segment is done, and gives the buffer back. On an error all segments are at rest
    /// too; the buffer is then dropped, and what it or the file hold of the failed transfer is undefined.
    ///
    /// # Errors
    /// [`Error::Io`] with the first segment that failed; [`Error::Invalid`] for segments that do not fit
    /// buffer or file.
    pub fn wait(self) -> Result<Buffer> {
        self.wait_with_buffer().map_err(|failed| failed.error)
    }

    /// The same, with the buffer of a transfer that failed after it was begun.
    pub(crate) fn wait_with_buffer(self) -> std::result::Result<Buffer, Box<Failed>> {
        let failed = |error, buffer| Err(Box::new(Failed { error, buffer }));
        let batch = match self.state {
            State::Begun(batch) => batch,
            State::Refused(error) => return failed(error, None),
        };
        let mut outcome = batch.finished_outcome();
        let buffer = outcome.buffer.take();
        match (outcome.error.take(), buffer) {
            (None, Some(buffer)) => Ok(buffer),
            (Some(error), buffer) => failed(error, buffer),
            (None, None) => failed(Invalid::BufferTaken.into(), None),
        }
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// What a transfer of a caller's memory is carried out with.
pub(super) struct Order<'a> {
    pub handle: &'a Arc<Handle>,
    pub counters: &'a Arc<Counters>,
    pub fault: Option<Fault>,
    /// Hands a batch to a backend; after an error the backend has not seen it.
    pub submit: &'a dyn Fn(Arc<Batch>) -> Result<()>,
}

/// Pieces of a caller's memory that are under way; dropped, it waits for all of them.
#[derive(Default)]
struct UnderWay {
    /// Offset in the memory, and its batch.
    pieces: VecDeque<(usize, Arc<Batch>)>,
}

impl UnderWay {
    /// Waits for the oldest piece; its offset and length.
    fn next(&mut self) -> Result<Option<(usize, usize)>> {
        let Some((offset, batch)) = self.pieces.front() else {
            return Ok(None);
        };
        let (offset, bytes) = (*offset, batch.segments.first().map_or(0, |segment| segment.bytes));
        let error = batch.finished_outcome().error.take();
        self.pieces.pop_front();
        error.map_or(Ok(Some((offset, bytes))), Err)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.pieces
            .iter()
            .for_each(|(_, batch)| drop(batch.finished_outcome()));
    }
}

/// Where pieces of so many bytes begin in memory of `total_bytes`, and their length.
fn pieces(total_bytes: usize, piece_bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = (0..total_bytes).step_by(piece_bytes.max(1));
    starts.map(move |start| (start, piece_bytes.min(total_bytes - start)))
}

/// Writes `from` to `file_offset`, straight from where it is; `each` gets the offset and the bytes of every
/// piece before it is sent, in order.
pub(super) fn write_pieces<'a>(
    mut order: impl FnMut() -> Order<'a>,
    file_offset: u64,
    from: &[u8],
    piece_bytes: usize,
    mut each: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut under_way = UnderWay::default();
    for (offset, bytes) in pieces(from.len(), piece_bytes) {
        let piece = &from[offset..offset + bytes];
        each(offset, piece)?;
        if under_way.pieces.len() == PIECES_MAX {
            under_way.next()?;
        }
        let (order, segment) = (order(), Segment::new(file_offset + offset as u64, 0, bytes));
        let batch = match order.fault {
            // For tests: these change bytes on their way, which are not ours to change.
            Some(fault @ (Fault::FlipByte(_) | Fault::SwapFrames(_))) => {
                let mut copy = Budget::unlimited().buffer(bytes, "a fault")?;
                copy[..bytes].copy_from_slice(piece);
                let (handle, counters) = (order.handle.clone(), order.counters.clone());
                let faults = vec![Some(fault)];
                Batch::new(Direction::Write, handle, copy, vec![segment], faults, counters)
            }
            // SAFETY: inside `from`, which is borrowed and only read; `under_way` waits for the batch before
            // the function ends in any way, and a batch that was refused is never seen.
            _ => unsafe { Batch::in_place(&order, piece.as_ptr().cast_mut(), segment) },
        };
        let batch = Arc::new(batch);
        (order.submit)(batch.clone())?;
        under_way.pieces.push_back((offset, batch));
    }
    while under_way.next()?.is_some() {}
    Ok(())
}
