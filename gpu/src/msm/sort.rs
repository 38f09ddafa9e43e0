//! The launches of the radix sort, and its buffers: see `sort.cuh`.

use super::launch::{Grid, Kernel, launch};
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::kernels::{Argument, Kernels};
use crate::stream::Stream;
use crate::vram::Vram;

/// Pairs of a thread in shared memory.
const RUN: u64 = 8;
/// Rows up to this length have small tiles and few digits, so that their counts take little memory.
const SHORT_ROW: u64 = 2048;
/// Threads of a tile of a longer row.
const THREADS: u32 = 256;
/// Tiles of all rows that keep a device busy: longer tiles have fewer counts to scan.
const TILES_WANTED: u64 = 128;
/// The most blocks of pairs of a tile.
const BLOCKS_MAX: u64 = 8;
/// Bits of the digits of a longer row.
const DIGIT_BITS: u32 = 8;
/// Values that are counted for each thread in shared memory.
const SPLITS: u32 = 16;

/// How rows are cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    threads: u32,
    /// Pairs of a tile.
    tile: u64,
    /// Bits of a digit.
    bits: u32,
}

impl Cut {
    fn of(n: u64, rows: u64) -> Self {
        if n <= SHORT_ROW {
            return Self {
                threads: 32,
                tile: 32 * RUN,
                bits: 4,
            };
        }
        let block = u64::from(THREADS) * RUN;
        Self {
            threads: THREADS,
            tile: block * (n * rows / (block * TILES_WANTED)).clamp(1, BLOCKS_MAX),
            bits: DIGIT_BITS,
        }
    }
}

/// Passes over rows of `n` pairs with keys of `bits` bits.
pub(super) fn passes(n: u64, rows: u64, bits: u32) -> u64 {
    u64::from(bits.div_ceil(Cut::of(n, rows).bits))
}

/// Words of counts for rows of up to `n` pairs.
pub(super) fn count_words(n: u64, rows: u64) -> u64 {
    let words = |n: u64| {
        let cut = Cut::of(n, rows);
        (rows * n.div_ceil(cut.tile)) << cut.bits
    };
    // A shorter row may be cut into shorter tiles, and so into more of them: at most twice as many as are wanted, and
    // one more for each row.
    let block = u64::from(THREADS) * RUN;
    let of_shorter = (rows * n.div_ceil(block)).min(2 * TILES_WANTED + rows) << DIGIT_BITS;
    let longest = if n > SHORT_ROW {
        words(n).max(of_shorter)
    } else {
        words(n)
    };
    longest.max(words(n.min(SHORT_ROW)))
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
#[derive(Clone, Copy)]
pub(super) struct SortSize<'a> {
    /// Pairs of a row, or the most of them.
    pub pairs: u64,
    /// The word on the device that says how many there are.
    pub length: Option<&'a DeviceBuffer>,
    pub rows: u64,
    /// Bits of a key.
    pub bits: u32,
}

/// A pointer to the first word of a buffer, or none.
pub(super) fn pointer(buffer: Option<&DeviceBuffer>) -> Argument<'_> {
    buffer.map_or(Argument::Word64(0), Argument::Buffer)
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
        pairs_of: &'pairs Pairs,
        counts: &DeviceBuffer,
        size: SortSize<'_>,
    ) -> Result<PairBuffers<'pairs>> {
        let SortSize {
            pairs: n,
            length,
            rows,
            bits,
        } = size;
        let length = pointer(length);
        let cut = Cut::of(n, rows);
        let (threads, tiles) = (cut.threads, n.div_ceil(cut.tile));
        let grid = |words: u32| Grid {
            blocks: (tiles as u32, rows as u32, 1),
            threads: (threads, 1, 1),
            shared_bytes: 4 * words,
        };
        // The memory of `Scatter` in the kernels.
        let pairs = threads * RUN as u32;
        let scatter_words = 2 * (pairs + pairs / 32) + (SPLITS + 1) * threads + (2 << DIGIT_BITS);
        let [n, tile] = [n, cut.tile].map(|value| Argument::Word32(value as u32));
        let mut side = 0;
        for shift in (0..bits).step_by(cut.bits as usize) {
            let (from, to) = (pairs_of.side(side), pairs_of.side(1 - side));
            let digit_bits = cut.bits.min(bits - shift);
            let scan_words = tiles << digit_bits;
            let scan_threads = if scan_words <= 1024 { 32 } else { 256 };
            let scan = Grid {
                blocks: (1, rows as u32, 1),
                threads: (scan_threads, 1, 1),
                shared_bytes: 4 * scan_threads,
            };
            let [shift, bits] = [shift, digit_bits].map(Argument::Word32);
            let keys = Argument::Buffer(from.keys);
            launch(
                &self.count,
                stream,
                grid(1 << digit_bits),
                &[keys, n, length, shift, bits, tile, Argument::Buffer(counts)],
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
                grid(scatter_words),
                &[
                    keys,
                    Argument::Buffer(from.values),
                    n,
                    length,
                    shift,
                    bits,
                    tile,
                    Argument::Buffer(counts),
                    Argument::Buffer(to.keys),
                    Argument::Buffer(to.values),
                ],
            )?;
            side = 1 - side;
        }
        Ok(pairs_of.side(side))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_shorter_rows_fit() {
        for rows in [1, 2, 15, 85, 255] {
            for longest in [1, 300, 2048, 2049, 20_000, 300_000, 1_000_000, 1 << 22] {
                let shorter = (1..=longest)
                    .step_by(1 + longest as usize / 999)
                    .chain([longest.min(2048)]);
                for n in shorter.chain([longest]) {
                    let cut = Cut::of(n, rows);
                    let words = (rows * n.div_ceil(cut.tile)) << cut.bits;
                    assert!(
                        words <= count_words(longest, rows),
                        "{n} of {longest} pairs, {rows} rows"
                    );
                }
            }
        }
    }
}
