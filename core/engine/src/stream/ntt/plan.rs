//! How a transform larger than its tile is cut: the shape of the two passes, and the memory they take.
//!
//! `n = n1 * n2`, element `j = j1 * n2 + j2` (Bailey, *FFTs in external or hierarchical memory*, 1990). Pass
//! 1 takes panels of `columns1` columns of the row-major `n1 x n2` matrix, pass 2 panels of `columns2`
//! columns of the `n2 x n1` matrix of what pass 1 left; a panel is one tile,
//! `n1 * columns1 = n2 * columns2 = tile` elements. The product of the two widths is `tile^2 / n` whatever
//! the split, so the split only decides which pass gets the longer runs on disk.

use spillproof_format::header::FRAME_BYTES_MIN;

use crate::Result;
use crate::column::{Column, Element};
use crate::error::Invalid;

/// Bands that are being written at most: while the next tile is transformed, the disk has something to do.
pub(super) const BANDS_BEHIND: usize = 8;
/// A band is this part of a tile.
const LOG_BANDS_PER_TILE: u32 = 5;
/// A tile is read and written in so many slices, where its shape allows it.
const SLICES_MAX: u64 = 4;
/// Frames of what passes between the two passes.
const BETWEEN_FRAME_BYTES_MAX: u64 = 64 * 1024;

/// The shape of a transform of `2^log_n` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NttPlan {
    /// All elements fit the tile: one read, one write.
    Whole,
    /// Two passes over the disk.
    FourStep {
        /// log2 of the elements in a tile.
        log_tile: u32,
        /// log2 of the length of pass 1's transforms.
        log_n1: u32,
        /// log2 of the length of pass 2's transforms.
        log_n2: u32,
    },
}

/// log2 of the elements of the smallest frame, which one run on disk has at least: they fill whole blocks of
/// [`FRAME_BYTES_MIN`].
pub(super) fn log_run_min(element_bytes: u64) -> u32 {
    FRAME_BYTES_MIN
        .ilog2()
        .saturating_sub(element_bytes.trailing_zeros())
}

/// Bytes of a frame of `elements` (a power of two), or of as many as frames of about `most_bytes` take.
pub(super) fn run_frame_bytes(elements: u64, element_bytes: u64, most_bytes: u64) -> u64 {
    let most = 1 << (most_bytes / element_bytes).ilog2();
    elements.min(most).max(1 << log_run_min(element_bytes)) * element_bytes
}

impl NttPlan {
    /// The plan for a tile of `2^log_tile` elements of `element_bytes` on disk, where the input has frames of
    /// `frame_elements`.
    ///
    /// # Errors
    /// [`Invalid::Tile`] if the tile is too small for two passes: it has to hold `sqrt(n)` frames of the
    /// smallest size.
    pub fn new(log_n: u32, log_tile: u32, element_bytes: u64, frame_elements: u64) -> Result<Self> {
        if log_tile >= log_n {
            return Ok(Self::Whole);
        }
        let log_run_min = log_run_min(element_bytes);
        // log2 of columns1 * columns2, of which pass 2 needs a run at least.
        let log_widths = (2 * log_tile)
            .checked_sub(log_n)
            .filter(|widths| *widths >= log_run_min);
        let Some(log_widths) = log_widths else {
            return Err(Invalid::Tile {
                log_tile,
                log_n,
                log_needed: (log_n + log_run_min).div_ceil(2),
            }
            .into());
        };
        // Whole frames of the input if that can be had, else half of what there is; the rest is pass 2's.
        let log_columns1 = frame_elements
            .ilog2()
            .max(log_widths.div_ceil(2))
            .min(log_widths - log_run_min);
        let log_n1 = log_tile - log_columns1;
        Ok(Self::FourStep {
            log_tile,
            log_n1,
            log_n2: log_n - log_n1,
        })
    }

    /// log2 of the smallest tile that works for `2^log_n` elements of `element_bytes`.
    pub fn log_tile_min(log_n: u32, element_bytes: u64) -> u32 {
        (log_n + log_run_min(element_bytes)).div_ceil(2).min(log_n)
    }
}

/// What the choice of a tile has to know of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputShape {
    /// Bytes of an element in memory.
    pub(super) value_bytes: u64,
    /// Bytes of an element on disk.
    pub(super) element_bytes: u64,
    /// Elements in a frame.
    pub(super) frame_elements: u64,
    /// Bytes that are read at a time in order.
    pub(super) chunk_bytes: u64,
}

