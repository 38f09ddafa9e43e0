//! What the tests of several packages share. Only tests depend on it.
//!
//! ```text
//! columns        a folder with a ledger, columns and values in it, one thread or two
//! openings       openings on any curve, beside arkworks
//! pasta          zcash's halo2 beside ours, with one generator for both
//! r1cs           constraints, witnesses, keys of known secrets (the feature `groth16`)
//! circom_files   the same as files of circom and snarkjs (the feature `groth16`)
//! mounted        file systems for one test
//! seeded         generators whose seed is printed
//! session        a session in a folder of its own
//! skipped        what this machine cannot do
//! watchdog       a test that may hang fails instead
//! ```
#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used)]

#[cfg(feature = "groth16")]
pub mod circom_files;
pub mod columns;
mod mounted;
pub mod openings;
pub mod pasta;
#[cfg(feature = "groth16")]
pub mod r1cs;
mod seeded;
mod session;
mod skipped;
pub mod watchdog;

pub use mounted::Mounted;
pub use seeded::{seeded, variable};
pub use session::session;
pub use skipped::skipped;
