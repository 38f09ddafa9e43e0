//! Columns of scalars that stay on a device from job to job.
//!
//! A copy on the device is what the host has checked and sent, or what the device itself has computed and sent to the
//! host, so it is trusted as much as the job that made it; the host's column is not read again. It cannot be stale:
//! the elements under a [`ColumnId`] never change, and no other column gets the same one. It is overwritten and freed
//! when the engine says that the column is gone, when another job needs the memory, and when the device fails. Then
//! jobs read the column from the host again.

use spillproof_engine::accelerator::{ColumnId, ReadElements};

use crate::buffer::DeviceBuffer;
use crate::ntt::ELEMENT_BYTES;
use crate::raw::RawStream;
use crate::{Gpu, Vram};

/// The copies on one device, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Columns {
    all: Vec<KeptColumn>,
}

/// The copy of a column.
#[derive(Debug)]
pub(super) struct KeptColumn {
    buffer: DeviceBuffer,
    gpu: Gpu,
    id: Option<ColumnId>,
}

/// The column that a source reads, if it has all of the `bytes` that are wanted, and no zeros behind it.
pub(super) fn column_of(source: &dyn ReadElements, bytes: u64) -> Option<ColumnId> {
    let (id, len) = source.column()?;
    (len * ELEMENT_BYTES >= bytes).then_some(id)
}

impl KeptColumn {
    /// Room for a column of so many bytes.
    pub fn new(vram: &Vram, bytes: u64) -> crate::Result<Self> {
        Ok(Self::of(vram.buffer(bytes, "columns that stay")?, vram.gpu()))
    }

    /// A column whose elements are in a buffer.
    pub fn of(buffer: DeviceBuffer, gpu: &Gpu) -> Self {
        Self {
            buffer,
            gpu: gpu.clone(),
            id: None,
        }
    }

    pub fn buffer(&self) -> &DeviceBuffer {
        &self.buffer
    }

    /// The buffer, in place of which another one of the same length may be put.
    pub fn buffer_mut(&mut self) -> &mut DeviceBuffer {
        &mut self.buffer
    }
}

impl Drop for KeptColumn {
    fn drop(&mut self) {
        // No kernel uses it. A device that fails here is lost, or fails at the next job.
        let wipe = || {
            let stream = RawStream::new(self.gpu.context())?;
            stream.fill(self.buffer.memory(), 0, self.buffer.bytes(), 0)?;
            // A failed wait is tried once more, since the memory is freed then.
            stream.synchronize().or_else(|_| stream.synchronize())
        };
        if let Err(error) = wipe() {
            tracing::debug!(%error, "a column on the device was not overwritten");
        }
    }
}

impl Columns {
    /// What a source would read, of which `bytes` are wanted.
    pub fn find(&self, source: &dyn ReadElements, bytes: u64) -> Option<&DeviceBuffer> {
        let id = column_of(source, bytes)?;
        let is_it = |kept: &&KeptColumn| kept.id == Some(id) && kept.buffer.bytes() >= bytes;
        self.all.iter().find(is_it).map(KeptColumn::buffer)
    }

    /// The same, taken out until it is kept again.
    pub fn take(&mut self, source: &dyn ReadElements, bytes: u64) -> Option<(ColumnId, KeptColumn)> {
        let id = column_of(source, bytes)?;
        let is_it = |kept: &KeptColumn| kept.id == Some(id) && kept.buffer.bytes() >= bytes;
        let at = self.all.iter().position(is_it)?;
        Some((id, self.all.remove(at)))
    }

    /// Room for a column that may stay: others give way, the least recently used first, but not those of the job.
    pub fn room(&mut self, vram: &Vram, bytes: u64, of_the_job: &[ColumnId]) -> Option<KeptColumn> {
        loop {
            match KeptColumn::new(vram, bytes) {
                Ok(column) => return Some(column),
                Err(error) if error.is_memory_short() => {
                    let is_other = |kept: &KeptColumn| kept.id.is_none_or(|id| !of_the_job.contains(&id));
                    self.all.remove(self.all.iter().position(is_other)?);
                }
                Err(_) => return None,
            }
        }
    }

    /// Keeps the elements of a column, all of which are there.
    pub fn keep(&mut self, id: ColumnId, mut column: KeptColumn) {
        self.all.retain(|kept| kept.id != Some(id));
        column.id = Some(id);
        self.all.push(column);
    }

    /// Makes columns the most recently used.
    pub fn used(&mut self, ids: &[ColumnId]) {
        self.all
            .sort_by_key(|kept| kept.id.is_some_and(|id| ids.contains(&id)));
    }

    /// Takes out those of frames that are gone. Their drop overwrites and frees them, which takes a while.
    #[must_use]
    pub fn take_gone(&mut self, frames: &[u64]) -> Vec<KeptColumn> {
        let is_gone = |kept: &mut KeptColumn| kept.id.is_some_and(|id| frames.contains(&id.frames));
        self.all.extract_if(.., is_gone).collect()
    }

    /// Frees the least recently used one, if there is any.
    pub fn free_one(&mut self) -> bool {
        self.all.drain(..self.all.len().min(1)).count() > 0
    }

    pub fn free_all(&mut self) {
        self.all.clear();
    }
}
