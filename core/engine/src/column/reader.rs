//! Columns and reading them: any list of regions, in order, with read-ahead.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use super::frames::{Frames, PendingFrames, Run};
use super::{Element, Region, Workspace, ascending, descending};
use crate::Result;
use crate::accelerator::ColumnId;
use crate::budget::{Buffer, PAGE_BYTES};
use crate::error::Invalid;
use spillproof_kernels::parallel::Parallel;

/// Refuses elements that have not the same bytes.
pub(super) fn check_cast<E: Element, T: Element>(what: &'static str) -> Result<()> {
    if T::BYTES == E::BYTES {
        return Ok(());
    }
    Err(Invalid::ElementBytes {
        what: what.into(),
        given: E::BYTES,
        expected: T::BYTES,
    }
    .into())
}

/// Elements that one core encodes or decodes at a time.
pub(super) const JOB_ELEMENTS: usize = 8192;

/// A read-only sequence of `len` elements in checked frames. Cloning shares it; the last clone frees its
/// space.
pub struct Column<E> {
    pub(super) frames: Arc<Frames>,
    pub(super) first_frame: u64,
    pub(super) len: u64,
    pub(super) workspace: Workspace,
    pub(super) element: PhantomData<fn() -> E>,
}

impl<E> Clone for Column<E> {
    fn clone(&self) -> Self {
        Self {
            frames: Arc::clone(&self.frames),
            first_frame: self.first_frame,
            len: self.len,
            workspace: self.workspace.clone(),
            element: PhantomData,
        }
    }
}

impl<E> std::fmt::Debug for Column<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column")
            .field("name", &self.frames.name())
            .field("len", &self.len)
            .finish()
    }
}

impl<T> Column<T> {
    /// Equal for columns that are [the same](Self::is_same), as long as they live.
    pub(crate) fn identity(&self) -> (usize, u64, u64) {
        (Arc::as_ptr(&self.frames).addr(), self.first_frame, self.len)
    }
}

impl<E: Element> Column<E> {
    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Elements in a frame.
    pub fn frame_elements(&self) -> u64 {
        (self.frames.frame_bytes() / E::BYTES) as u64
    }

    /// Where its buffers are charged.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The same column, whose readers belong to the task that this thread is inside of
    /// ([`Workspace::of_task`]).
    #[must_use]
    pub fn in_task(&self) -> Self {
        let workspace = self.workspace.of_task();
        Self {
            workspace,
            ..self.clone()
        }
    }

    /// What it is called in errors: a path, or what a nameless file holds.
    pub fn name(&self) -> &str {
        self.frames.name()
    }

    /// Where element `index` begins in the column's file, in bytes.
    pub fn file_offset(&self, index: u64) -> u64 {
        let (frame, at) = (index / self.frame_elements(), index % self.frame_elements());
        self.frames.offset(self.first_frame + frame) + at * E::BYTES as u64
    }

    /// Whether both are the same elements of the same file or buffer (not: whether they are equal). Clones
    /// are.
    pub fn is_same<T>(&self, other: &Column<T>) -> bool {
        self.identity() == other.identity()
    }

    /// Where its elements begin: columns with an equal one have the same elements, as far as both go, and no
    /// other column of this process has it, before or after.
    pub(crate) fn column_id(&self) -> ColumnId {
        ColumnId {
            frames: self.frames.id(),
            first_frame: self.first_frame,
        }
    }

    /// Bytes that a reader of chunks of `chunk` elements (a power of two) moves at a time.
    pub fn transfer_bytes(&self, chunk: u64) -> u64 {
        (chunk * E::BYTES as u64).max(self.frames.frame_bytes() as u64)
    }

    /// What a reader of chunks of `chunk` elements leases that keeps `depth` of them on the way.
    pub fn reader_bytes(&self, chunk: u64, depth: u64) -> u64 {
        let chunks = self.len.div_ceil(chunk.max(1));
        let buffer = self.bytes_of(chunk.min(self.len)).max(PAGE_BYTES as u64);
        depth.min(chunks) * buffer.next_multiple_of(PAGE_BYTES as u64)
    }

    /// Bytes of the frames of `len` elements from a frame's start on.
    fn bytes_of(&self, len: u64) -> u64 {
        len.div_ceil(self.frame_elements()) * self.frames.frame_bytes() as u64
    }

    /// Bytes of the frames that cover `region`.
    pub fn region_bytes(&self, region: Region) -> u64 {
        let frames: u64 = self.layout(region).0.iter().map(|run| run.frames).sum();
        frames * self.frames.frame_bytes() as u64
    }

