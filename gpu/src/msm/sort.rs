//! The launches of the radix sort, and its buffers: see `sort.cuh`.

use super::launch::{Grid, Kernel, launch};
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::kernels::{Argument, Kernels};
use crate::stream::Stream;
use crate::vram::Vram;

pub(super) const DIGIT_BITS: u32 = 4;
const DIGITS: u64 = 1 << DIGIT_BITS;
/// Pairs of a thread.
const RUN: u64 = 8;
/// Rows up to this length have small tiles.
const SHORT_ROW: u64 = 2048;

/// Threads of a tile.
fn threads(n: u64) -> u32 {
    if n <= SHORT_ROW { 32 } else { 128 }
}

fn tiles(n: u64) -> u64 {
    n.div_ceil(RUN * u64::from(threads(n)))
}

/// Words of counts for rows of up to `n` pairs.
pub(super) fn count_words(n: u64, rows: u64) -> u64 {
    DIGITS * rows * tiles(n).max(tiles(n.min(SHORT_ROW)))
}

/// Rows of pairs, and buffers for them after a pass.
#[derive(Debug)]
pub(super) struct Pairs {
    keys: [DeviceBuffer; 2],
    values: [DeviceBuffer; 2],
}

/// One side of the buffers.
#[derive(Clone, Copy)]
pub(super) struct PairBuffers<'pairs> {
    pub keys: &'pairs DeviceBuffer,
    pub values: &'pairs DeviceBuffer,
}

impl Pairs {
    pub fn new(vram: &Vram, bytes: u64, what: &'static str) -> Result<Self> {
        let two = || Ok::<_, Error>([vram.buffer(bytes, what)?, vram.buffer(bytes, what)?]);
        Ok(Self {
            keys: two()?,
            values: two()?,
        })
    }

    /// The buffers for the pairs to sort.
    pub fn unsorted(&self) -> PairBuffers<'_> {
        self.side(0)
    }

    fn side(&self, side: usize) -> PairBuffers<'_> {
        PairBuffers {
            keys: &self.keys[side],
            values: &self.values[side],
        }
    }
}

/// What is sorted.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortSize {
    /// Pairs of a row.
    pub pairs: u64,
    pub rows: u64,
    /// Bits of a key.
    pub bits: u32,
}

/// The kernels.
#[derive(Debug)]
pub(super) struct Sort {
    count: Kernel,
    scan: Kernel,
    scatter: Kernel,
}

impl Sort {
    pub fn new(kernels: &Kernels) -> Result<Self> {
        Ok(Self {
            count: kernels.kernel("spk_sort_count")?,
            scan: kernels.kernel("spk_scan")?,
            scatter: kernels.kernel("spk_sort_scatter")?,
        })
    }

    /// Sorts each row of pairs by its keys.
    pub fn sort<'pairs>(
        &self,
        stream: &Stream,
        pairs: &'pairs Pairs,
        counts: &DeviceBuffer,
        size: SortSize,
    ) -> Result<PairBuffers<'pairs>> {
        let SortSize { pairs: n, rows, bits } = size;
        let (threads, tiles) = (threads(n), tiles(n));
        let grid = |words: u32| Grid {
            blocks: (tiles as u32, rows as u32, 1),
            threads: (threads, 1, 1),
            shared_bytes: 4 * words * threads,
        };
        let scan_words = DIGITS * tiles;
        let scan_threads = if scan_words <= 1024 { 32 } else { 256 };
        let scan = Grid {
            blocks: (1, rows as u32, 1),
            threads: (scan_threads, 1, 1),
            shared_bytes: 4 * scan_threads,
        };
        let n = Argument::Word32(n as u32);
        let mut side = 0;
        for shift in (0..bits).step_by(DIGIT_BITS as usize) {
            let (from, to) = (pairs.side(side), pairs.side(1 - side));
            let shift = Argument::Word32(shift);
            let keys = Argument::Buffer(from.keys);
            launch(
                &self.count,
                stream,
                grid(16),
                &[keys, n, shift, Argument::Buffer(counts)],
            )?;
            launch(
                &self.scan,
                stream,
                scan,
                &[Argument::Buffer(counts), Argument::Word32(scan_words as u32)],
            )?;
            launch(
                &self.scatter,
                stream,
                grid(17),
                &[
                    keys,
                    Argument::Buffer(from.values),
                    n,
                    shift,
                    Argument::Buffer(counts),
                    Argument::Buffer(to.keys),
                    Argument::Buffer(to.values),
                ],
            )?;
            side = 1 - side;
        }
        Ok(pairs.side(side))
    }
}
