//! KZG's parameters for a drop-in and for the crate that it replaces: from files of several kinds, or made
//! anew of a seed.

use std::io::{self, BufReader, Read};
use std::path::Path;

use spillproof_engine::{Error, Session};
use spillproof_format::params_kzg::SerdeFormat;

use super::Verifier;
use super::params::{Files, Kind, VerifierPoints, file_for, is_enough, kind_of, open_kzg};
use crate::args::Parameters;
use crate::failure::Failure;
use crate::read_once::ReadOnce;
use crate::run::Result;

/// A crate of KZG.
pub trait Kzg: Verifier {
    /// Its curve.
    type Curve: Files;

    /// Parameters for `2^k` rows, whose secret is the seed's.
    fn made(k: u32, seed: u64) -> Self::Params;
    /// Parameters from the crate's own bytes.
    ///
    /// # Errors
    /// Of the reader; the crate's.
    fn read(reader: &mut dyn Read, format: SerdeFormat) -> io::Result<Self::Params>;
    /// log2 of their rows.
    fn rows(params: &Self::Params) -> u32;
    /// Cuts them down to `2^k` rows.
    fn downsize(params: &mut Self::Params, k: u32);
}

/// A drop-in of KZG, in the current session.
pub trait InSession: Kzg {
    /// Parameters in a container, in place.
    ///
    /// # Errors
    /// The drop-in's.
    fn open(path: &Path) -> io::Result<Self::Params>;
    /// Checks that parameters belong together.
    ///
    /// # Errors
    /// The drop-in's.
    fn check(params: &Self::Params) -> io::Result<()>;
}

/// Parameters of a drop-in for `2^k` rows, from their file or made anew.
///
/// # Errors
/// As [`Verifier::params`].
pub fn params_for<D: InSession>(parameters: &Parameters, k: u32) -> Result<D::Params> {
    match &parameters.file {
        None => Ok(D::made(k, parameters.srs_seed())),
        Some(path) => params_of::<D>(path, k),
    }
}

/// Parameters from a file, cut down to `2^k` rows. Those of a container are used in place, powers of tau get
/// their Lagrange points, and those of a `ParamsKZG` file are checked: its writer, or a disk since then, may
/// have mixed up points.
fn params_of<D: InSession>(path: &Path, k: u32) -> Result<D::Params> {
    let path = &*file_for(path, k, D::Curve::DIALECT)?;
    let of_file = |error| Failure::of_file(path, error);
    let session = Session::current()?;
    let is_in_session = session.is_some();
    let mut params = match (kind_of(path)?, session) {
        (Kind::Container, Some(_)) => D::open(path).map_err(of_file)?,
        (Kind::PowersOfTau, Some(session)) => {
            let copied = D::Curve::copy_ptau(&session, path, k)?;
            D::open(copied.path()).map_err(of_file)?
        }
        (Kind::Container, None) => {
            return Err(Failure::Content {
                file: path.to_owned(),
                details: "a container, which takes a session: leave --no-session out, or `spillproof srs export` it".into(),
            });
        }
        (Kind::PowersOfTau, None) => {
            return Err(Failure::Content {
                file: path.to_owned(),
                details: "powers of tau, which take a session: leave --no-session out, or make a container with `spillproof ptau import` and \
                          export it with `spillproof srs export`"
                    .into(),
            });
        }
        (Kind::Other, _) => {
            let (file, layout) = open_kzg(path, k, D::Curve::DIALECT)?;
            let of_file = |error| of_content(path, error);
            let params = D::read(&mut ReadOnce::new(file), checked(layout.format())).map_err(of_file)?;
            if is_in_session {
                // No plan has this check; without room for it, the proof's own verification finds what it
                // would have.
                match D::check(&params).map_err(of_file) {
                    Err(Failure::Engine(Error::BudgetTooSmall { .. } | Error::OverBudget { .. })) => {}
                    checked => checked?,
                }
            }
            params
        }
    };
    is_enough(path, k, D::rows(&params))?;
    if D::rows(&params) > k {
        D::downsize(&mut params, k);
    }
    Ok(params)
}

/// What is wrong with parameters that were read of a file, which a drop-in knows as a stream, and as columns in
/// scratch.
fn of_content(path: &Path, error: io::Error) -> Failure {
    match Failure::of_file(path, error) {
        Failure::Engine(Error::Format { source, .. }) => Failure::Engine(Error::Format {
            file: path.to_owned(),
            source,
        }),
        other => other,
    }
}

/// Parameters of an unmodified crate for `2^k` rows, from their file or made anew.
///
/// # Errors
/// As [`Verifier::params`].
pub fn stock_params_for<S: Kzg>(parameters: &Parameters, k: u32) -> Result<S::Params> {
    let Some(path) = &parameters.file else {
        return Ok(S::made(k, parameters.srs_seed()));
    };
    let path = &*file_for(path, k, S::Curve::DIALECT)?;
    let refused = |kind: &str, remedy: &str| Failure::Content {
        file: path.to_owned(),
        details: format!(
            "{kind}, of which {} cannot make a key: name the key with --vk, or {remedy}",
            S::NAME
        ),
    };
    match kind_of(path)? {
        Kind::Container => return Err(refused("a container", "`spillproof srs export` it")),
        Kind::PowersOfTau => {
            let remedy = "`spillproof ptau import` and `spillproof srs export` them";
            return Err(refused("powers of tau", remedy));
        }
        Kind::Other => {}
    }
    let (file, layout) = open_kzg(path, k, S::Curve::DIALECT)?;
    let mut params =
        S::read(&mut BufReader::new(file), checked(layout.format())).map_err(Failure::file(path))?;
    if S::rows(&params) > k {
        S::downsize(&mut params, k);
    }
    Ok(params)
}

/// What an unmodified crate takes of them to verify, if they are in a file: `g[0]`, and `g2` and `s_g2`, in
/// its own raw bytes.
///
/// # Errors
/// As [`Verifier::params`].
pub fn raw_verifier_points<S: Kzg>(path: &Path, k: u32) -> Result<(Vec<u8>, [Vec<u8>; 2])> {
    Ok(VerifierPoints::<S::Curve>::of(path, k)?.raw())
}

/// The format, with checks of points: nothing says that this program wrote the file.
fn checked(format: SerdeFormat) -> SerdeFormat {
    match format {
        SerdeFormat::RawBytesUnchecked => SerdeFormat::RawBytes,
        checked => checked,
    }
}
