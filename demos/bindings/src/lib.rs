//! The engine over bytes: what the C library (`demos/c`) and the Python package (`demos/python`) are made of.
//!
//! What flows in: scalars, points and settings as a caller in another language has them. What flows out: the
//! same, or an [`Error`] of one of a few [`Kind`]s. Nothing in here knows C's types or Python's, apart from
//! [`pointers`], which libraries for C share.
//!
//! | module | content |
//! |---|---|
//! | [`bytes`] | scalars and points as bytes |
//! | [`mod@column`] | columns that are written and read in pieces |
//! | [`work`] | sessions, SRS, commitments, openings, sums, transforms |
//! | [`plan`] | what such work will take |
//! | [`error`] | what went wrong, and of which kind that is |
//! | [`pointers`] | what callers in C give |
//!
//! Curve: BN254.

pub mod bytes;
pub mod column;
pub mod error;
pub mod plan;
pub mod pointers;
pub mod work;

pub use error::{Error, Kind, Result};
