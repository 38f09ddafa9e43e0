//! Making, reading and writing `ParamsKZG` in a session: point by point the same as stock, with fixed
//! buffers.
//!
//! Peak memory: buffers for up to [`CHUNK_POINTS`] points (some 200 bytes each, leased), fewer where the
//! budget is small, whatever `k` is; plus what the engine leases for writing and computing.

use std::io;

use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use pairing::Engine;
use rand_core::RngCore;

use super::bases::Bases;
use super::engine::{store, Sink, Store};
use super::or_panic;
use crate::arithmetic::parallelize;
use crate::helpers::SerdeCurveAffine;
use crate::poly::kzg::commitment::ParamsKZG;
use crate::SerdeFormat;

/// Points that are decoded at a time, 1 MiB of them, if the budget has room. Few in unit tests, so that small
/// parameters have many chunks.
const CHUNK_POINTS: usize = if cfg!(test) { 8 } else { 1 << 14 };

/// `setup` in the current session, or the rng back if there is none for this curve.
///
/// Panics where the session's disk or budget does not have room: stock's signature has no error.
pub(crate) fn setup<E: Engine, R: RngCore>(k: u32, rng: R) -> Result<ParamsKZG<E>, R> {
    let Some(store) = or_panic(store::<E::G1Affine>()) else {
        return Err(rng);
    };
    assert!(
        k <= E::Fr::S,
        "this curve has roots of unity up to k = {}, not {k}",
        E::Fr::S
    );
    let s = E::Fr::random(rng);
    let [g, g_lagrange] = or_panic(store.generate(k, s)).map(Bases::Disk);
    let g2 = E::G2Affine::generator();
    Ok(ParamsKZG {
        k,
        n: 1 << k,
        g,
        g_lagrange,
        g2,
        s_g2: (g2 * s).into(),
    })
}

