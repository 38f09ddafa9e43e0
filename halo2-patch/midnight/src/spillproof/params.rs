//! `ParamsKZG` in a session: made, read and written through fixed buffers, from and to columns. The bytes are
//! stock's.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ff::{Field as _, PrimeField};
use group::{Curve, Group as _, GroupEncoding, UncompressedEncoding};
use midnight_curves::pairing::Engine;
use midnight_curves::{Bls12, Fq, G1Affine, G1Projective, G2Projective};
use rand_core::RngCore;
use spillproof_commit::PointsInFlight;
use spillproof_engine::column::Column;
use spillproof_engine::stream::{Scalars, Transform};
use spillproof_engine::Session;
use spillproof_plonk::{Basis, ProverCurve as _};

use super::bases::{foreign, known, writer, Bases};
use super::convert::{self, point, same_owned, scalar, Point, P};
use super::engine::session_over;
use super::or_panic;
use crate::poly::kzg::params::ParamsKZG;
use crate::utils::arithmetic::{g_to_lagrange, parallelize};
use crate::utils::helpers::ProcessedSerdeObject;
use crate::utils::SerdeFormat;

/// Points on their way at a time, at most.
const CHUNK_POINTS: u64 = 1 << 13;
/// Bytes of a point of G1 with both coordinates; half of them with one.
const POINT_BYTES: usize = 96;

/// Parameters of BLS12-381 by another name of their type.
fn of_pairing<E: Engine>(params: ParamsKZG<Bls12>) -> ParamsKZG<E> {
    same_owned(params)
}

