//! `g` and `g_lagrange` of `ParamsKZG`: points in memory, as stock, or a column on disk that commitments
//! stream through.
//!
//! Whoever takes them for a slice (`get_g()`, mostly) gets a map of the column's file, which is checked first
//! and takes page cache that the kernel may have back. Committing, writing and the first point (all that a
//! verifier needs) never do that.

use std::fmt;
use std::io;
use std::ops::{Deref, Index};
use std::sync::Arc;

use ff::Field;
use group::prime::PrimeCurveAffine;
use group::Group;
use pairing::Engine;
use spillproof_commit::G1;
use spillproof_engine::column::Column;

use super::engine::{store, Stored};
use super::or_panic;
use crate::arithmetic::{best_multiexp, g_to_lagrange, CurveAffine};
use crate::poly::Polynomial;

/// Points of one basis of an SRS. Cloning shares them.
pub(crate) enum Bases<C: PrimeCurveAffine> {
    /// In memory.
    Memory(Arc<Vec<C>>),
    /// On disk.
    Disk(Arc<dyn Stored<C>>),
}

impl<C: PrimeCurveAffine> Bases<C> {
    /// How many points there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(points) => points.len(),
            Self::Disk(column) => column.len(),
        }
    }

    /// The first `len` points.
    ///
    /// # Errors
    /// If the column can't be opened that way.
    pub(crate) fn prefix(&self, len: usize) -> io::Result<Self> {
        Ok(match self {
            Self::Memory(points) => Self::Memory(Arc::new(points[..len].to_vec())),
            Self::Disk(column) => Self::Disk(column.prefix(len)?),
        })
    }

    /// A column of these points; those in memory are written to one.
    ///
    /// # Errors
    /// If there is no session for this curve, or where its disk or budget has no room.
    pub(super) fn column(&self) -> io::Result<Column<G1>> {
        let points = match self {
            Self::Disk(column) => return column.column(),
            Self::Memory(points) => points,
        };
        let store = store::<C>()?.ok_or_else(|| io::Error::other("a column of points, and no session"))?;
        let mut sink = store.sink("bases", points.len())?;
        sink.push(points)?;
        sink.finish()?.column()
    }

    /// The Lagrange basis over `2^k` rows that belongs to this monomial one.
    ///
    /// # Errors
    /// Where the points, or what they become, don't fit.
    pub(crate) fn to_lagrange(&self, k: u32) -> io::Result<Self> {
        Ok(match self {
            Self::Memory(points) => g_to_lagrange(points.iter().map(C::to_curve).collect(), k).into(),
            Self::Disk(column) => Self::Disk(column.to_lagrange(k)?),
        })
    }

    /// Hands all points to `take`, in order and in chunks.
    ///
    /// # Errors
    /// Those of `take`, and of reading a column.
    pub(crate) fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Memory(points) => take(points),
            Self::Disk(column) => column.for_each_chunk(take),
        }
    }
}

/// The sum of `poly[i] * bases[i]`. Whatever of the two is on disk streams.
///
/// Panics if there are fewer points than scalars, or if a column can't be read: stock's signature has no
/// error.
pub(crate) fn commit<E: Engine, B>(bases: &Bases<E::G1Affine>, poly: &Polynomial<E::Fr, B>) -> E::G1
where
    E::G1Affine: CurveAffine<ScalarExt = E::Fr, CurveExt = E::G1>,
{
    let scalars = poly.backing();
    assert!(
        bases.len() >= scalars.len(),
        "{} points for {} scalars",
        bases.len(),
        scalars.len()
    );
    if scalars.constant().is_some_and(|value| *value == E::Fr::ZERO) {
        return E::G1::identity();
    }
    match (bases, scalars.on_disk()) {
        (Bases::Memory(points), _) => {
            let (mut sum, mut done) = (E::G1::identity(), 0);
            or_panic(scalars.for_each_chunk(&mut |scalars| {
                sum += best_multiexp(scalars, &points[done..done + scalars.len()]);
                done += scalars.len();
                Ok(())
            }));
            sum
        }
        (Bases::Disk(column), Some(scalars)) => {
            let scalars = scalars.column().in_task();
            let sums = or_panic(column.commit_columns(std::slice::from_ref(&scalars)));
            // One column, one sum.
            sums.into_iter().sum()
        }
        (Bases::Disk(column), None) => or_panic(column.commit(scalars)),
    }
}

/// [`commit`] for many polynomials: what is on disk shares passes over the points.
pub(crate) fn commit_many<E: Engine, B>(
    bases: &Bases<E::G1Affine>,
    polys: &[&Polynomial<E::Fr, B>],
) -> Vec<E::G1>
where
    E::G1Affine: CurveAffine<ScalarExt = E::Fr, CurveExt = E::G1>,
{
    let on_disk: Option<Vec<_>> = polys
        .iter()
        .map(|poly| {
            let scalars = poly.backing();
            let short = scalars.len() <= bases.len() && scalars.constant().is_none();
            scalars
                .on_disk()
                .filter(|_| short)
                .map(|scalars| scalars.column().in_task())
        })
        .collect();
    match (bases, on_disk) {
        (Bases::Disk(points), Some(columns)) => or_panic(points.commit_columns(&columns)),
        _ => polys.iter().map(|poly| commit::<E, B>(bases, poly)).collect(),
    }
}

impl<C: PrimeCurveAffine> From<Vec<C>> for Bases<C> {
    fn from(points: Vec<C>) -> Self {
        Self::Memory(Arc::new(points))
    }
}

impl<C: PrimeCurveAffine> Clone for Bases<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Memory(points) => Self::Memory(Arc::clone(points)),
            Self::Disk(column) => Self::Disk(Arc::clone(column)),
        }
    }
}

impl<C: PrimeCurveAffine> Deref for Bases<C> {
    type Target = [C];

    /// Panics if a column can't be read.
    fn deref(&self) -> &[C] {
        match self {
            Self::Memory(points) => points,
            Self::Disk(column) => or_panic(column.as_slice()),
        }
    }
}

impl<C: PrimeCurveAffine> Index<usize> for Bases<C> {
    type Output = C;

    fn index(&self, index: usize) -> &C {
        match self {
            Self::Disk(column) if index == 0 => column.first(),
            _ => &self.deref()[index],
        }
    }
}

impl<C: PrimeCurveAffine> PartialEq for Bases<C> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<C: PrimeCurveAffine> fmt::Debug for Bases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(points) => points.fmt(f),
            Self::Disk(column) => column.fmt(f),
        }
    }
}
