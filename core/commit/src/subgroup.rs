//! Whether points of a curve are in its subgroup of prime order r.
//!
//! A sum of the points, each with a random weight, is in the subgroup if they are. If one is not, what it has
//! besides is of an order that a prime factor f of the cofactor divides, and vanishes from the sum with a
//! probability of about 1/f. So many sums are made that [`DOUBT_BITS`] are left with the smallest of the
//! factors: 5 over BN254's second group (10069), 42 and 18 over the groups of BLS12-381 (3 and 13). Weights
//! are short, since longer ones add nothing.

use std::path::Path;

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::Projective;
use spillproof_format::{Element, FormatError, PointFault, hex};

use super::weights::Weights;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::Column;
use spillproof_engine::stream::{Scalars, msm};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::parallel::Parallel;

/// A point outside of the subgroup is not found with a probability of 2^-65 at most.
const DOUBT_BITS: f64 = 65.0;
/// Larger factors of a cofactor count as this.
const FACTOR_MAX: u64 = 1 << 14;
/// Fewer points are checked one by one.
const SUMMED_POINTS_MIN: u64 = 1 << 10;
const WEIGHT_BYTES: usize = 2;
const WEIGHTS: u64 = 1 << (8 * WEIGHT_BYTES);
/// Points that one thread checks at a time.
const JOB_POINTS: usize = 64;

/// Where the points of a column came from, for errors.
pub struct PointsOf<'a> {
    /// The file.
    pub file: &'a Path,
    /// The array in it.
    pub what: &'static str,
    /// The index in the array, and the offset in the file, of the point at an index of the column.
    pub place: &'a (dyn Fn(u64) -> (u64, u64) + Sync),
}

/// Refuses points outside of the subgroup of prime order.
///
/// # Errors
/// [`Error::Format`] with the first such point; what reading the column may give.
pub fn check_subgroup<P: Curve>(points: &Column<Point<P>>, of: &PointsOf<'_>) -> Result<()> {
    if P::cofactor_is_one() {
        return Ok(());
    }
    if points.len() >= SUMMED_POINTS_MIN && have_sums_inside::<P>(points)? {
        return Ok(());
    }
    check_each::<P>(points, of)
}

/// Whether sums of the points are all in the subgroup.
fn have_sums_inside<P: Curve>(points: &Column<Point<P>>) -> Result<bool> {
    let weights = (0..sums(P::COFACTOR)).map(|_| Weights::<WEIGHT_BYTES>::random(0, points.len()));
    let weights: Vec<_> = weights.collect();
    let scalars: Vec<_> = (weights.iter().map(|weights| Scalars::Foreign(weights))).collect();
    let sums = msm::<P>(points, &scalars)?;
    // Not by a multiple of the order: curves whose products go by an endomorphism take scalars modulo r.
    let is_inside = |sum: &Projective<P>| sum.into_affine().is_in_correct_subgroup_assuming_on_curve();
    Ok(sums.iter().all(is_inside))
}

fn check_each<P: Curve>(points: &Column<Point<P>>, of: &PointsOf<'_>) -> Result<()> {
    let chunk = points.sequential_chunk();
    let budget = &points.workspace().budget;
    let mut tile = budget.vec(
        chunk.min(points.len()) as usize,
        Point::<P>::INFINITY,
        "points being checked",
    )?;
    let mut reader = points.read_ascending(chunk)?;
    let mut first = 0;
    while let Some(region) = reader.next_into(&mut tile)? {
        let tile = &tile[..region.len() as usize];
        let outside = tile
            .chunks(JOB_POINTS)
            .enumerate()
            .parallel()
            .find_map_first(|(job, points)| {
                let mut faults = (job * JOB_POINTS..).zip(points.iter().map(fault_of::<P>));
                faults.find_map(|(at, fault)| Some((at, fault?)))
            });
        if let Some((at, fault)) = outside {
            let mut bytes = vec![0; Point::<P>::BYTES];
            tile[at].encode(&mut bytes);
            let (index, offset) = (of.place)(first + at as u64);
            return Err(Error::Format {
                file: of.file.to_path_buf(),
                source: FormatError::Point {
                    what: of.what,
                    index,
                    offset,
                    fault,
                    value: hex(&bytes),
                },
            });
        }
        first += region.len();
    }
    Ok(())
}

