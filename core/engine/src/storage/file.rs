//! An open file: where transfers begin.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{FileType, Mode, OFlags, fstat, fsync, ftruncate};
use rustix::io::Errno;

use super::direct::{self, CachePolicy};
use super::handle::{Access, Handle, Room, Segment, error};
use super::recycler::Recycler;
use super::transfer::{self, Batch, Direction, Failed, Order, Pending};
use super::{FaultPlan, Storage};
use crate::budget::{Buffer, Lent, PAGE_BYTES};
use crate::error::{Error, Invalid, Result};

/// An open file. Clones share it; it is closed with the last clone and the last transfer.
#[derive(Clone)]
pub struct File {
    handle: Arc<Handle>,
    storage: Storage,
}

pub(super) fn open(storage: &Storage, path: &Path, access: Access) -> Result<File> {
    // A pipe without a writer would make the open wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let name = || path.display().to_string();
    let fd = storage
        .inner
        .faults
        .run(|| rustix::fs::open(path, flags, Mode::empty()))
        .map_err(|errno| error("open", name(), errno))?;
    let stat = fstat(&fd).map_err(|errno| error("stat", name(), errno))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Directory {
        return Err(error("open", name(), Errno::ISDIR));
    }
    if let Some(kind) = unreadable(kind) {
        return Err(Invalid::NotReadable { path: name(), kind }.into());
    }
    File::new(
        storage,
        Arc::new(fd),
        path.display().to_string(),
        access,
        Room::Own,
    )
}

/// What has no bytes that can be read in any order, with an article.
fn unreadable(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice => Some("a device"),
        _ => None,
    }
}

impl File {
    /// Takes an open file over, and its room.
    pub(super) fn new(
        storage: &Storage,
        fd: Arc<OwnedFd>,
        name: String,
        access: Access,
        room: Room,
    ) -> Result<Self> {
        let stat = fstat(&fd).map_err(|errno| error("stat", name.clone(), errno))?;
        let cache =
            CachePolicy::new(access == Access::Aligned && storage.inner.direct && direct::engage(fd.as_fd()));
        let handle = Handle {
            fd,
            name,
            len_bytes: AtomicU64::new(u64::try_from(stat.st_size).unwrap_or(0)),
            access,
            cache,
            room,
        };
        Ok(Self {
            handle: Arc::new(handle),
            storage: storage.clone(),
        })
    }

    /// The length in bytes: as found at the start, resized, or grown by writes that are done.
    pub fn len_bytes(&self) -> u64 {
        self.handle.len_bytes.load(Relaxed)
    }

    /// The path, or what a nameless file holds: as errors say it.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// What offsets and lengths of segments must be multiples of: 4096, or 1 after
    /// [`Storage::open_unaligned`].
    pub fn alignment_bytes(&self) -> usize {
        match self.handle.access {
            Access::Aligned => PAGE_BYTES,
            Access::Any => 1,
        }
    }

