//! Columns on the host, by rows, and columns that stay on the device.

use crate::buffer::{DeviceBuffer, leased_bytes};
use crate::error::{BoxedError, Invalid, Result};
use crate::ring::{Chunking, Ring, Upload};
use crate::vram::Vram;

/// The source of a program's columns.
pub trait ReadColumns {
    /// Fills `into` with elements of `column` from row `first` on. Never past the last row.
    ///
    /// # Errors
    /// Any error; the job ends with [`crate::Error::Source`].
    fn read(&mut self, column: u32, first: u64, into: &mut [u8]) -> Result<(), BoxedError>;
}

/// The destination of a program's outputs.
pub trait WriteColumns {
    /// Takes elements of `output` from row `first` on.
    ///
    /// # Errors
    /// Any error; the job ends with [`crate::Error::Sink`].
    fn write(&mut self, output: u32, first: u64, bytes: &[u8]) -> Result<(), BoxedError>;
}

/// Whole columns on a device, for programs that read them more than once. Device memory: columns * rows *
/// bytes of an element.
#[derive(Debug)]
pub struct Resident {
    columns: Vec<DeviceBuffer>,
    rows: u64,
    element_bytes: u64,
}

impl Resident {
    /// Bytes of device memory that the columns lease, and two buffers of a chunk during the upload.
    pub fn vram_bytes(columns: u32, rows: u64, element_bytes: u64, chunk_rows: u64) -> u64 {
        let bytes = |rows: u64| leased_bytes(rows * element_bytes);
        u64::from(columns) * bytes(rows) + 2 * bytes(chunk_rows)
    }

    /// Uploads columns `0 .. columns`, in chunks of `chunk_rows`.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`], [`crate::Error::Source`], [`crate::Error::Driver`];
    /// [`crate::Error::Invalid`] for slots that are too short, or empty columns.
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
        // Declared after the columns, so dropped before them: it waits for its stream.
        let mut ring = Ring::new(vram, chunking, 2)?;
        for (column, buffer) in (0..).zip(&resident.columns) {
            let mut source = |offset: u64, into: &mut [u8]| from.read(column, offset / element_bytes, into);
            ring.fill_buffer(buffer, rows * element_bytes, (&mut *upload, &mut source))?;
        }
        ring.finish()?;
        Ok(resident)
    }

    /// Rows of each column.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The address of a column, if it is resident and has the length that the program reads.
    pub(super) fn address(&self, column: u32, rows: u64, element_bytes: u64) -> Result<u64> {
        let here = self.columns.get(column as usize);
        let right = (rows, element_bytes) == (self.rows, self.element_bytes);
        here.filter(|_| right).map(DeviceBuffer::address).ok_or_else(|| {
            Invalid::ResidentColumn {
                column,
                rows,
                element_bytes,
                resident_columns: self.columns.len(),
                resident_rows: self.rows,
                resident_element_bytes: self.element_bytes,
            }
            .into()
        })
    }
}
