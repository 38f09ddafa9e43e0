//! The proofs of each version of ark-groth16, byte for byte.

#![allow(clippy::expect_used, clippy::unwrap_used)]
// What is another version's to two of three modules is the third one's own.
#![allow(unused_qualifications)]
// The same tests over the types of each version.
#![allow(clippy::duplicate_mod, clippy::single_component_path_imports)]

mod v0_4;
mod v0_5;
mod v0_6;

use spillproof_testing::{r1cs, session};

const MIB: u64 = 1 << 20;
