//! The only place that talks to the engine: bases as columns of the current session.
//!
//! The rest of the drop-in is generic over curves, and asks [`store`] whether there is a session and whether its curve is
//! BN254's G1, the one that the engine keeps columns of. If either is not so, the answer is `None`, and stock it is.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use group::prime::PrimeCurveAffine;

/// Points on disk.
pub(crate) trait Stored<C: PrimeCurveAffine>: Debug + Send + Sync {
    /// How many points there are.
    fn len(&self) -> usize;
    /// The first one.
    fn first(&self) -> &C;
    /// All of them in memory, leased; the first call reads them.
    fn as_slice(&self) -> io::Result<&[C]>;
    /// The first `len`, sharing the file.
    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<C>>>;
    /// Monomial to Lagrange basis, for `2^k` points.
    fn to_lagrange(&self, k: u32) -> io::Result<Arc<dyn Stored<C>>>;
    /// All points in order, in chunks.
    fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> io::Result<()>;
    /// The sum of `scalars[i] * self[i]`.
    fn commit(&self, scalars: &[C::Scalar]) -> io::Result<C::Curve>;
}

/// A column that is being written.
pub(crate) trait Sink<C: PrimeCurveAffine> {
    /// Appends points.
    fn push(&mut self, points: &[C]) -> io::Result<()>;
    /// The finished column.
    fn finish(self: Box<Self>) -> io::Result<Arc<dyn Stored<C>>>;
}

/// Where new columns are made.
pub(crate) trait Store<C: PrimeCurveAffine> {
    /// A new column of `len` points.
    fn sink(&self, what: &'static str, len: usize) -> io::Result<Box<dyn Sink<C>>>;
    /// Room for buffers of `bytes`, until what is returned is dropped.
    fn lease(&self, bytes: usize, what: &'static str) -> io::Result<Box<dyn Any>>;
}

/// The current session's store for this curve.
///
/// # Errors
/// If a session was asked for by environment variables and can't be made.
pub(crate) fn store<C: PrimeCurveAffine>() -> io::Result<Option<Box<dyn Store<C>>>> {
    Ok(None)
}
