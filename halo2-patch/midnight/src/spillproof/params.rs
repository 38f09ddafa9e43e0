//! `ParamsKZG` in a session: made, read and written through fixed buffers, from and to columns. The bytes are
//! stock's.

use std::io;
use std::sync::Arc;

use ark_bls12_381::Bls12_381;
use ff::{Field as _, PrimeField as _};
use group::Curve;
use midnight_curves::pairing::Engine;
use midnight_curves::{Bls12, Fq};
use rand_core::RngCore;
use spillproof_commit::{generate_scratch, Srs};
use spillproof_engine::column::Column;
use spillproof_engine::stream::{Scalars, Transform};
use spillproof_engine::Session;
use spillproof_format::params_kzg;
use spillproof_plonk::{Basis, ProverCurve as _};

use super::bases::{foreign, known, Bases};
use super::convert::{self, foreign_g2, g2, same, same_owned, scalar, Point, P};
use super::engine::session_over;
use super::or_panic;
use crate::poly::kzg::params::ParamsKZG;
use crate::utils::arithmetic::g_to_lagrange;
use crate::utils::helpers::ProcessedSerdeObject;
use crate::utils::SerdeFormat;

/// Parameters of BLS12-381 by another name of their type.
fn of_pairing<E: Engine>(params: ParamsKZG<Bls12>) -> ParamsKZG<E> {
    same_owned(params)
}

/// The inverse transform that makes the Lagrange form of `2^k` points.
fn to_lagrange(k: u32) -> spillproof_engine::Result<Transform<convert::Scalar>> {
    let omega = (k..Fq::S).fold(Fq::ROOT_OF_UNITY, |root, _| root.square());
    Transform::inverse(k, scalar(&omega))
}

/// Insecure parameters for `2^k` rows in the current session; the generator back, if that is for stock.
///
/// Panics where the session's disk or budget has no room: stock's signature has no error.
pub(crate) fn setup<E: Engine, R: RngCore>(k: u32, rng: R) -> Result<ParamsKZG<E>, R> {
    let Some(session) = or_panic(session_over::<E>()) else {
        return Err(rng);
    };
    assert!(k <= Fq::S);
    Ok(of_pairing(or_panic(generate(&session, k, Fq::random(rng)))))
}

/// `s^i * g`, and their Lagrange form.
fn generate(session: &Session, k: u32, s: Fq) -> io::Result<ParamsKZG<Bls12>> {
    let workspace = session.workspace();
    let srs = {
        let _step = spillproof_engine::step!(workspace, "parameters");
        generate_scratch::<Bls12_381>(workspace, k, scalar(&s), |_| ())
    };
    of_srs(&srs.map_err(io::Error::other)?)
}

/// Upstream's parameters of columns. Lagrange points that are not there are computed.
pub(super) fn of_srs(srs: &Srs<Bls12_381>) -> io::Result<ParamsKZG<Bls12>> {
    let [g2, s_g2] = srs.pair().map(|point| foreign_g2(&point));
    let g = Bases::on_disk(srs.monomial().map_err(io::Error::other)?.clone());
    let g_lagrange = match srs.lagrange() {
        Ok(points) => Bases::on_disk(points.clone()),
        Err(_) => lagrange_of::<Bls12>(&g, srs.k())?,
    };
    Ok(ParamsKZG {
        g,
        g_lagrange,
        g2,
        s_g2,
    })
}

/// Formats by the names of the engine.
const fn of_engine(format: SerdeFormat) -> params_kzg::SerdeFormat {
    match format {
        SerdeFormat::Processed => params_kzg::SerdeFormat::Processed,
        SerdeFormat::RawBytes => params_kzg::SerdeFormat::RawBytes,
        SerdeFormat::RawBytesUnchecked => params_kzg::SerdeFormat::RawBytesUnchecked,
    }
}

/// The error of a caller's reader or writer as it was, as stock has it; bytes that are no parameters; what
/// else the engine says.
fn of_stream(error: spillproof_engine::Error) -> io::Error {
    match error {
        spillproof_engine::Error::File {
            source,
            operation: "read" | "write",
            ..
        } => source,
        error @ spillproof_engine::Error::Format { .. } => io::Error::new(io::ErrorKind::InvalidData, error),
        other => io::Error::other(other),
    }
}

/// Reads what `write_custom` wrote, in the current session; `None`, with nothing read, if that is for stock.
/// Points are checked as far as stock checks them.
///
/// # Errors
/// Those of the reader; encodings of no point; those of writing columns; a budget that has no room, with the
/// smallest one that has.
pub(crate) fn read<E: Engine, R: io::Read>(
    reader: &mut R,
    format: SerdeFormat,
) -> io::Result<Option<ParamsKZG<E>>> {
    let Some(session) = session_over::<E>()? else {
        return Ok(None);
    };
    let srs = Srs::<Bls12_381>::read_params_kzg(session.workspace(), reader, of_engine(format));
    Ok(Some(of_pairing(of_srs(&srs.map_err(of_stream)?)?)))
}

