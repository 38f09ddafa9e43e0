//! Writing columns: regions in any order with write-behind, or from the start to the end.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use super::frames::{DryFile, Frames, PendingFrames, Run, memory_bytes};
use super::reader::{JOB_ELEMENTS, check_cast, run_jobs};
use super::seal::bits_bytes;
use super::tag::DIGEST_BYTES;
use super::tag::TagPlaces;
use super::{Column, Element, Placement, Region, SpareBits, Workspace, scratch_frame_bytes};
use crate::Result;
use crate::accelerator::ColumnId;
use crate::budget::{Buffer, PAGE_BYTES};
use crate::dry::DryRun;
use crate::error::Invalid;

/// Transfers that a draft keeps behind its caller, and so buffers that it has at most, unless it is told
/// otherwise.
const WRITES_BEHIND: usize = 2;

/// The frames of a draft in a dry run: leases are those of a real one.
fn dry_frames<E: Element>(
    workspace: &Workspace,
    dry_run: &Arc<DryRun>,
    what: &str,
    (frames, frame_bytes): (u64, usize),
    placement: Placement,
) -> Result<Frames> {
    let bytes = frames * frame_bytes as u64;
    let in_memory = memory_bytes(frames, frame_bytes as u64);
    let buffer = match placement {
        Placement::Memory => Some(workspace.hold(in_memory, "column in memory")?),
        _ => match placement.now(&workspace.budget, bytes) {
            Placement::Memory => workspace.hold(in_memory, "column in memory").ok(),
            _ => None,
        },
    };
    let (file, digests) = match buffer {
        Some(_) => (None, None),
        None => {
            let digests_bytes = digests_bytes::<E>(bytes, frame_bytes as u64);
            let digests = (digests_bytes > 0).then(|| workspace.hold(digests_bytes, "frame digests"));
            (Some(DryFile::new(dry_run, bytes)), digests.transpose()?)
        }
    };
    Ok(Frames::dry(
        workspace,
        file,
        [digests, buffer],
        what.to_string(),
        (frames, frame_bytes),
    ))
}

/// What the digests of a scratch column of `bytes` hold of a budget: where frames carry them, a bit for each
/// frame, and nothing for the first page of bits.
pub fn digests_bytes<E: Element>(bytes: u64, frame_bytes: u64) -> u64 {
    digests_beside(E::SPARE, bytes, frame_bytes)
}

/// [`digests_bytes`] of elements that leave these bits.
pub fn digests_beside(spare: Option<SpareBits>, bytes: u64, frame_bytes: u64) -> u64 {
    let inside = TagPlaces::in_bits(spare, frame_bytes);
    match inside.and_then(|places| places.beside_tail(frame_bytes as usize)) {
        Some(_) => bits_bytes(bytes.div_ceil(frame_bytes)),
        None => (bytes.div_ceil(frame_bytes) * DIGEST_BYTES as u64).next_multiple_of(PAGE_BYTES as u64),
    }
}

/// What a writer of a column of `bytes` leases, in buffers of `chunk_bytes` rounded up to whole frames.
pub fn writer_bytes(bytes: u64, chunk_bytes: u64, frame_bytes: u64) -> u64 {
    let buffer_bytes = chunk_bytes.min(bytes).max(1).next_multiple_of(frame_bytes);
    let flushes = bytes.div_ceil(buffer_bytes);
    (WRITES_BEHIND as u64).min(flushes) * buffer_bytes
}

/// Transfers that are behind their caller, of one column or of several, and the buffers for the next ones.
pub struct Behind {
    free: Vec<Buffer>,
    flying: VecDeque<PendingFrames>,
    transfers: usize,
}

impl Behind {
    /// At most `transfers` of them; buffers are leased as they are needed.
    pub fn new(transfers: usize) -> Self {
        Self::with_buffers(Vec::new(), transfers)
    }

    /// As [`Self::new`], with `buffers` to begin with; more are leased where these are too few or too short.
    pub fn with_buffers(buffers: Vec<Buffer>, transfers: usize) -> Self {
        Self {
            free: buffers,
            flying: VecDeque::new(),
            transfers: transfers.max(1),
        }
    }

