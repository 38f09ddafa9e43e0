//! `Params` in a session: made and read into columns, and written from them, through fixed buffers. The bytes
//! are stock's. As containers they are opened in place, and checked.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ff::{Field, PrimeField};
use pasta_curves::arithmetic::{CurveAffine, CurveExt};
use spillproof_commit::ipa;
use spillproof_commit::PointsInFlight;
pub use spillproof_commit::SrsProgress;
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::Transform;
use spillproof_engine::Session;
use spillproof_kernels::curve::Point;

use super::bases::{of_engine, Bases, Basis};
use super::convert::{foreign_point, point, scalar, with_engine, Engine, Task};
use super::engine::session_over;
use super::or_panic;
use crate::arithmetic::parallelize;
use crate::poly::commitment::Params;

/// Points on their way at a time, at most.
const CHUNK_POINTS: u64 = 1 << 13;
/// What upstream's generators are hashes under (The halo2 Book, *Polynomial commitment scheme*).
const DOMAIN_PREFIX: &str = "Halo2-Parameters";

/// Parameters for `2^k` rows in the current session; `None` if that is for stock.
///
/// Panics where the session's disk or budget has no room: stock's signature has no error.
pub(crate) fn new<C: CurveAffine>(k: u32) -> Option<Params<C>> {
    let session = or_panic(session_over::<C>())?;
    assert!(
        k <= C::Scalar::S,
        "this curve has roots of unity up to k = {}, not {k}",
        C::Scalar::S
    );
    with_engine::<C, _>(New { session: &session, k }).map(or_panic)
}

struct New<'s> {
    session: &'s Arc<Session>,
    k: u32,
}

impl<C: CurveAffine> Task<C> for New<'_> {
    type Output = io::Result<Params<C>>;

    fn run<P: Engine>(self) -> Self::Output {
        let (k, n, workspace) = (self.k, 1u64 << self.k, self.session.workspace());
        let bases = workspace.run(|| {
            let _step = spillproof_engine::step!(workspace, "parameters");
            let mut writer = Basis::<C, P>::writer(workspace, "g", n)?;
            let mut chunk = Chunk::<C, P>::new(self.session, n)?;
            for first in (0..n).step_by(chunk.sums.len()) {
                let count = (chunk.sums.len() as u64).min(n - first) as usize;
                writer.push(chunk.hashed(first, count))?;
            }
            drop(chunk);
            let g = writer.finish()?;
            let transform = Transform::inverse(k, scalar(&omega::<C>(k)))?;
            let g_lagrange = P::transform_points(&g, &transform)?;
            Ok([g, g_lagrange].map(|column| Bases::Disk(Basis::<C, P>::shared(column))))
        });
        let [g, g_lagrange] = bases.map_err(io::Error::other)?;
        Ok(Params {
            k,
            n,
            g,
            g_lagrange,
            w: hash(&[1]),
            u: hash(&[2]),
        })
    }
}

/// The point that a message is hashed to.
fn hash<C: CurveAffine>(message: &[u8]) -> C {
    C::CurveExt::hash_to_curve(DOMAIN_PREFIX)(message).to_affine_vartime()
}

/// A primitive root of unity of order `2^k`, as upstream's domains have it.
fn omega<C: CurveAffine>(k: u32) -> C::Scalar {
    (k..C::Scalar::S).fold(C::Scalar::ROOT_OF_UNITY, |root, _| root.square())
}

/// Points on their way.
struct Chunk<C: CurveAffine, P: Engine> {
    sums: Vec<C::CurveExt>,
    affine: Vec<C>,
    points: Vec<Point<P>>,
    _in_flight: PointsInFlight,
}

impl<C: CurveAffine, P: Engine> Chunk<C, P> {
    fn new(session: &Session, n: u64) -> spillproof_engine::Result<Self> {
        let point_bytes = size_of::<C::CurveExt>() + size_of::<C>() + size_of::<Point<P>>();
        let in_flight =
            PointsInFlight::new::<Point<P>>(session.budget(), n, point_bytes as u64, CHUNK_POINTS)?;
        let points = in_flight.points() as usize;
        Ok(Self {
            sums: vec![C::CurveExt::default(); points],
            affine: vec![C::identity(); points],
            points: vec![Point::<P>::INFINITY; points],
            _in_flight: in_flight,
        })
    }

    /// The generators from `first` on: hashes of their numbers.
    fn hashed(&mut self, first: u64, count: usize) -> &[Point<P>] {
        let (sums, affine) = (&mut self.sums[..count], &mut self.affine[..count]);
        parallelize(sums, |sums, start| {
            let hasher = C::CurveExt::hash_to_curve(DOMAIN_PREFIX);
            for (number, sum) in (first + start as u64..).zip(sums) {
                let mut message = [0; 5];
                message[1..].copy_from_slice(&(number as u32).to_le_bytes());
                *sum = hasher(&message);
            }
        });
        let sums = &*sums;
        parallelize(affine, |affine, start| {
            C::CurveExt::batch_normalize_vartime(&sums[start..start + affine.len()], affine);
        });
        self.converted(count)
    }

