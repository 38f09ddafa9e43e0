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
//! with probability below n / r_modulus < 2^-225. Two streamed MSMs, two pairings. Each point is checked on
//! the way (range, curve; all points of the curve are in the subgroup).
//!
//! Memory: two read buffers, a tile of points and one of scalars (96 bytes a point), and the MSM's buckets;
//! all leased, nothing grows with k but the loop.

use std::path::Path;

use ark_bn254::{Bn254, Fr, g1};
use ark_ec::AffineRepr;
use ark_ec::pairing::Pairing;
use ark_ff::Field;
use spillproof_format::FormatError;
use spillproof_format::params_kzg::root_of_unity;

use super::srs::Srs;
use super::weigh::{Challenge, weigh};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::Workspace;
use spillproof_engine::stream::leased_kernel;
use spillproof_kernels::msm::MsmConfig;

/// Points of G1 in a chunk, at most: 1 MiB of them.
const CHUNK_POINTS_MAX: u64 = 16 * 1024;

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

/// Checks that the monomial points, the Lagrange points (if there are any) and the pair belong together; see
/// the module. Every frame of both columns is read.
///
/// # Errors
/// [`Error::Format`] with [`FormatError::Point`] for what is no point of the curve; with
/// [`FormatError::Inconsistent`] and the column's name when they do not; [`Error::Invalid`] without monomial
/// points; what reading columns may give.
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
    let omega = root_of_unity(k).map_err(|source| Error::Format {
        file: g.name().into(),
        source,
    })?;
    let challenge = Challenge::random(k, omega);
    let threads = rayon::current_num_threads();
    let config = MsmConfig::choose::<g1::Config>(n, 1, threads, workspace.budget.available_bytes() / 2)?;
    let (_msm_bytes, mut msm) = leased_kernel(config, &workspace.budget)?;

    let sum = weigh::<g1::Config>(
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
        let lagrange = weigh::<g1::Config>(workspace, column, &mut msm, weights, &mut |points| {
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
/// Those of [`Srs::open_container`] and [`check_srs`].
pub fn verify_srs(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<u32> {
    let srs = Srs::open_container(workspace, path)?;
    check_srs(workspace, &srs, progress)?;
    Ok(srs.k())
}
