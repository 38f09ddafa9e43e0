//! A file as transfers and maps see it: its descriptor, its name, and stretches of it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::direct::CachePolicy;
use super::recycler::{Extent, Recycler, Spare};
use crate::error::Error;

/// A stretch of a file and the stretch of a buffer that it goes to or comes from.
///
/// With direct I/O all three numbers are multiples of 4096; see
/// [`File::alignment_bytes`](super::File::alignment_bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where in the file, in bytes.
    pub file_offset: u64,
    /// Where in the buffer, in bytes.
    pub buffer_offset: usize,
    /// How many bytes; none is allowed, and does nothing.
    pub bytes: usize,
}

impl Segment {
    /// `bytes` at `file_offset` of the file and `buffer_offset` of the buffer.
    pub fn new(file_offset: u64, buffer_offset: usize, bytes: usize) -> Self {
        Self {
            file_offset,
            buffer_offset,
            bytes,
        }
    }
}

/// Which transfers a file takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Aligned ones only, on every file system, so that the same code runs on all; direct if the storage is.
    Aligned,
    /// Any, through the page cache.
    Any,
}

/// What a transfer needs of a file; it outlives the [`File`]s if a transfer does.
pub(super) struct Handle {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) name: String,
    pub(super) len_bytes: AtomicU64,
    pub(super) access: Access,
    pub(super) cache: CachePolicy,
    pub(super) room: Room,
}

/// What becomes of the room of a file that is not used any more.
pub(super) enum Room {
    /// The file system's affair: it is closed by the thread that drops it.
    Own,
    /// It is for the next file of its length: a scratch file whose length was given from the start.
    Kept(Extent),
    /// It is closed behind the thread that drops it.
    ClosedBehind(Arc<Recycler>),
}

impl Handle {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_direct(&self) -> bool {
        self.cache.is_direct()
    }

    /// A write ended at `end`.
    pub(super) fn grown_to(&self, end: u64) {
        self.len_bytes.fetch_max(end, Relaxed);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let len_bytes = *self.len_bytes.get_mut();
        match &mut self.room {
            // Through the page cache, blocks are noted as written later, and all at once.
            Room::Kept(extent) if self.cache.is_direct() && extent.bytes() == len_bytes => {
                extent.keep(self.fd.clone());
            }
            Room::ClosedBehind(recycler) => recycler.close_behind(vec![Spare::uncharged(self.fd.clone())]),
            Room::Own | Room::Kept(_) => {}
        }
    }
}

/// A failed operation on a whole file.
pub(super) fn error(
    operation: &'static str,
    file: impl Into<String>,
    source: impl Into<std::io::Error>,
) -> Error {
    Error::File {
        operation,
        file: file.into(),
        source: source.into(),
    }
}