    /// A buffer of at least `bytes`: a free one, else a new one while few are behind, else the oldest
    /// transfer's.
    fn buffer(&mut self, workspace: &Workspace, bytes: usize) -> Result<Buffer> {
        if self.flying.len() >= self.transfers
            && let Some(oldest) = self.flying.pop_front()
        {
            self.free.push(oldest.wait()?);
        }
        while let Some(buffer) = self.free.pop() {
            if buffer.len() >= bytes {
                return Ok(buffer);
            }
        }
        (workspace.budget).buffer_to_fill(bytes.max(4096), "column writer")
    }

    /// Waits for all of them.
    ///
    /// # Errors
    /// [`crate::Error::Io`] from a write.
    pub fn landed(self) -> Result<()> {
        self.flying.into_iter().try_for_each(|pending| {
            pending.wait()?;
            Ok(())
        })
    }

    /// Waits for all of them, whatever becomes of them.
    fn abandon(self) {
        for pending in self.flying {
            let _nobody_wants_it = pending.wait();
        }
    }
}

/// A column that is being written. Every element has to be written once; a frame that was not is found
/// [damaged](crate::Error::Damaged) when it is read.
pub struct Draft<E> {
    frames: Arc<Frames>,
    first_frame: u64,
    len: u64,
    workspace: Workspace,
    behind: Behind,
    /// Whether other threads write to the column meanwhile: then no wait of this one may take up their work,
    /// which could wait for what this one holds.
    is_shared: bool,
    element: PhantomData<fn() -> E>,
}

/// A column that several threads write, each through parts of its own.
pub struct SharedDraft<E> {
    frames: Arc<Frames>,
    first_frame: u64,
    len: u64,
    workspace: Workspace,
    element: PhantomData<fn() -> E>,
}

impl<E: Element> SharedDraft<E> {
    /// A draft of the same column, for regions that no other part writes. Its transfers go to `behind`, which
    /// [`Draft::into_behind`] gives back.
    pub fn part(&self, behind: Behind) -> Draft<E> {
        let draft = Draft::over(
            &self.workspace,
            Arc::clone(&self.frames),
            self.first_frame,
            self.len,
        );
        Draft {
            behind,
            is_shared: true,
            ..draft
        }
    }

    /// The column, when the transfers of all parts have [landed](Behind::landed).
    pub fn finish(self) -> Column<E> {
        Draft::over(&self.workspace, self.frames, self.first_frame, self.len).into_column()
    }
}

impl<E: Element> Draft<E> {
    /// A nameless column of `len` elements with frames of [`super::SCRATCH_FRAME_BYTES`], or, for elements
    /// that do not fill them, half as long again.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`] for its bytes in memory, or for digests that its frames have no room for;
    /// [`crate::Error::Io`] where no file can be made.
    pub fn scratch(workspace: &Workspace, what: &str, len: u64, placement: Placement) -> Result<Self> {
        Self::scratch_with_frames(workspace, what, len, placement, scratch_frame_bytes::<E>())
    }

