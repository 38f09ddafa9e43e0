//! Arguments, quotients, assigned cells and openings against stock's arithmetic, whole proofs by a verifier in
//! memory, and dry runs against what happens.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod accelerator_quotient;
mod arguments;
mod assignments;
mod book;
mod cells;
mod copies;
mod dry;
mod faults;
mod openings;
mod plonkish;
mod proof;
mod quotient;
mod recut;
mod short;

use spillproof_testing::columns as common;
