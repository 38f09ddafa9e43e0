//! What a `Polynomial` on the host holds: a vector, as stock, or in a session something that takes no memory until someone
//! asks for a slice.
//!
//! ```text
//!   Memory(Vec<F>)          stock's, and whatever a caller brings along
//!   Shared(Arc<..>)         Constant: one value, n times        (here)
//!                           OnDisk:   a column of the engine    (scalars.rs)
//!                           Leased:   memory under a lease, what a `&mut` of the other two becomes
//! ```
//!
//! Cloning what is shared costs nothing; the first `&mut` of one that has clones copies it (under a lease). A slice of a
//! column is a map of its file, made and checked at the first call. Single operations (commitment, evaluation, transform,
//! reading and writing) ask for the column instead and stream.
//!
//! Where stock's signature has no error, one of the engine's is a panic that begins with `spillproof:`.

use std::any::{Any, TypeId};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use ::spillproof::budget::{Budget, Lease, LeasedVec};
use ::spillproof::column::{Column, Workspace};
use ::spillproof::commit::Scalar;
use ff::Field;
use halo2curves::bn256::Fr;

use super::bases::or_panic;
use super::convert::{foreign, scalar};
use super::engine;
use super::scalars::{spill, OnDisk};
use crate::arithmetic::eval_polynomial;
use crate::plonk::Assigned;
use crate::poly::{Coeff, Polynomial};

pub(crate) use super::scalars::prover_session;

/// Values that are handed on at a time where they aren't read from a column.
const CHUNK_VALUES: usize = 1 << 14;

/// Backing of a `Polynomial`: dereferences to a slice of its values, wherever they are.
pub struct Values<F>(Inner<F>);

enum Inner<F> {
    Memory(Vec<F>),
    // Stock's vector may be looked at after a caught panic, and so may this: nothing in it is left half changed.
    Shared(AssertUnwindSafe<Arc<dyn Stored<F>>>),
}

/// Values of a session.
pub(super) trait Stored<F>: Send + Sync {
    /// How many.
    fn len(&self) -> usize;
    /// All of them in memory, or mapped; the first call sees to that.
    fn as_slice(&self) -> io::Result<&[F]>;
    /// The first `len`, without a copy where that can be.
    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<F>>>;
    /// A copy in leased memory.
    fn leased(&self) -> io::Result<Arc<dyn Stored<F>>>;
    /// A copy that the caller owns. It is leased only while it is made.
    fn to_vec(&self) -> io::Result<Vec<F>>;
    /// All values in order, in chunks.
    fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()>;
    /// As a mutable slice, if it is leased memory.
    fn as_mut_slice(&mut self) -> Option<&mut [F]> {
        None
    }
    /// The value, if all are this one.
    fn constant(&self) -> Option<&F> {
        None
    }
    /// The column, if it is one. Its elements are bn256's `Fr`, and so is `F`.
    fn on_disk(&self) -> Option<&OnDisk> {
        None
    }
    /// A column with these values, if one can be made of them without taking it from the caller: the copy is kept.
    fn spilled(&self) -> Option<io::Result<Column<Scalar>>> {
        None
    }
}

impl<F> Values<F> {
    pub(super) fn shared(stored: Arc<dyn Stored<F>>) -> Self {
        Self(Inner::Shared(AssertUnwindSafe(stored)))
    }

    /// How many values.
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Memory(values) => values.len(),
            Inner::Shared(stored) => stored.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values.
    ///
    /// Panics if a column can't be read, or if the budget has no room for its slice.
    #[inline]
    pub fn as_slice(&self) -> &[F] {
        match &self.0 {
            Inner::Memory(values) => values,
            Inner::Shared(stored) => or_panic(stored.as_slice()),
        }
    }