    /// For a stage's dry run: all elements are read once.
    pub fn count_read(&self) {
        self.count_read_bytes(self.bytes_of(self.len));
    }

    /// For a stage's dry run: so many bytes of frames are read.
    pub fn count_read_bytes(&self, bytes: u64) {
        if let Some(dry_run) = self.workspace.dry_run().filter(|_| self.frames.on_disk()) {
            dry_run.moved(bytes, 0);
        }
    }

    /// Whether its elements are in a file, or would be.
    pub fn on_disk(&self) -> bool {
        self.frames.on_disk()
    }

    /// The first `len` elements as a column of their own (the SRS of a smaller circuit); shares the frames.
    ///
    /// # Errors
    /// [`Invalid::Region`] if the column is shorter.
    pub fn prefix(&self, len: u64) -> Result<Self> {
        Region::Span { start: 0, len }.check(self.len)?;
        Ok(Self { len, ..self.clone() })
    }

    /// `len` elements from `start`, which is the start of a frame, as a column of their own; shares the
    /// frames.
    ///
    /// # Errors
    /// [`Invalid::Region`] if the column is shorter, [`Invalid::InsideFrame`] if `start` is inside a frame.
    pub fn part(&self, start: u64, len: u64) -> Result<Self> {
        Region::Span { start, len }.check(self.len)?;
        let frame_elements = self.frame_elements();
        if !start.is_multiple_of(frame_elements) {
            return Err(Invalid::InsideFrame {
                what: "part of a column",
                element: start,
                frame_elements,
            }
            .into());
        }
        let first_frame = self.first_frame + start / frame_elements;
        Ok(Self {
            first_frame,
            len,
            ..self.clone()
        })
    }

    /// The same bytes as elements of another type of the same size: arkworks' and halo2curves' forms are one.
    ///
    /// # Errors
    /// [`Invalid::ElementBytes`] if the sizes differ.
    pub fn cast<T: Element>(&self) -> Result<Column<T>> {
        check_cast::<E, T>("cast of a column")?;
        Ok(Column {
            frames: Arc::clone(&self.frames),
            first_frame: self.first_frame,
            len: self.len,
            workspace: self.workspace.clone(),
            element: PhantomData,
        })
    }

    /// Reads `region` into the start of `out`. One buffer of the region's frames is leased meanwhile.
    ///
    /// # Errors
    /// [`Invalid::Region`], [`Invalid::TooShort`] for an `out` that is too short,
    /// [`crate::Error::OverBudget`], [`crate::Error::Io`], [`crate::Error::Damaged`].
    pub fn read(&self, region: Region, out: &mut [E]) -> Result<()> {
        let mut reader = self.reader(std::iter::once(region), 1)?;
        reader.next_into(out)?;
        Ok(())
    }

    /// A reader of `regions`, in order, that keeps `depth` of them on the way. `depth` buffers are leased.
    ///
    /// # Errors
    /// [`Invalid::Region`] for a region outside the column, [`crate::Error::OverBudget`].
    pub fn reader<I>(&self, regions: I, depth: usize) -> Result<Reader<E>>
    where
        I: Iterator<Item = Region> + Clone + Send + 'static,
    {
        Reader::in_turn(vec![self.clone()], regions.map(|region| (0, region)), depth)
    }

    /// A reader of the whole column upwards, in chunks of `chunk` elements.
    ///
    /// # Errors
    /// As [`Self::reader`].
    pub fn read_ascending(&self, chunk: u64) -> Result<Reader<E>> {
        self.reader(ascending(self.len, chunk), 2)
    }

    /// A reader of the whole column downwards: the same chunks, the last one first, each in its own upward
    /// order.
    ///
    /// # Errors
    /// As [`Self::reader`].
    pub fn read_descending(&self, chunk: u64) -> Result<Reader<E>> {
        self.reader(descending(self.len, chunk), 2)
    }

    /// Elements in a chunk that suits the disk and the budget, in whole frames: at most a mebibyte.
    pub fn sequential_chunk(&self) -> u64 {
        (self.workspace.sequential_bytes(self.frames.frame_bytes()) / E::BYTES) as u64
    }

    /// Copies the bytes of elements `first ..` of a column in memory, as many as `into` holds; `false` for a column
    /// in a file.
    pub(crate) fn copy_out(&self, first: u64, into: &mut [u8]) -> Result<bool> {
        let len = (into.len() / E::BYTES) as u64;
        Region::Span { start: first, len }.check(self.len)?;
        let start = self.first_frame * self.frames.frame_bytes() as u64 + first * E::BYTES as u64;
        self.frames.copy_out(start, into)
    }

