//! Columns on disk within a budget of bytes, and stages that stream kernels over them.
//!
//! The engine knows no proof system. Bytes flow in from files and out to files; between them, leased buffers
//! carry pieces of columns to kernels and back. Proof systems, commitments and the facade are made of it. In
//! the order in which data flows:
//!
//! - [`budget`]: one ledger of bytes; every large buffer is a lease on it.
//! - [`storage`]: the one owner of system calls.
//! - [`dry`]: the record of a run that is only planned.
//! - [`accelerator`]: the seam to an accelerator: whole jobs as plain data.
//! - [`mod@column`]: typed sequences on disk, in checked frames.
//! - [`checkpoint`]: a log and columns that a proof goes on from after a crash.
//! - [`stream`]: kernels over columns.
//! - [`session`]: a budget, a directory and threads, put together.
//! - [`control`]: how another thread stops work, and hears of its steps.
//! - [`plan`]: what keys and a proof will take, before any work.

pub mod accelerator;
pub mod budget;
pub mod checkpoint;
pub mod column;
mod compiled;
pub mod control;
pub mod dry;
pub mod error;
pub mod plan;
pub mod session;
pub mod storage;
pub mod stream;

pub use error::{Error, Result};
pub use session::{Session, SessionBuilder};
