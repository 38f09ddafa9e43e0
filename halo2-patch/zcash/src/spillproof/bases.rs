//! `g` and `g_lagrange` of `Params`: points in memory, as stock, or a column on disk that commitments and
//! openings stream through.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use pasta_curves::arithmetic::CurveAffine;
use spillproof_commit::{ipa, SRS_FRAME_BYTES};
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Draft, Placement, Workspace, Writer};
use spillproof_engine::stream::{ForeignScalars, Scalars};
use spillproof_kernels::curve::Point;
use spillproof_plonk::once;

use super::convert::{foreign_point, point, Engine, Foreign};
use super::msm::BaseScalars;
use super::or_panic;

/// Points of one basis. Cloning shares them.
pub(crate) enum Bases<C: CurveAffine> {
    /// In memory.
    Memory(Arc<Vec<C>>),
    /// On disk.
    Disk(Arc<dyn Stored<C>>),
}

/// Points on disk.
pub(crate) trait Stored<C: CurveAffine>: fmt::Debug + Send + Sync {
    /// All of them, in leased memory; the first call reads them.
    fn as_slice(&self) -> io::Result<&[C]>;
    /// All points in order, in chunks.
    fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()>;
    /// The sum of `scalars[i] * self[i]`.
    fn sum(&self, scalars: Given<'_, C::ScalarExt>) -> io::Result<C::CurveExt>;
    /// The [`Basis`].
    fn as_any(&self) -> &dyn Any;
}

/// Scalars of upstream's.
pub(crate) enum Given<'g, F> {
    /// In memory.
    Slice(&'g [F]),
    /// Of a verifier's sum.
    Challenges(&'g BaseScalars<F>),
}

impl<'g, F> From<&'g [F]> for Given<'g, F> {
    fn from(scalars: &'g [F]) -> Self {
        Self::Slice(scalars)
    }
}

impl<'g, F> From<&'g BaseScalars<F>> for Given<'g, F> {
    fn from(scalars: &'g BaseScalars<F>) -> Self {
        Self::Challenges(scalars)
    }
}

impl<C: CurveAffine> Bases<C> {
    /// The sum of `scalars[i] * self[i]`, if the points are on disk.
    ///
    /// Panics if they can't be read, or the budget has no room: stock's signature has no error.
    pub(crate) fn sum_on_disk<'g>(&self, scalars: impl Into<Given<'g, C::ScalarExt>>) -> Option<C::CurveExt> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(points) => Some(or_panic(points.sum(scalars.into()))),
        }
    }

    /// A column of these points; those in memory are written to one.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    fn column<P: Engine>(&self, workspace: &Workspace) -> io::Result<Column<Point<P>>> {
        match self {
            Self::Disk(points) => match points.as_any().downcast_ref::<Basis<C, P>>() {
                Some(basis) => Ok(basis.column.in_task()),
                None => Err(io::Error::other("points of another curve")),
            },
            Self::Memory(points) => {
                let write = || {
                    let mut writer = Basis::<C, P>::writer(workspace, "bases", points.len() as u64)?;
                    for points in points.chunks(CHUNK_POINTS) {
                        let points: Vec<_> = points.iter().map(point::<C, P>).collect();
                        writer.push(&points)?;
                    }
                    writer.finish()
                };
                workspace.run(write).map_err(io::Error::other)
            }
        }
    }

    /// Hands all points to `take`, in order and in chunks.
    ///
    /// # Errors
    /// Those of `take`, and of reading a column.
    pub(crate) fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Memory(points) => take(points),
            Self::Disk(points) => points.for_each_chunk(take),
        }
    }
}

/// The engine's form of parameters.
///
/// # Errors
/// Where points in memory have to be written and the disk or the budget has no room.
pub(crate) fn of_engine<C: CurveAffine, P: Engine>(
    workspace: &Workspace,
    [g, g_lagrange]: [&Bases<C>; 2],
    [w, u]: [&C; 2],
) -> io::Result<ipa::Params<P>> {
    Ok(ipa::Params {
        g: g.column::<P>(workspace)?,
        g_lagrange: g_lagrange.column::<P>(workspace)?,
        w: point::<C, P>(w).to_affine(),
        u: point::<C, P>(u).to_affine(),
    })
}

