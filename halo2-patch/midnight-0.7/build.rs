//! As `../midnight/build.rs`, for the release before: by the same grafts, under which items have other digests.

use std::process::ExitCode;

use spillproof_graft::Upstream;

#[path = "../midnight/grafts/mod.rs"]
mod grafts;

const UPSTREAM: Upstream<'_> = Upstream {
    name: "midnight-proofs",
    version: "0.7.3",
    archive_digest: "86d40952370a114d52a1ca5a5730a1a96e07380bb1a632ef7f494bd38c7bd482",
    files: include_str!("upstream.sha256"),
    source_variable: grafts::SOURCE_VARIABLE,
};

fn main() -> ExitCode {
    grafts::build(&UPSTREAM, grafts::Release::V07)
}
