//! Columns on the host, by rows, and columns that stay on the device.

use crate::buffer::{DeviceBuffer, leased_bytes};
use crate::error::{BoxedError, Error, Result};
use crate::ring::{Chunking, Ring, Upload};
use crate::vram::Vram;

/// Where a program's columns are had.
pub trait ReadColumns {
    /// Writes the whole of `into`: elements of `column` from row `first` on. Never past the last row.
    ///
    /// # Errors
    /// Whatever went wrong; the job ends with [`Error::Source`].
    fn read(&mut self, column: u32, first: u64, into: &mut [u8]) -> Result<(), BoxedError>;
}

/// Where a program's outputs go.
pub trait WriteColumns {
    /// Takes elements of `output` from row `first` on.
    ///
    /// # Errors
    /// Whatever went wrong; the job ends with [`Error::Sink`].
    fn write(&mut self, output: u32, first: u64, bytes: &[u8]) -> Result<(), BoxedError>;
}

/// Columns on a device, whole, for programs that read them more than once. Device memory: columns * rows * bytes of an element.
#[derive(Debug)]
pub struct Resident {
    columns: Vec<DeviceBuffer>,
    rows: u64,
    element_bytes: u64,
}

impl Resident {
    /// Bytes of device memory that so many columns lease, and a buffer for each of two chunks while they are uploaded.
    pub fn vram_bytes(columns: u32, rows: u64, element_bytes: u64, chunk_rows: u64) -> u64 {
        let bytes = |rows: u64| leased_bytes(rows * element_bytes);
        u64::from(columns) * bytes(rows) + 2 * bytes(chunk_rows)
    }

    /// Uploads columns 0 to `columns`, in chunks of `chunk_rows`.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`], [`Error::Source`], [`Error::Driver`]; [`Error::Invalid`] for slots that are too
    /// short, or nothing to upload.
    pub fn upload(
        vram: &Vram,
        upload: &mut Upload,
        (columns, rows, element_bytes): (u32, u64, u64),
        chunk_rows: u64,
        from: &mut dyn ReadColumns,
    ) -> Result<Self> {
        let buffers = (0..columns).map(|_| vram.buffer(rows * element_bytes, "resident columns"));
        let resident = Self {
            columns: buffers.collect::<Result<_>>()?,
            rows,
            element_bytes,
        };
        let chunking = Chunking::new(chunk_rows * element_bytes, element_bytes)?;
        // Dropped before the columns if anything fails, and then it waits for its stream.
        let mut ring = Ring::new(vram, chunking, 2)?;
        for (column, buffer) in (0..).zip(&resident.columns) {
            let mut source = |offset: u64, into: &mut [u8]| from.read(column, offset / element_bytes, into);
            ring.fill_buffer(buffer, rows * element_bytes, (&mut *upload, &mut source))?;
        }
        ring.finish()?;
        Ok(resident)
    }

    /// Rows of each.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Where a column begins, if it is here and as long as a program wants it.
    pub(super) fn address(&self, column: u32, rows: u64, element_bytes: u64) -> Result<u64> {
        let here = self.columns.get(column as usize);
        let right = (rows, element_bytes) == (self.rows, self.element_bytes);
        here.filter(|_| right).map(DeviceBuffer::address).ok_or_else(|| Error::Invalid {
            what: "resident columns",
            details: format!(
                "{} columns of {} elements of {} bytes, where column {column} of {rows} elements of {element_bytes} is read",
                self.columns.len(),
                self.rows,
                self.element_bytes
            ),
        })
    }
}
