//! What this drop-in has where there is no session: systems other than Linux (wasm32, macOS, Windows), for
//! which the engine is not built. Keys and proofs are made in memory, as stock makes them.

#![warn(missing_docs)]

use std::io;

#[path = "../../axiom/src/spillproof/switch.rs"]
mod switch;

pub use switch::{reproducible, set_reproducible, REPRODUCIBLE_VARIABLE};

/// Name this in a program that must not be built without the drop-in.
pub const IS_HERE: () = ();

/// Variables that ask for a session.
const ASKING: [&str; 2] = ["SPILLPROOF_MEMORY", "SPILLPROOF_LIMIT"];

/// Is there a session? Never on this system.
pub const fn active() -> bool {
    false
}

/// Refuses variables that ask for a session: a budget is never silently ignored.
///
/// # Errors
/// If one is set.
pub(crate) fn refuse() -> io::Result<()> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match ASKING.into_iter().find(is_set) {
        None => Ok(()),
        Some(name) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "spillproof: {name} asks for proofs within a memory budget, and this program was built for {}, where the drop-in has no \
                 session: build it for Linux, or unset {name} for proofs in memory",
                std::env::consts::OS
            ),
        )),
    }
}
