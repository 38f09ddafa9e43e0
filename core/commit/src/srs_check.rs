//! Whether the parts of an SRS belong together: g against s·g2 by one pairing equation, g_lagrange against g
//! by one sum.
//!
//! For a random r, with n = 2^k and w the root of unity of order n:
//!
//! - `M = sum over i < n of r^i·g_i`. If g_(i+1) = s·g_i for all i, then `M - r^(n-1)·g_(n-1)` (all but the
//!   last) times s is `(M - g_0) / r` (all but the first): e(M - r^(n-1)·g_(n-1), s·g2) = e((M - g_0) / r,
//!   g2).
//! - The Lagrange points have the same sum M with other weights ([`super::weigh`]) if g_lagrange_j =
//!   L_j(s)·g.
//!
//! A wrong point makes either equation a non-zero polynomial of degree below n in r, so it goes unnoticed
//! with probability below n / r_modulus < 2^-222. Two streamed MSMs, two pairings. Each point is checked on
//! the way (range, curve); that points of BLS12-381 are in the subgroup, sums of their own say
//! ([`super::subgroup`]), before.
//!
//! Memory: two read buffers, a tile of points and one of scalars (96 bytes a point), and the MSM's buckets;
//! all leased, nothing grows with k but the loop.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_ff::Field;
use spillproof_format::params_kzg::{Region, root_of_unity};
use spillproof_format::{Curve as CurveId, FormatError};

use super::compiled::KzgCurve;
use super::srs::{Srs, opened};
use super::subgroup::{PointsOf, check_subgroup};
use super::weigh::{Challenge, weigh};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, Workspace};
use spillproof_engine::stream::leased_kernel;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::msm::MsmConfig;
use spillproof_kernels::pairing::PairingGroups;

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

/// Checks that the monomial points, the Lagrange points (if there are any) and the pair belong together; see
/// the module. Every frame of both columns is read.
///
/// # Errors
/// [`Error::Format`] with [`FormatError::Point`] for what is no point of the curve; with
/// [`FormatError::Inconsistent`] and the column's name when they do not; [`Error::Invalid`] without monomial
/// points; what reading columns may give.
pub fn check_srs<E: KzgCurve>(
    workspace: &Workspace,
    srs: &Srs<E>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<()> {
    E::check_srs(workspace, srs, progress)
}

pub(super) fn check_over<E: PairingGroups>(
    workspace: &Workspace,
    srs: &Srs<E>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<()> {
    workspace.run(|| {
        let subgroup = |region: Region, points: &Column<_>| {
            let place = |index| (index, points.file_offset(index));
            check_region::<E::G1Config>(points, region, (points.name().as_ref(), &place))
        };
        subgroup(Region::G, srs.monomial()?)?;
        if let Ok(points) = srs.lagrange() {
            subgroup(Region::GLagrange, points)?;
        }
        check_parts(workspace, srs, progress)
    })
}

/// Refuses points of a region outside of the subgroup. For the error: the file, and the index in the region
/// and the offset of the point at an index of the column.
pub(super) fn check_region<P: Curve>(
    points: &Column<Point<P>>,
    region: Region,
    (file, place): (&Path, &(dyn Fn(u64) -> (u64, u64) + Sync)),
) -> Result<()> {
    let what = region.name();
    check_subgroup::<P>(points, &PointsOf { file, what, place })
}

/// As [`check_srs`], of points that are in the subgroup.
pub(super) fn check_parts<E: PairingGroups>(
    workspace: &Workspace,
    srs: &Srs<E>,
    progress: &mut dyn FnMut(SrsProgress),
) -> Result<()> {
    let (g, n, k) = (srs.monomial()?, srs.n(), srs.k());
    let inconsistent = |what| Error::Format {
        file: g.name().into(),
        source: FormatError::Inconsistent {
            what,
            remedy: "get the file again from its source",
        },
    };
    let omega: E::Scalar = root_of_unity(k).map_err(|source| Error::Format {
        file: g.name().into(),
        source,
    })?;
    let challenge = Challenge::random(k, omega);
    let threads = rayon::current_num_threads();
    let config = MsmConfig::choose::<E::G1Config>(n, 1, threads, workspace.budget.available_bytes() / 2)?;
    let (_msm_bytes, mut msm) = leased_kernel(config, &workspace.budget)?;

    let sum = weigh::<E::G1Config>(
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
        sum.first.to_projective::<E::G1Config>(),
        sum.last.to_projective::<E::G1Config>(),
    );
    let all_but_last = sum.total - last * challenge.r.pow([n - 1]);
    let all_but_first = (sum.total - first) * challenge.r_inverse;
    if E::pairing(all_but_last, s_g2) != E::pairing(all_but_first, g2) {
        return Err(inconsistent(
            "g and s_g2 do not belong together: g is not the powers of one secret",
        ));
    }
    if let Ok(column) = srs.lagrange() {
        let weights = |first, out: &mut [E::Scalar]| challenge.lagrange(first, out);
        let lagrange = weigh::<E::G1Config>(workspace, column, &mut msm, weights, &mut |points| {
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

/// Opens an SRS container over any curve, reads every frame, and checks its parts against each other as at
/// import. Gives k.
///
/// # Errors
/// Those of [`Srs::open_container`] and [`check_srs`].
pub fn verify_srs(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<u32> {
    fn verify<E: KzgCurve>(
        workspace: &Workspace,
        container: &Container,
        progress: &mut (dyn FnMut(SrsProgress) + Send),
    ) -> Result<u32> {
        let srs = opened::<E>(container)?;
        check_srs(workspace, &srs, progress)?;
        Ok(srs.k())
    }
    let container = Container::open(workspace, path)?;
    match container.header().curve() {
        CurveId::Bls12381 => verify::<ark_bls12_381::Bls12_381>(workspace, &container, progress),
        _ => verify::<ark_bn254::Bn254>(workspace, &container, progress),
    }
}
