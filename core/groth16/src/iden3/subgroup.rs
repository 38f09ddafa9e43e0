//! That the points of an array are in the subgroup of prime order.

use spillproof_commit::{PointsOf, check_subgroup};
use spillproof_format::iden3::PointRange;

use super::source::Source;
use spillproof_engine::Result;
use spillproof_engine::column::Column;
use spillproof_kernels::curve::{Curve, Point};

/// Refuses points outside of the subgroup. The column is an array of a file, behind so many points at
/// infinity, which are in the subgroup.
///
/// # Errors
/// Those of [`check_subgroup`].
pub(super) fn check<P: Curve>(
    source: &Source,
    points: &Column<Point<P>>,
    (range, lead): (&PointRange, u64),
) -> Result<()> {
    check_at::<P>(source, points, range, &|index| index.saturating_sub(lead))
}

/// The same, where `index_of` gives the place in the array of each point of the column.
///
/// # Errors
/// Those of [`check_subgroup`].
pub(super) fn check_at<P: Curve>(
    source: &Source,
    points: &Column<Point<P>>,
    range: &PointRange,
    index_of: &(dyn Fn(u64) -> u64 + Sync),
) -> Result<()> {
    let place = move |index: u64| {
        let index = index_of(index);
        (index, range.point_offset(index))
    };
    let of = PointsOf {
        file: source.path(),
        what: range.what,
        place: &place,
    };
    check_subgroup::<P>(points, &of)
}
