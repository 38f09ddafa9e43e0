//! The engine's stages against libraries that we did not write. One binary: each would compile the kernels anew.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod addressed;
mod arguments;
mod assignments;
mod cells;
mod columns;
mod copies;
mod dry;
mod faults;
mod forged;
mod ipa;
mod ipa_file;
mod kzg;
mod library;
mod mapped;
mod multiopen;
mod plonkish;
mod quotient;
mod srs_files;
mod stream;
mod tier;
mod tier_quotient;

use spillproof_testing::{columns as common, openings, pasta, watchdog};
