//! The binary and the drop-in as one program: plans held to runs, and runs under a fake device.
#![allow(clippy::duplicate_mod, clippy::expect_used, clippy::unwrap_used)]

mod checkpoints;
mod conventions;
mod demo;
mod disks;
mod documents;
mod failures;
mod gpu;
mod gpu_groth16;
mod gpu_plan;
mod gpu_support;
mod groth16;
mod kills;
mod midnight;
mod new;
mod of_program;
mod patches;
mod plan;
mod ranks;
mod ranks_cuts;
mod refusals;
mod report;
mod runs;
mod secrets;
mod serve;
mod smallest;
mod srs;
mod surroundings;
mod unsatisfied;
mod zcash;

use spillproof_testing::{Mounted, circom_files, r1cs, seeded, skipped, variable};

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_spillproof");