/// Points that are converted at a time.
const CHUNK_POINTS: usize = 1 << 10;

/// A column of points.
pub(crate) struct Basis<C: Copy, P: Engine> {
    column: Column<Point<P>>,
    all: OnceLock<LeasedVec<C>>,
}

impl<C: CurveAffine, P: Engine> Basis<C, P> {
    /// The points of a column.
    pub(crate) fn shared(column: Column<Point<P>>) -> Arc<dyn Stored<C>> {
        let all = OnceLock::new();
        Arc::new(Self { column, all })
    }

    /// A new column of `len` points.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub(crate) fn writer(
        workspace: &Workspace,
        what: &'static str,
        len: u64,
    ) -> spillproof_engine::Result<Writer<Point<P>>> {
        let draft = Draft::scratch_with_frames(workspace, what, len, Placement::Disk, SRS_FRAME_BYTES);
        Ok(Writer::new(draft?))
    }

    fn read(&self, take: &mut dyn FnMut(&[C])) -> spillproof_engine::Result<()> {
        let chunk = self.column.sequential_chunk().min(CHUNK_POINTS as u64);
        let mut stored = vec![Point::<P>::INFINITY; chunk as usize];
        let mut points = vec![C::identity(); chunk as usize];
        let mut reader = self.column.read_ascending(chunk)?;
        while let Some(region) = reader.next_into(&mut stored)? {
            let len = region.len() as usize;
            for (point, stored) in points.iter_mut().zip(&stored[..len]) {
                *point = foreign_point::<P, C>(stored);
            }
            take(&points[..len]);
        }
        Ok(())
    }
}

impl<C: CurveAffine, P: Engine> Stored<C> for Basis<C, P> {
    fn as_slice(&self) -> io::Result<&[C]> {
        let all = once(&self.all, || {
            let budget = &self.column.workspace().budget;
            let len = self.column.len() as usize;
            let mut all = budget.vec(len, C::identity(), "points as a slice")?;
            let mut done = 0;
            self.read(&mut |points| {
                all[done..done + points.len()].copy_from_slice(points);
                done += points.len();
            })?;
            Ok(all)
        });
        let all = all.map_err(|error: spillproof_engine::Error| io::Error::other(error))?;
        Ok(all)
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()> {
        let mut taken = Ok(());
        let read = self.read(&mut |points| {
            if taken.is_ok() {
                taken = take(points);
            }
        });
        read.map_err(io::Error::other)?;
        taken
    }

    fn sum(&self, scalars: Given<'_, C::ScalarExt>) -> io::Result<C::CurveExt> {
        let slice;
        let scalars: &dyn ForeignScalars<P::ScalarField> = match scalars {
            Given::Challenges(scalars) => scalars,
            Given::Slice(scalars) => {
                slice = Foreign(scalars);
                &slice
            }
        };
        let sum = P::sums(&self.column.in_task(), &[Scalars::Foreign(scalars)]).map_err(io::Error::other)?;
        // One vector of scalars, one sum.
        Ok(sum.iter().map(|sum| foreign_point::<P, C>(sum).to_curve()).sum())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<C: CurveAffine> From<Vec<C>> for Bases<C> {
    fn from(points: Vec<C>) -> Self {
        Self::Memory(Arc::new(points))
    }
}

impl<C: CurveAffine> Clone for Bases<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Memory(points) => Self::Memory(Arc::clone(points)),
            Self::Disk(points) => Self::Disk(Arc::clone(points)),
        }
    }
}

impl<C: CurveAffine> Deref for Bases<C> {
    type Target = [C];

    /// Panics if points on disk can't be read, or the budget has no room for all of them.
    fn deref(&self) -> &[C] {
        match self {
            Self::Memory(points) => points,
            Self::Disk(points) => or_panic(points.as_slice()),
        }
    }
}

impl<C: CurveAffine> fmt::Debug for Bases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(points) => points.fmt(f),
            Self::Disk(points) => points.fmt(f),
        }
    }
}

impl<C: Copy, P: Engine> fmt::Debug for Basis<C, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basis")
            .field("column", &self.column)
            .finish_non_exhaustive()
    }
}
