//! The binary and the drop-in as one program: plans held to runs, and runs under a fake device.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod failures;
mod gpu;
mod gpu_plan;
mod gpu_support;
mod kills;
mod plan;
mod secrets;
mod srs;

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_spillproof");
