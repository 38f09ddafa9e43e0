//! The only place that talks to the engine: bases as columns of the current session.
//!
//! The rest of the drop-in is generic over curves, and asks [`store`] whether there is a session and whether its curve is
//! BN254's G1, the one that the engine keeps columns of. If either is not so, the answer is `None`, and stock it is.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use ::ark_bn254::g1;
use ::spillproof::column::{Column, Draft, Element, MappedColumn, Placement, Writer};
use ::spillproof::commit::{self, Scalar};
use ::spillproof::kernels::curve::normalize;
use ::spillproof::stream::{msm, Scalars};
use ::spillproof::Session;
use group::prime::PrimeCurveAffine;
use halo2curves::bn256::{Fr, G1Affine, G1};

use super::values::once;

/// Points on disk.
pub(crate) trait Stored<C: PrimeCurveAffine>: fmt::Debug + Send + Sync {
    /// How many points there are.
    fn len(&self) -> usize;
    /// The first one.
    fn first(&self) -> &C;
    /// All of them, mapped; the first call reads them once, to check them.
    fn as_slice(&self) -> io::Result<&[C]>;
    /// As the engine's own points.
    fn column(&self) -> io::Result<Column<commit::G1>>;
    /// The first `len`, sharing the file.
    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<C>>>;
    /// Monomial to Lagrange basis, for `2^k` points.
    fn to_lagrange(&self, k: u32) -> io::Result<Arc<dyn Stored<C>>>;
    /// All points in order, in chunks.
    fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()>;
    /// The sum of `scalars[i] * self[i]`.
    fn commit(&self, scalars: &[C::Scalar]) -> io::Result<C::Curve>;
    /// The same with scalars that are on disk, for many columns in as few passes over the points as memory allows.
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

/// Room for points on their way, until it is dropped.
pub(crate) struct Room {
    /// How many.
    pub(crate) points: usize,
    _lease: Box<dyn Any>,
}

/// Where new columns are made.
pub(crate) trait Store<C: PrimeCurveAffine> {
    /// A new column of `len` points.
    fn sink(&self, what: &'static str, len: usize) -> io::Result<Box<dyn Sink<C>>>;
    /// Room for as many of `len` points at a time as the budget has beside two columns of them, up to `points_max`.
    fn reading_room(&self, len: usize, point_bytes: usize, points_max: usize) -> io::Result<Room>;
    /// `s^i * g` and `L_i(s) * g` for `2^k` rows. Insecure: whoever knows `s` can forge proofs.
    fn generate(&self, k: u32, s: C::Scalar) -> io::Result<[Shared<C>; 2]>;
}

/// The current session: a proof's own, while one is made on this thread.
///
/// # Errors
/// If one was asked for by environment variables and can't be made: a budget is never silently ignored.
pub(super) fn session() -> io::Result<Option<Arc<Session>>> {
    #[cfg(feature = "gpu")]
    let session = Session::current_with(super::gpu::from_environment);
    #[cfg(not(feature = "gpu"))]
    let session = Session::current();
    session.map_err(io::Error::other)
}

/// The current session's store for this curve.
///
/// # Errors
/// As for [`session`].
pub(crate) fn store<C: PrimeCurveAffine>() -> io::Result<Option<Box<dyn Store<C>>>> {
    let Some(session) = session()? else {
        return Ok(None);
    };
    super::announce(&session);
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
        // The frames of an SRS that the engine makes, and its place: what a plan takes for granted.
        let frame_bytes = commit::SRS_FRAME_BYTES;
        let workspace = self.session.workspace();
        let draft = Draft::scratch_with_frames(workspace, what, len as u64, Placement::Disk, frame_bytes);
        let writer = Writer::new(draft.map_err(io::Error::other)?);
        Ok(Box::new(ColumnSink { writer }))
    }

    fn reading_room(&self, len: usize, point_bytes: usize, points_max: usize) -> io::Result<Room> {
        let budget = self.session.budget();
        let room = || commit::ReadingRoom::new(budget, len as u64, point_bytes as u64, points_max as u64);
        let room = self.session.workspace().run(room).map_err(io::Error::other)?;
        Ok(Room {
            points: room.points() as usize,
            _lease: Box::new(room),
        })
    }

