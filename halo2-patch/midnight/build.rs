//! Writes upstream's source with our grafts into `OUT_DIR`; `src/lib.rs` includes it. Nothing of upstream is
//! kept here: only the digests of its files (`upstream.sha256`) and, under `grafts`, of the items that are
//! changed. `../midnight-0.7` does the same to the release before, by the same grafts.

use std::process::ExitCode;

use spillproof_graft::Upstream;

mod grafts;

const UPSTREAM: Upstream<'_> = Upstream {
    name: "midnight-proofs",
    version: "0.8.3",
    archive_digest: "19b2e4b1acb581ad741b0cb7c0e9dbdf51142f4e9518886f25fcff40a6702dcc",
    files: include_str!("upstream.sha256"),
    source_variable: grafts::SOURCE_VARIABLE,
};

fn main() -> ExitCode {
    grafts::build(&UPSTREAM, grafts::Release::V08)
}
