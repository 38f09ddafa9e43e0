//! Sections of bytes of a container, as readers and writers.

use std::io::{self, Read, Write};

use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Reader, Writer};

/// How many bytes were written.
pub(super) struct Counter(pub(super) u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes into a column.
pub(super) struct ColumnWriter(pub(super) Writer<[u8; 1]>);

impl Write for ColumnWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.as_chunks().0).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes out of a column.
pub struct ColumnReader {
    reader: Reader<[u8; 1]>,
    tile: LeasedVec<[u8; 1]>,
    /// What of the tile is still to be handed out.
    left: std::ops::Range<usize>,
}

impl ColumnReader {
    /// From the first byte on.
    ///
    /// # Errors
    /// The engine's: the budget has no room for a tile.
    pub(crate) fn new(column: &Column<[u8; 1]>) -> Result<Self> {
        let chunk = column.sequential_chunk();
        Ok(Self {
            reader: column.read_ascending(chunk)?,
            tile: column
                .workspace()
                .budget
                .vec(chunk as usize, [0], "bytes being read")?,
            left: 0..0,
        })
    }
}

impl Read for ColumnReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            let read = self.reader.next_into(&mut self.tile).map_err(io::Error::other)?;
            self.left = 0..read.map_or(0, |region| region.len() as usize);
        }
        let bytes = &self.tile[self.left.clone()].as_flattened();
        let now = out.len().min(bytes.len());
        out[..now].copy_from_slice(&bytes[..now]);
        self.left.start += now;
        Ok(now)
    }
}
