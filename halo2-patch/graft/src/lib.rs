//! Build-time grafting: a patch without a fork.
//!
//! A build script names a pinned release of a crate of others ([`Upstream`]), this library finds its pristine
//! source, refuses it if one byte of one file differs from what was pinned, applies *grafts* to items named
//! by their path, and writes the result to `OUT_DIR`, from where `src/lib.rs` includes it. No line of
//! upstream is kept in the repository that does this.
//!
//! ```text
//!   source      override variable | cargo's own cache | a nested `cargo metadata`      locate.rs
//!     |         every listed file against its SHA-256                                   upstream.rs
//!   Tree        path -> item by syn, item's text against the digest in the graft        item.rs
//!     |         edits of one file must not overlap                                      operation.rs, edit.rs
//!   OUT_DIR     whole files, parsed once more before they are written                   tree.rs
//! ```
//!
//! A graft carries the digest of the item that it changes (its text from the first attribute to the last
//! token). When upstream moves on, the build fails with the names of exactly those items that drifted; with
//! [`BLESS_VARIABLE`] set, the new digests are printed, the build fails, and a person decides.
//!
//! Invariant: nothing here knows what is being patched; that is the build script's business.

#![warn(missing_docs)]

mod cargo;
mod edit;
mod error;
mod item;
mod locate;
mod operation;
mod release;
mod tree;
mod upstream;

pub use error::{Error, Result};
pub use operation::{Operation, Substitution};
pub use release::Upstream;
pub use tree::Tree;

/// Set this to anything to have the digests of everything that is pinned printed, rather than checked.
pub const BLESS_VARIABLE: &str = "SPILLPROOF_GRAFT_BLESS";

/// SHA-256 in lower-case hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    sha2::Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