/// The inverse transform that makes the Lagrange form of `2^k` points.
pub(crate) fn to_lagrange(k: u32) -> spillproof_engine::Result<Transform<convert::Scalar>> {
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

/// `s^i * g` in chunks, then their Lagrange form.
fn generate(session: &Arc<Session>, k: u32, s: Fq) -> io::Result<ParamsKZG<Bls12>> {
    let workspace = session.workspace();
    let n = 1u64 << k;
    let make = || {
        let _step = spillproof_engine::step!(workspace, "parameters");
        let mut writer = writer(workspace, "g", n)?;
        let mut chunk = Chunk::new(session, n)?;
        for first in (0..n).step_by(chunk.affine.len()) {
            let count = (chunk.affine.len() as u64).min(n - first) as usize;
            writer.push(chunk.multiples(s, first, count))?;
        }
        drop(chunk);
        let g = writer.finish()?;
        let g_lagrange = P::transform_points(&g, &to_lagrange(k)?)?;
        Ok([g, g_lagrange])
    };
    let [g, g_lagrange] = workspace
        .run(make)
        .map_err(|error: spillproof_engine::Error| io::Error::other(error))?;
    let g2 = G2Projective::generator();
    Ok(ParamsKZG {
        g: Bases::on_disk(g),
        g_lagrange: Bases::on_disk(g_lagrange),
        g2,
        s_g2: g2 * s,
    })
}

/// Points on their way.
struct Chunk {
    affine: Vec<G1Affine>,
    points: Vec<Point>,
    _in_flight: PointsInFlight,
}

impl Chunk {
    fn new(session: &Session, n: u64) -> spillproof_engine::Result<Self> {
        // A projective point for each that is made, or its bytes.
        let point_bytes = size_of::<G1Projective>() + size_of::<G1Affine>() + size_of::<Point>();
        let in_flight = PointsInFlight::new::<Point>(session.budget(), n, point_bytes as u64, CHUNK_POINTS)?;
        let points = in_flight.points() as usize;
        Ok(Self {
            affine: vec![G1Affine::default(); points],
            points: vec![Point::INFINITY; points],
            _in_flight: in_flight,
        })
    }

    /// `s^i * g` from `first` on.
    fn multiples(&mut self, s: Fq, first: u64, count: usize) -> &[Point] {
        let mut sums = vec![G1Projective::identity(); count];
        parallelize(&mut sums, |sums, start| {
            let mut power = s.pow_vartime([first + start as u64]);
            for sum in sums {
                *sum = G1Projective::generator() * power;
                power *= s;
            }
        });
        let affine = &mut self.affine[..count];
        parallelize(affine, |affine, start| {
            G1Projective::batch_normalize(&sums[start..start + affine.len()], affine);
        });
        self.converted(count)
    }

    /// The first `count` affine points, as the engine's.
    fn converted(&mut self, count: usize) -> &[Point] {
        let Self { affine, points, .. } = self;
        let points = &mut points[..count];
        points
            .iter_mut()
            .zip(&*affine)
            .for_each(|(converted, affine)| *converted = point(affine));
        points
    }

    /// The points of these encodings, of which the first is point `first` of `what`.
    fn decoded(
        &mut self,
        encoded: &[u8],
        format: SerdeFormat,
        (what, first): (&str, u64),
    ) -> io::Result<&[Point]> {
        let bytes = encoded_bytes(format);
        let count = encoded.len() / bytes;
        let bad = AtomicUsize::new(usize::MAX);
        parallelize(&mut self.affine[..count], |affine, start| {
            for (index, point) in (start..).zip(affine) {
                match decoded(&encoded[index * bytes..][..bytes], format) {
                    Some(decoded) => *point = decoded,
                    None => {
                        bad.fetch_min(index, Ordering::Relaxed);
                    }
                }
            }
        });
        let bad = bad.into_inner();
        if bad < count {
            let index = first + bad as u64;
            let message = format!("parameters: point {index} of {what} is no encoding of a point");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(self.converted(count))
    }
}

/// Bytes of a point of G1.
const fn encoded_bytes(format: SerdeFormat) -> usize {
    match format {
        SerdeFormat::Processed => POINT_BYTES / 2,
        SerdeFormat::RawBytes | SerdeFormat::RawBytesUnchecked => POINT_BYTES,
    }
}

/// By stock's checks: in the group, but for the last format on the curve alone.
fn decoded(bytes: &[u8], format: SerdeFormat) -> Option<G1Affine> {
    let mut whole = <G1Affine as UncompressedEncoding>::Uncompressed::default();
    Option::from(match format {
        SerdeFormat::Processed => {
            let mut half = <G1Affine as GroupEncoding>::Repr::default();
            half.as_mut().copy_from_slice(bytes);
            <G1Affine as GroupEncoding>::from_bytes(&half)
        }
        SerdeFormat::RawBytes => {
            whole.as_mut().copy_from_slice(bytes);
            <G1Affine as UncompressedEncoding>::from_uncompressed(&whole)
        }
        SerdeFormat::RawBytesUnchecked => {
            whole.as_mut().copy_from_slice(bytes);
            <G1Affine as UncompressedEncoding>::from_uncompressed_unchecked(&whole)
        }
    })
}

/// Reads what `write_custom` wrote, in the current session; `None`, with nothing read, if that is for stock.
///
/// # Errors
/// Those of the reader; encodings of no point; those of writing columns; a budget that has no room, with the
/// smallest one that has.
pub(crate) fn read<E: Engine, R: io::Read>(
    reader: &mut R,
    format: SerdeFormat,
) -> io::Result<Option<ParamsKZG<E>>> {
    match session_over::<E>()? {
        None => Ok(None),
        Some(session) => Ok(Some(of_pairing(read_columns(&session, reader, format)?))),
    }
}

fn read_columns(
    session: &Arc<Session>,
    reader: &mut dyn io::Read,
    format: SerdeFormat,
) -> io::Result<ParamsKZG<Bls12>> {
    let mut k = [0; 4];
    reader.read_exact(&mut k)?;
    let k = u32::from_le_bytes(k);
    if k > Fq::S {
        let largest = Fq::S;
        let message =
            format!("parameters say k = {k}, and this curve has roots of unity up to k = {largest}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let n = 1u64 << k;
    let bytes = encoded_bytes(format);
    let mut basis = |what| -> io::Result<Bases<G1Projective>> {
        let mut writer = writer(session.workspace(), what, n).map_err(io::Error::other)?;
        let mut chunk = Chunk::new(session, n).map_err(io::Error::other)?;
        let mut encoded = vec![0; chunk.affine.len() * bytes];
        for first in (0..n).step_by(chunk.affine.len()) {
            let count = (n - first).min(chunk.affine.len() as u64) as usize;
            let encoded = &mut encoded[..count * bytes];
            reader.read_exact(encoded)?;
            writer
                .push(chunk.decoded(encoded, format, (what, first))?)
                .map_err(io::Error::other)?;
        }
        Ok(Bases::on_disk(writer.finish().map_err(io::Error::other)?))
    };
    let (g, g_lagrange) = (basis("g")?, basis("g_lagrange")?);
    let mut reader = reader;
    let mut one = || <G2Projective as ProcessedSerdeObject>::read(&mut reader, format);
    Ok(ParamsKZG {
        g,
        g_lagrange,
        g2: one()?,
        s_g2: one()?,
    })
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
    writer.write_all(&params.g.len().ilog2().to_le_bytes())?;
    for bases in [&params.g, &params.g_lagrange] {
        bases
            .for_each_chunk(&mut |points| points.iter().try_for_each(|point| point.write(writer, format)))?;
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
