//! Transforms of affine points: the sums of a transform of scalars, with points for the values.
//!
//! What costs is the multiplication by twiddles, some 1200 products in the base field each. So the
//! butterflies of a layer are taken in blocks ([`Multiplier`]): in the columns of a panel whole rows share a
//! twiddle, and a block of butterflies shares its inversions, whatever its twiddles are. A transform of n =
//! n1 * n2 points is one of n1 x n2 columns, a twist, and one of rows; of n * log2(n) / 2 products some n are
//! by 1 and left out. Outputs stand bit-reversed until the end.
//!
//! Memory: [`PointTransforms::bytes`], and tables of O(sqrt n) scalars.

use ark_ff::{Field, One};

use super::{Twiddles, Twist};
use crate::backend::Backend;
use crate::curve::{Curve, Point};
use crate::error::Result;
use crate::field::{CoordinateField, KernelField};
use crate::parallel::Parallel;
use crate::points::Multiplier;
use crate::poly::powers;

/// Transforms of points of `P`, and who is told of their progress.
pub struct PointTransforms<'a, P: Curve> {
    multiplier: Multiplier<P>,
    /// Gets points as each of `log2(n)` layers is done with them.
    progress: &'a (dyn Fn(u64) + Sync),
}

impl<'a, P: Curve> PointTransforms<'a, P> {
    /// With blocks of `block_points` butterflies. `progress` is called from any thread; all calls of a
    /// transform of n points add up to `n * log2(n)`.
    pub fn new(backend: Backend, block_points: usize, progress: &'a (dyn Fn(u64) + Sync)) -> Self {
        Self {
            multiplier: Multiplier::new(backend, block_points),
            progress,
        }
    }

    /// Bytes that blocks of `block_points` butterflies take on `threads` threads: the multiplier's, two
    /// points, and a scalar.
    pub fn bytes(threads: usize, block_points: usize) -> u64 {
        let each = 2 * size_of::<Point<P>>() + size_of::<P::ScalarField>();
        Multiplier::<P>::bytes(threads, block_points) + (threads * block_points * each) as u64
    }

    /// Multiplies row r of a panel by `before^r`, transforms every column (of `twiddles.size()` rows, `width`
    /// columns), in place, and multiplies by the twist if there is one. Panics if the panel's length is not
    /// their product.
    pub fn columns(
        &self,
        panel: &mut [Point<P>],
        width: usize,
        twiddles: &Twiddles<P::ScalarField>,
        before: &P::ScalarField,
        twist: Option<&Twist<P::ScalarField>>,
    ) {
        let height = twiddles.size();
        assert_eq!(
            panel.len(),
            height * width,
            "a panel has one row per point of the transform"
        );
        let one = P::ScalarField::ONE;
        self.twist(panel, width, &shift(one, *before), |row| row);
        self.layers(panel, width, twiddles);
        for row in 0..height {
            let other = twiddles.reverse(row);
            if row < other {
                let (above, below) = panel.split_at_mut(other * width);
                above[row * width..][..width].swap_with_slice(&mut below[..width]);
            }
        }
        if let Some(twist) = twist {
            self.twist(panel, width, twist, |row| row);
        }
    }

    /// Transforms `2^log_n` points in place: `output[i] = scale * after^i * sum over j of omega^(i * j) *
    /// before^j * input[j]`. Panics if there are more or fewer.
    ///
    /// # Errors
    /// [`crate::error::RootOfUnityError`] if `omega` is not a primitive root of that order.
    pub fn transform(
        &self,
        points: &mut [Point<P>],
        omega: P::ScalarField,
        before: &P::ScalarField,
        after: &P::ScalarField,
        scale: P::ScalarField,
    ) -> Result<()> {
        assert!(
            points.len().is_power_of_two(),
            "a transform's length is a power of two"
        );
        let log_n = points.len().ilog2();
        let (log_n1, log_n2) = (log_n / 2, log_n - log_n / 2);
        let row_len = 1usize << log_n2;
        let twiddles1 = Twiddles::new(log_n1, omega.pow([1 << log_n2]))?;
        let twiddles2 = Twiddles::new(log_n2, omega.pow([1 << log_n1]))?;

        let shifted = |base: &P::ScalarField| shift(*base, base.pow([row_len as u64]));
        self.twist(points, row_len, &shifted(before), |row| row);
        self.layers(points, row_len, &twiddles1);
        let twist = Twist {
            root: omega,
            scale,
            ..shift(P::ScalarField::ONE, P::ScalarField::ONE)
        };
        self.twist(points, row_len, &twist, |row| twiddles1.reverse(row));
        self.layers(points, 1, &twiddles2);
        // Columns and rows are bit-reversed, and the matrix is to be read by columns: that is all bits
        // reversed.
        if log_n > 0 {
            for place in 0..points.len() {
                let other = place.reverse_bits() >> (usize::BITS - log_n);
                if place < other {
                    points.swap(place, other);
                }
            }
        }
        self.twist(points, row_len, &shifted(after), |row| row);
        Ok(())
    }

