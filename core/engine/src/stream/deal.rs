//! How the elements of a transform are dealt to ranks.
//!
//! `n = n1 * n2` elements are a matrix: element `i = i1 * n2 + i2` stands in row `i1` and column `i2`. A rank
//! has some neighbouring columns whole, and, after an exchange, some neighbouring rows whole: its share of
//! both is proportional to its weight, in grains of [`GRAIN`]. So the columns of each pass of a four-step
//! transform are on one rank (*FFTs in external or hierarchical memory*, Bailey, 1990), and nothing is
//! gathered. On disk, a share of columns is a matrix of n1 rows, row-major.
//!
//! A pass takes its share in groups of neighbouring columns, which are tiles in memory. A group's width is a
//! power of two; where a share is not a multiple of the widest, its last groups are narrower.

use std::ops::Range;

use crate::Result;
use crate::error::Invalid;

/// Rows and columns that a rank has are a multiple of it, unless one rank has all of them: then what passes
/// between two ranks is whole frames, since a product of two grains is a multiple of the smallest one.
pub(super) const GRAIN: u64 = 16;

/// How `2^log_n` elements are dealt to ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    log_lengths: [u32; 2],
    /// For rows, and for columns: where the share of each rank begins, and the end of all.
    bounds: [Vec<u64>; 2],
}

/// Neighbouring columns of a share, or rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The first one, counted from the start of the share.
    pub start: u64,
    /// How many.
    pub width: u64,
}

impl Deal {
    /// Shares in proportion to `weights`, one for each rank.
    ///
    /// # Errors
    /// [`Invalid::Zero`] without a weight above zero.
    pub fn new(log_n: u32, weights: &[u64]) -> Result<Self> {
        if weights.iter().all(|weight| *weight == 0) {
            return Err(Invalid::Zero {
                what: "the sum of the shares of all ranks",
            }
            .into());
        }
        let log_n1 = log_n / 2;
        let log_lengths = [log_n1, log_n - log_n1];
        let bounds = log_lengths.map(|log_length| {
            let len = 1u64 << log_length;
            bounds(len, GRAIN.min(len), weights)
        });
        Ok(Self { log_lengths, bounds })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.bounds[0].len() - 1
    }

    /// log2 of the number of elements of all ranks.
    pub fn log_n(&self) -> u32 {
        self.log_lengths.iter().sum()
    }

    /// Elements in a row of the matrix: n2.
    pub fn row_len(&self) -> u64 {
        1 << self.log_lengths[1]
    }

    /// The columns that a rank has: of the indices i, those whose `i % n2` is in this range.
    pub fn columns(&self, rank: usize) -> Range<u64> {
        self.share(Side::Columns, rank)
    }

    /// Elements of a rank's columns.
    pub fn share_len(&self, rank: usize) -> u64 {
        let columns = self.columns(rank);
        (columns.end - columns.start) << self.log_lengths[0]
    }

    /// Elements that a rank sends to each in an exchange of so many columns: from columns to rows in the first,
    /// back in the second. What it keeps is in it, and what fills frames.
    pub fn exchanged(&self, exchange: usize, rank: usize, columns: u64) -> Vec<u64> {
        let side = if exchange == 0 { Side::Columns } else { Side::Rows };
        let crossing = self.crossing(side, rank).into_iter();
        crossing.map(|elements| columns * stride_of(elements)).collect()
    }

    /// log2 of n1 and n2.
    pub(super) fn log_lengths(&self) -> [u32; 2] {
        self.log_lengths
    }

    /// What a rank has of a side.
    pub(super) fn share(&self, side: Side, rank: usize) -> Range<u64> {
        let bounds = &self.bounds[side as usize];
        bounds[rank]..bounds[rank + 1]
    }

    /// Rows, or columns, of the matrix.
    pub(super) fn len(&self, side: Side) -> u64 {
        1 << self.log_lengths[side as usize]
    }

    /// Elements that each rank has of both: of `mine` of this rank's side, and of the other side of each.
    pub(super) fn crossing(&self, side: Side, rank: usize) -> Vec<u64> {
        let mine = self.share(side, rank);
        let of = |other| {
            let theirs = self.share(side.other(), other);
            (mine.end - mine.start) * (theirs.end - theirs.start)
        };
        (0..self.ranks()).map(of).collect()
    }
}

/// Rows or columns of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Rows = 0,
    Columns = 1,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Rows => Self::Columns,
            Self::Columns => Self::Rows,
        }
    }
}

/// Elements of the smallest frame.
pub(super) const FRAME_MIN: u64 = 1 << 7;

/// The elements of one column that one rank sends to another, filled up to whole frames.
pub(super) fn stride_of(elements: u64) -> u64 {
    elements.next_multiple_of(FRAME_MIN)
}

/// Where shares of `0..len` begin, in proportion to `weights`, rounded down to grains, and the end.
pub fn bounds(len: u64, grain: u64, weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let grains = u128::from(len.div_ceil(grain.max(1)));
    let mut before = 0u128;
    let mut bounds = vec![0];
    for weight in weights {
        before += u128::from(*weight);
        let end = (grains * before / total.max(1)) as u64 * grain.max(1);
        bounds.push(end.min(len));
    }
    bounds
}

/// Groups of a share of `len`, none wider than `width`, a power of two.
pub(super) fn groups(len: u64, width: u64) -> impl Iterator<Item = Group> + Clone {
    let mut start = 0;
    std::iter::from_fn(move || {
        let left = len - start;
        (left > 0).then(|| {
            let group = Group {
                start,
                width: width.min(1 << left.ilog2()),
            };
            start += group.width;
            group
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_the_matrix_in_grains() {
        for (log_n, weights) in [
            (4, vec![1; 8]),
            (9, vec![1, 1]),
            (14, vec![1, 2, 3]),
            (20, vec![5, 0, 7, 1]),
        ] {
            let deal = Deal::new(log_n, &weights).unwrap();
            for side in [Side::Rows, Side::Columns] {
                let len = deal.len(side);
                let shares: Vec<_> = (0..weights.len()).map(|rank| deal.share(side, rank)).collect();
                assert_eq!((shares[0].start, shares[weights.len() - 1].end), (0, len));
                assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert!(shares.iter().all(|share| share.start % GRAIN.min(len) == 0));
            }
            let elements: u64 = (0..weights.len()).map(|rank| deal.share_len(rank)).sum();
            assert_eq!(elements, 1 << log_n);
        }
        assert!(Deal::new(4, &[0, 0]).is_err());
    }

    #[test]
    fn groups_are_powers_of_two_and_cover_a_share() {
        assert_eq!(groups(0, 64).count(), 0);
        for (len, width) in [(48, 64), (176, 64), (64, 16), (8, 64)] {
            let mut next = 0;
            for group in groups(len, width) {
                assert!(group.start == next && group.width.is_power_of_two() && group.width <= width);
                next += group.width;
            }
            assert_eq!(next, len);
        }
    }
}
