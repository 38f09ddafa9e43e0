//! The arithmetic of a PLONK prover over columns: constraint programs, and what is evaluated with them. No proof system's
//! types, no transcript.
//!
//! What flows in: columns of n = 2^k values or coefficients, and a [`Program`]: a straight-line program over vectors,
//! made once from all constraints with a [`Builder`]. What flows out: columns.
//!
//! - [`program`], [`schedule`](self), [`evaluate`](self): the program, from expressions to instructions on slices.
//! - [`windows`]: a program over columns of values, row by row.
//!
//! Architecture invariant: nothing in here knows which proof system asks, and no memory grows with n.

mod evaluate;
pub mod program;
mod schedule;
pub mod windows;

pub use program::{Builder, Program, Value};
pub use windows::evaluate_rows;
