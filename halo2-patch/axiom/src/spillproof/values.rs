//! What a `Polynomial` on the host holds: a vector, as stock, or in a session something that takes no memory
//! until someone asks for a slice.
//!
//! ```text
//!   Memory(Vec<F>)          stock's, and whatever a caller brings along
//!   Shared(Arc<..>)         Constant: one value, n times        (stored.rs)
//!                           OnDisk:   a column of the engine
//!                           Leased:   memory under a lease, what a `&mut` of the other two becomes
//! ```
//!
//! Cloning what is shared costs nothing; the first `&mut` of one that has clones copies it (under a lease). A
//! slice of a column is a map of its file, made and checked at the first call. Single operations (commitment,
//! evaluation, transform, reading and writing) ask for the column instead and stream.
//!
//! Where stock's signature has no error, one of the engine's is a panic that begins with `spillproof:`.

use std::any::{Any, TypeId};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ff::Field;
use halo2curves::bn256::Fr;
use spillproof_engine::column::Column;
use spillproof_plonk::{spill, Scalar};

use super::convert::{foreign, scalar};
use super::engine::session;
use super::or_panic;
use super::stored::{on_disk, Constant, OnDisk, Stored, Take};
use crate::arithmetic::eval_polynomial;
use crate::plonk::Assigned;
use crate::poly::{Coeff, Polynomial};

/// Backing of a `Polynomial`: dereferences to a slice of its values, wherever they are.
pub struct Values<F>(Inner<F>);

enum Inner<F> {
    Memory(Vec<F>),
    // Stock's vector may be looked at after a caught panic, and so may this: nothing in it is left half
    // changed.
    Shared(AssertUnwindSafe<Arc<dyn Stored<F>>>),
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

/// `value`, `len` times: in a session without memory, if it is one that the engine knows; else a vector.
///
/// Panics if a session was asked for and can't be made.
pub(crate) fn constant<F: Copy + Send + Sync + 'static, B>(value: F, len: usize) -> Polynomial<F, B> {
    let kind = TypeId::of::<F>();
    if kind == TypeId::of::<Fr>() || kind == TypeId::of::<Assigned<Fr>>() {
        if let Some(session) = or_panic(session()) {
            return Polynomial::from_backing(Values::shared(Constant::shared(
                value,
                len,
                session.workspace(),
            )));
        }
    }
    Polynomial::new(vec![value; len])
}

/// The column behind a polynomial, for the task that this thread is inside of. One that is in memory is
/// written to a scratch column.
///
/// # Errors
/// If there is no session, or no room on its disk or in its budget.
pub(crate) fn column<F: Copy + 'static, B>(poly: &Polynomial<F, B>) -> io::Result<Column<Scalar>> {
    let values = poly.backing();
    if let Inner::Shared(stored) = &values.0 {
        if let Some(on_disk) = stored.on_disk() {
            return Ok(on_disk.column().in_task());
        }
        if let Some(column) = stored.spilled() {
            return Ok(column?.in_task());
        }
    }
    let session = session()?.ok_or_else(|| io::Error::other("a column of a polynomial, and no session"))?;
    let feed = &mut |take: &mut Take<'_, F>| values.for_each_chunk(take);
    Ok(spill(session.workspace(), values.len(), scalar, feed)?)
}

/// A polynomial over a column; no copy is made.
///
/// Panics unless `F` is bn256's `Fr`, the one field of which the engine keeps columns.
pub(crate) fn from_column<F: 'static, B>(column: Column<Scalar>) -> Polynomial<F, B> {
    stored(on_disk(column, []))
}

/// The same with its values at some points; without a column, the polynomial that is zero.
pub(crate) fn evaluated<F: Field, B>(
    column: Option<&Column<Scalar>>,
    evaluations: impl Iterator<Item = (Scalar, Scalar)>,
) -> Polynomial<F, B> {
    match column {
        Some(column) => stored(on_disk(column.clone(), evaluations)),
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
        (_, Some(on_disk)) => foreign(or_panic(on_disk.evaluate(scalar(&point)).map_err(Into::into))),
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
    Ok(OnDisk::evaluate_all(&wanted)?)
}