/// Reads what `write_custom` wrote.
///
/// # Errors
/// Those of the reader; points that are not on the curve (in the formats that check), coordinates that are
/// not reduced; those of writing columns; a budget that has no room for reading them, with the smallest one
/// that has.
pub(crate) fn read<E: Engine, R: io::Read>(
    store: &dyn Store<E::G1Affine>,
    reader: &mut R,
    format: SerdeFormat,
) -> io::Result<ParamsKZG<E>>
where
    E::G1Affine: SerdeCurveAffine,
    E::G2Affine: SerdeCurveAffine,
{
    let mut k = [0u8; 4];
    reader.read_exact(&mut k)?;
    let k = u32::from_le_bytes(k);
    if k > E::Fr::S {
        let message = format!(
            "parameters say k = {k}, and this curve has roots of unity up to k = {}",
            E::Fr::S
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let n = 1u64 << k;
    let point_bytes = encoded_bytes::<E::G1Affine>(format);
    let on_its_way = point_bytes + size_of::<Option<E::G1Affine>>() + size_of::<E::G1Affine>();
    let in_flight = store.points_in_flight(n as usize, on_its_way, CHUNK_POINTS)?;
    let mut chunk = Chunk {
        bytes: vec![0; in_flight.points * point_bytes],
        decoded: vec![None; in_flight.points],
        points: vec![E::G1Affine::identity(); in_flight.points],
        format,
    };
    let mut points = |what| chunk.read_all(store.sink(what, n as usize)?, (what, n as usize), reader);
    let (g, g_lagrange) = (points("g")?, points("g_lagrange")?);
    let g2 = E::G2Affine::read(reader, format)?;
    let s_g2 = E::G2Affine::read(reader, format)?;
    Ok(ParamsKZG {
        k,
        n,
        g,
        g_lagrange,
        g2,
        s_g2,
    })
}

/// Points on their way.
struct Chunk<C> {
    bytes: Vec<u8>,
    decoded: Vec<Option<C>>,
    points: Vec<C>,
    format: SerdeFormat,
}

impl<C: SerdeCurveAffine> Chunk<C> {
    /// All `n` points of one basis, a chunk at a time.
    fn read_all(
        &mut self,
        mut sink: Box<dyn Sink<C>>,
        (what, n): (&'static str, usize),
        reader: &mut impl io::Read,
    ) -> io::Result<Bases<C>> {
        let (chunk, format) = (self.points.len(), self.format);
        let point_bytes = self.bytes.len() / chunk;
        for first in (0..n).step_by(chunk) {
            let count = chunk.min(n - first);
            let bytes = &mut self.bytes[..count * point_bytes];
            reader.read_exact(bytes)?;
            let (bytes, decoded) = (&*bytes, &mut self.decoded[..count]);
            parallelize(decoded, |decoded, offset| {
                let encoded = bytes[offset * point_bytes..].chunks_exact(point_bytes);
                for (point, encoded) in decoded.iter_mut().zip(encoded) {
                    *point = decode(encoded, format);
                }
            });
            let points = &mut self.points[..count];
            for (index, (point, decoded)) in points.iter_mut().zip(decoded).enumerate() {
                *point = decoded.ok_or_else(|| {
                    let message = format!("invalid point encoding: point {} of {what}", first + index);
                    io::Error::other(message)
                })?;
            }
            sink.push(points)?;
        }
        Ok(Bases::Disk(sink.finish()?))
    }
}

fn encoded_bytes<C: SerdeCurveAffine>(format: SerdeFormat) -> usize {
    match format {
        SerdeFormat::Processed => C::Repr::default().as_ref().len(),
        SerdeFormat::RawBytes | SerdeFormat::RawBytesUnchecked => C::identity().to_raw_bytes().len(),
    }
}

fn decode<C: SerdeCurveAffine>(bytes: &[u8], format: SerdeFormat) -> Option<C> {
    match format {
        SerdeFormat::Processed => {
            let mut repr = C::Repr::default();
            repr.as_mut().copy_from_slice(bytes);
            Option::from(C::from_bytes(&repr))
        }
        SerdeFormat::RawBytes => C::from_raw_bytes(bytes),
        SerdeFormat::RawBytesUnchecked => is_reduced::<C>(bytes).then(|| C::from_raw_bytes_unchecked(bytes)),
    }
}

/// Whether all coordinates are below the modulus: kernels take no others.
fn is_reduced<C: SerdeCurveAffine>(bytes: &[u8]) -> bool {
    let largest = (-C::Base::ONE).to_repr();
    let largest = largest.as_ref();
    bytes
        .chunks_exact(largest.len())
        .all(|coordinate| coordinate.iter().rev().le(largest.iter().rev()))
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
    E::G1Affine: SerdeCurveAffine,
    E::G2Affine: SerdeCurveAffine,
{
    writer.write_all(&params.k.to_le_bytes())?;
    for bases in [&params.g, &params.g_lagrange] {
        bases
            .for_each_chunk(&mut |points| points.iter().try_for_each(|point| point.write(writer, format)))?;
    }
    params.g2.write(writer, format)?;
    params.s_g2.write(writer, format)
}

/// Parameters from their parts; a missing Lagrange basis is computed from the monomial one.
///
/// Panics where the session's disk or budget does not have room: stock's signature has no error.
pub(crate) fn from_parts<E: Engine>(
    k: u32,
    g: Vec<E::G1Affine>,
    g_lagrange: Option<Vec<E::G1Affine>>,
    g2: E::G2Affine,
    s_g2: E::G2Affine,
) -> ParamsKZG<E> {
    let g = or_panic(spilled("g", g));
    let g_lagrange = or_panic(match g_lagrange {
        Some(points) => spilled("g_lagrange", points),
        None => g.to_lagrange(k),
    });
    ParamsKZG {
        k,
        n: 1 << k,
        g,
        g_lagrange,
        g2,
        s_g2,
    }
}

/// Cuts the parameters down to `2^k` rows.
///
/// Panics if they are for fewer already, or where the session's disk or budget does not have room.
pub(crate) fn downsize<E: Engine>(params: &mut ParamsKZG<E>, k: u32) {
    assert!(
        k <= params.k,
        "parameters for k = {} can't be cut down to k = {k}",
        params.k
    );
    params.k = k;
    params.n = 1 << k;
    params.g = or_panic(params.g.prefix(1 << k));
    params.g_lagrange = or_panic(params.g.to_lagrange(k));
}

/// Moves points that are in memory to the session's disk, if there is one for this curve.
fn spilled<C: PrimeCurveAffine>(what: &'static str, points: Vec<C>) -> io::Result<Bases<C>> {
    let Some(store) = store::<C>()? else {
        return Ok(points.into());
    };
    let mut sink = store.sink(what, points.len())?;
    points
        .chunks(CHUNK_POINTS)
        .try_for_each(|points| sink.push(points))?;
    Ok(Bases::Disk(sink.finish()?))
}
