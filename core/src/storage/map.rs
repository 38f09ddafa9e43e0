//! Memory maps of files, for access that is random by nature. What is touched becomes page cache, charged to the process:
//! callers lease it, and it goes with the map.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

use super::direct;
use super::handle::{self, Handle};
use crate::error::Result;

/// A stretch of a file, mapped for reading. Its pages leave memory when it is dropped.
pub struct FileMap {
    map: Option<Mmap>,
    range: Range,
}

/// The stretch.
struct Range {
    handle: Arc<Handle>,
    offset: u64,
    bytes: u64,
}

impl Range {
    fn new(handle: &Arc<Handle>, offset: u64, bytes: u64) -> Self {
        Self {
            handle: handle.clone(),
            offset,
            bytes,
        }
    }

    fn options(&self) -> Result<MmapOptions> {
        let bytes = usize::try_from(self.bytes)
            .map_err(|_| self.error("map", std::io::Error::from(std::io::ErrorKind::OutOfMemory)))?;
        let mut options = MmapOptions::new();
        options.offset(self.offset).len(bytes);
        Ok(options)
    }

    fn error(&self, operation: &'static str, source: std::io::Error) -> crate::Error {
        handle::error(operation, self.handle.name(), source)
    }

    /// Drops the page cache under the range, where no map holds it.
    fn forget(&self) {
        if self.bytes > 0 {
            direct::drop_range(self.handle.fd(), self.offset, self.bytes);
        }
    }
}

impl FileMap {
    pub(super) fn new(handle: &Arc<Handle>, offset: u64, bytes: u64) -> Result<Self> {
        let range = Range::new(handle, offset, bytes);
        let map = if bytes == 0 {
            None
        } else {
            // SAFETY: scratch files are nameless, so no other process can cut or change them; files opened by name are not
            // changed or cut while a proof runs, which the documentation asks of users (and every map of a file needs).
            let map = unsafe { range.options()?.map(&handle.fd()) };
            Some(map.map_err(|source| range.error("map", source))?)
        };
        Ok(Self { map, range })
    }

    /// Lets all pages go from memory; the map stays usable and reads them back.
    pub fn release(&self) {
        if let Some(map) = &self.map {
            // SAFETY: of a shared map of a file, this drops page table entries; the content is the file's, and stays.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
        self.range.forget();
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        drop(self.map.take());
        self.range.forget();
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
