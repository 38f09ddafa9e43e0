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
//! name to the unmodified crate.

pub mod stock;
