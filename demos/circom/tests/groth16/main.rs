//! Groth16 against libraries that we did not write: proofs, files, setups and ceremonies. Here, and not
//! beside the engine's other tests, since this crate has the engine's kernels over these curves compiled.

#![allow(clippy::expect_used, clippy::unwrap_used)]

// So that the functions that it has compiled are found.
use spillproof_circom as _;

mod accelerated;
mod arkzkey;
mod ceremony;
mod curves;
mod files;
mod history;
mod json;
mod on_device;
mod powers;
mod proofs;
mod published;
mod ranks;
mod ranks_files;
mod ranks_on_devices;
mod rapidsnark;
mod setup;
mod smallest;
mod stopped;
mod streams;

use spillproof_testing::{circom_files, columns as common, openings, r1cs};
