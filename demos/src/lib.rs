//! What the `spillproof` binary is made of. The binary is thin; everything that a test or a demo wants to call is here.

#![warn(missing_docs)]

pub mod circuits;
