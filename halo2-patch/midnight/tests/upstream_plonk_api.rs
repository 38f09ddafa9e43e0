//! Upstream's `tests/plonk_api.rs` over the grafted crate.

// Upstream's inner attributes, restated.
#![allow(clippy::all, unused, mismatched_lifetime_syntaxes)]

include!(concat!(env!("OUT_DIR"), "/upstream/tests/plonk_api.rs"));