    /// All of it, in the caller's memory; for small columns and tests.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn to_vec(&self) -> Result<Vec<E>> {
        let zero = E::decode(&vec![0; E::BYTES]);
        let mut out = vec![zero; self.len as usize];
        let chunk = self.sequential_chunk();
        let mut reader = self.read_ascending(chunk)?;
        for part in out.chunks_mut(chunk as usize) {
            reader.next_into(part)?;
        }
        Ok(out)
    }

    /// The frames that cover `region`, and where in the buffer each piece starts (byte offset, elements).
    fn layout(&self, region: Region) -> (Vec<Run>, Vec<(usize, usize)>) {
        let (frame_elements, frame_bytes) = (self.frame_elements(), self.frames.frame_bytes());
        let mut runs: Vec<Run> = Vec::new();
        let mut pieces = Vec::new();
        let mut buffered_frames = 0u64;
        for piece in region.pieces() {
            let first = self.first_frame + piece.start / frame_elements;
            let last = self.first_frame + (piece.start + piece.len - 1) / frame_elements;
            let within = (piece.start % frame_elements) as usize * E::BYTES;
            // Pieces of one frame share it; neighbouring frames are one run.
            let shared = runs.last().is_some_and(|run| run.frame + run.frames == first + 1);
            let buffer_frame = if shared {
                buffered_frames - 1
            } else {
                buffered_frames
            };
            pieces.push((buffer_frame as usize * frame_bytes + within, piece.len as usize));
            let (next, more) = if shared {
                (first + 1, last - first)
            } else {
                (first, last - first + 1)
            };
            if more == 0 {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.frame + run.frames == next => run.frames += more,
                _ => runs.push(Run {
                    frame: next,
                    frames: more,
                    buffer_offset: buffered_frames as usize * frame_bytes,
                }),
            }
            buffered_frames += more;
        }
        (runs, pieces)
    }
}

/// Runs through a list of regions of one column or several; the next ones are on their way while the caller works.
pub struct Reader<E> {
    columns: Vec<Column<E>>,
    /// Regions, and the indices of their columns.
    regions: Box<dyn Iterator<Item = (usize, Region)> + Send>,
    flying: VecDeque<Flight>,
}

struct Flight {
    column: usize,
    region: Region,
    pieces: Vec<(usize, usize)>,
    pending: PendingFrames,
}

impl<E: Element> Reader<E> {
    /// A reader of regions of several columns of one workspace, each with its column's index, in their order.
    /// `depth` of them are on the way, in as many buffers, which are leased.
    ///
    /// # Errors
    /// As [`Column::reader`], also for a column that there is not.
    pub fn in_turn<I>(columns: Vec<Column<E>>, regions: I, depth: usize) -> Result<Self>
    where
        I: Iterator<Item = (usize, Region)> + Clone + Send + 'static,
    {
        let depth = depth.max(1);
        // An empty region still needs a buffer to be a transfer.
        let (mut bytes, mut count) = (PAGE_BYTES as u64, 0usize);
        for (column, region) in regions.clone() {
            let Some(column) = columns.get(column) else {
                return Err(region
                    .check(0)
                    .err()
                    .unwrap_or_else(|| Invalid::BufferTaken.into()));
            };
            region.check(column.len)?;
            bytes = bytes.max(column.region_bytes(region));
            count += 1;
        }
        let budget = columns.first().map(|column| column.workspace.budget.clone());
        let mut reader = Self {
            columns,
            regions: Box::new(regions),
            flying: VecDeque::with_capacity(depth),
        };
        for budget in budget.iter().cycle().take(depth.min(count)) {
            reader.launch(budget.buffer_to_fill(bytes as usize, "column reader")?);
        }
        Ok(reader)
    }

    /// Waits for the next region, checks it, decodes it into the start of `out`; `None` after the last.
    ///
    /// # Errors
    /// [`Invalid::TooShort`] if `out` is too short, [`crate::Error::Io`], [`crate::Error::Damaged`].
    pub fn next_into(&mut self, out: &mut [E]) -> Result<Option<Region>> {
        let Some(flight) = self.flying.pop_front() else {
            return Ok(None);
        };
        let len = flight.region.len() as usize;
        if out.len() < len {
            return Err(Invalid::TooShort {
                what: "elements of the buffer of a column reader",
                given: out.len() as u64,
                needed: len as u64,
            }
            .into());
        }
        let buffer = flight.pending.wait()?;
        if let Some(column) = self.columns.get(flight.column) {
            decode(&column.workspace, &buffer, &flight.pieces, &mut out[..len])?;
        }
        self.launch(buffer);
        Ok(Some(flight.region))
    }

