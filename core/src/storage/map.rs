//! Memory maps of files, for access that is random by nature. What is touched becomes page cache, charged to the process:
//! callers lease it.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use memmap2::{Mmap, MmapMut, MmapOptions};

use super::file::{self, Handle};
use crate::error::Result;

/// A stretch of a file, mapped for reading.
pub struct FileMap {
    map: Option<Mmap>,
    _handle: Arc<Handle>,
}

/// A stretch of a file, mapped for reading and writing.
pub struct FileMapMut {
    map: Option<MmapMut>,
    handle: Arc<Handle>,
}

fn options(handle: &Handle, offset: u64, bytes: u64) -> Result<MmapOptions> {
    let bytes = usize::try_from(bytes).map_err(|_| {
        file::error(
            "map",
            handle.name(),
            std::io::Error::from(std::io::ErrorKind::OutOfMemory),
        )
    })?;
    let mut options = MmapOptions::new();
    options.offset(offset).len(bytes);
    Ok(options)
}

impl FileMap {
    pub(super) fn new(handle: &Arc<Handle>, offset: u64, bytes: u64) -> Result<Self> {
        let map = if bytes == 0 {
            None
        } else {
            // SAFETY: scratch files are nameless, so nobody else can cut or change them; files opened by name are not
            // changed or cut while a proof runs, which the documentation asks of users (and every map of a file needs).
            let map = unsafe { options(handle, offset, bytes)?.map(&handle.fd()) };
            Some(map.map_err(|source| file::error("map", handle.name(), source))?)
        };
        Ok(Self {
            map,
            _handle: handle.clone(),
        })
    }
}

impl FileMapMut {
    pub(super) fn new(handle: &Arc<Handle>, offset: u64, bytes: u64) -> Result<Self> {
        let map = if bytes == 0 {
            None
        } else {
            // SAFETY: as in `FileMap::new`.
            let map = unsafe { options(handle, offset, bytes)?.map_mut(&handle.fd()) };
            Some(map.map_err(|source| file::error("map", handle.name(), source))?)
        };
        Ok(Self {
            map,
            handle: handle.clone(),
        })
    }

    /// Writes changed pages out, and lets them go from memory; the map stays usable and reads them back.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File).
    pub fn flush(&self) -> Result<()> {
        let Some(map) = &self.map else { return Ok(()) };
        map.flush()
            .map_err(|source| file::error("write out the map of", self.handle.name(), source))
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

impl Deref for FileMapMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

impl DerefMut for FileMapMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }
}
