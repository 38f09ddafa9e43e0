//! A proving engine for circuits larger than the machine.

pub mod error;

pub use error::{Error, Result};
