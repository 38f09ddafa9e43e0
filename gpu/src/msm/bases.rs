//! Points that stay on a device for several sums. Device memory: 64 bytes a point.

use super::plan::POINT_BYTES;
use crate::buffer::{DeviceBuffer, GRANULE_BYTES, leased_bytes};
use crate::error::{Result, Values};
use crate::ring::{Chunking, Ring, Source, Upload};
use crate::vram::Vram;

/// Points on a device, in the order of their upload.
#[derive(Debug)]
pub struct Bases {
    buffer: DeviceBuffer,
    points: u64,
}

impl Bases {
    /// Bytes of device memory that the points lease.
    pub fn vram_bytes(points: u64) -> u64 {
        leased_bytes(points * POINT_BYTES)
    }

    /// Leases memory for points, which a run with [`Points::Stay`](super::Points) fills.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`]; [`crate::Error::Invalid`] for no points.
    pub fn reserve(vram: &Vram, points: u64) -> Result<Self> {
        let bytes = points
            .checked_mul(POINT_BYTES)
            .unwrap_or(u64::MAX - GRANULE_BYTES);
        let buffer = vram.buffer(bytes, "MSM bases")?;
        Ok(Self { buffer, points })
    }

    /// Uploads `points` points in chunks of `chunk_points`, through a ring of two more buffers.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`]: sums can then stream their bases. [`crate::Error::Source`],
    /// [`crate::Error::Driver`]; [`crate::Error::Invalid`] for no points, or slots that are too short.
    pub fn upload(
        vram: &Vram,
        upload: &mut Upload,
        points: u64,
        chunk_points: u64,
        source: &mut dyn Source,
    ) -> Result<Self> {
        let chunking = Chunking::new(chunk_points.saturating_mul(POINT_BYTES), POINT_BYTES)?;
        let bases = Self::reserve(vram, points)?;
        // Declared after the bases, so dropped before them: it waits for its copies.
        let mut ring = Ring::new(vram, chunking, 2)?;
        ring.fill_buffer(&bases.buffer, points * POINT_BYTES, (upload, source))?;
        ring.finish()?;
        Ok(bases)
    }

    /// The number of points.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The buffer, if it has enough points for the sum.
    pub(super) fn for_points(&self, points: u64) -> Result<&DeviceBuffer> {
        Values::unless_at_most("points of a sum over resident bases", points, self.points)?;
        Ok(&self.buffer)
    }
}