    /// As [`Self::scratch`], with frames of `frame_bytes` (a multiple of 4096 and of an element's length).
    ///
    /// # Errors
    /// As [`Self::scratch`]; [`Invalid::FrameBytes`] for other frame sizes.
    pub fn scratch_with_frames(
        workspace: &Workspace,
        what: &str,
        len: u64,
        placement: Placement,
        frame_bytes: usize,
    ) -> Result<Self> {
        if frame_bytes == 0
            || !frame_bytes.is_multiple_of(PAGE_BYTES)
            || !frame_bytes.is_multiple_of(E::BYTES)
        {
            return Err(Invalid::FrameBytes {
                frame_bytes,
                element_bytes: E::BYTES,
            }
            .into());
        }
        workspace.budget.check_process()?;
        // No file is longer, so that no length in bytes wraps.
        let elements_max = i64::MAX as u64 / frame_bytes as u64 * (frame_bytes / E::BYTES) as u64;
        if len > elements_max {
            return Err(Invalid::TooLong {
                what: format!("elements of `{what}`"),
                given: len,
                limit: elements_max,
            }
            .into());
        }
        let frames = len.div_ceil((frame_bytes / E::BYTES) as u64);
        let bytes = frames * frame_bytes as u64;
        if let Some(dry_run) = workspace.dry_run() {
            let frames = dry_frames::<E>(workspace, dry_run, what, (frames, frame_bytes), placement)?;
            return Ok(Self::over(workspace, Arc::new(frames), 0, len));
        }
        let (shape, tags) = ((frames, frame_bytes), TagPlaces::of::<E>(frame_bytes as u64));
        // Frames that were not written are not read.
        let in_memory = memory_bytes(frames, frame_bytes as u64) as usize;
        let buffer = || (workspace.budget).buffer_to_fill(in_memory, what.to_string());
        let in_memory = match placement {
            Placement::Memory => Some(buffer()?),
            _ => match placement.now(&workspace.budget, bytes) {
                Placement::Memory => buffer().ok(),
                _ => None,
            },
        };
        let frames = match in_memory {
            Some(buffer) => Frames::in_memory(workspace, buffer, what.to_string(), shape, tags),
            None => Frames::scratch(workspace, what, shape, tags)?,
        };
        Ok(Self::over(workspace, Arc::new(frames), 0, len))
    }

    /// The column of a dry run whose elements count as written before it began, as those of parameters.
    ///
    /// # Errors
    /// [`Invalid::NotADryRun`] in a workspace that is not dry.
    pub fn finish_unwritten(self) -> Result<Column<E>> {
        if self.workspace.is_dry() {
            return Ok(self.into_column());
        }
        Err(Invalid::NotADryRun {
            column: self.frames.name().to_owned(),
        }
        .into())
    }

    /// A draft of `len` elements in frames that were made elsewhere, from `first_frame` on.
    pub(super) fn over(workspace: &Workspace, frames: Arc<Frames>, first_frame: u64, len: u64) -> Self {
        Self {
            frames,
            first_frame,
            len,
            workspace: workspace.clone(),
            behind: Behind::new(WRITES_BEHIND),
            is_shared: false,
            element: PhantomData,
        }
    }

    /// As elements of another type of the same size. Where the frames' digests go stays as it is: see
    /// `tag.rs`.
    ///
    /// # Errors
    /// [`Invalid::ElementBytes`] if the sizes differ.
    pub fn cast<T: Element>(self) -> Result<Draft<T>> {
        check_cast::<E, T>("cast of a draft")?;
        Ok(Draft {
            frames: self.frames,
            first_frame: self.first_frame,
            len: self.len,
            workspace: self.workspace,
            behind: self.behind,
            is_shared: self.is_shared,
            element: PhantomData,
        })
    }

    /// With up to `transfers` behind the caller instead of two.
    pub(crate) fn with_writes_behind(self, transfers: usize) -> Self {
        Self {
            behind: Behind::new(transfers),
            ..self
        }
    }

    /// The column for several threads. Nothing may have been written yet.
    pub fn share(self) -> SharedDraft<E> {
        SharedDraft {
            frames: self.frames,
            first_frame: self.first_frame,
            len: self.len,
            workspace: self.workspace,
            element: PhantomData,
        }
    }

