//! An SRS container as `ParamsKZG`, in place, and a check of parameters from anywhere.
//!
//! `ParamsKZG::read_custom` copies points into scratch, and takes them as they are. A container
//! (`spillproof srs import` makes one; see `disk-format/FORMAT.md`) is opened without a copy, and shared by
//! every process that opens it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ark_bls12_381::Bls12_381;
use midnight_curves::Bls12;
pub use spillproof_commit::SrsProgress;
use spillproof_commit::{check_srs, Srs};
use spillproof_engine::Session;
use spillproof_plonk::ProverCurve as _;

use super::bases::Bases;
use super::convert::{foreign_pair_point, pair_point, P};
use super::engine::session_over;
use super::params::{to_lagrange, Columns};
use crate::poly::kzg::params::ParamsKZG;

/// Opens an SRS container in the current session. Its points stay in the file, which has to be there as long
/// as the parameters are used; its frames are checked against their digests when they are read. Lagrange
/// points that the file does not have are computed. `ParamsKZG::downsize` cuts the parameters down to a
/// smaller k.
///
/// # Errors
/// The engine's, as [`spillproof::Error`](spillproof_engine::Error) within the error, for a file that is no
/// SRS over BLS12-381 or is damaged; without a session.
pub fn open_params(path: impl AsRef<Path>) -> io::Result<ParamsKZG<Bls12>> {
    let session = needed()?;
    let opened = || {
        let srs = Srs::<Bls12_381>::open_container(session.workspace(), path.as_ref())?;
        let g = srs.monomial()?.clone();
        let g_lagrange = match srs.lagrange() {
            Ok(points) => points.clone(),
            Err(_) => P::transform_points(&g, &to_lagrange(srs.k())?)?,
        };
        let [g2, s_g2] = srs.pair().map(|point| foreign_pair_point(&point));
        Ok(ParamsKZG {
            g: Bases::on_disk(g),
            g_lagrange: Bases::on_disk(g_lagrange),
            g2,
            s_g2,
        })
    };
    opened().map_err(|error: spillproof_engine::Error| io::Error::other(error))
}

/// Checks parameters, wherever their points are: each point is in its group, `g` is the powers of one secret,
/// which `s_g2` belongs to, and `g_lagrange` is the Lagrange form of `g`. Two streamed sums and two pairings;
/// a wrong point goes unnoticed with a probability below 2^-225.
///
/// # Errors
/// As [`open_params`]; [`Error::Format`](spillproof_engine::Error::Format) within the error for parts that do
/// not belong together.
pub fn check_params(
    params: &ParamsKZG<Bls12>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> io::Result<()> {
    let session = needed()?;
    let Columns { g, g_lagrange } = Columns::of(&session, params)?;
    let pair = [&params.g2, &params.s_g2].map(pair_point);
    let check = || {
        let srs = Srs::<Bls12_381>::from_columns(g.len().ilog2(), Some(g), Some(g_lagrange), pair)?;
        check_srs(session.workspace(), &srs, progress)
    };
    check().map_err(io::Error::other)
}

/// The current session.
fn needed() -> io::Result<Arc<Session>> {
    session_over::<Bls12>()?.ok_or_else(|| {
        io::Error::other(
            "a container or a check of parameters needs a session: set SPILLPROOF_MEMORY, or install one",
        )
    })
}
