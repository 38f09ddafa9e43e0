//! The engine's stages against libraries that we did not write. One binary: each would compile the kernels anew.

#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../common/circom_files.rs"]
mod circom_files;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/pasta.rs"]
mod pasta;
#[path = "../common/r1cs.rs"]
mod r1cs;
#[path = "../common/watchdog.rs"]
mod watchdog;

mod addressed;
mod arguments;
mod assignments;
mod cells;
mod ceremony;
mod columns;
mod copies;
mod dry;
mod faults;
mod forged;
mod groth16;
mod iden3;
mod ipa;
mod ipa_file;
mod kzg;
mod library;
mod mapped;
mod multiopen;
mod plonkish;
mod powers;
mod quotient;
mod setup;
mod srs_files;
mod stream;
mod tier;
mod tier_quotient;
