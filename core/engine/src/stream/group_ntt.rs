//! Transforms of columns of affine points: the sums of [`super::ntt`], with points for the values. This is
//! what takes an SRS from monomial to Lagrange form.
//!
//! The way over the disk is that of scalars: whole where the column fits a tile, else in four steps, two
//! reads and two writes. Memory: the same with a point for an element, and the multiplier's blocks:
//! [`PointTransforms::bytes`], 1.3 KiB for each point of a block on each thread. Blocks are as large as an
//! eighth of the free budget allows.

use std::sync::{Mutex, PoisonError};

use rayon::current_num_threads;

use super::ntt::{Tiles, in_tiles, log_tile_within};
use super::transform::Transform;
use crate::Result;
use crate::budget::{Budget, Lease};
use crate::column::{Column, Element, Placement};
use crate::dry::Work;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::ntt::{PointTransforms, Twiddles, Twist};
use spillproof_kernels::points::{BLOCK_POINTS_MAX, BLOCK_POINTS_MIN};

/// This part of the free budget is the multiplier's, if it wants that much.
const MULTIPLIER_SHARE: u64 = 8;

/// As [`super::ntt`], for a column of affine points. `progress` gets the points done, on average over the
/// transform's layers, of `2^log_n`; from any thread, one call at a time.
///
/// # Errors
/// As [`super::ntt`].
pub fn group_ntt<P>(
    input: &Column<Point<P>>,
    transform: &Transform<P::ScalarField>,
    placement: Placement,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Column<Point<P>>>
where
    P: Curve<BaseField: Element>,
{
    with_tiles::<P, _>(input, transform, progress, |tiles| {
        let available_bytes = input.workspace().budget.available_bytes();
        let log_tile = log_tile_within(input, transform.log_n, available_bytes)?;
        tracing::debug!(
            log_n = transform.log_n,
            log_tile,
            available_bytes,
            "streamed group NTT"
        );
        in_tiles(tiles, input, transform, placement, log_tile)
    })
}

/// Transforms with a tile of `2^log_tile` points, however much memory there is.
///
/// # Errors
/// As [`super::ntt_in_tiles`].
pub fn group_ntt_in_tiles<P>(
    input: &Column<Point<P>>,
    transform: &Transform<P::ScalarField>,
    placement: Placement,
    log_tile: u32,
) -> Result<Column<Point<P>>>
where
    P: Curve<BaseField: Element>,
{
    with_tiles::<P, _>(input, transform, &mut |_| (), |tiles| {
        in_tiles(tiles, input, transform, placement, log_tile)
    })
}

/// A multiplication's doublings and additions, in batched additions.
const ADDITIONS_PER_BUTTERFLY: f64 = 220.0;

/// Tiles of points, and the lease of what they are worked on with.
struct PointTiles<'a, P: Curve> {
    transforms: PointTransforms<'a, P>,
    _lease: Lease,
}

fn with_tiles<P: Curve, T: Send>(
    input: &Column<Point<P>>,
    transform: &Transform<P::ScalarField>,
    progress: &mut (dyn FnMut(u64) + Send),
    work: impl FnOnce(&PointTiles<'_, P>) -> Result<T> + Send,
) -> Result<T>
where
    Point<P>: Element,
{
    let workspace = input.workspace();
    let layers = u64::from(transform.log_n.max(1));
    let progress = Mutex::new((0, progress));
    let progress = |points| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.0 += points;
        let done = progress.0 / layers;
        (progress.1)(done);
    };
    workspace.run(|| {
        let block_points = block_points::<P>(&workspace.budget);
        let bytes = PointTransforms::<P>::bytes(current_num_threads(), block_points);
        work(&PointTiles {
            _lease: workspace.budget.lease(bytes, "multiples of points")?,
            transforms: PointTransforms::new(Backend::detect(), block_points, &progress),
        })
    })
}

/// Points in the blocks of a multiplier that takes a part of the free budget.
pub fn block_points<P: Curve>(budget: &Budget) -> usize {
    let share_bytes = budget.available_bytes() / MULTIPLIER_SHARE;
    let mut points = BLOCK_POINTS_MAX;
    while points > BLOCK_POINTS_MIN
        && PointTransforms::<P>::bytes(current_num_threads(), points) > share_bytes
    {
        points /= 2;
    }
    points
}

impl<P: Curve> Tiles<P::ScalarField> for PointTiles<'_, P>
where
    Point<P>: Element,
{
    type Element = Point<P>;
    const ZERO: Point<P> = Point::<P>::INFINITY;

    fn columns(
        &self,
        panel: &mut [Point<P>],
        width: usize,
        twiddles: &Twiddles<P::ScalarField>,
        before: &P::ScalarField,
        twist: Option<&Twist<P::ScalarField>>,
    ) {
        self.transforms.columns(panel, width, twiddles, before, twist);
    }

    fn whole(
        &self,
        points: &mut [Point<P>],
        _filled: usize,
        transform: &Transform<P::ScalarField>,
    ) -> Result<()> {
        let Transform {
            omega,
            before,
            after,
            scale,
            ..
        } = transform;
        Ok(self.transforms.transform(points, *omega, before, after, *scale)?)
    }

    fn work(butterflies: f64) -> Work {
        Work::additions(butterflies * ADDITIONS_PER_BUTTERFLY)
    }
}
