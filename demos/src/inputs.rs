//! Points and scalars by the million, from a seed, in any order and any number of threads, with constant
//! memory.
//!
//! Points: `P_(l * m + j) = A_j + B_l`, with `m =` [`POINTS_PER_ROW`]; `A_j` and `B_l` are multiples of the
//! generator by hashes of the seed. Each point costs one mixed addition, and an MSM takes as long over them
//! as over random points. The seed gives their discrete logarithms: they are for measuring, not for
//! commitments.
//!
//! Scalars: hashes below the modulus, taken as Montgomery limbs, so that every library has the same scalar
//! from the same 32 bytes.

use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::BigInt;
use rayon::prelude::*;

use spillproof_circuits::axiom::stock::rows::Values;

/// Points that share one `B_l`.
pub const POINTS_PER_ROW: usize = 2048;

const LANE_A: u64 = 1;
const LANE_B: u64 = 2;
const LANE_SCALAR: u64 = 3;

/// The points that follow from a seed. Memory: 72 bytes for each of [`POINTS_PER_ROW`].
pub struct Points {
    values: Values,
    row: Vec<G1Affine>,
}

impl Points {
    /// Prepares the `A_j`.
    pub fn new(seed: u64) -> Self {
        let values = Values::new(seed);
        let row: Vec<G1Projective> = (0..POINTS_PER_ROW)
            .into_par_iter()
            .map(|j| G1Projective::generator() * scalar(values, j, LANE_A))
            .collect();
        Self {
            values,
            row: G1Projective::normalize_batch(&row),
        }
    }

    /// The points `[l * m, l * m + m)`.
    pub fn row(&self, l: usize) -> Vec<G1Affine> {
        let shift = (G1Projective::generator() * scalar(self.values, l, LANE_B)).into_affine();
        let sums: Vec<G1Projective> = self.row.iter().map(|point| *point + shift).collect();
        G1Projective::normalize_batch(&sums)
    }

    /// The first `n` points, in rows, `rows_at_once` of them made in parallel; each goes to `take` in order.
    ///
    /// # Errors
    /// The first one of `take`.
    pub fn stream<E>(
        &self,
        n: usize,
        rows_at_once: usize,
        mut take: impl FnMut(&[G1Affine]) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows: Vec<usize> = (0..n.div_ceil(POINTS_PER_ROW)).collect();
        let mut left = n;
        for some in rows.chunks(rows_at_once) {
            let made: Vec<Vec<G1Affine>> = some.par_iter().map(|&l| self.row(l)).collect();
            for row in made {
                let now = row.len().min(left);
                take(&row[..now])?;
                left -= now;
            }
        }
        Ok(())
    }
}

/// Scalar `i` of a seed.
pub fn scalar_at(seed: u64, i: usize) -> Fr {
    scalar(Values::new(seed), i, LANE_SCALAR)
}

/// Limbs below the modulus: the top limb is taken modulo the modulus' top limb, the others are free.
fn scalar(values: Values, i: usize, lane: u64) -> Fr {
    const MODULUS_TOP: u64 = 0x3064_4e72_e131_a029;
    let limb = |part: u64| values.bits(i, lane << 8 | part);
    Fr::new_unchecked(BigInt::new([limb(0), limb(1), limb(2), limb(3) % MODULUS_TOP]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::PrimeField;

    #[test]
    fn points_are_on_the_curve_and_follow_from_the_seed() {
        let mut all = Vec::new();
        let n = POINTS_PER_ROW + 5;
        Points::new(7)
            .stream(n, 4, |points| {
                all.extend_from_slice(points);
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!(all.len(), n);
        assert!(all.iter().all(|point| point.is_on_curve()));
        assert_eq!(Points::new(7).row(1)[..5], all[POINTS_PER_ROW..]);
        assert_ne!(Points::new(8).row(0)[0], all[0]);
        all.sort_by_key(|point| point.x);
        all.dedup();
        assert_eq!(all.len(), n);
    }

    #[test]
    fn scalars_are_below_the_modulus() {
        for i in 0..1000 {
            let scalar = scalar_at(3, i);
            assert!(scalar.0 < Fr::MODULUS);
        }
        assert_ne!(scalar_at(3, 0), scalar_at(3, 1));
    }
}
