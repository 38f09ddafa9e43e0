//! The arithmetic of a PLONK prover over columns: constraint programs, what is evaluated with them, and the
//! arguments' own columns. No proof system's types, no transcript.
//!
//! What flows in: columns of n = 2^k values or coefficients, and a [`Program`]: a straight-line program over
//! vectors, made once from all constraints with a [`Builder`]; challenges, and the random values of the last
//! rows. What flows out: columns.
//!
//! - [`Constraints`]: all of a proof's as one program, or as several that add up to it.
//! - [`program`], [`schedule`](self), [`evaluate`](self): the program, from expressions to instructions on
//!   slices.
//! - [`windows`]: a program over columns of values, row by row.
//! - [`copies`]: the permutation that copy constraints make, and its sigma columns.
//! - [`mod@quotient`]: a program over polynomials, divided by the vanishing polynomial, one coset at a time.
//! - [`offload`](self): a coset of it as a job for an accelerator.
//! - [`arguments`]: the constraints of permutation, lookup, shuffle and trash, for a program.
//! - [`permutation`]: the grand product of a set of columns.
//! - [`lookup`]: permuted input and table, and their grand product.
//! - [`FixedCells`], [`Selectors`], [`witness_column`], [`stored_witness_column`]: what a circuit assigns,
//!   and the columns that become of it.
//! - [`coefficients()`]: many columns of values to coefficients.
//! - [`recut()`]: a quotient's pieces, cut anew.
//! - [`indicator()`]: polynomials that are 1 on some rows.
//! - [`mod@sort`]: an external merge sort by the integers that values stand for.
//!
//! Architecture invariant: nothing in here knows which proof system asks, and no memory grows with n.

pub mod arguments;
pub mod builder;
mod coefficients;
mod constraints;
pub mod copies;
pub(crate) mod evaluate;
mod fixed;
pub(crate) mod indicator;
mod integer;
pub mod lookup;
mod merge;
pub mod permutation;
pub(crate) mod product;
pub mod program;
pub mod quotient;
mod recut;
mod schedule;
pub(crate) mod selectors;
mod short;
mod side_by_side;
pub mod sort;
pub mod windows;
pub(crate) mod witness;

pub use builder::Builder;
pub use coefficients::coefficients;
pub use constraints::Constraints;
pub use copies::Copies;
pub use fixed::FixedCells;
pub use indicator::indicator;
pub use program::{Program, Value};
pub use quotient::{
    CosetDomain, QuotientPlan, QuotientShape, Source, quotient, quotient_in_tiles, quotient_of_constraints,
};
pub use recut::recut;
pub use selectors::Selectors;
pub use sort::SortPlan;
pub use windows::evaluate_rows;
pub use witness::{stored_witness_column, witness_column};
