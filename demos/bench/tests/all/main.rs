//! The benchmark as a program, with small sizes. One program: linking takes longer than the tests need
//! separation.
#![allow(clippy::unwrap_used)]

mod gpu;
mod groth16;
mod lines;
mod midnight;

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_spillproof-bench");