    /// The transfers that are behind, for the next draft. The column is [`SharedDraft::finish`]'s to give.
    pub fn into_behind(self) -> Behind {
        self.behind
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Elements in a frame. Pieces of a region start at multiples of it and end at one, or at the column's
    /// end.
    pub fn frame_elements(&self) -> u64 {
        (self.frames.frame_bytes() / E::BYTES) as u64
    }

    /// Writes `region` from the start of `values`; returns when the bytes are on their way. At most two
    /// regions are behind, and as many buffers of the largest region leased until [`Self::finish`].
    ///
    /// # Errors
    /// [`Invalid::Region`] for a region that leaves the column, [`Invalid::InsideFrame`],
    /// [`Invalid::TooShort`]; [`crate::Error::OverBudget`]; [`crate::Error::Io`], also from an earlier write.
    pub fn write(&mut self, region: Region, values: &[E]) -> Result<()> {
        region.check(self.len)?;
        if (values.len() as u64) < region.len() {
            return Err(Invalid::TooShort {
                what: "values for a column",
                given: values.len() as u64,
                needed: region.len(),
            }
            .into());
        }
        let (runs, pieces, bytes) = self.layout(region)?;
        let mut buffer = self.behind.buffer(&self.workspace, bytes)?;
        encode_pieces(
            &self.workspace,
            values,
            &mut buffer,
            &pieces,
            self.frames.frame_bytes(),
        )?;
        self.launch(buffer, runs);
        Ok(())
    }

    /// Waits for what is on its way and gives the column.
    ///
    /// # Errors
    /// [`crate::Error::Io`] from a write.
    pub fn finish(mut self) -> Result<Column<E>> {
        std::mem::replace(&mut self.behind, Behind::new(WRITES_BEHIND)).landed()?;
        if let Some(dry_run) = self.workspace.dry_run().filter(|_| self.frames.on_disk()) {
            let frames = self.len.div_ceil(self.frame_elements());
            dry_run.moved(0, frames * self.frames.frame_bytes() as u64);
        }
        Ok(self.into_column())
    }

    fn into_column(self) -> Column<E> {
        self.workspace.residents.enter(&self.frames);
        Column {
            frames: self.frames,
            first_frame: self.first_frame,
            len: self.len,
            workspace: self.workspace,
            element: PhantomData,
        }
    }

    /// What a writer in buffers of `chunk` elements leases.
    pub fn writer_bytes(&self, chunk: u64) -> u64 {
        let element_bytes = E::BYTES as u64;
        writer_bytes(
            self.len * element_bytes,
            chunk.saturating_mul(element_bytes),
            self.frames.frame_bytes() as u64,
        )
    }

    /// Waits for what is on its way, and lets the column go: when this returns, its leases are given back.
    pub fn abandon(self) {
        self.behind.abandon();
    }

    #[allow(clippy::type_complexity)]
    fn layout(&self, region: Region) -> Result<(Vec<Run>, Vec<(usize, usize)>, usize)> {
        let (frame_elements, frame_bytes) = (self.frame_elements(), self.frames.frame_bytes());
        let (mut runs, mut pieces, mut offset) = (Vec::new(), Vec::new(), 0usize);
        for piece in region.pieces() {
            let end = piece.start + piece.len;
            let starts = piece.start.is_multiple_of(frame_elements);
            if !starts || (end % frame_elements != 0 && end != self.len) {
                return Err(Invalid::InsideFrame {
                    what: "a region that is written",
                    element: if starts { end } else { piece.start },
                    frame_elements,
                }
                .into());
            }
            let frames = piece.len.div_ceil(frame_elements);
            let frame = self.first_frame + piece.start / frame_elements;
            runs.push(Run {
                frame,
                frames,
                buffer_offset: offset,
            });
            pieces.push((offset, piece.len as usize));
            offset += frames as usize * frame_bytes;
        }
        Ok((runs, pieces, offset))
    }

    fn launch(&mut self, buffer: Buffer, runs: Vec<Run>) {
        let pending = self.frames.write(buffer, runs, self.is_shared);
        self.behind.flying.push_back(pending);
    }
}

/// Encodes piece after piece of `values` to its place in `out`, `(offset, len)`, in ascending order; the rest
/// of a piece's last frame is zero.
fn encode_pieces<E: Element>(
    workspace: &Workspace,
    mut values: &[E],
    mut out: &mut [u8],
    pieces: &[(usize, usize)],
    frame_bytes: usize,
) -> Result<()> {
    let mut jobs: Vec<(&[E], &mut [u8])> = Vec::new();
    let mut done = 0;
    for &(offset, len) in pieces {
        let (piece, rest) = values.split_at(len);
        let padded = (len * E::BYTES).next_multiple_of(frame_bytes);
        let (target, behind) = std::mem::take(&mut out)[offset - done..].split_at_mut(padded);
        let (target, padding) = target.split_at_mut(len * E::BYTES);
        padding.fill(0);
        let parts = piece
            .chunks(JOB_ELEMENTS)
            .zip(target.chunks_mut(JOB_ELEMENTS * E::BYTES));
        jobs.extend(parts);
        (values, out, done) = (rest, behind, offset + padded);
    }
    let count = pieces.iter().map(|(_, len)| len).sum();
    run_jobs(workspace, jobs, count, |(values, out)| {
        for (value, bytes) in values.iter().zip(out.chunks_exact_mut(E::BYTES)) {
            value.encode(bytes);
        }
    })
}

/// A [`Draft`] that is filled from its first element to its last.
pub struct Writer<E> {
    draft: Draft<E>,
    buffer: Option<Buffer>,
    buffer_elements: usize,
    buffered: usize,
    written: u64,
}

impl<E> Writer<E> {
    /// The identity of the column that will be finished.
    pub(crate) fn column_id(&self) -> ColumnId {
        ColumnId {
            frames: self.draft.frames.id(),
            first_frame: self.draft.first_frame,
        }
    }
}

impl<E: Element> Writer<E> {
    /// Fills `draft` from its start, through buffers of a mebibyte at most.
    pub fn new(draft: Draft<E>) -> Self {
        let frame_bytes = draft.frames.frame_bytes();
        let chunk = (draft.workspace.sequential_bytes(frame_bytes) / E::BYTES) as u64;
        Self::in_chunks(draft, chunk)
    }