    /// The values, to be changed. What is on disk is copied into memory first.
    ///
    /// Panics as [`Self::as_slice`].
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [F] {
        if let Inner::Shared(stored) = &mut self.0 {
            let in_place = Arc::get_mut(stored).is_some_and(|stored| stored.as_mut_slice().is_some());
            if !in_place {
                let copy = or_panic(stored.leased());
                **stored = copy;
            }
        }
        match &mut self.0 {
            Inner::Memory(values) => values,
            Inner::Shared(stored) => match Arc::get_mut(stored).and_then(|stored| stored.as_mut_slice()) {
                Some(values) => values,
                None => panic!("spillproof: a copy in leased memory is not this polynomial's own"),
            },
        }
    }

    /// Keeps the first `len` values; no effect if there are no more.
    ///
    /// Panics as [`Self::as_slice`].
    pub fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Inner::Memory(values) => values.truncate(len),
            Inner::Shared(stored) if len < stored.len() => **stored = or_panic(stored.prefix(len)),
            Inner::Shared(_) => {}
        }
    }

    /// The values as a vector that is the caller's, outside of the budget.
    ///
    /// Panics as [`Self::as_slice`].
    pub fn into_vec(self) -> Vec<F> {
        match self.0 {
            Inner::Memory(values) => values,
            Inner::Shared(stored) => or_panic(stored.to_vec()),
        }
    }

    /// Hands all values to `take`, in order, and in chunks if they aren't in memory anyway.
    pub(super) fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()> {
        match &self.0 {
            Inner::Memory(values) => take(values),
            Inner::Shared(stored) => stored.for_each_chunk(take),
        }
    }

    /// The value, if it is known without looking that all are this one.
    pub(super) fn constant(&self) -> Option<&F> {
        match &self.0 {
            Inner::Memory(_) => None,
            Inner::Shared(stored) => stored.constant(),
        }
    }

    /// Whether it is known without looking that all values are 0.
    pub(super) fn is_zero(&self) -> bool
    where
        F: Field,
    {
        self.constant().is_some_and(|value| *value == F::ZERO)
    }

    /// The column behind it.
    pub(super) fn on_disk(&self) -> Option<&OnDisk> {
        match &self.0 {
            Inner::Memory(_) => None,
            Inner::Shared(stored) => stored.on_disk(),
        }
    }

    /// Are these values of a session, on disk or not, and not a caller's vector?
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.0, Inner::Shared(_))
    }
}

impl<F> From<Vec<F>> for Values<F> {
    fn from(values: Vec<F>) -> Self {
        Self(Inner::Memory(values))
    }
}

impl<F> From<Values<F>> for Vec<F> {
    fn from(values: Values<F>) -> Self {
        values.into_vec()
    }
}

impl<F: Clone> Clone for Values<F> {
    fn clone(&self) -> Self {
        match &self.0 {
            Inner::Memory(values) => values.clone().into(),
            Inner::Shared(stored) => Self::shared(Arc::clone(stored)),
        }
    }
}

impl<F> Deref for Values<F> {
    type Target = [F];

    #[inline]
    fn deref(&self) -> &[F] {
        self.as_slice()
    }
}

impl<F> DerefMut for Values<F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [F] {
        self.as_mut_slice()
    }
}

impl<F: fmt::Debug> fmt::Debug for Values<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Memory(values) => values.fmt(f),
            Inner::Shared(stored) => match (stored.constant(), stored.on_disk()) {
                (Some(value), _) => write!(f, "[{value:?}; {}]", stored.len()),
                (None, Some(on_disk)) => on_disk.column().fmt(f),
                (None, None) => self.as_slice().fmt(f),
            },
        }
    }
}

impl<F: PartialEq> PartialEq for Values<F> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<F: Eq> Eq for Values<F> {}

/// One value, `len` times. Takes no memory until someone asks for a slice.
struct Constant<F: Copy> {
    value: F,
    len: usize,
    workspace: Workspace,
    slice: OnceLock<LeasedVec<F>>,
    column: OnceLock<Column<Scalar>>,
}