    /// Whether transfers bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.handle.is_direct()
    }

    /// The storage that it was opened by.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Cuts the file off or extends it with zeros.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn set_len(&self, len_bytes: u64) -> Result<()> {
        self.faults()
            .run(|| ftruncate(self.handle.fd(), len_bytes))
            .map_err(|errno| error("resize", self.name(), errno))?;
        self.handle.len_bytes.store(len_bytes, Relaxed);
        Ok(())
    }

    /// Begins to read all `segments` into `buffer`, where no two may overlap. Bytes of the buffer outside of
    /// them stay as they are.
    pub fn read(&self, buffer: Buffer, segments: impl Into<Vec<Segment>>) -> Pending {
        self.begin(Direction::Read, buffer, segments.into())
    }

    /// Begins to write all `segments` from `buffer`; the file grows as needed. Segments that overlap in the
    /// file end up in any order.
    pub fn write(&self, buffer: Buffer, segments: impl Into<Vec<Segment>>) -> Pending {
        self.begin(Direction::Write, buffer, segments.into())
    }

    /// Begins to read `segments` straight into memory that is lent, where no two may overlap, for
    /// [`File::wait_for_lent`]; gives the memory back where transfers do not reach it: see [`File::reaches`].
    ///
    /// # Errors
    /// The memory.
    pub fn read_lent(&self, memory: Lent, segments: Vec<Segment>) -> std::result::Result<Pending, Lent> {
        match self.reaches(&memory, &segments) {
            true => Ok(self.begin(Direction::Read, Buffer::lent(memory), segments)),
            false => Err(memory),
        }
    }

    /// Waits for [`File::read_lent`]. The memory, and whether all is there: `false` where the kernel refused the
    /// memory (a driver's own pages may be such; they are not tried again then), whose content is undefined.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Invalid`] for segments that do not fit.
    pub fn wait_for_lent(&self, pending: Pending) -> Result<(Lent, bool)> {
        let taken = |buffer: Buffer| buffer.into_lent().ok_or(Invalid::BufferTaken);
        match pending.wait_with_buffer() {
            Ok(buffer) => Ok((taken(buffer)?, true)),
            Err(failed) => match *failed {
                Failed {
                    error,
                    buffer: Some(buffer),
                } if self.is_refusal(&error) => Ok((taken(buffer)?, false)),
                Failed { error, .. } => Err(error),
            },
        }
    }

    /// Whether transfers of `segments` may go to and from this memory, as far as is known: it begins at a
    /// multiple of [`File::alignment_bytes`], as all segments do, and the kernel has refused no such memory.
    pub fn reaches(&self, memory: &[u8], segments: &[Segment]) -> bool {
        let alignment = self.alignment_bytes();
        let is_aligned = |segment: &Segment| {
            let places = [segment.buffer_offset, segment.bytes];
            segment.file_offset.is_multiple_of(alignment as u64)
                && places.iter().all(|place| place.is_multiple_of(alignment))
        };
        !self.storage.inner.refuses_in_place.load(Relaxed)
            && memory.as_ptr().addr().is_multiple_of(alignment)
            && segments.iter().all(is_aligned)
    }

    /// Whether the kernel refused the memory of a transfer.
    fn is_refusal(&self, error: &Error) -> bool {
        let refused = Some(Errno::FAULT.raw_os_error());
        let is_refusal = matches!(error, Error::Io { source, .. } if source.raw_os_error() == refused);
        if is_refusal {
            tracing::info!(
                file = self.name(),
                "transfers do not reach a caller's memory: it is copied"
            );
            self.storage.inner.refuses_in_place.store(true, Relaxed);
        }
        is_refusal
    }

    /// Writes `from` to `file_offset`, straight from where it is, in pieces of `piece_bytes`, and returns when all
    /// is written; `each` gets the offset and the bytes of every piece before it is sent, in order.
    ///
    /// `false`: transfers do not reach this memory.
    ///
    /// # Errors
    /// [`Error::Io`]; those of `each`. Nothing is on its way then.
    pub fn write_in_place(
        &self,
        file_offset: u64,
        from: &[u8],
        piece_bytes: usize,
        each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let segment = Segment::new(file_offset, 0, from.len());
        if !self.reaches(from, &[segment]) || !piece_bytes.is_multiple_of(self.alignment_bytes()) {
            return Ok(false);
        }
        let inner = &self.storage.inner;
        let submit = |batch| inner.submit(batch);
        match transfer::write_pieces(|| self.order(&submit), file_offset, from, piece_bytes, each) {
            Err(error) if self.is_refusal(&error) => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn order<'a>(&'a self, submit: &'a dyn Fn(Arc<Batch>) -> Result<()>) -> Order<'a> {
        Order {
            handle: &self.handle,
            counters: &self.storage.inner.counters,
            fault: self.faults().next(),
            submit,
        }
    }

    /// Blocks until all that was written (and waited for) is on the disk. A failure is final: what is on the
    /// disk is then unknown, and the file must be given up.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn sync(&self) -> Result<()> {
        self.faults()
            .run(|| fsync(self.handle.fd()))
            .map_err(|errno| error("fsync", self.name(), errno))?;
        self.handle.cache.after_sync(self.handle.fd());
        Ok(())
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.handle.fd()
    }

    pub(super) fn recycler(&self) -> &Arc<Recycler> {
        &self.storage.inner.recycler
    }

    pub(super) fn faults(&self) -> &FaultPlan {
        &self.storage.inner.faults
    }

    /// Counts bytes that came in through a map.
    pub(super) fn count_map_read(&self, bytes: u64) {
        let counters = &self.storage.inner.counters;
        counters.bytes_read.fetch_add(bytes, Relaxed);
        counters.reads.fetch_add(1, Relaxed);
    }

    /// Counts bytes that went out through a map.
    pub(super) fn count_map_write(&self, bytes: u64) {
        let counters = &self.storage.inner.counters;
        counters.bytes_written.fetch_add(bytes, Relaxed);
        counters.writes.fetch_add(1, Relaxed);
    }

    fn begin(&self, direction: Direction, buffer: Buffer, mut segments: Vec<Segment>) -> Pending {
        segments.retain(|segment| segment.bytes > 0);
        let checked = self.check(&buffer, &segments).and_then(|()| match direction {
            Direction::Read => self.check_overlap(&segments),
            Direction::Write => Ok(()),
        });
        if let Err(error) = checked {
            return Pending::refused(error);
        }
        let faults: Vec<_> = segments.iter().map(|_| self.faults().next()).collect();
        let faults = if faults.iter().all(Option::is_none) {
            Vec::new()
        } else {
            faults
        };
        let inner = &self.storage.inner;
        let empty = segments.is_empty();
        let batch = Arc::new(Batch::new(
            direction,
            self.handle.clone(),
            buffer,
            segments,
            faults,
            inner.counters.clone(),
        ));
        if !empty && let Err(error) = inner.submit(batch.clone()) {
            return Pending::refused(error);
        }
        Pending::begun(batch)
    }

    /// Each part of a buffer is written by one thread or one request at a time.
    fn check_overlap(&self, segments: &[Segment]) -> Result<()> {
        let range = |segment: &Segment| (segment.buffer_offset, segment.buffer_offset + segment.bytes);
        if segments.is_sorted_by(|one, next| range(one).1 <= range(next).0) {
            return Ok(());
        }
        let mut ranges: Vec<(usize, usize)> = segments.iter().map(range).collect();
        ranges.sort_unstable();
        match ranges.windows(2).find(|two| two[1].0 < two[0].1) {
            None => Ok(()),
            Some(two) => Err(Invalid::OverlappingSegments {
                file: self.name().to_owned(),
                buffer_offset: two[1].0,
            }
            .into()),
        }
    }

    fn check(&self, buffer: &Buffer, segments: &[Segment]) -> Result<()> {
        let alignment = self.alignment_bytes();
        for (index, segment) in segments.iter().enumerate() {
            let Segment {
                file_offset,
                buffer_offset,
                bytes,
            } = *segment;
            let in_buffer = buffer_offset
                .checked_add(bytes)
                .is_some_and(|end| end <= buffer.len());
            let in_file = file_offset
                .checked_add(bytes as u64)
                .is_some_and(|end| end <= i64::MAX as u64);
            let aligned = file_offset.is_multiple_of(alignment as u64)
                && buffer_offset.is_multiple_of(alignment)
                && bytes.is_multiple_of(alignment);
            if !in_buffer || !in_file || !aligned {
                return Err(Invalid::Segment {
                    index,
                    file: self.name().to_owned(),
                    bytes,
                    file_offset,
                    buffer_offset,
                    buffer_bytes: buffer.len(),
                    alignment,
                }
                .into());
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File")
            .field("name", &self.name())
            .field("len_bytes", &self.len_bytes())
            .field("direct", &self.is_direct())
            .finish_non_exhaustive()
    }
}