/// Writes what [`read`] reads: byte for byte stock's `write_custom`, from wherever the points are.
///
/// # Errors
/// Those of the writer, and of reading a column.
pub(crate) fn write<E: Engine, W: io::Write>(
    params: &ParamsKZG<E>,
    writer: &mut W,
    format: SerdeFormat,
) -> io::Result<()>
where
    E::G1: Curve + ProcessedSerdeObject,
    E::G2: Curve + ProcessedSerdeObject,
{
    let log_n = params.g.len().ilog2();
    if let [Bases::Disk(g), Bases::Disk(g_lagrange)] = [&params.g, &params.g_lagrange] {
        let pair = [&params.g2, &params.s_g2].map(|point| g2(same(point)));
        let srs = Srs::<Bls12_381>::from_columns(log_n, Some(g.column()), Some(g_lagrange.column()), pair);
        let written = srs.and_then(|srs| srs.write_params_kzg(of_engine(format), writer));
        return written.map_err(of_stream);
    }
    writer.write_all(&log_n.to_le_bytes())?;
    for bases in [&params.g, &params.g_lagrange] {
        bases.iter().try_for_each(|point| point.write(writer, format))?;
    }
    params.g2.write(writer, format)?;
    params.s_g2.write(writer, format)
}

/// The points, on the disk of the current session if there is one.
fn stored<E: Engine>(session: Option<&Session>, points: Bases<E::G1>) -> io::Result<Bases<E::G1>> {
    let Some(session) = session else {
        return Ok(points);
    };
    let column = known(&points).column(session)?;
    Ok(foreign(Bases::on_disk(column)))
}

/// The Lagrange form of `2^k` points.
fn lagrange_of<E: Engine>(g: &Bases<E::G1>, k: u32) -> io::Result<Bases<E::G1>> {
    match g {
        Bases::Memory(points) => Ok(g_to_lagrange(points, k).into()),
        Bases::Disk(points) => Ok(Bases::Disk(
            points.transformed(&to_lagrange(k).map_err(io::Error::other)?)?,
        )),
    }
}

/// Stock's `from_parts`: the Lagrange form is computed if there is none.
///
/// Panics where the session's disk or budget has no room: stock's signature has no error.
pub(crate) fn from_parts<E: Engine>(
    k: u32,
    g: Vec<E::G1>,
    g_lagrange: Option<Vec<E::G1>>,
    g2: E::G2,
    s_g2: E::G2,
) -> ParamsKZG<E> {
    let make = || {
        let session = session_over::<E>()?;
        let g = stored::<E>(session.as_deref(), g.into())?;
        let g_lagrange = match g_lagrange {
            Some(points) => stored::<E>(session.as_deref(), points.into())?,
            None => lagrange_of::<E>(&g, k)?,
        };
        Ok(ParamsKZG {
            g,
            g_lagrange,
            g2,
            s_g2,
        })
    };
    or_panic(make())
}

/// Stock's `downsize`: a prefix, and its Lagrange form.
///
/// Panics for parameters that are smaller, as stock does; where the disk or the budget has no room.
pub(crate) fn downsize<E: Engine>(params: &mut ParamsKZG<E>, k: u32) {
    assert_eq!(params.g.len(), params.g_lagrange.len());
    let n = 1usize << k;
    if n == params.g.len() {
        return;
    }
    assert!(n < params.g.len());
    match &mut params.g {
        Bases::Memory(points) => match Arc::get_mut(points) {
            Some(points) => points.truncate(n),
            None => *points = Arc::new(points[..n].to_vec()),
        },
        Bases::Disk(points) => *points = or_panic(points.prefix(n)),
    }
    params.g_lagrange = or_panic(lagrange_of::<E>(&params.g, k));
}

/// The points of both bases as the engine's columns; those in memory are written to scratch.
pub(crate) struct Columns {
    pub(crate) g: Column<Point>,
    pub(crate) g_lagrange: Column<Point>,
}

impl Columns {
    /// Of parameters, for the task that this thread is inside of.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub(crate) fn of(session: &Session, params: &ParamsKZG<Bls12>) -> io::Result<Self> {
        Ok(Self {
            g: params.g.column(session)?,
            g_lagrange: params.g_lagrange.column(session)?,
        })
    }

    /// Commitments by one of the two bases, of which fewer points may be needed than there are.
    ///
    /// # Errors
    /// If a column can't be read, or the budget has no room.
    pub(crate) fn commit(
        &self,
        basis: Basis,
        scalars: &[Scalars<'_, convert::Scalar>],
        rows: u64,
    ) -> spillproof_plonk::Result<Vec<Point>> {
        let bases = match basis {
            Basis::Monomial => &self.g,
            Basis::Lagrange => &self.g_lagrange,
        };
        Ok(P::sums(&bases.prefix(rows)?, scalars)?)
    }
}
