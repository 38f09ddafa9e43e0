//! The exchanges of a proof.

/// Their phases, in their order.
pub const EXCHANGES: [&str; 2] = ["first exchange", "second exchange"];

/// Checksums of what a rank has sent in an exchange, in this run or in an earlier one, and of what has come to it.
pub type Exchanged = [u64; 2];
