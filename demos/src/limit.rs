//! The limit on this process, for errors that name a larger one.

use std::sync::OnceLock;

use spillproof_engine::budget::Limit;

static LIMIT: OnceLock<Limit> = OnceLock::new();

/// Keeps the limit that the command line set. The first one stays.
pub fn set(limit: Limit) {
    let _is_the_first = LIMIT.set(limit);
}

/// The limit on this process, if its command line set one.
pub fn get() -> Option<&'static Limit> {
    LIMIT.get()
}
