//! Sums of points with weights that follow from one random r, by which two columns are told to be two forms
//! of the same points.
//!
//! For points g_i and their Lagrange form g_lagrange_j, j-th power of a root of unity w of order n = 2^k: the
//! polynomial sum of r^i·X^i has the value (r^n - 1) / (r·w^j - 1) at w^j, so `sum over j < n of (r^n - 1) /
//! (r·w^j - 1) · g_lagrange_j = sum over i < n of r^i·g_i`. A wrong point makes the difference a non-zero
//! polynomial of degree below n in r, so it goes unnoticed with probability below n over the field's size.
//! The n-th of the g_i alone is `sum over j < n of w^-j · g_lagrange_j`, and r^(n-1) times that is its part
//! of both sums: columns whose last points differ, or lack one, are compared without it. Each point is
//! checked on the way (range, curve).
//!
//! Memory: two read buffers, a tile of points and one of scalars, and the MSM's buckets; all leased, nothing
//! grows with k but the loop.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::AdditiveGroup;
use spillproof_format::{FormatError, native};

use super::chunks::chunk_points;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Element, Workspace};
use spillproof_engine::stream::LeasedMsm;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::{invert_chunk, powers};

/// Points that one thread checks at a time.
const POINTS_PER_TASK: usize = 256;

/// The random r and what follows from it.
pub struct Challenge<F> {
    pub(super) r: F,
    pub(super) r_inverse: F,
    omega: F,
    /// n.
    rows: u64,
    /// r^n - 1, not zero.
    numerator: F,
}

impl<F: KernelField> Challenge<F> {
    /// For `2^k` points; `omega` is a root of unity of that order.
    pub fn random(k: u32, omega: F) -> Self {
        let mut rng = rand::thread_rng();
        // Zero and the roots of unity (where a denominator is zero) are as likely as a guessed key.
        loop {
            if let Some(challenge) = Self::new(k, omega, F::rand(&mut rng)) {
                return challenge;
            }
        }
    }

    fn new(k: u32, omega: F, r: F) -> Option<Self> {
        let numerator = r.pow([1u64 << k]) - F::ONE;
        let r_inverse = r.inverse()?;
        (!numerator.is_zero()).then_some(Self {
            r,
            r_inverse,
            omega,
            rows: 1 << k,
            numerator,
        })
    }

    /// `out[i] = r^(first + i)`: coefficients.
    pub fn monomial(&self, first: u64, out: &mut [F]) {
        powers(out, &self.r.pow([first]), &self.r);
    }

    /// `out[j] = (r^n - 1) / (r·w^(first + j) - 1)`: the same polynomial's values.
    pub fn lagrange(&self, first: u64, out: &mut [F]) {
        powers(out, &(self.r * self.omega.pow([first])), &self.omega);
        out.iter_mut().for_each(|value| *value -= F::ONE);
        invert_chunk(out);
        out.iter_mut().for_each(|value| *value *= self.numerator);
    }

    /// `out[j] = w^-(first + j)`: the values of the last power `X^(n-1)`.
    pub fn lagrange_of_last(&self, first: u64, out: &mut [F]) {
        // The inverse of a root of unity of order n is its power n - 1.
        let inverse = self.omega.pow([self.rows - 1]);
        powers(out, &inverse.pow([first]), &inverse);
    }

    /// As [`Self::lagrange`], of the polynomial without its last power: no point's share of `g_(n-1)` counts.
    pub fn lagrange_without_last(&self, first: u64, out: &mut [F]) {
        self.lagrange(first, out);
        let inverse = self.omega.pow([self.rows - 1]);
        let last = self.r.pow([self.rows - 1]);
        let mut value = last * inverse.pow([first]);
        for out in out {
            *out -= value;
            value *= inverse;
        }
    }
}

/// Refuses what is no point of the curve, of points from index `first` of a column on.
fn check_points<P: Curve>(column: &Column<Point<P>>, first: u64, points: &[Point<P>]) -> Result<()> {
    let fault_of = |point: &Point<P>| {
        let mut bytes = vec![0; Point::<P>::BYTES];
        point.encode(&mut bytes);
        native::read_point::<P>(&bytes).err().map(|fault| (fault, bytes))
    };
    let jobs = points.chunks(POINTS_PER_TASK).enumerate().parallel();
    let found = jobs.find_map_first(|(job, points)| {
        let mut places = (job * POINTS_PER_TASK..).zip(points);
        places.find_map(|(at, point)| fault_of(point).map(|found| (at, found)))
    });
    let Some((at, (fault, bytes))) = found else {
        return Ok(());
    };
    let index = first + at as u64;
    Err(Error::Format {
        file: column.name().into(),
        source: FormatError::Point {
            what: "G1 points",
            index,
            offset: column.file_offset(index),
            fault,
            value: spillproof_format::hex(&bytes),
        },
    })
}