    fn generate(&self, k: u32, s: Fr) -> io::Result<[Shared<G1Affine>; 2]> {
        let mut bytes = [0u8; <Fr as Element>::BYTES];
        s.encode(&mut bytes);
        let secret = Scalar::decode(&bytes);
        let workspace = self.session.workspace();
        let srs = commit::generate_scratch(workspace, k, secret, |_| ()).map_err(io::Error::other)?;
        let stored = |column: ::spillproof::Result<&Column<commit::G1>>| -> io::Result<_> {
            let column = column.and_then(Column::cast).map_err(io::Error::other)?;
            Ok(OnDisk::new(column)? as Shared<G1Affine>)
        };
        Ok([stored(srs.monomial())?, stored(srs.lagrange())?])
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
        Ok(OnDisk::new(column)?)
    }
}

/// [`Stored`] as a column of the engine.
struct OnDisk {
    column: Column<G1Affine>,
    first: G1Affine,
    all: OnceLock<MappedColumn<G1Affine>>,
}

impl OnDisk {
    fn new(column: Column<G1Affine>) -> io::Result<Arc<Self>> {
        let first = column
            .prefix(1)
            .and_then(|first| first.to_vec())
            .map_err(io::Error::other)?;
        let first = first.first().copied().unwrap_or_else(G1Affine::identity);
        Ok(Arc::new(Self {
            column,
            first,
            all: OnceLock::new(),
        }))
    }

    fn for_each(&self, take: &mut dyn FnMut(&[G1Affine]) -> io::Result<()>) -> io::Result<()> {
        let chunk = self.column.sequential_chunk();
        let budget = &self.column.workspace().budget;
        let points = budget.vec(chunk as usize, G1Affine::identity(), "points being written");
        let mut points = points.map_err(io::Error::other)?;
        let mut reader = self.column.read_ascending(chunk).map_err(io::Error::other)?;
        while let Some(region) = reader.next_into(&mut points).map_err(io::Error::other)? {
            take(&points[..region.len() as usize])?;
        }
        Ok(())
    }

    fn sums(&self, scalars: &[Scalars<'_, Scalar>]) -> io::Result<Vec<G1>> {
        // Normalised on the session's threads, too: it is done in parallel.
        let points = self.column.workspace().run(|| {
            let sums = msm::<g1::Config>(&self.column.cast::<commit::G1>()?, scalars)?;
            Ok(normalize::<g1::Config>(&sums))
        });
        let points = points.map_err(io::Error::other)?;
        let mut bytes = [0u8; <G1Affine as Element>::BYTES];
        let curve = |point: &commit::G1| {
            point.encode(&mut bytes);
            G1Affine::decode(&bytes).to_curve()
        };
        Ok(points.iter().map(curve).collect())
    }
}

impl Stored<G1Affine> for OnDisk {
    fn len(&self) -> usize {
        self.column.len() as usize
    }

    fn first(&self) -> &G1Affine {
        &self.first
    }

    fn as_slice(&self) -> io::Result<&[G1Affine]> {
        once(&self.all, || self.column.map().map_err(io::Error::other)).map(|points| &**points)
    }

    fn column(&self) -> io::Result<Column<commit::G1>> {
        self.column.cast().map_err(io::Error::other)
    }

    fn prefix(&self, len: usize) -> io::Result<Shared<G1Affine>> {
        let column = self.column.prefix(len as u64).map_err(io::Error::other)?;
        Ok(Self::new(column)?)
    }

    fn to_lagrange(&self, k: u32) -> io::Result<Shared<G1Affine>> {
        let monomial = self.column.prefix(1 << k).and_then(|column| column.cast());
        let monomial = monomial.map_err(io::Error::other)?;
        let omega = commit::omega(commit::HALO2_ROOT_OF_UNITY, k).map_err(io::Error::other)?;
        let lagrange = commit::lagrange_from_monomial(&monomial, omega, Placement::Auto, &mut |_| ())
            .and_then(|column| column.cast())
            .map_err(io::Error::other)?;
        Ok(Self::new(lagrange)?)
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[G1Affine]) -> io::Result<()>) -> io::Result<()> {
        self.for_each(take)
    }

    fn commit(&self, scalars: &[Fr]) -> io::Result<G1> {
        let sums = self.sums(&[Scalars::Foreign(&scalars)])?;
        // One vector of scalars, one sum.
        Ok(sums.into_iter().sum())
    }

    fn commit_columns(&self, columns: &[Column<Scalar>]) -> io::Result<Vec<G1>> {
        let scalars: Vec<_> = columns.iter().map(Scalars::Column).collect();
        let sums = self.sums(&scalars)?;
        tracing::info!(target: "spillproof::step", committed = sums.len() as u64);
        Ok(sums)
    }
}

impl fmt::Debug for OnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDisk")
            .field("column", &self.column)
            .finish_non_exhaustive()
    }
}
