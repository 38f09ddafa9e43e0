//! A proving engine for circuits larger than the machine.

pub mod budget;
pub mod error;
pub mod kernels;
pub mod storage;

pub use error::{Error, Result};