impl InputShape {
    /// Of the columns that a transform reads, all alike but for their frames.
    pub(super) fn of<'a, E: Element>(inputs: impl IntoIterator<Item = &'a Column<E>>) -> Self {
        let mut shape = Self {
            value_bytes: size_of::<E>() as u64,
            element_bytes: E::BYTES as u64,
            frame_elements: 1,
            chunk_bytes: 0,
        };
        for input in inputs {
            shape.frame_elements = shape.frame_elements.max(input.frame_elements());
            let chunk_bytes = input.sequential_chunk() * shape.element_bytes;
            shape.chunk_bytes = shape.chunk_bytes.max(chunk_bytes);
        }
        shape
    }

    /// Bytes leased for transforms of so many inputs of `2^log_n` values in memory.
    pub(super) fn whole_bytes(&self, log_n: u32, inputs: u64) -> u64 {
        ((inputs * self.value_bytes) << log_n) + 5 * self.chunk_bytes
    }

    /// Bytes leased for a pass with tiles of `2^log_tile` values of so many columns.
    pub(super) fn pass_bytes(&self, columns: u64, log_tile: u32, slices: Slices) -> u64 {
        let slice = (1 << log_tile) / slices.count;
        let raw_bytes = slices.ahead as u64 * self.element_bytes * slice.max(self.frame_elements);
        let band = 1u64 << log_band(log_tile, self.element_bytes);
        columns * ((self.value_bytes << log_tile) + raw_bytes)
            + band * (self.value_bytes + BANDS_BEHIND as u64 * self.element_bytes)
    }

    /// Bytes leased for a transform of one input.
    fn leased_bytes(&self, plan: NttPlan, log_n: u32) -> u64 {
        match plan {
            NttPlan::Whole => self.whole_bytes(log_n, 1),
            NttPlan::FourStep {
                log_tile,
                log_n1,
                log_n2,
            } => {
                let slices = Slices::of([log_tile; 2], [log_n1, log_n2], self.element_bytes);
                let passes = slices.map(|slices| self.pass_bytes(1, log_tile, slices));
                passes[0].max(passes[1])
            }
        }
    }
}

pub(super) fn log_band(log_tile: u32, element_bytes: u64) -> u32 {
    (log_tile - LOG_BANDS_PER_TILE.min(log_tile)).max(log_run_min(element_bytes))
}

pub(super) fn between_frame_bytes(block: u64, band: u64, element_bytes: u64) -> u64 {
    run_frame_bytes(block.min(band), element_bytes, BETWEEN_FRAME_BYTES_MAX)
}

/// How a tile of one of the passes is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slices {
    /// Slices of a tile.
    pub(super) count: u64,
    /// Slices on their way.
    pub(super) ahead: usize,
}

impl Slices {
    /// Those of both passes, whose transforms have lengths of `2^log_lengths`: whole groups of rows in the
    /// first, whole bands in the second.
    pub(super) fn of(log_tiles: [u32; 2], log_lengths: [u32; 2], element_bytes: u64) -> [Self; 2] {
        let [log_n1, log_n2] = log_lengths;
        let log_width2 = log_tiles[1] - log_n2;
        let log_band_rows = log_band(log_tiles[1], element_bytes).saturating_sub(log_width2);
        let slices = |log_units: u32| {
            let count = SLICES_MAX.min(1 << log_units);
            Self {
                count,
                ahead: if count > 1 { 2 } else { 1 },
            }
        };
        [
            slices(log_n1 - log_width2),
            slices(log_n2.saturating_sub(log_band_rows)),
        ]
    }
}

/// log2 of the largest tile whose leases fit `available` bytes; as the inner `Err`, the bytes that would do.
pub(super) fn largest_tile(shape: &InputShape, log_n: u32, available: u64) -> Result<Result<u32, u64>> {
    let log_min = NttPlan::log_tile_min(log_n, shape.element_bytes);
    let mut needed = u64::MAX;
    for log_tile in (log_min..=log_n).rev() {
        let plan = NttPlan::new(log_n, log_tile, shape.element_bytes, shape.frame_elements)?;
        let bytes = shape.leased_bytes(plan, log_n);
        if bytes <= available {
            return Ok(Ok(log_tile));
        }
        needed = needed.min(bytes);
    }
    Ok(Err(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_multiply_to_the_square_of_the_tile_over_n() {
        for log_n in 8..=28 {
            for log_tile in NttPlan::log_tile_min(log_n, 32)..log_n {
                let plan = NttPlan::new(log_n, log_tile, 32, 512).unwrap();
                let NttPlan::FourStep {
                    log_tile,
                    log_n1,
                    log_n2,
                } = plan
                else {
                    panic!("{plan:?}");
                };
                assert_eq!(log_n1 + log_n2, log_n);
                let (columns1, columns2) = (log_tile - log_n1, log_tile - log_n2);
                assert_eq!(columns1 + columns2, 2 * log_tile - log_n);
                assert!(columns2 >= 7, "runs of 4096 bytes: {plan:?}");
                assert!(columns1 <= log_n2 && columns2 <= log_n1, "{plan:?}");
            }
            if log_n > 7 {
                let too_small = NttPlan::log_tile_min(log_n, 32) - 1;
                assert!(NttPlan::new(log_n, too_small, 32, 512).is_err());
            }
        }
    }

    #[test]
    fn the_input_keeps_whole_frames_when_it_can() {
        let plan = NttPlan::new(22, 19, 32, 512).unwrap();
        assert_eq!(
            plan,
            NttPlan::FourStep {
                log_tile: 19,
                log_n1: 10,
                log_n2: 12
            }
        );
    }
}
