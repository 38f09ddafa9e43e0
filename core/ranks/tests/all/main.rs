//! Ranks as threads of this process: the right bytes, or a typed error on every rank, and no hang.

#![allow(clippy::unwrap_used)]

mod collectives;
mod counts;
mod faults;
mod handshake;
mod model;
mod support;
