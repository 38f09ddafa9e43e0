//! What this drop-in has and stock halo2-axiom has not: a session that holds a memory budget, and a switch that makes
//! proofs reproducible.
//!
//! ```text
//!   mod.rs      who is asking: is there a session, is the switch on
//!   switch.rs   the reproducible switch
//!   params.rs   ParamsKZG in a session: made, read and written through fixed buffers
//!   bases.rs    its points: a vector, or a column on disk
//!   engine.rs   the only place that talks to the engine
//! ```
//!
//! The trap of `[patch.crates-io]` is silence: if the patch doesn't apply (another version is locked, say), cargo only
//! warns, and stock is built. Name something from this module, and that is a compile error instead:
//!
//! ```
//! const _: () = halo2_axiom::spillproof::IS_HERE;
//! ```

#![warn(clippy::all, clippy::unwrap_used, clippy::expect_used, unused)]
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub(crate) mod bases;
pub(crate) mod engine;
pub(crate) mod params;
mod switch;

pub use switch::{reproducible, set_reproducible, REPRODUCIBLE_VARIABLE};

/// Name this in a program that must not be built without the drop-in.
pub const IS_HERE: () = ();

/// Is the random polynomial of the vanishing argument to be drawn by one thread, in order? Within a session always; the
/// reproducible switch moreover draws it from the caller's rng.
pub(crate) fn draws_in_order() -> bool {
    reproducible()
}
