//! The shape of a streamed MSM, and the choice of it.
//!
//! Cost model, in units of one batched affine addition (about 6 field multiplications): each base costs one
//! addition per window; each bucket costs 2.2 at the end ([`super::reduce`]) and 0.02 per block of bases
//! (clearing and walking counters). The window that costs least among those whose workspace fits the lease is
//! taken.

use std::ops::RangeInclusive;

use crate::backend::Backend;
use crate::curve::{Curve, Point};
use crate::error::WorkspaceError;
use crate::msm::digits::{self, Digits};
use crate::msm::window::Worker;

/// Bases per block at most: 4 MiB of points of 64 bytes.
const BLOCK_POINTS_MAX: usize = 1 << 16;
const BLOCK_POINTS_MIN: usize = 1 << 8;
/// What memory comes in.
const PAGE_BYTES: usize = 4096;

/// Window, block and split of a streamed MSM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsmConfig {
    window_bits: u32,
    block_points: usize,
    columns: usize,
    chunks: usize,
    threads: usize,
    backend: Backend,
}

impl MsmConfig {
    /// Bits that a window may have: digits are kept in 16 bits.
    pub const WINDOW_BITS: RangeInclusive<u32> = 2..=16;

    /// A configuration by hand. `window_bits` is brought into 2..=16, the others to at least 1
    /// (`block_points`: 256 to 2^20).
    pub fn new(window_bits: u32, block_points: usize, columns: usize, threads: usize) -> Self {
        Self {
            window_bits: window_bits.clamp(*Self::WINDOW_BITS.start(), *Self::WINDOW_BITS.end()),
            block_points: block_points.clamp(BLOCK_POINTS_MIN, 1 << 20),
            columns: columns.max(1),
            chunks: 1,
            threads: threads.max(1),
            backend: Backend::detect(),
        }
    }

    /// The same on another backend than the machine's best. One that the machine lacks counts as portable.
    pub fn on(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// The same with so many chunks (of at most a block) in memory instead of one, at least one: some are
    /// added while others are made.
    pub fn in_chunks(self, chunks: usize) -> Self {
        Self {
            chunks: chunks.max(1),
            ..self
        }
    }

    /// Chunks in memory.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Blocks of digits of one column that are kept.
    pub(super) fn digit_sets(&self) -> usize {
        self.chunks * self.columns
    }

    /// The instructions that additions use.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The fastest configuration for sums over `points` bases whose workspace fits `lease_bytes`, with two
    /// chunks in memory.
    ///
    /// Errors: [`WorkspaceError`], which names the least that works.
    pub fn choose<P: Curve>(
        points: u64,
        columns: usize,
        threads: usize,
        lease_bytes: u64,
    ) -> Result<Self, WorkspaceError> {
        let with =
            |window_bits, block_points| Self::new(window_bits, block_points, columns, threads).in_chunks(2);
        let smallest = with(*Self::WINDOW_BITS.start(), BLOCK_POINTS_MIN);
        let mut best = None;
        let mut block_points = BLOCK_POINTS_MAX;
        while block_points >= BLOCK_POINTS_MIN {
            let useful = block_points == BLOCK_POINTS_MIN || (block_points as u64) < 2 * points;
            for window_bits in Self::WINDOW_BITS {
                let candidate = with(window_bits, block_points);
                if useful && candidate.workspace_bytes::<P>() <= lease_bytes {
                    let cost = candidate.cost::<P>(points);
                    if best.is_none_or(|(_, least)| cost < least) {
                        best = Some((candidate, cost));
                    }
                }
            }
            block_points /= 2;
        }
        best.map(|(config, _)| config).ok_or_else(|| WorkspaceError {
            columns,
            threads,
            needed_bytes: smallest.workspace_bytes::<P>(),
            limit_bytes: lease_bytes,
        })
    }

    /// Cost per column in batched additions.
    pub fn cost<P: Curve>(&self, points: u64) -> f64 {
        let windows = self.windows::<P>() as f64;
        let buckets = self.buckets_per_window() as f64;
        let blocks = points.div_ceil(self.block_points as u64) as f64;
        // Short rounds share an inversion among few, and queues are begun and ended: about 200 additions'
        // worth each, some four per window and block. Bases that share a bucket meet in the cache; the first
        // of a block in a bucket meets the resident sum.
        windows * (points as f64 + buckets * (2.2 + 0.4 * blocks) + 800.0 * blocks)
    }

    /// Bytes that [`super::Msm::new`] allocates: [`Self::block_bytes`], digits (block * windows * 2, for each
    /// chunk and column of [`Self::in_chunks`]), and per thread the sort (block * 4 + 2^(window_bits - 1) *
    /// 4), the queues (block * 4 + 2^(window_bits - 1) * 8 and up to 12 a bucket) and the adder (4096 * 88
    /// with coordinates of four limbs, 4096 * 136 with six).
    pub fn workspace_bytes<P: Curve>(&self) -> u64 {
        self.block_bytes::<P>()
            + self.digit_sets() as u64 * Digits::bytes(self.windows::<P>(), self.block_points)
            + self.threads as u64 * Worker::<P, Vec<Point<P>>>::bytes(self)
    }

    /// Bytes of its blocks of points, each in whole pages: buckets (columns * windows * 2^(window_bits - 1)
    /// points), and per thread the work array (block / 2 points, or 2^(window_bits - 2) if that is more).
    pub fn block_bytes<P: Curve>(&self) -> u64 {
        let block = |points: usize| (points * size_of::<Point<P>>()).next_multiple_of(PAGE_BYTES) as u64;
        let buckets = self.columns * self.windows::<P>() * self.buckets_per_window();
        let work = Worker::<P, Vec<Point<P>>>::work_points(self);
        block(buckets) + self.threads as u64 * block(work)
    }

    /// Bits of a digit, with its sign.
    pub fn window_bits(&self) -> u32 {
        self.window_bits
    }

    /// Bases that are worked on at a time. Chunks of a multiple of it waste nothing.
    pub fn block_points(&self) -> usize {
        self.block_points
    }

    /// Columns of scalars over one pass of the bases.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Threads that share the work.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Windows that a scalar has.
    pub fn windows<P: Curve>(&self) -> usize {
        digits::windows::<P::ScalarField>(self.window_bits)
    }

    pub(super) fn buckets_per_window(&self) -> usize {
        1 << (self.window_bits - 1)
    }

    /// Parts of a window, a power of two: so many that each thread has one.
    pub fn window_parts<P: Curve>(&self) -> usize {
        let parts = self.threads.div_ceil(self.columns * self.windows::<P>());
        parts.next_power_of_two().min(self.buckets_per_window())
    }
}