/// A point off the curve is in no subgroup of it, whatever the check says that assumes that it is on it.
fn fault_of<P: Curve>(point: &Point<P>) -> Option<PointFault> {
    let point = point.to_affine::<P>();
    match point.is_on_curve() {
        false => Some(PointFault::NotOnCurve),
        true => (!point.is_in_correct_subgroup_assuming_on_curve()).then_some(PointFault::NotInSubgroup),
    }
}

/// Sums that a check takes, for a cofactor with its lowest limb first: a sum misses a point if its weight is
/// the one of all, modulo a factor of the cofactor, that the other points call for.
fn sums(cofactor: &[u64]) -> usize {
    let remainder = |divisor: u64| {
        let step = |remainder: u64, limb: &u64| {
            ((u128::from(remainder) << 64 | u128::from(*limb)) % u128::from(divisor)) as u64
        };
        cofactor.iter().rev().fold(0, step)
    };
    let factor = (2..FACTOR_MAX).find(|factor| remainder(*factor) == 0);
    let equal_weights = WEIGHTS.div_ceil(factor.unwrap_or(FACTOR_MAX));
    (DOUBT_BITS / (WEIGHTS as f64 / equal_weights as f64).log2()).ceil() as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ark_bls12_381::{Fq, g1};
    use ark_ec::short_weierstrass::Affine;
    use ark_ec::{AdditiveGroup, CurveConfig};
    use ark_ff::Field;

    use super::*;
    use spillproof_engine::budget::Budget;
    use spillproof_engine::column::{Placement, Workspace, Writer};
    use spillproof_engine::storage::Storage;
    use spillproof_kernels::curve::normalize;

    #[test]
    fn the_smallest_factor_of_a_cofactor_decides() {
        assert_eq!(sums(ark_bn254::g2::Config::COFACTOR), 5, "10069");
        assert_eq!(sums(g1::Config::COFACTOR), 42, "3");
        assert_eq!(sums(ark_bls12_381::g2::Config::COFACTOR), 18, "13");
        assert_eq!((sums(&[0, 1]), sums(&[1 << 13 | 1, 0])), (65, 42), "2 and 3");
        assert_eq!(sums(&[65537]), 5, "none below 2^14");
    }

    /// Whether sums of 1500 points of the subgroup pass, after these points were added to those at these
    /// places.
    fn sums_are_inside<P: Curve>(added: &[(usize, Projective<P>)]) -> bool {
        let storage = Storage::builder().dir(std::env::temp_dir()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(16 << 20));
        let (mut points, mut point) = (Vec::new(), Projective::<P>::from(P::GENERATOR));
        for _ in 0..1500 {
            points.push(point);
            point = point.double() + P::GENERATOR;
        }
        for (place, added) in added {
            points[*place] += added;
        }
        let points = normalize(&points);
        let mut writer = Writer::scratch(&workspace, "points", points.len() as u64, Placement::Disk).unwrap();
        writer.push(&points).unwrap();
        have_sums_inside::<P>(&writer.finish().unwrap()).unwrap()
    }

    fn sums_find_points_outside<P: Curve>() {
        assert!(sums_are_inside::<P>(&[]));
        let mut x = P::BaseField::ONE;
        let outside = loop {
            match Affine::<P>::get_point_from_x_unchecked(x, false) {
                Some(point) if !point.is_in_correct_subgroup_assuming_on_curve() => break point,
                _ => x += P::BaseField::ONE,
            }
        };
        assert!(!sums_are_inside::<P>(&[(1000, outside.into())]));
    }

    #[test]
    fn points_outside_are_found() {
        sums_find_points_outside::<ark_bn254::g2::Config>();
        sums_find_points_outside::<ark_bls12_381::g2::Config>();
        sums_find_points_outside::<g1::Config>();
    }

    #[test]
    fn points_of_order_three_are_found() {
        let order_three: Projective<g1::Config> = Affine::new_unchecked(Fq::ZERO, Fq::from(2)).into();
        assert_eq!(order_three.double(), -order_three);
        assert!(!sums_are_inside(&[(700, order_three)]));
        assert!(!sums_are_inside(&[(1, order_three), (1499, -order_three)]));
    }
}
