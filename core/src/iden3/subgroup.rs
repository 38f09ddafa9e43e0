//! Whether points of a curve are in its subgroup of prime order r.
//!
//! A sum of the points, each with a random weight, is in the subgroup if they are. If one is not, what it has besides is of an order that a prime
//! factor of the cofactor divides, and vanishes from the sum with a probability of about one over that factor. Where the cofactor has no factor below
//! [`FACTOR_MIN`], [`SUMS`] sums over one pass leave 2^-65; on other curves, each point is checked.

use ark_ec::CurveConfig;
use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::Projective;
use ark_ff::{PrimeField, Zero};
use spillproof_format::iden3::PointRange;
use spillproof_format::{Element, FormatError, PointFault, hex};

use super::source::Source;
use super::weights::Weights;
use crate::Result;
use crate::column::Column;
use crate::kernels::curve::{Curve, Point};
use crate::parallel::Parallel;
use crate::stream::{Scalars, msm};

/// Sums of a check.
const SUMS: usize = 5;
/// Cofactors without a factor below this are checked by sums.
const FACTOR_MIN: u64 = 1 << 13;
/// Points that one thread checks at a time.
const JOB_POINTS: usize = 64;

/// Refuses points outside of the subgroup. For the error: their name, and the index in the file and the offset of the one at an index of the
/// column.
///
/// # Errors
/// [`crate::Error::Format`] with the first such point, or, for sums, without its index; what reading the column may give.
pub(super) fn check<P: Curve>(
    source: &Source,
    points: &Column<Point<P>>,
    (what, place): (&'static str, impl Fn(u64) -> (u64, u64) + Sync),
) -> Result<()> {
    if P::cofactor_is_one() {
        return Ok(());
    }
    if !has_factor_below(P::COFACTOR, FACTOR_MIN) {
        let weights: [Weights; SUMS] = std::array::from_fn(|_| Weights::random(0, points.len()));
        let scalars = weights.each_ref().map(|weights| Scalars::Foreign(weights));
        let sums = msm::<P>(points, &scalars)?;
        let is_inside =
            |sum: &Projective<P>| sum.mul_bigint(<P as CurveConfig>::ScalarField::MODULUS).is_zero();
        if sums.iter().all(is_inside) {
            return Ok(());
        }
    }
    check_each::<P>(source, points, (what, place))
}

/// The places of an array's points in a column that begins with so many points at infinity, which are in the subgroup.
pub(super) fn behind(range: &PointRange, lead: u64) -> impl Fn(u64) -> (u64, u64) + Sync {
    move |index| {
        let index = index.saturating_sub(lead);
        (index, range.point_offset(index))
    }
}

fn check_each<P: Curve>(
    source: &Source,
    points: &Column<Point<P>>,
    (what, place): (&'static str, impl Fn(u64) -> (u64, u64) + Sync),
) -> Result<()> {
    let chunk = points.sequential_chunk();
    let budget = &source.workspace.budget;
    let mut tile = budget.vec(
        chunk.min(points.len()) as usize,
        Point::<P>::INFINITY,
        "points being checked",
    )?;
    let mut reader = points.read_ascending(chunk)?;
    let mut first = 0;
    while let Some(region) = reader.next_into(&mut tile)? {
        let tile = &tile[..region.len() as usize];
        let is_inside = |point: &Point<P>| point.to_affine::<P>().is_in_correct_subgroup_assuming_on_curve();
        let outside = tile
            .chunks(JOB_POINTS)
            .enumerate()
            .parallel()
            .find_map_first(|(job, points)| {
                let at = points.iter().position(|point| !is_inside(point))?;
                Some(job * JOB_POINTS + at)
            });
        if let Some(at) = outside {
            let mut bytes = vec![0; Point::<P>::BYTES];
            tile[at].encode(&mut bytes);
            let (index, offset) = place(first + at as u64);
            return Err(source.refuse(FormatError::Point {
                what,
                index,
                offset,
                fault: PointFault::NotInSubgroup,
                value: hex(&bytes),
            }));
        }
        first += region.len();
    }
    Ok(())
}

/// Whether a number, its lowest limb first, has a factor from 2 to `limit`.
fn has_factor_below(limbs: &[u64], limit: u64) -> bool {
    let remainder = |divisor: u64| {
        let step = |remainder: u64, limb: &u64| {
            ((u128::from(remainder) << 64 | u128::from(*limb)) % u128::from(divisor)) as u64
        };
        limbs.iter().rev().fold(0, step)
    };
    (2..=limit).any(|divisor| remainder(divisor) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cofactor_decides() {
        let factors = |limbs: &[u64]| has_factor_below(limbs, FACTOR_MIN);
        assert!(
            !factors(ark_bn254::g2::Config::COFACTOR),
            "its smallest factor is 10069"
        );
        assert!(has_factor_below(ark_bn254::g2::Config::COFACTOR, 10069));
        assert!(factors(ark_bls12_381::g1::Config::COFACTOR), "3 divides it");
        assert!(factors(ark_bls12_381::g2::Config::COFACTOR), "13 divides it");
        assert!(has_factor_below(&[0, 1], 2) && !has_factor_below(&[1, 0], 100));
    }
}