    /// Waits for the next region, which is one piece, checks it, decodes it into `lines`, one after the other;
    /// `None` after the last.
    ///
    /// # Errors
    /// As [`Self::next_into`]; [`Invalid::TooShort`] if the lines have more elements than the region.
    pub(crate) fn next_into_lines<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a mut [E]>,
    ) -> Result<Option<Region>> {
        let Some(flight) = self.flying.pop_front() else {
            return Ok(None);
        };
        let (mut at, len) = match flight.pieces[..] {
            [(start, len)] => (start, len),
            _ => (0, 0),
        };
        let end = at + len * E::BYTES;
        let mut places = Vec::new();
        for line in lines {
            let start = at;
            at += line.len() * E::BYTES;
            places.push((line, start));
        }
        if at > end {
            return Err(Invalid::TooShort {
                what: "elements of a region for its lines",
                given: len as u64,
                needed: (len + (at - end) / E::BYTES) as u64,
            }
            .into());
        }
        let buffer = flight.pending.wait()?;
        if let Some(column) = self.columns.get(flight.column) {
            decode_parts(&column.workspace, &buffer, places.into_iter())?;
        }
        self.launch(buffer);
        Ok(Some(flight.region))
    }

    /// Waits for the next region and checks it, without decoding it; `None` after the last.
    pub(super) fn next_checked(&mut self) -> Result<Option<Region>> {
        let Some(flight) = self.flying.pop_front() else {
            return Ok(None);
        };
        let buffer = flight.pending.wait()?;
        self.launch(buffer);
        Ok(Some(flight.region))
    }

    /// Waits for what is on its way, whatever becomes of it: when this returns, the reader's leases are given
    /// back.
    pub fn abandon(self) {
        for flight in self.flying {
            let _dropped = flight.pending.wait();
        }
    }

    fn launch(&mut self, buffer: Buffer) {
        if let Some((index, region)) = self.regions.next()
            && let Some(column) = self.columns.get(index)
        {
            let (runs, pieces) = column.layout(region);
            self.flying.push_back(Flight {
                column: index,
                region,
                pieces,
                pending: column.frames.read(buffer, runs),
            });
        }
    }
}

fn decode<E: Element>(
    workspace: &Workspace,
    buffer: &[u8],
    pieces: &[(usize, usize)],
    mut out: &mut [E],
) -> Result<()> {
    let parts = pieces.iter().map(|&(offset, len)| {
        let (piece, rest) = std::mem::take(&mut out).split_at_mut(len);
        out = rest;
        (piece, offset)
    });
    decode_parts(workspace, buffer, parts)
}

/// Decodes slices, each from an offset of the buffer on, on all cores.
pub(super) fn decode_parts<'a, E: Element>(
    workspace: &Workspace,
    buffer: &[u8],
    parts: impl Iterator<Item = (&'a mut [E], usize)>,
) -> Result<()> {
    let (mut jobs, mut count) = (Vec::new(), 0);
    for (part, offset) in parts {
        count += part.len();
        for (i, job) in part.chunks_mut(JOB_ELEMENTS).enumerate() {
            jobs.push((job, offset + i * JOB_ELEMENTS * E::BYTES));
        }
    }
    run_jobs(workspace, jobs, count, |(part, offset)| {
        for (value, bytes) in part.iter_mut().zip(buffer[offset..].chunks_exact(E::BYTES)) {
            *value = E::decode(bytes);
        }
    })
}

/// Runs jobs over `elements` elements in all, on all cores if there is more than one, as many at a time as
/// make [`JOB_ELEMENTS`].
pub(super) fn run_jobs<J: Send>(
    workspace: &Workspace,
    jobs: Vec<J>,
    elements: usize,
    run: impl Fn(J) + Sync + Send,
) -> Result<()> {
    if jobs.len() < 2 {
        jobs.into_iter().for_each(run);
        return Ok(());
    }
    let jobs_min = 1 + JOB_ELEMENTS * jobs.len() / (1 + elements);
    workspace.spread(|| jobs.into_iter().parallel().in_runs_of(jobs_min).for_each(run))
}
