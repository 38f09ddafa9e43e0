//! `g` and `g_lagrange` of `ParamsKZG`: points in memory, as stock, or a column on disk that commitments
//! stream through.
//!
//! Stock has projective points, 144 bytes each; a column has affine ones, 96 bytes. A caller that takes a
//! slice (`g_lagrange()`) gets a map of a plain file of projective points, which takes page cache that the
//! kernel may have back.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use ark_bls12_381::{Bls12_381, Fq};
use group::Group;
use midnight_curves::G1Projective;
use spillproof_commit::{from_jacobian, map_jacobian};
use spillproof_engine::column::{Column, MappedColumn};
use spillproof_engine::stream::{Scalars, Transform};
use spillproof_engine::Session;
use spillproof_kernels::curve::Jacobian;
use spillproof_plonk::{once, ProverCurve as _};

use super::convert::{foreign_point, same, same_owned, Foreign, Point, P};
use super::or_panic;
use super::projective::{jacobian, projective};

/// Points of one basis. Cloning shares them.
pub(crate) enum Bases<G: Group> {
    /// In memory.
    Memory(Arc<Vec<G>>),
    /// On disk.
    Disk(Arc<dyn Stored<G>>),
}

/// Points on disk.
pub(crate) trait Stored<G: Group>: fmt::Debug + Send + Sync {
    /// How many points there are.
    fn len(&self) -> usize;
    /// All of them, mapped; the first call writes them to a plain file.
    fn as_slice(&self) -> io::Result<&[G]>;
    /// The sum of `scalars[i] * self[i]`, where there may be fewer scalars than points.
    fn sum(&self, scalars: &[G::Scalar]) -> io::Result<G>;
    /// As the engine's own points, for the task that this thread is inside of.
    fn column(&self) -> Column<Point>;
    /// The first `len`, sharing the file.
    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<G>>>;
    /// Monomial to Lagrange basis, by the inverse transform.
    fn transformed(&self, transform: &Transform<super::convert::Scalar>) -> io::Result<Arc<dyn Stored<G>>>;
}

impl<G: Group> Bases<G> {
    /// How many points there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(points) => points.len(),
            Self::Disk(points) => points.len(),
        }
    }

    /// The sum of `scalars[i] * self[i]`, if the points are on disk.
    ///
    /// Panics if there are fewer points than scalars, as stock does; if points can't be read, or the budget
    /// has no room: stock's signature has no error.
    pub(crate) fn sum_on_disk(&self, scalars: &[G::Scalar]) -> Option<G> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(points) => {
                assert!(points.len() >= scalars.len());
                Some(or_panic(points.sum(scalars)))
            }
        }
    }
}

impl Bases<G1Projective> {
    /// A column of these points; those in memory are written to one.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub(crate) fn column(&self, session: &Session) -> io::Result<Column<Point>> {
        let in_memory = match self {
            Self::Disk(stored) => return Ok(stored.column()),
            Self::Memory(points) => points,
        };
        from_jacobian::<Bls12_381>(session.workspace(), "bases", jacobian(in_memory))
            .map_err(io::Error::other)
    }

    /// The points of a column.
    pub(crate) fn on_disk(column: Column<Point>) -> Self {
        Self::Disk(Basis::shared(column))
    }
}

/// Bases by another name of their type: `G` is BLS12-381's G1.
pub(crate) fn known<G: Group>(bases: &Bases<G>) -> &Bases<G1Projective> {
    same(bases)
}

/// [`known`] the other way round.
pub(crate) fn foreign<G: Group>(bases: Bases<G1Projective>) -> Bases<G> {
    same_owned(bases)
}

/// A column of points.
struct Basis {
    column: Column<Point>,
    all: OnceLock<MappedColumn<Jacobian<Fq>>>,
}

impl Basis {
    fn shared(column: Column<Point>) -> Arc<dyn Stored<G1Projective>> {
        let all = OnceLock::new();
        Arc::new(Self { column, all })
    }
}

impl Stored<G1Projective> for Basis {
    fn len(&self) -> usize {
        self.column.len() as usize
    }

    fn as_slice(&self) -> io::Result<&[G1Projective]> {
        let all = once(&self.all, || map_jacobian::<Bls12_381>(&self.column));
        all.map(|points| projective(points))
            .map_err(|error: spillproof_engine::Error| io::Error::other(error))
    }

    fn sum(&self, scalars: &[midnight_curves::Fq]) -> io::Result<G1Projective> {
        let sum = || -> spillproof_engine::Result<Vec<Point>> {
            let column = self.column.in_task().prefix(scalars.len() as u64)?;
            P::sums(&column, &[Scalars::Foreign(&Foreign(scalars))])
        };
        // One vector of scalars, one sum.
        Ok(sum().map_err(io::Error::other)?.iter().map(foreign_point).sum())
    }

    fn column(&self) -> Column<Point> {
        self.column.in_task()
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<G1Projective>>> {
        let column = self.column.prefix(len as u64).map_err(io::Error::other)?;
        Ok(Self::shared(column))
    }

    fn transformed(
        &self,
        transform: &Transform<super::convert::Scalar>,
    ) -> io::Result<Arc<dyn Stored<G1Projective>>> {
        let column = P::transform_points(&self.column.in_task(), transform).map_err(io::Error::other)?;
        Ok(Self::shared(column))
    }
}

impl<G: Group> From<Vec<G>> for Bases<G> {
    fn from(points: Vec<G>) -> Self {
        Self::Memory(Arc::new(points))
    }
}

impl<G: Group> Clone for Bases<G> {
    fn clone(&self) -> Self {
        match self {
            Self::Memory(points) => Self::Memory(Arc::clone(points)),
            Self::Disk(points) => Self::Disk(Arc::clone(points)),
        }
    }
}

impl<G: Group> Deref for Bases<G> {
    type Target = [G];

    /// Panics if points on disk can't be read, or the disk has no room for a map of all of them.
    fn deref(&self) -> &[G] {
        match self {
            Self::Memory(points) => points,
            Self::Disk(points) => or_panic(points.as_slice()),
        }
    }
}

impl<G: Group> PartialEq for Bases<G> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<G: Group> fmt::Debug for Bases<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(points) => points.fmt(f),
            Self::Disk(points) => points.fmt(f),
        }
    }
}

impl fmt::Debug for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basis")
            .field("column", &self.column)
            .finish_non_exhaustive()
    }
}
