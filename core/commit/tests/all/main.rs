//! Commitments, openings and files of parameters against arkworks, halo2curves and halo2_proofs.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod forged;
mod ipa;
mod ipa_file;
mod kzg;
mod midnight;
mod multiopen;
mod place;
mod srs_files;

use spillproof_testing::{columns as common, openings, pasta, watchdog};
