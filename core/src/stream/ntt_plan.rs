//! How a transform larger than its tile is cut: the shape of the two passes, and the memory they take.
//!
//! `n = n1 * n2`, element `j = j1 * n2 + j2` (Bailey, *FFTs in external or hierarchical memory*, 1990). Pass 1 takes panels
//! of `columns1` columns of the row-major `n1 x n2` matrix, pass 2 panels of `columns2` columns of the `n2 x n1` matrix of
//! what pass 1 left; a panel is one tile, `n1 * columns1 = n2 * columns2 = tile` elements. The product of the two widths is
//! `tile^2 / n` whatever the split, so the split only decides which pass gets the longer runs on disk.

use spillproof_format::header::FRAME_BYTES_MIN;

use crate::Result;
use crate::error::Invalid;

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

/// log2 of the elements of the smallest frame, which one run on disk has at least: they fill whole blocks of [`FRAME_BYTES_MIN`].
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
    /// [`Invalid::Tile`] if the tile is too small for two passes: it has to hold `sqrt(n)` frames of the smallest size.
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
