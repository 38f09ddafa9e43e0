//! The server, asked by the ledger's own client and by clients that misbehave; every proof is verified by
//! Midnight's crates with the parameters that they ship.

mod circuits;
mod ending;
mod hard_limit;
mod harness;
mod proofs;
mod refusals;
