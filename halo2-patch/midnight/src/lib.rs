//! midnight-proofs 0.8.3 with grafts: proving within a memory budget, byte for byte what stock makes.
//!
//! Everything but [`spillproof`] is upstream's own source, found by the build script in cargo's cache,
//! checked, edited at named items, and included below. Without a session it is stock.

// Upstream's inner attributes, restated since `include!` can't have any (build.rs pins them), and one `allow`
// for upstream's warnings: they are not ours to fix.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]
#![allow(clippy::todo, clippy::unimplemented, clippy::dbg_macro)]
#![allow(
    unused,
    // Of the functions of newer releases of its dependencies.
    deprecated,
    unexpected_cfgs,
    mismatched_lifetime_syntaxes,
    renamed_and_removed_lints
)]
#![deny(rustdoc::broken_intra_doc_links)]
#![deny(missing_debug_implementations)]
#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod spillproof;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub mod spillproof;

#[cfg(target_os = "linux")]
#[path = "release.rs"]
mod spillproof_release;

include!(concat!(env!("OUT_DIR"), "/upstream/src/lib.rs"));
