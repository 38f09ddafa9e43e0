//! Random bytes of the system, with an error where it gives none.

use rand::RngCore;
use rand::rngs::OsRng;

use crate::error::{Error, Result};

/// Fills `bytes` from the system's entropy.
///
/// # Errors
/// [`Error::Unavailable`] where the system gives none, as where a filter of calls refuses `getrandom`.
pub fn random_bytes(bytes: &mut [u8]) -> Result<()> {
    OsRng.try_fill_bytes(bytes).map_err(|error| Error::Unavailable {
        what: "the system's source of random values",
        source: std::io::Error::other(error),
        remedy: "allow the system call getrandom in the container's seccomp profile",
    })
}
