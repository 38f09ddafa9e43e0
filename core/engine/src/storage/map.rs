//! Scratch files mapped for reading, for access that is random by nature. What is touched becomes page cache,
//! charged to the process, and goes with the map.
#![allow(unsafe_code)]

use std::ops::Deref;

use memmap2::{Mmap, UncheckedAdvice};

use super::direct;
use super::file::File;
use super::handle;
use crate::error::{Invalid, Result};

/// The first bytes of a scratch file, which is not written any more. Its pages leave memory when it is
/// dropped.
pub struct FileMap {
    map: Option<Mmap>,
    file: File,
}

impl FileMap {
    /// The first `bytes` of a scratch file. No transfer to it is on its way, and none comes later: that is
    /// for the caller to see to.
    ///
    /// # Errors
    /// [`Invalid::OutOfRange`] if it is shorter, [`crate::Error::File`].
    pub(crate) fn new(file: File, bytes: u64) -> Result<Self> {
        if bytes > file.len_bytes() {
            return Err(Invalid::OutOfRange {
                what: file.name().to_owned(),
                start: 0,
                end: bytes,
                len: file.len_bytes(),
            }
            .into());
        }
        let failed = |source| handle::error("map", file.name(), source);
        let too_long = |_| failed(std::io::Error::from(std::io::ErrorKind::OutOfMemory));
        let len = usize::try_from(bytes).map_err(too_long)?;
        let map = if len == 0 {
            None
        } else {
            // SAFETY: a scratch file has no name, so no other process can cut or change it; the caller does
            // not write it any more, and the map is inside of it.
            Some(unsafe { memmap2::MmapOptions::new().len(len).map(&file.fd()) }.map_err(failed)?)
        };
        Ok(Self { map, file })
    }

    /// Lets all pages go from memory; the map stays usable and reads them back.
    pub fn release(&self) {
        if let Some(map) = &self.map {
            // SAFETY: of a shared map of a file, this drops page table entries; the content is the file's,
            // and stays.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
        self.forget();
    }

    /// Drops the page cache, where no map holds it.
    fn forget(&self) {
        direct::drop_range(self.file.fd(), 0, self.file.len_bytes());
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        drop(self.map.take());
        self.forget();
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
