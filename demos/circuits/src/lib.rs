//! The built-in circuits: three shapes that load a prover in three different ways.
//!
//! | module | columns | what it loads |
//! |---|---|---|
//! | [`chain`](stock::chain) | 3 advice, 5 fixed, 4 permuted | the permutation argument |
//! | [`wide`](stock::wide) | 96 advice, degree 5, 192 queries | the quotient, and the openings |
//! | [`lookups`](stock::lookups) | 7 advice, 6 fixed, 4 lookups | the sorts and the grand products of the lookup argument |
//!
//! Every circuit fills all usable rows of `2^k`, is a pure function of `(k, seed)`, and makes its values row by row:
//! it holds no memory that grows with `k`, so that what a run needs is what its prover needs.
//!
//! A circuit is written once and compiled twice: each file names halo2 as `super::halo2` only. [`stock`] gives that
//! name to the unmodified crate, [`dropin`] to the drop-in.
//!
//! A package of its own: provers take most of the time that the binary takes to build, and a change of a command does not
//! build them again.

#![warn(missing_docs)]
// The circuits are compiled twice on purpose: for the drop-in and for stock.
#![allow(clippy::duplicate_mod)]

pub mod dropin;
pub mod stock;

/// The built-in circuits by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Additions and multiplications, held together by copies.
    Chain,
    /// 96 columns in one gate of degree 5.
    Wide,
    /// Range checks and exclusive-or.
    Lookups,
}

/// The multi-opening argument of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Boneh, Drake, Fisch, Gabizon: one opening proof whatever the points.
    Shplonk,
    /// Gabizon, Williamson, Ciobotaru: one for each point.
    Gwc,
}
