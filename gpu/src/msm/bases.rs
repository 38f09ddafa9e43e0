//! Points that stay on a device for several sums. Device memory: 64 bytes a point.

use super::plan::POINT_BYTES;
use crate::buffer::{DeviceBuffer, GRANULE_BYTES, leased_bytes};
use crate::error::{Result, Values};
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

    /// Leases memory for points, which a run with [`PointSource::StreamAndKeep`](super::PointSource) fills.
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

    /// The buffer, if it has enough points for the sum.
    pub(super) fn for_points(&self, points: u64) -> Result<&DeviceBuffer> {
        Values::unless_at_most("points of a sum over resident bases", points, self.points)?;
        Ok(&self.buffer)
    }
}
