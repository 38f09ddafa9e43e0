//! What went wrong, and of which kind that is.

use spillproof_engine::error::Invalid;
use spillproof_format::PointFault;

use crate::pointers::Null;

/// With [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a call can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's own errors.
    #[error(transparent)]
    Engine(#[from] spillproof_engine::Error),
    /// Bytes that are no scalar.
    #[error(
        "{what}: the scalar at index {index} is not below the modulus of BN254's scalar field: reduce it first"
    )]
    Scalar {
        /// The argument.
        what: &'static str,
        /// Which of its scalars.
        index: u64,
    },
    /// Bytes that are no point of G1.
    #[error("{what}: the point at index {index} {fault}")]
    Point {
        /// The argument.
        what: &'static str,
        /// Which of its points.
        index: u64,
        /// What is wrong with it.
        fault: PointFault,
    },
    /// Bytes that are no whole number of elements.
    #[error("{what}: {bytes} bytes are no whole number of elements of {element_bytes} bytes")]
    Bytes {
        /// The argument.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The length of an element.
        element_bytes: usize,
    },
    /// A number of elements that does not suit another argument.
    #[error("{what}: {given} given, {expected} expected")]
    Count {
        /// The elements, in the plural.
        what: &'static str,
        /// The given number.
        given: u64,
        /// The right one.
        expected: u64,
    },
    /// A number or a text that stands for nothing.
    #[error("{what}: `{given}` is unknown; known are {known}")]
    Unknown {
        /// The argument.
        what: &'static str,
        /// The given value.
        given: String,
        /// What is known.
        known: &'static str,
    },
    /// A column with a piece that could not be written.
    #[error("a piece of the column could not be written: begin a new one")]
    GivenUp,
    /// A null pointer.
    #[error(transparent)]
    Null(#[from] Null),
    /// A panic inside of the library.
    #[error("an internal error of spillproof: please report it")]
    Internal,
}

/// Kinds of errors that callers tell apart. The numbers are those of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// A mistake in the call: a value, a length, a name.
    Invalid = 1,
    /// The memory budget is too small: [`Error::needed_bytes`] would do.
    Budget = 2,
    /// The system refused an operation on a file, or the disk is full.
    File = 3,
    /// A file is not what it should be.
    Format = 4,
    /// The disk gave back other bytes than were written.
    Damaged = 5,
    /// The system does not give what is needed: memory, threads, a system call, a session after a fork.
    System = 6,
    /// A defect of the library.
    Internal = 7,
}

impl Error {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        use spillproof_engine::Error as Engine;
        match self {
            Self::Engine(error) => match error {
                Engine::OverBudget { .. } | Engine::BudgetTooSmall { .. } | Engine::NestedTask { .. } => {
                    Kind::Budget
                }
                Engine::Io { .. } | Engine::File { .. } | Engine::DiskTooSmall { .. } => Kind::File,
                Engine::Format { .. } => Kind::Format,
                Engine::Damaged { .. } => Kind::Damaged,
                Engine::Invalid(Invalid::NoFolder { .. }) => Kind::File,
                Engine::Invalid(_) | Engine::Checkpoint(_) => Kind::Invalid,
                _ => Kind::System,
            },
            Self::Internal => Kind::Internal,
            _ => Kind::Invalid,
        }
    }

    /// The smallest memory budget with which the call would have gone on, if the budget was too small.
    pub fn needed_bytes(&self) -> Option<u64> {
        match self {
            Self::Engine(spillproof_engine::Error::BudgetTooSmall { needed_bytes, .. }) => {
                Some(*needed_bytes)
            }
            Self::Engine(spillproof_engine::Error::OverBudget {
                asked_bytes,
                held_bytes,
                ..
            }) => Some(held_bytes.saturating_add(*asked_bytes)),
            _ => None,
        }
    }
}

/// An error with its causes.
pub fn explain(error: &dyn std::error::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in std::iter::successors(Some(error), |error| error.source()) {
        let text = error.to_string();
        // Many of the engine's errors say their cause themselves.
        if !texts.last().is_some_and(|above| above.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}
