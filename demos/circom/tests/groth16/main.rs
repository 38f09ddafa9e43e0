//! Groth16 against libraries that we did not write: proofs, files, setups and ceremonies. Here, and not beside the engine's other tests, since
//! this crate has the engine's kernels over these curves compiled.

#![allow(clippy::expect_used, clippy::unwrap_used)]

// So that the functions that it has compiled are found.
use spillproof_circom as _;

#[path = "../common/circom_files.rs"]
mod circom_files;
#[path = "../../../../core/tests/common/mod.rs"]
mod common;
#[path = "../../../../core/tests/common/openings.rs"]
mod openings;
#[path = "../common/r1cs.rs"]
mod r1cs;

mod arkworks;
mod ceremony;
mod curves;
mod files;
mod history;
mod powers;
mod proofs;
mod setup;
