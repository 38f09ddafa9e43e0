//! What a program is told outside of its own errors.

use std::fmt::Display;

use spillproof_engine::Error;

use super::has_programs_subscriber;
use crate::progress::say;

/// The target of what is said before a panic, for a program that catches the payload and says it itself.
pub const PANICS: &str = "spillproof::panics";

/// Warns the user of a program: by its subscriber, if it has one, else on standard error.
pub fn warn(text: impl Display) {
    if has_programs_subscriber() {
        tracing::warn!("spillproof: {text}");
    } else {
        say(format_args!("spillproof: warning: {text}"));
    }
}

/// Ends a call whose signature has no place for an error of the engine: a panic whose payload is that error.
/// Its text is said before. The panic's hook is not called: the standard one knows texts only, and prints
/// `Box<dyn Any>` for any other payload.
pub fn raise(error: Error) -> ! {
    if has_programs_subscriber() {
        tracing::error!(target: PANICS, "spillproof: {error}");
    } else {
        say(format_args!("spillproof: {error}"));
    }
    std::panic::resume_unwind(Box::new(error))
}