impl<F: Copy + Send + Sync + 'static> Constant<F> {
    fn shared(value: F, len: usize, workspace: &Workspace) -> Arc<dyn Stored<F>> {
        Arc::new(Self {
            value,
            len,
            workspace: workspace.clone(),
            slice: OnceLock::new(),
            column: OnceLock::new(),
        })
    }

    fn filled(&self) -> io::Result<LeasedVec<F>> {
        let budget = &self.workspace.budget;
        let values = budget.vec(self.len, self.value, "a constant polynomial as a slice");
        values.map_err(io::Error::other)
    }
}

impl<F: Copy + Send + Sync + 'static> Stored<F> for Constant<F> {
    fn len(&self) -> usize {
        self.len
    }

    fn as_slice(&self) -> io::Result<&[F]> {
        once(&self.slice, || self.filled()).map(|values| &**values)
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<F>>> {
        Ok(Self::shared(self.value, len, &self.workspace))
    }

    fn leased(&self) -> io::Result<Arc<dyn Stored<F>>> {
        Ok(Leased::shared(self.filled()?, self.value, &self.workspace.budget))
    }

    fn to_vec(&self) -> io::Result<Vec<F>> {
        let _lease = lease_of::<F>(&self.workspace.budget, self.len)?;
        Ok(vec![self.value; self.len])
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()> {
        let chunk = vec![self.value; self.len.min(CHUNK_VALUES)];
        let mut left = self.len;
        while left > 0 {
            let now = left.min(chunk.len());
            take(&chunk[..now])?;
            left -= now;
        }
        Ok(())
    }

    fn constant(&self) -> Option<&F> {
        Some(&self.value)
    }

    fn spilled(&self) -> Option<io::Result<Column<Scalar>>> {
        // Kept: the empty columns of a proof are asked for in several passes.
        let column = once(&self.column, || {
            spill(&self.workspace, self.len, &mut |take| self.for_each_chunk(take))
        });
        Some(column.cloned())
    }
}

/// Memory under a lease.
pub(super) struct Leased<F: Copy> {
    values: LeasedVec<F>,
    /// Any value: copies are filled with it first.
    fill: F,
    budget: Budget,
}

impl<F: Copy + Send + Sync + 'static> Leased<F> {
    pub(super) fn shared(values: LeasedVec<F>, fill: F, budget: &Budget) -> Arc<dyn Stored<F>> {
        let budget = budget.clone();
        Arc::new(Self { values, fill, budget })
    }
}

impl<F: Copy + Send + Sync + 'static> Stored<F> for Leased<F> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn as_slice(&self) -> io::Result<&[F]> {
        Ok(&self.values)
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<F>>> {
        let copy = self.budget.vec(len, self.fill, "a polynomial in memory");
        let mut copy = copy.map_err(io::Error::other)?;
        copy.copy_from_slice(&self.values[..len]);
        Ok(Self::shared(copy, self.fill, &self.budget))
    }

    fn leased(&self) -> io::Result<Arc<dyn Stored<F>>> {
        self.prefix(self.values.len())
    }

    fn to_vec(&self) -> io::Result<Vec<F>> {
        let _lease = lease_of::<F>(&self.budget, self.values.len())?;
        Ok(self.values.to_vec())
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()> {
        take(&self.values)
    }

    fn as_mut_slice(&mut self) -> Option<&mut [F]> {
        Some(&mut self.values)
    }
}

/// The right to hold `len` values while they are copied out.
pub(super) fn lease_of<F>(budget: &Budget, len: usize) -> io::Result<Lease> {
    let bytes = (len * size_of::<F>()) as u64;
    budget
        .lease(bytes, "a polynomial as a vector")
        .map_err(io::Error::other)
}

/// What the cell holds; else makes it. Two callers may both make it, and one of the two results is then dropped: to wait
/// for each other, on threads that steal work, they would have to hold a lock while they compute.
pub(super) fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> io::Result<T>) -> io::Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    match make() {
        Ok(value) => Ok(cell.get_or_init(|| value)),
        // There was no room for two, perhaps.
        Err(error) => cell.get().ok_or(error),
    }
}

