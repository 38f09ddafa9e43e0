//! An SRS container as `ParamsKZG`, in place, and a check of parameters from anywhere.
//!
//! `ParamsKZG::read` copies points into scratch, and takes them as they are. A container
//! (`spillproof srs import` makes one; see `disk-format/FORMAT.md`) is opened without a copy, and shared by
//! every process that opens it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use halo2curves::bn256::{Bn256, G1Affine, G2Affine};
use halo2curves::serde::SerdeObject;
use spillproof_commit::SrsProgress;
use spillproof_plonk::{check_parts, StoredSrs, RAW_G2_BYTES};

use super::bases::Bases;
use super::engine::session_for;
use crate::poly::kzg::commitment::ParamsKZG;

/// Opens an SRS container in the current session. Its points stay in the file, which has to be there as long
/// as the parameters are used; its frames are checked against their digests when they are read. Lagrange
/// points that the file does not have are computed. `Params::downsize` cuts the parameters down to a smaller
/// k.
///
/// # Errors
/// The engine's, as [`spillproof::Error`](spillproof_engine::Error) within the error, for a file that is no
/// SRS over BN254 or is damaged; without a session.
pub fn open_params(path: impl AsRef<Path>) -> io::Result<ParamsKZG<Bn256>> {
    let (session, path) = (
        session_for("a container or a check of parameters")?,
        path.as_ref(),
    );
    let opened = StoredSrs::<G1Affine>::open(session.workspace(), path)?;
    let [g2, s_g2] = opened
        .pair
        .map(|bytes| G2Affine::from_raw_bytes_unchecked(&bytes));
    Ok(ParamsKZG {
        k: opened.k,
        n: 1 << opened.k,
        g: Bases::Disk(Arc::new(opened.monomial)),
        g_lagrange: Bases::Disk(Arc::new(opened.lagrange)),
        g2,
        s_g2,
    })
}

/// Checks parameters, wherever their points are: each point is on the curve, `g` is the powers of one secret,
/// which `s_g2` belongs to, and `g_lagrange` is the Lagrange form of `g`. Two streamed sums and two pairings;
/// a wrong point goes unnoticed with a probability below 2^-225.
///
/// # Errors
/// As [`open_params`]; [`Error::Format`](spillproof_engine::Error::Format) within the error for parts that do
/// not belong together.
pub fn check_params(
    params: &ParamsKZG<Bn256>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> io::Result<()> {
    let session = session_for("a container or a check of parameters")?;
    let columns = [params.g.column()?, params.g_lagrange.column()?];
    let pair = [params.g2, params.s_g2].map(|point| raw_bytes(&point));
    Ok(check_parts(
        session.workspace(),
        params.k,
        columns,
        pair,
        progress,
    )?)
}

fn raw_bytes(point: &G2Affine) -> [u8; RAW_G2_BYTES] {
    let mut bytes = [0; RAW_G2_BYTES];
    for (to, from) in bytes.iter_mut().zip(point.to_raw_bytes()) {
        *to = from;
    }
    bytes
}
