//! Whether the parts of an SRS belong together: g against s·g2 by one pairing equation, g_lagrange against g by one sum.
//!
//! For a random r, with n = 2^k and w the root of unity of order n:
//!
//! - `M = sum over i < n of r^i·g_i`. If g_(i+1) = s·g_i for all i, then `M - r^(n-1)·g_(n-1)` (all but the last) times s
//!   is `(M - g_0) / r` (all but the first): e(M - r^(n-1)·g_(n-1), s·g2) = e((M - g_0) / r, g2).
//! - The polynomial sum of r^i·X^i has the value (r^n - 1) / (r·w^j - 1) at w^j, so
//!   `sum over j < n of (r^n - 1) / (r·w^j - 1) · g_lagrange_j = M` if g_lagrange_j = L_j(s)·g.
//!
//! A wrong point makes either equation a non-zero polynomial of degree below n in r, so it goes unnoticed with
//! probability below n / r_modulus < 2^-225. Two streamed MSMs, two pairings. Each point is checked on the way (range, curve; all points of
//! the curve are in the subgroup).
//!
//! Memory: two read buffers, a tile of points and one of scalars (96 bytes a point), and the MSM's buckets; all leased,
//! nothing grows with k but the loop.

use std::path::Path;

use ark_bn254::{Bn254, Fr, G1Projective, g1};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::{Field, UniformRand, Zero};
use rayon::prelude::*;
use spillproof_format::params_kzg::root_of_unity;
use spillproof_format::{FormatError, native};

use super::srs::{G1, Srs};
use crate::column::{Column, Element, Workspace};
use crate::kernels::msm::MsmConfig;
use crate::kernels::poly::{invert_chunk, powers};
use crate::stream::{LeasedMsm, leased_kernel};
use crate::{Error, Result};

/// Points of G1 in a chunk, at most: 1 MiB of them.
const CHUNK_POINTS_MAX: u64 = 16 * 1024;
/// Points that one thread checks at a time, at least.
const POINTS_PER_TASK_MIN: usize = 256;

/// How far an import, an export or a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrsProgress {
    /// `g`, `g_lagrange`, `check g`, `check g_lagrange`.
    pub phase: &'static str,
    /// Points done in this phase.
    pub points: u64,
    /// Points of this phase.
    pub points_total: u64,
}

/// Points in a chunk that leaves most of the budget to others, in whole frames of `frame_points`.
pub(super) fn chunk_points(workspace: &Workspace, frame_points: u64) -> u64 {
    let affordable = workspace.budget.available_bytes() / 16 / 64;
    let points = affordable.min(CHUNK_POINTS_MAX);
    (points / frame_points).max(1) * frame_points
}