    /// Fills `draft` from its start, through buffers of `chunk` elements, rounded up to whole frames; at most
    /// three are leased.
    pub fn in_chunks(draft: Draft<E>, chunk: u64) -> Self {
        let frames = chunk.min(draft.len).div_ceil(draft.frame_elements()).max(1);
        let buffer_elements = (frames * draft.frame_elements()) as usize;
        Self {
            draft,
            buffer: None,
            buffer_elements,
            buffered: 0,
            written: 0,
        }
    }

    /// A writer of a scratch column; see [`Draft::scratch`].
    ///
    /// # Errors
    /// As [`Draft::scratch`].
    pub fn scratch(workspace: &Workspace, what: &str, len: u64, placement: Placement) -> Result<Self> {
        Ok(Self::new(Draft::scratch(workspace, what, len, placement)?))
    }

    /// Appends `values`. In a dry run there are none.
    ///
    /// # Errors
    /// [`Invalid::TooLong`] for more values than the column has room for, [`crate::Error::OverBudget`],
    /// [`crate::Error::Io`].
    pub fn push(&mut self, mut values: &[E]) -> Result<()> {
        if self.draft.workspace.is_dry() {
            return Ok(());
        }
        let room = self.draft.len - self.written - self.buffered as u64;
        Invalid::unless_at_most("values for a column", values.len() as u64, room)?;
        while !values.is_empty() {
            let mut buffer = match self.buffer.take() {
                Some(buffer) => buffer,
                None => {
                    let bytes = self.buffer_elements * E::BYTES;
                    self.draft.behind.buffer(&self.draft.workspace, bytes)?
                }
            };
            let take = values.len().min(self.buffer_elements - self.buffered);
            let (now, later) = values.split_at(take);
            let at = self.buffered * E::BYTES;
            // No frame ends here: nothing is padded.
            encode_pieces(&self.draft.workspace, now, &mut buffer[at..], &[(0, take)], 1)?;
            self.buffered += take;
            values = later;
            self.buffer = Some(buffer);
            if self.buffered == self.buffer_elements {
                self.flush();
            }
        }
        Ok(())
    }

    /// Appends the elements of a column, through a tile of [`Column::sequential_chunk`].
    ///
    /// # Errors
    /// As [`Self::push`], and [`Column::read`].
    pub fn push_column(&mut self, column: &Column<E>) -> Result<()> {
        let chunk = column.sequential_chunk();
        let zero = E::decode(&vec![0; E::BYTES]);
        let mut tile = column
            .workspace()
            .budget
            .vec(chunk as usize, zero, "column being copied")?;
        let mut reader = column.read_ascending(chunk)?;
        while let Some(region) = reader.next_into(&mut tile)? {
            self.push(&tile[..region.len() as usize])?;
        }
        Ok(())
    }

