//! The built-in circuits with their keys and proofs, over the drop-in and over the unmodified crate.
//!
//! Provers are most of what there is to compile, so they stand in this library, and a change of a command does not build them
//! again. The commands, and what they report, are the binary's.

#![warn(missing_docs)]
// The circuits are compiled twice on purpose: for the drop-in and for stock.
#![allow(clippy::duplicate_mod)]

pub mod circuits;
