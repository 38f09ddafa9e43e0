//! Points that stay on a device for several sums. Device memory: 64 bytes a point.

use super::plan::POINT_BYTES;
use crate::buffer::{DeviceBuffer, GRANULE_BYTES, leased_bytes};
use crate::error::{Error, Result};
use crate::ring::{Chunking, Ring, Source, Upload};
use crate::vram::Vram;

/// Bases on a device, in the order in which they came.
#[derive(Debug)]
pub struct Bases {
    buffer: DeviceBuffer,
    points: u64,
}

impl Bases {
    /// Bytes of device memory that so many points lease, once they are there.
    pub fn vram_bytes(points: u64) -> u64 {
        leased_bytes(points * POINT_BYTES)
    }

    /// Room for so many; a run with [`Points::Stay`](super::Points) brings them.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`]; [`Error::Invalid`] for no points.
    pub fn reserve(vram: &Vram, points: u64) -> Result<Self> {
        let bytes = points
            .checked_mul(POINT_BYTES)
            .unwrap_or(u64::MAX - GRANULE_BYTES);
        let buffer = vram.buffer(bytes, "MSM bases")?;
        Ok(Self { buffer, points })
    }

    /// Uploads `points` points in chunks of `chunk_points`, through two more buffers of that length.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`]: then sums run with bases that pass. [`Error::Source`], [`Error::Driver`];
    /// [`Error::Invalid`] for no points, or slots that are too short.
    pub fn upload(
        vram: &Vram,
        upload: &mut Upload,
        points: u64,
        chunk_points: u64,
        source: &mut dyn Source,
    ) -> Result<Self> {
        let chunking = Chunking::new(chunk_points.saturating_mul(POINT_BYTES), POINT_BYTES)?;
        let bases = Self::reserve(vram, points)?;
        // After the bases, so dropped before them: if the job fails it has waited for its copies.
        let mut ring = Ring::new(vram, chunking, 2)?;
        ring.fill_buffer(&bases.buffer, points * POINT_BYTES, (upload, source))?;
        ring.finish()?;
        Ok(bases)
    }

    /// How many there are.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Where they are, if they are enough for a sum of so many.
    pub(super) fn for_points(&self, points: u64) -> Result<&DeviceBuffer> {
        if points > self.points {
            return Err(Error::Invalid {
                what: "bases of an MSM",
                details: format!("{} are on the device, and the sum is of {points}", self.points),
            });
        }
        Ok(&self.buffer)
    }
}
