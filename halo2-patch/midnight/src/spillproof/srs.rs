//! A file of parameters as `ParamsKZG`, in place, and a check of parameters from anywhere.
//!
//! `ParamsKZG::read_custom` copies points into scratch. A file is opened without a copy, and shared by every
//! process that opens it: a container (`spillproof srs import` makes one; see `disk-format/FORMAT.md`), or a
//! file of raw points, as `bls_midnight_2p{k}`.

use std::io;
use std::path::Path;

use ark_bls12_381::Bls12_381;
use midnight_curves::Bls12;
use spillproof_commit::{check_srs, Srs, SrsProgress};

use super::convert::g2;
use super::names::session_for;
use super::params::{of_srs, Columns};
use crate::poly::kzg::params::ParamsKZG;

/// Opens a file of parameters over BLS12-381 in the current session: a container, or what `write_custom` wrote
/// in a raw format. Its points stay in the file, which has to be there, as it is, as long as the parameters
/// are used. Frames of a container are checked against their digests when they are read; points of another
/// file only as far as arithmetic needs it: [`check_params`] says whether they are parameters. Lagrange points
/// that a container does not have are computed. `ParamsKZG::downsize` cuts the parameters down to a smaller k.
///
/// ```no_run
/// use midnight_proofs::spillproof::{check_params, open_params};
///
/// let mut params = open_params("bls_midnight_2p14")?;
/// check_params(&params, &mut |_| ())?;
/// params.downsize(10);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The engine's, as [`spillproof::Error`](spillproof_engine::Error) within the error, for a file that is
/// neither, is over another curve or is damaged; without a session.
pub fn open_params(path: impl AsRef<Path>) -> io::Result<ParamsKZG<Bls12>> {
    let session = session_for("a file or a check of parameters")?;
    let srs = Srs::<Bls12_381>::open(session.workspace(), path.as_ref());
    of_srs(&srs.map_err(io::Error::other)?)
}

/// Checks parameters, wherever their points are: each point is of the group, `g` is the powers of one secret,
/// which `s_g2` belongs to, and `g_lagrange` is the Lagrange form of `g`. A few streamed sums and two pairings;
/// a wrong point goes unnoticed with a probability of 2^-65 at most.
///
/// # Errors
/// As [`open_params`]; [`Error::Format`](spillproof_engine::Error::Format) within the error for a point that
/// is not of the group, and for parts that do not belong together.
pub fn check_params(
    params: &ParamsKZG<Bls12>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> io::Result<()> {
    let session = session_for("a file or a check of parameters")?;
    let k = params.g.len().ilog2();
    let Columns { g, g_lagrange } = Columns::of(&session, params)?;
    let pair = [g2(&params.g2), g2(&params.s_g2)];
    Srs::<Bls12_381>::from_columns(k, Some(g), Some(g_lagrange), pair)
        .and_then(|srs| check_srs(session.workspace(), &srs, progress))
        .map_err(io::Error::other)
}