/// See [`weigh`].
pub(super) struct Weighed<P: Curve> {
    pub(super) total: Projective<P>,
    pub(super) first: Point<P>,
    pub(super) last: Point<P>,
}

/// The sum of a column's points, the i-th times the i-th weight; and its first and last point.
///
/// # Errors
/// [`Error::Format`] with [`FormatError::Point`] for what is no point of the curve; what reading columns may
/// give.
pub(super) fn weigh<P: Curve>(
    workspace: &Workspace,
    column: &Column<Point<P>>,
    msm: &mut LeasedMsm<P>,
    weights: impl Fn(u64, &mut [P::ScalarField]),
    progress: &mut dyn FnMut(u64),
) -> Result<Weighed<P>> {
    let chunk = chunk_points(workspace, column.frame_elements()).min(column.len().max(1));
    let mut points = workspace
        .budget
        .vec(chunk as usize, Point::<P>::INFINITY, "points being checked")?;
    let mut scalars = workspace
        .budget
        .vec(chunk as usize, P::ScalarField::ZERO, "weights of points")?;
    let mut reader = column.read_ascending(chunk)?;
    let generator = Point::<P>::from_affine::<P>(&Affine::generator());
    let (mut done, mut first, mut last) = (0, generator, generator);
    while let Some(region) = reader.next_into(&mut points)? {
        let len = region.len() as usize;
        if done == 0 {
            first = points[0];
        }
        last = points[len - 1];
        check_points::<P>(column, done, &points[..len])?;
        weights(done, &mut scalars[..len]);
        msm.update(&points[..len], &[&scalars[..len]]);
        done += len as u64;
        progress(done);
    }
    let total = msm.drain().into_iter().next().unwrap_or_default();
    Ok(Weighed { total, first, last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::Fr;
    use ark_ff::Field;
    use spillproof_format::params_kzg::root_of_unity;

    fn challenge(k: u32) -> Challenge<Fr> {
        Challenge::random(k, root_of_unity(k).expect("k in range"))
    }

    /// Horner's rule, the naive twin.
    fn at(coefficients: &[Fr], x: Fr) -> Fr {
        coefficients
            .iter()
            .rev()
            .fold(Fr::ZERO, |sum, coefficient| sum * x + coefficient)
    }

    #[test]
    fn the_weights_are_one_polynomial_in_two_bases() {
        for k in [0, 1, 3, 7] {
            let n = 1usize << k;
            let challenge = challenge(k);
            let mut coefficients = vec![Fr::ZERO; n];
            // In chunks that do not divide n.
            for (i, chunk) in coefficients.chunks_mut(5).enumerate() {
                challenge.monomial(5 * i as u64, chunk);
            }
            let mut values = vec![Fr::ZERO; n];
            for (i, chunk) in values.chunks_mut(3).enumerate() {
                challenge.lagrange(3 * i as u64, chunk);
            }
            for (j, value) in values.iter().enumerate() {
                assert_eq!(
                    *value,
                    at(&coefficients, challenge.omega.pow([j as u64])),
                    "k = {k}, j = {j}"
                );
            }
        }
    }

    #[test]
    fn the_last_power_is_left_out_in_both_bases() {
        for k in [0, 1, 3, 7] {
            let n = 1usize << k;
            let challenge = challenge(k);
            let mut coefficients = vec![Fr::ZERO; n];
            challenge.monomial(0, &mut coefficients);
            coefficients[n - 1] = Fr::ZERO;
            let (mut values, mut of_last) = (vec![Fr::ZERO; n], vec![Fr::ZERO; n]);
            for (i, chunk) in values.chunks_mut(3).enumerate() {
                challenge.lagrange_without_last(3 * i as u64, chunk);
            }
            for (i, chunk) in of_last.chunks_mut(5).enumerate() {
                challenge.lagrange_of_last(5 * i as u64, chunk);
            }
            for j in 0..n {
                let x = challenge.omega.pow([j as u64]);
                assert_eq!(values[j], at(&coefficients, x), "k = {k}, j = {j}");
                assert_eq!(of_last[j], x.pow([n as u64 - 1]), "k = {k}, j = {j}");
            }
        }
    }

    #[test]
    fn a_challenge_in_the_domain_is_not_taken() {
        let omega: Fr = root_of_unity(4).expect("k in range");
        assert!(Challenge::new(4, omega, omega.pow([3])).is_none());
        assert!(Challenge::new(4, omega, Fr::ZERO).is_none());
        assert!(Challenge::new(4, omega, Fr::from(2u64)).is_some());
    }
}
