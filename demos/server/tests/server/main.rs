//! A server in this process, over real sockets of the loopback interface.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod client;
mod description;
mod drain;
mod fixture;
mod jobs;
mod malformed;
mod memory;
mod proofs;
mod queue;
mod refusals;
mod saved;

use spillproof_testing::{seeded, variable};
