//! Number-theoretic transforms of tiles.
//!
//! A forward transform of n = 2^k values gives the values of the polynomial with those coefficients at
//! omega^0, omega^1, ... in natural order, as halo2's `best_fft(values, omega, k)` does; the inverse uses
//! omega^-1 and divides by n. The root is always the caller's, so that any library's domain can be matched.
//!
//! Algorithm: Cooley-Tukey butterflies with one twiddle per group, read in bit-reversed order from one table
//! that serves every layer; lazy reduction where the field has two spare bits ([`super::field`]), in lanes
//! where the processor has them ([`super::backend`]). Above 2^11 values, Bailey's four-step split (*FFTs in
//! external or hierarchical memory*, 1990) into a matrix of n1 x (n1 or 2 n1): columns in strips that fit the
//! second-level cache, a twist by omega^(row * column), rows, and a digit reversal by swapping tiles. All
//! parallel on the rayon pool. Tables: O(sqrt n) scalars ([`Domain::table_bytes`]). Working memory: one strip
//! per thread, at most [`STRIP_BYTES`] or four columns, plus 16 bytes per 4 to 32 values for the list of row
//! pieces.
//!
//! The parts of the split are public, so that a caller can run it over a matrix on disk, panel by panel:
//! [`columns`], [`rows`], [`twist`], [`transpose_block`]. [`PointTransforms`] does the same with points for
//! the values: an SRS goes from monomial to Lagrange form with it.

/// For [`crate::compiled`].
pub(crate) mod compiled {
    pub use super::element::{Scale, ScaleEach};
    pub use super::strips::{Columns, Factors, Rows};
}
mod domain;
mod element;
mod indexed;
mod panel;
mod points;
mod strips;
mod twiddles;

use super::backend::Backend;

pub use domain::Domain;
pub use element::NttElement;
pub use indexed::{scale_indexed, transpose_block};
pub use panel::{RowTables, STRIP_BYTES, Twist, columns, each_row, rows, twist};
pub use points::PointTransforms;
pub use twiddles::Twiddles;

/// Frees the buffers that threads keep from one small transform to the next: for the end of a large one,
/// since the next step may need all the memory there is.
pub fn forget_buffers() {
    rayon::broadcast(|_| Backend::forget_buffers());
}
