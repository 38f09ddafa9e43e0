//! Files that are read from start to end and not again.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::num::NonZeroU64;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::failure::Failure;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Bytes between two calls that drop pages.
const STRIDE_BYTES: u64 = 1 << 20;

/// A file whose pages leave the page cache behind the reader: a memory limit counts them as this process's.
#[derive(Debug)]
pub struct ReadOnce {
    file: File,
    read_bytes: u64,
    dropped_bytes: u64,
}

impl ReadOnce {
    /// Of a file that is at its start.
    pub fn new(file: File) -> BufReader<Self> {
        // Prevents read-ahead, which is 16 MiB on some machines.
        let _ = fadvise(&file, 0, None, Advice::Random);
        let once = Self {
            file,
            read_bytes: 0,
            dropped_bytes: 0,
        };
        BufReader::with_capacity(READ_BYTES, once)
    }
}

impl Read for ReadOnce {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        self.read_bytes += len as u64;
        let behind_bytes = self.read_bytes - self.dropped_bytes;
        if behind_bytes >= STRIDE_BYTES || len == 0 {
            // Advice only: on a file system that ignores it, pages stay and reads still work.
            let _ = fadvise(
                &self.file,
                self.dropped_bytes,
                NonZeroU64::new(behind_bytes),
                Advice::DontNeed,
            );
            self.dropped_bytes = self.read_bytes;
        }
        Ok(len)
    }
}

/// More bytes than any proof, verifying key or list of public inputs has.
const WHOLE_BYTES_MAX: u64 = 64 << 20;

/// All bytes of a file, a pipe or a device that holds a proof, a verifying key or public inputs.
///
/// # Errors
/// [`Failure::File`]; [`Failure::Content`] for more than [`WHOLE_BYTES_MAX`] bytes: a device may have no end.
pub fn read_whole(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(Failure::file(path))?;
    let read = opened.take(WHOLE_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(Failure::file(path))? as u64 <= WHOLE_BYTES_MAX {
        return Ok(bytes);
    }
    Err(Failure::Content {
        file: path.to_owned(),
        details: format!(
            "more than {WHOLE_BYTES_MAX} bytes: no proof, verifying key or list of public inputs is so long"
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn what_is_read_is_what_is_there() {
        let bytes: Vec<u8> = (0..9_000_001u32).map(|i| (i % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        let mut read = Vec::new();
        ReadOnce::new(file).read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }
}