/// Checks that the monomial points, the Lagrange points (if there are any) and the pair belong together; see the module.
/// Every frame of both columns is read.
///
/// # Errors
/// [`Error::Format`] with [`FormatError::Point`] for what is no point of the curve; with [`FormatError::Inconsistent`] and the column's name
/// when they do not; [`Error::Invalid`] without monomial points; what reading columns may give.
pub fn check_srs(
    workspace: &Workspace,
    srs: &Srs,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<()> {
    workspace.run(|| check_in_turn(workspace, srs, progress))
}

fn check_in_turn(workspace: &Workspace, srs: &Srs, progress: &mut dyn FnMut(SrsProgress)) -> Result<()> {
    let (g, n, k) = (srs.monomial()?, srs.n(), srs.k());
    let inconsistent = |what| Error::Format {
        file: g.name().into(),
        source: FormatError::Inconsistent {
            what,
            remedy: "get the file again from its source",
        },
    };
    let challenge = Challenge::random(k).map_err(|source| Error::Format {
        file: g.name().into(),
        source,
    })?;
    let threads = rayon::current_num_threads();
    let config = MsmConfig::choose::<g1::Config>(n, 1, threads, workspace.budget.available_bytes() / 2)?;
    let (_msm_bytes, mut msm) = leased_kernel(config, &workspace.budget)?;

    let sum = weigh(
        workspace,
        g,
        &mut msm,
        |first, out| challenge.monomial(first, out),
        &mut |points| {
            progress(SrsProgress {
                phase: "check g",
                points,
                points_total: n,
            });
        },
    )?;
    let [g2, s_g2] = srs.pair();
    if sum.first.is_infinity() || g2.is_zero() || s_g2.is_zero() {
        return Err(inconsistent("g[0], g2 or s_g2 is the point at infinity"));
    }
    let (first, last) = (
        sum.first.to_projective::<g1::Config>(),
        sum.last.to_projective::<g1::Config>(),
    );
    let all_but_last = sum.total - last * challenge.r.pow([n - 1]);
    let all_but_first = (sum.total - first) * challenge.r_inverse;
    if Bn254::pairing(all_but_last, s_g2) != Bn254::pairing(all_but_first, g2) {
        return Err(inconsistent(
            "g and s_g2 do not belong together: g is not the powers of one secret",
        ));
    }
    if let Ok(column) = srs.lagrange() {
        let weights = |first, out: &mut [Fr]| challenge.lagrange(first, out);
        let lagrange = weigh(workspace, column, &mut msm, weights, &mut |points| {
            progress(SrsProgress {
                phase: "check g_lagrange",
                points,
                points_total: n,
            });
        })?;
        if lagrange.total != sum.total {
            return Err(inconsistent("g_lagrange is not the Lagrange form of g"));
        }
    }
    Ok(())
}

/// Opens an SRS container, reads every frame, and checks its parts against each other as at import. Gives k.
///
/// # Errors
/// Those of [`Srs::open`] and [`check_srs`].
pub fn verify_srs(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<u32> {
    let srs = Srs::open_container(workspace, path)?;
    check_srs(workspace, &srs, progress)?;
    Ok(srs.k())
}

/// The random r and what follows from it.
struct Challenge {
    r: Fr,
    r_inverse: Fr,
    omega: Fr,
    /// r^n - 1, not zero.
    numerator: Fr,
}

impl Challenge {
    fn random(k: u32) -> Result<Self, FormatError> {
        let omega = root_of_unity(k)?;
        let mut rng = rand::thread_rng();
        // Zero and the roots of unity (where a denominator is zero) are as likely as a guessed key.
        loop {
            if let Some(challenge) = Self::new(k, omega, Fr::rand(&mut rng)) {
                return Ok(challenge);
            }
        }
    }

    fn new(k: u32, omega: Fr, r: Fr) -> Option<Self> {
        let numerator = r.pow([1u64 << k]) - Fr::ONE;
        let r_inverse = r.inverse()?;
        (!numerator.is_zero()).then_some(Self {
            r,
            r_inverse,
            omega,
            numerator,
        })
    }

    /// `out[i] = r^(first + i)`: coefficients.
    fn monomial(&self, first: u64, out: &mut [Fr]) {
        powers(out, &self.r.pow([first]), &self.r);
    }

    /// `out[j] = (r^n - 1) / (r·w^(first + j) - 1)`: the same polynomial's values.
    fn lagrange(&self, first: u64, out: &mut [Fr]) {
        powers(out, &(self.r * self.omega.pow([first])), &self.omega);
        out.iter_mut().for_each(|value| *value -= Fr::ONE);
        invert_chunk(out);
        out.iter_mut().for_each(|value| *value *= self.numerator);
    }
}

/// Refuses what is no point of the curve, of points from index `first` of a column on.
fn check_points(column: &Column<G1>, first: u64, points: &[G1]) -> Result<()> {
    let fault_of = |point: &G1| {
        let mut bytes = [0; G1::BYTES];
        point.encode(&mut bytes);
        native::read_point::<g1::Config>(&bytes)
            .err()
            .map(|fault| (fault, bytes))
    };
    let found = (points.par_iter().enumerate().with_min_len(POINTS_PER_TASK_MIN))
        .find_map_first(|(at, point)| fault_of(point).map(|found| (at, found)));
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

struct Weighed {
    total: G1Projective,
    first: G1,
    last: G1,
}

/// The sum of a column's points, the i-th times the i-th weight; and its first and last point.
fn weigh(
    workspace: &Workspace,
    column: &Column<G1>,
    msm: &mut LeasedMsm<g1::Config>,
    weights: impl Fn(u64, &mut [Fr]),
    progress: &mut dyn FnMut(u64),
) -> Result<Weighed> {
    let chunk = chunk_points(workspace, column.frame_elements()).min(column.len().max(1));
    let mut points = workspace
        .budget
        .vec(chunk as usize, G1::INFINITY, "points being checked")?;
    let mut scalars = workspace
        .budget
        .vec(chunk as usize, Fr::zero(), "weights of points")?;
    let mut reader = column.read_ascending(chunk)?;
    let generator = G1::from_affine::<g1::Config>(&G1Projective::generator().into());
    let (mut done, mut first, mut last) = (0, generator, generator);
    while let Some(region) = reader.next_into(&mut points)? {
        let len = region.len() as usize;
        if done == 0 {
            first = points[0];
        }
        last = points[len - 1];
        check_points(column, done, &points[..len])?;
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

    /// Horner's rule, the naive twin.
    fn at(coefficients: &[Fr], x: Fr) -> Fr {
        coefficients
            .iter()
            .rev()
            .fold(Fr::zero(), |sum, coefficient| sum * x + coefficient)
    }

    #[test]
    fn the_weights_are_one_polynomial_in_two_bases() {
        for k in [0, 1, 3, 7] {
            let n = 1usize << k;
            let challenge = Challenge::random(k).expect("k in range");
            let mut coefficients = vec![Fr::zero(); n];
            // In chunks that do not divide n.
            for (i, chunk) in coefficients.chunks_mut(5).enumerate() {
                challenge.monomial(5 * i as u64, chunk);
            }
            let mut values = vec![Fr::zero(); n];
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
    fn a_challenge_in_the_domain_is_not_taken() {
        let omega = root_of_unity(4).expect("k in range");
        assert!(Challenge::new(4, omega, omega.pow([3])).is_none());
        assert!(Challenge::new(4, omega, Fr::zero()).is_none());
        assert!(Challenge::new(4, omega, Fr::from(2u64)).is_some());
    }
}
