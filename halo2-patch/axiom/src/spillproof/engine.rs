//! The current session, and points of an SRS on its disk.
//!
//! The rest of the drop-in is generic over curves, and asks [`store`] whether there is a session and whether
//! its curve is BN254's G1, the one that the engine keeps columns of. If either is not so, the answer is
//! `None`, and the drop-in is stock.

use std::any::{Any, TypeId};
use std::fmt;
use std::io;
use std::sync::Arc;

use group::prime::PrimeCurveAffine;
use halo2curves::bn256::{Fr, G1Affine, G1};
use halo2curves::CurveAffine;
use spillproof_commit as commit;
use spillproof_engine::column::{Column, Writer};
use spillproof_engine::stream::Scalars;
use spillproof_engine::Session;
use spillproof_plonk::{Point, Scalar, StoredBasis};
use spillproof_report::environment;

use super::convert::{foreign_point, scalar};

/// Points on disk.
pub(crate) trait Stored<C: PrimeCurveAffine>: fmt::Debug + Send + Sync {
    /// How many points there are.
    fn len(&self) -> usize;
    /// The first one.
    fn first(&self) -> &C;
    /// All of them, mapped; the first call reads them once, to check them.
    fn as_slice(&self) -> io::Result<&[C]>;
    /// As the engine's own points.
    fn column(&self) -> io::Result<Column<Point>>;
    /// The first `len`, sharing the file.
    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<C>>>;
    /// Monomial to Lagrange basis, for `2^k` points.
    fn to_lagrange(&self, k: u32) -> io::Result<Arc<dyn Stored<C>>>;
    /// All points in order, in chunks.
    fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()>;
    /// The sum of `scalars[i] * self[i]`.
    fn commit(&self, scalars: &[C::Scalar]) -> io::Result<C::Curve>;
    /// The same with scalars that are on disk, for many columns in as few passes over the points as memory
    /// allows.
    fn commit_columns(&self, columns: &[Column<Scalar>]) -> io::Result<Vec<C::Curve>>;
}

/// A column that is being written.
pub(crate) trait Sink<C: PrimeCurveAffine> {
    /// Appends points.
    fn push(&mut self, points: &[C]) -> io::Result<()>;
    /// The finished column.
    fn finish(self: Box<Self>) -> io::Result<Arc<dyn Stored<C>>>;
}

/// A basis that the engine made.
pub(crate) type Shared<C> = Arc<dyn Stored<C>>;

/// A lease for points in flight.
pub(crate) struct PointsInFlight {
    /// How many.
    pub(crate) points: usize,
    _lease: Box<dyn Any>,
}

/// Where new columns are made.
pub(crate) trait Store<C: PrimeCurveAffine> {
    /// A new column of `len` points.
    fn sink(&self, what: &'static str, len: usize) -> io::Result<Box<dyn Sink<C>>>;
    /// A lease for as many of `len` points at a time as the budget has beside two columns of them, up to
    /// `points_max`.
    fn points_in_flight(
        &self,
        len: usize,
        point_bytes: usize,
        points_max: usize,
    ) -> io::Result<PointsInFlight>;
    /// `s^i * g` and `L_i(s) * g` for `2^k` rows. Insecure: `s` is enough to forge proofs.
    fn generate(&self, k: u32, s: C::Scalar) -> io::Result<[Shared<C>; 2]>;
}

/// The current session: a proof's own, while one is made on this thread.
///
/// # Errors
/// If one was asked for by environment variables and can't be made: a budget is never silently ignored. If
/// its reports are asked for and can't be made.
pub(super) fn session() -> io::Result<Option<Arc<Session>>> {
    #[cfg(feature = "gpu")]
    let session = Session::current_with(super::gpu::of_environment);
    #[cfg(not(feature = "gpu"))]
    let session = Session::current();
    let session = session.map_err(io::Error::other)?;
    environment::found(session.as_ref(), "halo2_axiom").map_err(io::Error::other)?;
    Ok(session)
}

/// The current session, if the curve is the one that the engine knows.
///
/// # Errors
/// If a session was asked for and can't be made.
pub(crate) fn prover_session<C: CurveAffine + 'static>() -> io::Result<Option<Arc<Session>>> {
    if TypeId::of::<C>() != TypeId::of::<G1Affine>() {
        return Ok(None);
    }
    environment::asked();
    let session = session()?;
    if let Some(session) = &session {
        super::announce(session);
    }
    Ok(session)
}

