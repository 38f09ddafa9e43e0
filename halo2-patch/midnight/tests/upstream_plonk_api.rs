//! Upstream's `tests/plonk_api.rs` over the grafted crate: without a session, and in one.

// Upstream's inner attributes, restated.
#![allow(clippy::all, unused, mismatched_lifetime_syntaxes)]

include!(concat!(env!("OUT_DIR"), "/upstream/tests/plonk_api.rs"));

#[path = "../../zcash/tests/common/again.rs"]
mod again;
use midnight_proofs::spillproof as session_variables;

#[test]
fn upstreams_test_passes_in_a_session() {
    again::in_a_session("upstreams_test_passes_in_a_session", &["plonk_api"]);
}
