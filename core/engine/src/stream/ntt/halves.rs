//! The arithmetic of a four-step transform, on tiles in memory: each half transforms columns of a matrix, and
//! knows where in the matrix they stand.

use super::Tiles;
use crate::Result;
use crate::stream::Transform;
use crate::stream::deal::Group;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{Twiddles, Twist};

/// A transform of `n1 * n2` elements. A tile is row-major; its columns are neighbours in the matrix.
#[derive(Clone, Copy)]
pub(super) struct Halves<'a, F, T> {
    pub(super) tiles: &'a T,
    pub(super) transform: &'a Transform<F>,
    /// log2 of n1 and n2.
    pub(super) log_lengths: [u32; 2],
}

impl<F: KernelField, T: Tiles<F>> Halves<'_, F, T> {
    fn lengths(&self) -> [u64; 2] {
        self.log_lengths.map(|log_length| 1 << log_length)
    }

    /// Factors of the transforms of a half: 0 or 1.
    pub(super) fn twiddles(&self, half: usize) -> Result<Twiddles<F>> {
        let other = self.lengths()[1 - half];
        Ok(Twiddles::new(
            self.log_lengths[half],
            self.transform.omega.pow([other]),
        )?)
    }

    /// The first half of columns of the `n1 x n2` matrix of the input.
    pub(super) fn first(&self, tile: &mut [T::Element], columns: Group, twiddles: &Twiddles<F>) {
        let twist = Twist {
            root: self.transform.omega,
            first_row: 0,
            first_column: columns.start,
            scale: self.transform.scale,
            base: self.transform.before,
            row: F::ONE,
        };
        let before = self.transform.before.pow([self.lengths()[1]]);
        let width = columns.width as usize;
        self.tiles.columns(tile, width, twiddles, &before, Some(&twist));
    }

    /// The second half of columns of the `n2 x n1` matrix of what the first one left, transposed.
    pub(super) fn second(&self, tile: &mut [T::Element], columns: Group, twiddles: &Twiddles<F>) {
        let after = self.transform.after;
        let twist = Twist {
            root: F::ONE,
            first_row: 0,
            first_column: columns.start,
            scale: F::ONE,
            base: after,
            row: after.pow([self.lengths()[0]]),
        };
        let twist = (!after.is_one()).then_some(&twist);
        let width = columns.width as usize;
        self.tiles.columns(tile, width, twiddles, &F::ONE, twist);
    }
}
