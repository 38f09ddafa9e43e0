//! What a plan has to know of a quotient: sizes, and the rotations of its columns.

use std::collections::BTreeMap;

use super::domain::{CosetDomain, Source};
use crate::stages::program::Program;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Placement, SCRATCH_FRAME_BYTES, SpareBits};
use spillproof_kernels::field::KernelField;

pub(super) const SCALAR_BYTES: u64 = 32;

/// What a plan has to know of a quotient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotientShape {
    /// log2 of the coefficients in a column.
    pub log_n: u32,
    /// log2 of the number of cosets.
    pub log_cosets: u32,
    /// Columns of the result.
    pub pieces: usize,
    /// Smallest and largest rotation of each column that is read as coefficients.
    pub read: Vec<(i32, i32)>,
    /// Of these, columns that are on disk.
    pub read_on_disk: u64,
    /// Smallest and largest rotation of each column that is computed.
    pub computed: Vec<(i32, i32)>,
    /// Registers of the program.
    pub registers: usize,
    /// Scalars in a frame of the columns that are read, the largest.
    pub frame_elements: u64,
    /// Bits that scalars leave free: where they are too few for a frame's digest, digests are in memory.
    pub spare: Option<SpareBits>,
}

impl QuotientShape {
    /// The shape of `numerator` over `sources`. Columns that the program does not read count for nothing.
    pub fn new<F: KernelField + spillproof_engine::column::Element>(
        sources: &[Source<'_, F>],
        numerator: &Program<F>,
        domain: &CosetDomain<F>,
    ) -> Self {
        let (mut read, mut computed, mut frame_elements) = (Vec::new(), Vec::new(), 1);
        let mut read_on_disk = 0;
        for (index, source) in sources.iter().enumerate() {
            let Some(rotations) = numerator.rotations(index) else {
                continue;
            };
            match source {
                Source::Coefficients(column) => {
                    read.push(rotations);
                    read_on_disk += u64::from(column.on_disk());
                    frame_elements = column.frame_elements().max(frame_elements);
                }
                Source::Identity | Source::FirstLagrange => computed.push(rotations),
            }
        }
        Self {
            log_n: domain.log_n,
            log_cosets: domain.log_cosets,
            pieces: domain.pieces,
            read,
            read_on_disk,
            computed,
            registers: numerator.registers(),
            frame_elements,
            spare: F::SPARE,
        }
    }
}

impl QuotientShape {
    /// Pairs in rising order: a number of rows, and the number of columns whose rotations reach that many
    /// rows beyond a stretch.
    pub(super) fn halos<'a>(rotations: impl Iterator<Item = &'a (i32, i32)>) -> Vec<(u64, u64)> {
        let mut halos = BTreeMap::new();
        for rotations in rotations {
            *halos.entry(halo(*rotations)).or_insert(0) += 1;
        }
        halos.into_iter().collect()
    }

    /// The rows that rotations reach beyond a stretch, of all columns that are read together, of all but the
    /// first, and so on, down to none.
    pub(super) fn halos_from(&self) -> Vec<u64> {
        let mut sums = vec![0; self.read.len() + 1];
        for (index, rotations) in self.read.iter().enumerate().rev() {
            sums[index] = sums[index + 1] + halo(*rotations);
        }
        sums
    }

    /// Where the pieces are put.
    pub(super) fn results_in(&self, budget: &Budget) -> Placement {
        let piece_bytes = (SCALAR_BYTES << self.log_n).next_multiple_of(SCRATCH_FRAME_BYTES as u64);
        Placement::Auto.now(budget, self.pieces as u64 * piece_bytes)
    }
}

/// Rows of a window beyond the tile's own.
pub(super) fn halo((first, last): (i32, i32)) -> u64 {
    (i64::from(last) - i64::from(first)) as u64
}