    /// The first `count` affine points, as the engine's.
    fn converted(&mut self, count: usize) -> &[Point<P>] {
        let points = &mut self.points[..count];
        for (converted, affine) in points.iter_mut().zip(&self.affine) {
            *converted = point::<C, P>(affine);
        }
        points
    }
}

/// Reads what `write` wrote, in the current session; `None`, with nothing read, if that is for stock.
///
/// # Errors
/// Those of the reader; encodings of no point; those of writing columns; a budget that has no room, with the
/// smallest one that has.
pub(crate) fn read<C: CurveAffine, R: io::Read>(reader: &mut R) -> io::Result<Option<Params<C>>> {
    let Some(session) = session_over::<C>()? else {
        return Ok(None);
    };
    let read = Read {
        session: &session,
        reader,
    };
    with_engine::<C, _>(read).transpose()
}

struct Read<'s, R> {
    session: &'s Arc<Session>,
    reader: &'s mut R,
}

impl<C: CurveAffine, R: io::Read> Task<C> for Read<'_, R> {
    type Output = io::Result<Params<C>>;

    fn run<P: Engine>(self) -> Self::Output {
        let Self { session, reader } = self;
        let mut k = [0; 4];
        reader.read_exact(&mut k)?;
        let k = u32::from_le_bytes(k);
        if k > C::Scalar::S {
            let largest = C::Scalar::S;
            let message =
                format!("parameters say k = {k}, and this curve has roots of unity up to k = {largest}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let n = 1u64 << k;
        let mut read = |what| -> io::Result<Bases<C>> {
            let mut writer = Basis::<C, P>::writer(session.workspace(), what, n).map_err(io::Error::other)?;
            let mut chunk = Chunk::<C, P>::new(session, n).map_err(io::Error::other)?;
            let mut encoded = vec![C::Repr::default(); chunk.affine.len()];
            for first in (0..n).step_by(encoded.len()) {
                let encoded = &mut encoded[..(n - first).min(chunk.affine.len() as u64) as usize];
                for encoded in encoded.iter_mut() {
                    reader.read_exact(encoded.as_mut())?;
                }
                writer
                    .push(chunk.decoded(encoded, (what, first))?)
                    .map_err(io::Error::other)?;
            }
            let column = writer.finish().map_err(io::Error::other)?;
            Ok(Bases::Disk(Basis::<C, P>::shared(column)))
        };
        let (g, g_lagrange) = (read("g")?, read("g_lagrange")?);
        let mut one = |what| -> io::Result<C> {
            let mut encoded = C::Repr::default();
            reader.read_exact(encoded.as_mut())?;
            Option::from(C::from_bytes(&encoded)).ok_or_else(|| invalid(what, None))
        };
        let (w, u) = (one("w")?, one("u")?);
        Ok(Params {
            k,
            n,
            g,
            g_lagrange,
            w,
            u,
        })
    }
}

impl<C: CurveAffine, P: Engine> Chunk<C, P> {
    /// The points of these encodings, of which the first is point `first` of `what`.
    fn decoded(&mut self, encoded: &[C::Repr], (what, first): (&str, u64)) -> io::Result<&[Point<P>]> {
        let bad = AtomicUsize::new(usize::MAX);
        parallelize(&mut self.affine[..encoded.len()], |affine, start| {
            for (index, point) in (start..).zip(affine) {
                match Option::from(C::from_bytes(&encoded[index])) {
                    Some(decoded) => *point = decoded,
                    None => {
                        bad.fetch_min(index, Ordering::Relaxed);
                    }
                }
            }
        });
        let bad = bad.into_inner();
        if bad < encoded.len() {
            return Err(invalid(what, Some(first + bad as u64)));
        }
        Ok(self.converted(encoded.len()))
    }
}

fn invalid(what: &str, index: Option<u64>) -> io::Error {
    let point = index.map_or_else(|| what.to_owned(), |index| format!("point {index} of {what}"));
    let message = format!("parameters: {point} is no encoding of a point");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Writes what [`read`] reads: byte for byte stock's `write`, from wherever the points are.
///
/// # Errors
/// Those of the writer, and of reading a column.
pub(crate) fn write<C: CurveAffine, W: io::Write>(params: &Params<C>, writer: &mut W) -> io::Result<()> {
    writer.write_all(&params.k.to_le_bytes())?;
    let mut write = |points: &[C]| {
        points
            .iter()
            .try_for_each(|point| writer.write_all(point.to_bytes().as_ref()))
    };
    for bases in [&params.g, &params.g_lagrange] {
        bases.for_each_chunk(&mut write)?;
    }
    write(&[params.w, params.u])
}

/// Opens a container of parameters in the current session. Nothing is copied: points stay in the file, which
/// has to be there as long as the parameters are used. Frames are checked against their digests when they are
/// read; [`verify_params`] checks the points themselves.
///
/// # Errors
/// The engine's, as [`spillproof::Error`](spillproof_engine::Error) within the error: without a session, for
/// a file that is no container of such parameters over `C`, or damaged.
pub fn open_params<C: CurveAffine>(path: impl AsRef<Path>) -> io::Result<Params<C>> {
    let (session, path) = (needed::<C>()?, path.as_ref());
    with_engine::<C, _>(Open {
        session: &session,
        path,
    })
    .unwrap_or_else(|| Err(unknown()))
}

/// Writes parameters as a container, from wherever their points are. The file appears under its name when it
/// is whole.
///
/// # Errors
/// As [`open_params`]; those of writing the file.
pub fn save_params<C: CurveAffine>(
    params: &Params<C>,
    path: impl AsRef<Path>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> io::Result<()> {
    let (session, path) = (needed::<C>()?, path.as_ref());
    let save = Save {
        session: &session,
        params,
        path,
        progress,
    };
    with_engine::<C, _>(save).unwrap_or_else(|| Err(unknown()))
}

/// Checks parameters, wherever their points are: that `g`, `w` and `u` are upstream's generators (each is
/// hashed again), and that `g_lagrange` is the Lagrange form of `g`. Parameters of any source that pass are
/// those that `Params::new` makes.
///
/// # Errors
/// As [`open_params`]; [`Error::Format`](spillproof_engine::Error::Format) within the error for other points.
pub fn verify_params<C: CurveAffine>(
    params: &Params<C>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> io::Result<()> {
    let session = needed::<C>()?;
    let verify = Verify {
        session: &session,
        params,
        progress,
    };
    with_engine::<C, _>(verify).unwrap_or_else(|| Err(unknown()))
}

/// The current session, without which there are no containers.
fn needed<C: CurveAffine>() -> io::Result<Arc<Session>> {
    session_over::<C>()?.ok_or_else(|| {
        io::Error::other(spillproof_engine::Error::from(Invalid::ProofSystem {
            what: "a container of parameters",
            reason: "it is opened and written in a session: install one".to_owned(),
        }))
    })
}

/// For a curve that the engine has not.
fn unknown() -> io::Error {
    io::Error::other(spillproof_engine::Error::from(Invalid::ProofSystem {
        what: "a container of parameters",
        reason: "the engine computes over Pallas and Vesta only".to_owned(),
    }))
}

struct Open<'o> {
    session: &'o Arc<Session>,
    path: &'o Path,
}

impl<C: CurveAffine> Task<C> for Open<'_> {
    type Output = io::Result<Params<C>>;

    fn run<P: Engine>(self) -> Self::Output {
        let opened = P::open_params(self.session.workspace(), self.path);
        let ipa::Params { g, g_lagrange, w, u } = opened.map_err(io::Error::other)?;
        let n = g.len();
        let [w, u] = [w, u].map(|affine| foreign_point::<P, C>(&Point::<P>::from_affine::<P>(&affine)));
        let [g, g_lagrange] = [g, g_lagrange].map(|column| Bases::Disk(Basis::<C, P>::shared(column)));
        Ok(Params {
            k: n.ilog2(),
            n,
            g,
            g_lagrange,
            w,
            u,
        })
    }
}

struct Save<'s, C: CurveAffine> {
    session: &'s Arc<Session>,
    params: &'s Params<C>,
    path: &'s Path,
    progress: &'s mut (dyn FnMut(SrsProgress) + Send),
}

impl<C: CurveAffine> Task<C> for Save<'_, C> {
    type Output = io::Result<()>;

    fn run<P: Engine>(self) -> Self::Output {
        let workspace = self.session.workspace();
        let Params {
            g, g_lagrange, w, u, ..
        } = self.params;
        let params = of_engine::<C, P>(workspace, [g, g_lagrange], [w, u])?;
        P::save_params(&params, workspace, self.path, self.progress).map_err(io::Error::other)
    }
}

