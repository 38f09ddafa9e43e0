//! Points that stay on a device for several sums. Device memory: the bytes of a point of each column, for each
//! point.

use spillproof_engine::accelerator::Groups;

use crate::buffer::{DeviceBuffer, GRANULE_BYTES, leased_bytes};
use crate::error::{Result, Values};
use crate::vram::Vram;

/// Columns of points on a device, those of G1 first, one after the other, each in the order of its upload.
#[derive(Debug)]
pub struct Bases {
    buffer: DeviceBuffer,
    columns: Groups<u64>,
    points: u64,
}

/// Columns of [`Bases`] for sums: as many as the sums' plan has, from one of them on.
#[derive(Debug, Clone, Copy)]
pub struct BaseColumns<'b> {
    /// The columns.
    pub bases: &'b Bases,
    /// The number of the first.
    pub first: u64,
}

impl Bases {
    /// Bytes of device memory that the points lease.
    pub fn vram_bytes(columns: Groups<u64>, points: u64) -> u64 {
        leased_bytes(points * columns.point_bytes())
    }

    /// Leases memory for columns of so many points each, which a run with
    /// [`PointSource::StreamAndKeep`](super::PointSource) fills.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`]; [`crate::Error::Invalid`] for no points.
    pub fn reserve(vram: &Vram, columns: Groups<u64>, points: u64) -> Result<Self> {
        let bytes = points
            .checked_mul(columns.point_bytes())
            .unwrap_or(u64::MAX - GRANULE_BYTES);
        let buffer = vram.buffer(bytes, "MSM bases")?;
        Ok(Self {
            buffer,
            columns,
            points,
        })
    }
}

impl BaseColumns<'_> {
    /// Refuses sums that have more points, or other columns.
    pub(super) fn check(&self, columns: Groups<u64>, points: u64) -> Result<()> {
        Values::unless_at_most("points of a sum over resident bases", points, self.bases.points)?;
        let there = self.bases.columns.range(self.first..self.first + columns.count());
        Values::unless_at_most("columns of a sum over resident bases", columns.g1, there.g1)?;
        Ok(Values::unless_at_most(
            "columns of a sum over resident bases",
            columns.g2,
            there.g2,
        )?)
    }

    /// The buffer, and the place of a point of a column of the sums.
    pub(super) fn place(&self, column: u64, point: u64) -> (&DeviceBuffer, u64) {
        let Bases {
            buffer,
            columns,
            points,
        } = self.bases;
        let at = self.first + column;
        let before_bytes = points * columns.range(0..at).point_bytes();
        (buffer, before_bytes + point * columns.group_of(at).point_bytes())
    }
}
