//! Errors of a proof.

use std::io;

use spillproof_commit::ipa::Broken;

/// The result of a round.
pub type Result<T> = std::result::Result<T, Error>;

/// Why keys or a proof could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's: no room, a damaged file, a failing disk.
    #[error(transparent)]
    Engine(#[from] spillproof_engine::Error),
    /// The transcript's or the commitment scheme's.
    #[error(transparent)]
    Protocol(#[from] io::Error),
    /// The multi-opening's.
    #[error("the opening failed: {0}")]
    Opening(#[source] io::Error),
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Engine(error) => Self::Engine(error),
            Broken::Transcript(error) => Self::Protocol(error),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => Self::other(error),
            Error::Protocol(error) | Error::Opening(error) => error,
        }
    }
}
