//! What this drop-in has and stock midnight-proofs has not: a switch that makes proofs reproducible.
//!
//! The trap of `[patch.crates-io]` is silence: if the patch doesn't apply (another version is locked, say),
//! cargo only warns, or says nothing, and stock is built. Name something from this module, and that is a
//! compile error instead; name it through the library that proves, if that hands its midnight-proofs on,
//! since there may be two copies:
//!
//! ```
//! const _: () = midnight_proofs::spillproof::IS_HERE;
//! ```

#![warn(clippy::all, clippy::unwrap_used, clippy::expect_used, deprecated, unused)]
#![warn(missing_docs)]

mod switch;

pub use switch::{reproducible, set_reproducible, REPRODUCIBLE_VARIABLE};

/// Name this in a program that must not be built without the drop-in.
pub const IS_HERE: () = ();
