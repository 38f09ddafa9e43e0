//! Proof from outside that the budget holds. One program: a lock decides which tests run beside the binary.
#![allow(clippy::expect_used)]

mod budget;
mod common;
mod harness;
mod limit;
mod proofs;