/// `value`, `len` times: in a session without memory, if it is one that the engine knows; else a vector.
///
/// Panics if a session was asked for and can't be made.
pub(crate) fn constant<F: Copy + Send + Sync + 'static, B>(value: F, len: usize) -> Polynomial<F, B> {
    let kind = TypeId::of::<F>();
    if kind == TypeId::of::<Fr>() || kind == TypeId::of::<Assigned<Fr>>() {
        if let Some(session) = or_panic(engine::session()) {
            return Polynomial::from_backing(Values::shared(Constant::shared(
                value,
                len,
                session.workspace(),
            )));
        }
    }
    Polynomial::new(vec![value; len])
}

/// The column behind a polynomial. One that is in memory is written to a scratch column.
///
/// # Errors
/// If there is no session, or no room on its disk or in its budget.
pub(crate) fn column<F: Copy + 'static, B>(poly: &Polynomial<F, B>) -> io::Result<Column<Scalar>> {
    let values = poly.backing();
    if let Inner::Shared(stored) = &values.0 {
        if let Some(on_disk) = stored.on_disk() {
            return Ok(on_disk.column().clone());
        }
        if let Some(column) = stored.spilled() {
            return column;
        }
    }
    let session =
        engine::session()?.ok_or_else(|| io::Error::other("a column of a polynomial, and no session"))?;
    spill(session.workspace(), values.len(), &mut |take| {
        values.for_each_chunk(take)
    })
}

/// A polynomial over a column; no copy is made.
///
/// Panics unless `F` is bn256's `Fr`, the one field of which the engine keeps columns.
pub(crate) fn from_column<F: 'static, B>(column: Column<Scalar>) -> Polynomial<F, B> {
    stored(OnDisk::shared(column))
}

/// The same with its values at some points; without a column, the polynomial that is zero.
pub(crate) fn evaluated<F: Field, B>(
    column: Option<&Column<Scalar>>,
    evaluations: impl Iterator<Item = (Scalar, Scalar)>,
) -> Polynomial<F, B> {
    match column {
        Some(column) => stored(OnDisk::evaluated(column.clone(), evaluations.collect())),
        None => constant(F::ZERO, 1),
    }
}

fn stored<F: 'static, B>(stored: Arc<dyn Stored<Fr>>) -> Polynomial<F, B> {
    let stored: Box<dyn Any> = Box::new(stored);
    match stored.downcast::<Arc<dyn Stored<F>>>() {
        Ok(stored) => Polynomial::from_backing(Values::shared(*stored)),
        Err(_) => panic!("spillproof: columns hold elements of bn256::Fr only"),
    }
}

/// The value at `point`. That of a column is remembered, so that asking twice reads once.
///
/// Panics if the column can't be read.
pub(crate) fn evaluate<F: Field>(poly: &Polynomial<F, Coeff>, point: F) -> F {
    let values = poly.backing();
    match (values.constant(), values.on_disk()) {
        (Some(value), _) if *value == F::ZERO => F::ZERO,
        (_, Some(on_disk)) => foreign(or_panic(on_disk.evaluate(scalar(&point)))),
        _ => eval_polynomial(values, point),
    }
}

/// Sees to it that [`evaluate`] knows the answers: every column is read once, for all of its points.
///
/// # Errors
/// If a column can't be read, or the budget has no room for its buffers.
pub(crate) fn evaluate_all<F: Field>(queries: &[(&Polynomial<F, Coeff>, F)]) -> io::Result<()> {
    let mut wanted: Vec<(&OnDisk, Vec<Scalar>)> = Vec::new();
    for (poly, point) in queries {
        let Some(on_disk) = poly.backing().on_disk() else {
            continue;
        };
        let point = scalar(point);
        match wanted.iter_mut().find(|(other, _)| std::ptr::eq(*other, on_disk)) {
            Some((_, points)) => points.push(point),
            None => wanted.push((on_disk, vec![point])),
        }
    }
    OnDisk::evaluate_all(&wanted)
}
