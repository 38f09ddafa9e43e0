//! Columns and stages against libraries that we did not write. One program: each would link the kernels anew.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod accelerator;
mod addressed;
mod columns;
mod control;
mod dealt;
mod mapped;
mod stream;

use spillproof_testing::{columns as common, watchdog};
