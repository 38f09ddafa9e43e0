//! Kernels against libraries that do the same in memory. Tests of what is private are beside it: a unit test
//! compiles the kernels that it uses once more.
#![allow(clippy::unwrap_used)]

mod field;
mod msm;
mod ntt;
mod poly;
#[path = "../../src/testing.rs"]
mod testing;
mod vector;

use testing::skipped;