struct Verify<'v, C: CurveAffine> {
    session: &'v Arc<Session>,
    params: &'v Params<C>,
    progress: &'v mut (dyn FnMut(SrsProgress) + Send),
}

impl<C: CurveAffine> Task<C> for Verify<'_, C> {
    type Output = io::Result<()>;

    fn run<P: Engine>(self) -> Self::Output {
        let Self {
            session,
            params,
            progress,
        } = self;
        let (workspace, k, n) = (session.workspace(), params.k, params.n);
        let Params {
            g, g_lagrange, w, u, ..
        } = params;
        let params = of_engine::<C, P>(workspace, [g, g_lagrange], [w, u])?;
        let mut verify = || {
            let pair = [1, 2].map(|number| point::<C, P>(&hash::<C>(&[number])).to_affine());
            let mut chunk = Chunk::<C, P>::new(session, n)?;
            let at_once = chunk.sums.len();
            let mut make = |first: u64, made: &mut [Point<P>]| {
                for (made, first) in made.chunks_mut(at_once).zip((first..).step_by(at_once)) {
                    made.copy_from_slice(chunk.hashed(first, made.len()));
                }
            };
            P::check_generators(&params, workspace, pair, &mut make, progress)?;
            drop(chunk);
            P::check_params(&params, workspace, scalar(&omega::<C>(k)), progress)
        };
        verify().map_err(|error: spillproof_engine::Error| io::Error::other(error))
    }
}
