//! A proving engine for circuits larger than the machine.
//!
//! The user sets a number of bytes; everything larger lives on disk and streams through leased buffers; results are, bit
//! for bit, those of the in-memory libraries. Data flows one way through the modules:
//!
//! - [`budget`]: one ledger of bytes; every large buffer is a lease on it.
//! - [`storage`]: the one owner of system calls.
//! - [`column`]: typed sequences on disk, in checked frames.
//! - [`kernels`]: pure arithmetic on slices.
//! - [`stream`]: kernels over columns.
//! - [`commit`]: KZG over an SRS on disk.
//! - [`session`]: a budget, a directory and threads, put together.

pub mod budget;
pub mod column;
pub mod commit;
pub mod error;
pub mod kernels;
pub mod session;
pub mod storage;
pub mod stream;

pub use error::{Error, Result};
pub use session::Session;