    /// All layers on panels of `twiddles.size()` rows of `width` points, one after the other in memory, down
    /// the columns. Rows come out bit-reversed.
    fn layers(&self, panels: &mut [Point<P>], width: usize, twiddles: &Twiddles<P::ScalarField>) {
        let mut half = twiddles.size() / 2;
        while half >= 1 {
            self.layer(panels, half * width, twiddles.size() / (2 * half), twiddles);
            half /= 2;
        }
    }

    /// One layer: groups of two halves of `run` points, `groups` to a transform, each with its twiddle.
    fn layer(&self, panels: &mut [Point<P>], run: usize, groups: usize, twiddles: &Twiddles<P::ScalarField>) {
        let block = self.multiplier.block_points();
        if run >= block {
            panels
                .chunks_mut(2 * run)
                .enumerate()
                .parallel()
                .for_each(|(group, pair)| {
                    let (low, high) = pair.split_at_mut(run);
                    low.chunks_mut(block)
                        .zip(high.chunks_mut(block))
                        .parallel()
                        .for_each(|(low, high)| {
                            let scalars = match group % groups {
                                0 => Vec::new(),
                                group => vec![*twiddles.factor(group); low.len()],
                            };
                            self.multiplier.butterflies(low, high, &scalars);
                            (self.progress)(2 * low.len() as u64);
                        });
                });
            return;
        }
        let groups_together = block / run;
        let parts = panels
            .chunks_mut(2 * run * groups_together)
            .enumerate()
            .parallel();
        parts.for_each(|(part, pairs)| {
            let first = part * groups_together;
            let factor_is_one = |pair: usize| (first + pair).is_multiple_of(groups);
            // Butterflies without a product come first.
            let mut order: Vec<usize> = (0..pairs.len() / (2 * run)).collect();
            order.sort_by_key(|pair| !factor_is_one(*pair));
            let (mut low, mut high, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
            for &pair in &order {
                let points = &pairs[2 * run * pair..][..2 * run];
                low.extend_from_slice(&points[..run]);
                high.extend_from_slice(&points[run..]);
                if !factor_is_one(pair) {
                    let factor = *twiddles.factor((first + pair) % groups);
                    scalars.resize(scalars.len() + run, factor);
                }
            }
            self.multiplier.butterflies(&mut low, &mut high, &scalars);
            for (&pair, (low, high)) in order.iter().zip(low.chunks(run).zip(high.chunks(run))) {
                let points = &mut pairs[2 * run * pair..][..2 * run];
                points[..run].copy_from_slice(low);
                points[run..].copy_from_slice(high);
            }
            (self.progress)(pairs.len() as u64);
        });
    }

    /// Multiplies element (r, c) of a panel by its twist, where `row_of(r)` is the row that is meant.
    fn twist(
        &self,
        panel: &mut [Point<P>],
        width: usize,
        twist: &Twist<P::ScalarField>,
        row_of: impl Fn(usize) -> usize + Sync,
    ) {
        if [twist.root, twist.scale, twist.base, twist.row]
            .iter()
            .all(|factor| factor.is_one())
        {
            return;
        }
        // A block is some rows, or a part of one.
        let piece = width.min(self.multiplier.block_points());
        let rows = (self.multiplier.block_points() / width).max(1);
        let fill = |row: usize, column: usize, scalars: &mut [P::ScalarField]| {
            let row = twist.first_row + row_of(row) as u64;
            let column = twist.first_column + column as u64;
            let step = twist.root.pow([row]).times(&twist.base);
            let first = step
                .pow([column])
                .times(&twist.row.pow([row]))
                .times(&twist.scale);
            powers(scalars, &first, &step);
        };
        panel
            .chunks_mut(rows * width)
            .enumerate()
            .parallel()
            .for_each(|(part, panel)| {
                panel
                    .chunks_mut(rows * piece)
                    .enumerate()
                    .parallel()
                    .for_each(|(i, points)| {
                        let mut scalars = vec![P::ScalarField::ONE; points.len()];
                        for (row, scalars) in scalars.chunks_mut(piece).enumerate() {
                            fill(part * rows + row, i * piece, scalars);
                        }
                        // The first row of a transform is often multiplied by ones alone.
                        let ones = scalars.iter().take_while(|scalar| scalar.is_one()).count();
                        self.multiplier
                            .multiply_each(&mut points[ones..], &scalars[ones..]);
                    });
            });
    }
}

/// Powers of `base` along rows, and of `row` from row to row.
fn shift<F: KernelField>(base: F, row: F) -> Twist<F> {
    Twist {
        root: F::ONE,
        first_row: 0,
        first_column: 0,
        scale: F::ONE,
        base,
        row,
    }
}