    /// Appends so many elements of zero bytes.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_zeros(&mut self, count: u64) -> Result<()> {
        let zeros = [E::decode(&vec![0; E::BYTES]); 64];
        let mut left = count;
        while left > 0 {
            let now = left.min(zeros.len() as u64);
            self.push(&zeros[..now as usize])?;
            left -= now;
        }
        Ok(())
    }

    /// For a stage's dry run: what its buffers would take.
    pub fn buffers_bytes(&self) -> u64 {
        self.draft.writer_bytes(self.buffer_elements as u64)
    }

    /// For a stage's dry run that holds the buffers itself: all elements count as written.
    pub fn finish_held(self) -> Result<Column<E>> {
        self.draft.finish()
    }

    /// As [`Draft::abandon`].
    pub fn abandon(self) {
        self.draft.abandon();
    }

    /// Waits for what is on its way and gives the column. In a dry run all elements count as written.
    ///
    /// # Errors
    /// [`Invalid::Unwritten`] if elements are missing, [`crate::Error::Io`] from a write.
    pub fn finish(mut self) -> Result<Column<E>> {
        if self.draft.workspace.is_dry() {
            let _buffers = self.draft.workspace.hold(self.buffers_bytes(), "column writer")?;
            return self.draft.finish();
        }
        self.flush();
        if self.written != self.draft.len {
            return Err(Invalid::Unwritten {
                column: self.draft.frames.name().to_owned(),
                written: self.written,
                len: self.draft.len,
            }
            .into());
        }
        self.draft.finish()
    }

    /// As [`Self::finish`], of a column that ends after its first `len` elements: how many there will be was not
    /// known before.
    ///
    /// # Errors
    /// As [`Self::finish`]; [`Invalid::TooLong`] for more elements than the draft has.
    pub fn finish_at(mut self, len: u64) -> Result<Column<E>> {
        Invalid::unless_at_most("elements of a column that ends early", len, self.draft.len)?;
        if self.draft.workspace.is_dry() {
            let _buffers = self.draft.workspace.hold(self.buffers_bytes(), "column writer")?;
            self.draft.len = len;
            return self.draft.finish();
        }
        self.draft.len = len;
        self.finish()
    }

    fn flush(&mut self) {
        if self.buffered == 0 {
            return;
        }
        let Some(mut buffer) = self.buffer.take() else {
            return;
        };
        let frame_bytes = self.draft.frames.frame_bytes();
        let end = self.buffered * E::BYTES;
        let padded = end.next_multiple_of(frame_bytes);
        buffer[end..padded].fill(0);
        let frame = self.draft.first_frame + self.written / self.draft.frame_elements();
        self.written += self.buffered as u64;
        self.buffered = 0;
        let frames = (padded / frame_bytes) as u64;
        self.draft.launch(
            buffer,
            vec![Run {
                frame,
                frames,
                buffer_offset: 0,
            }],
        );
    }
}

impl<const N: usize> Writer<[u8; N]> {
    /// Appends elements as bytes: whole frames straight from where they are, if the disk takes them from
    /// there, the rest as [`Self::push`] does. When it returns, `bytes` are free again.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn push_in_place(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut values, _) = bytes.as_chunks::<N>();
        let frame_elements = self.draft.frame_elements() as usize;
        // Up to the end of the frame that is in the buffer.
        let begun = self.buffered % frame_elements;
        if begun > 0 {
            let (now, later) = values.split_at(values.len().min(frame_elements - begun));
            self.push(now)?;
            values = later;
        }
        let whole = values.len() / frame_elements * frame_elements;
        let room = self.draft.len - self.written - self.buffered as u64;
        if whole > 0 && whole as u64 <= room && self.draft.frames.file().is_some() {
            self.flush();
            let (now, later) = values.split_at(whole);
            let frame = self.draft.first_frame + self.written / self.draft.frame_elements();
            if self.draft.frames.write_in_place(frame, now.as_flattened())? {
                self.written += whole as u64;
                values = later;
            }
        }
        self.push(values)
    }
}