/// The current session, which `what` takes.
///
/// # Errors
/// As for [`session`]; if there is none.
pub(super) fn session_for(what: &str) -> io::Result<Arc<Session>> {
    prover_session::<G1Affine>()?.ok_or_else(|| {
        io::Error::other(format!(
            "{what} needs a session: set SPILLPROOF_MEMORY, or install one"
        ))
    })
}

/// The current session's store for this curve.
///
/// # Errors
/// As for [`session`].
pub(crate) fn store<C: PrimeCurveAffine>() -> io::Result<Option<Box<dyn Store<C>>>> {
    let Some(session) = prover_session::<G1Affine>()? else {
        return Ok(None);
    };
    let store: Box<dyn Store<G1Affine>> = Box::new(SessionStore { session });
    // The same type if C is BN254's G1, and else none.
    let store: Box<dyn Any> = Box::new(store);
    Ok(store.downcast::<Box<dyn Store<C>>>().ok().map(|store| *store))
}

/// [`Store`] of BN254's G1.
struct SessionStore {
    session: Arc<Session>,
}

impl Store<G1Affine> for SessionStore {
    fn sink(&self, what: &'static str, len: usize) -> io::Result<Box<dyn Sink<G1Affine>>> {
        let writer = StoredBasis::writer(self.session.workspace(), what, len)?;
        Ok(Box::new(ColumnSink { writer }))
    }

    fn points_in_flight(
        &self,
        len: usize,
        point_bytes: usize,
        points_max: usize,
    ) -> io::Result<PointsInFlight> {
        let budget = self.session.budget();
        let [len, point_bytes, points_max] = [len, point_bytes, points_max].map(|value| value as u64);
        let lease = || commit::PointsInFlight::new::<commit::G1>(budget, len, point_bytes, points_max);
        let in_flight = self.session.workspace().run(lease).map_err(io::Error::other)?;
        Ok(PointsInFlight {
            points: in_flight.points() as usize,
            _lease: Box::new(in_flight),
        })
    }

    fn generate(&self, k: u32, s: Fr) -> io::Result<[Shared<G1Affine>; 2]> {
        let bases = StoredBasis::generate(self.session.workspace(), k, scalar(&s))?;
        Ok(bases.map(|basis| Arc::new(basis) as Shared<G1Affine>))
    }
}

/// [`Sink`] into a scratch column.
struct ColumnSink {
    writer: Writer<G1Affine>,
}

impl Sink<G1Affine> for ColumnSink {
    fn push(&mut self, points: &[G1Affine]) -> io::Result<()> {
        self.writer.push(points).map_err(io::Error::other)
    }

    fn finish(self: Box<Self>) -> io::Result<Shared<G1Affine>> {
        let column = self.writer.finish().map_err(io::Error::other)?;
        Ok(Arc::new(StoredBasis::new(column)?))
    }
}

impl Stored<G1Affine> for StoredBasis<G1Affine> {
    fn len(&self) -> usize {
        self.len()
    }

    fn first(&self) -> &G1Affine {
        self.first()
    }

    fn as_slice(&self) -> io::Result<&[G1Affine]> {
        Ok(self.as_slice()?)
    }

    fn column(&self) -> io::Result<Column<Point>> {
        Ok(self.points()?)
    }

    fn prefix(&self, len: usize) -> io::Result<Shared<G1Affine>> {
        Ok(Arc::new(self.prefix(len)?))
    }

    fn to_lagrange(&self, k: u32) -> io::Result<Shared<G1Affine>> {
        Ok(Arc::new(self.to_lagrange(k)?))
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[G1Affine]) -> io::Result<()>) -> io::Result<()> {
        Ok(self.for_each_chunk(take)?)
    }

    fn commit(&self, scalars: &[Fr]) -> io::Result<G1> {
        let sums = self.sums(&[Scalars::Foreign(&scalars)])?;
        // One vector of scalars, one sum.
        Ok(sums.iter().map(curve).sum())
    }

    fn commit_columns(&self, columns: &[Column<Scalar>]) -> io::Result<Vec<G1>> {
        let scalars: Vec<_> = columns.iter().map(Scalars::Column).collect();
        let sums = self.sums(&scalars)?;
        tracing::info!(target: "spillproof::step", committed = sums.len() as u64);
        Ok(sums.iter().map(curve).collect())
    }
}

fn curve(point: &Point) -> G1 {
    foreign_point::<G1Affine>(point).to_curve()
}
