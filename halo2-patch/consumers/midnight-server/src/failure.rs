//! Why a request got no answer: a status, a word for programs and a sentence for people. Sentences are made
//! here, and from errors of the engine, which name files, sizes and folders. Texts of other libraries are not
//! handed on: those of the circuits' interpreter hold values of the witness.

use std::any::Any;
use std::error::Error as StdError;
use std::io;

use hyper::StatusCode;
use spillproof_engine::budget::format_bytes;
use spillproof_engine::Error as EngineError;

/// `Result` with [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// What became of a request instead of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The body is not what the route takes.
    Body { expected: &'static str },
    /// The body did not come whole: the client stopped, or sent what is no HTTP.
    BodyBroken,
    /// No piece of the body came for so long.
    BodySlow { seconds: u64 },
    /// The body is larger than the server takes.
    BodyTooLarge { limit_bytes: u64 },
    /// A circuit is larger than the budget allows.
    CircuitTooLarge { limit_bytes: u64 },
    /// Key material that does not hold together, or that belongs to no circuit here.
    Key { reason: &'static str },
    /// No key material in the request, and none on the disk.
    UnknownKey,
    /// The preimage does not satisfy its circuit.
    Unsatisfied,
    /// The circuit needs parameters that are not on the disk.
    NoParameters { k: u8 },
    /// The queue is full.
    QueueFull { capacity: usize },
    /// The budget, or the disk, has no room.
    NoRoom { reason: String },
    /// The server is about to end.
    Ending,
    /// The time limit passed.
    TimeLimit { seconds: u64 },
    /// The proof was made, and the verifier refuses it.
    NotVerified,
    /// There is no such thing here.
    NotFound { what: String },
    /// The route has another method.
    Method { allowed: &'static str },
    /// A fault of the server, or of a library.
    Internal { reason: String },
}

impl Failure {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Body { .. } | Self::BodyBroken | Self::Key { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownKey | Self::Unsatisfied => StatusCode::BAD_REQUEST,
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodySlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge { .. } | Self::CircuitTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::QueueFull { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotVerified | Self::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoParameters { .. } | Self::NoRoom { .. } | Self::Ending => StatusCode::SERVICE_UNAVAILABLE,
            Self::TimeLimit { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// The word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Body { .. } => "body",
            Self::BodyBroken => "body-broken",
            Self::BodySlow { .. } => "body-slow",
            Self::BodyTooLarge { .. } => "body-too-large",
            Self::CircuitTooLarge { .. } => "circuit-too-large",
            Self::Key { .. } => "key",
            Self::UnknownKey => "unknown-key",
            Self::Unsatisfied => "unsatisfied",
            Self::NoParameters { .. } => "no-parameters",
            Self::QueueFull { .. } => "queue-full",
            Self::NoRoom { .. } => "no-room",
            Self::Ending => "ending",
            Self::TimeLimit { .. } => "time-limit",
            Self::NotVerified => "not-verified",
            Self::NotFound { .. } => "not-found",
            Self::Method { .. } => "method",
            Self::Internal { .. } => "internal",
        }
    }

    /// The sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Body { expected } => format!("the body is not the tagged bytes of {expected}"),
            Self::BodyBroken => "the body did not come whole".to_owned(),
            Self::BodySlow { seconds } => format!("no piece of the body came for {seconds} s"),
            Self::BodyTooLarge { limit_bytes } => format!(
                "the body is larger than {}, which is the most that this server takes (--body-limit, and a quarter of \
                 its memory budget)",
                format_bytes(*limit_bytes)
            ),
            Self::CircuitTooLarge { limit_bytes } => format!(
                "the circuit is larger than {}, the most that this server's memory budget allows",
                format_bytes(*limit_bytes)
            ),
            Self::Key { reason } => format!("key material: {reason}"),
            Self::UnknownKey => {
                "the request has no key material, and this location has none on the server's disk".to_owned()
            }
            Self::Unsatisfied => "the preimage does not satisfy the circuit".to_owned(),
            Self::NoParameters { k } => format!(
                "the parameters bls_midnight_2p{k} are not in the server's folder (--params), and this server fetches \
                 none"
            ),
            Self::QueueFull { capacity } => format!("{capacity} jobs wait already: try again later"),
            Self::NoRoom { reason } | Self::Internal { reason } => reason.clone(),
            Self::Ending => "the server is about to end".to_owned(),
            Self::TimeLimit { seconds } => format!("the job was not done within {seconds} s"),
            Self::NotVerified => {
                "the proof is not valid for the verifying key: do the keys and the circuit belong together?".to_owned()
            }
            Self::NotFound { what } => format!("{what} is not here"),
            Self::Method { allowed } => format!("this route takes {allowed} only"),
        }
    }

    /// The failure that an error of a library stands for. Only texts of the engine are handed on.
    pub fn of_error(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(engine) = error.downcast_ref::<EngineError>() {
                return Self::of_engine(engine);
            }
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = match inner {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        let reason = "a library's error, whose text is not shown, since it may hold values of the witness";
        Self::Internal {
            reason: reason.to_owned(),
        }
    }

    /// The failure that an error of the engine stands for.
    pub fn of_engine(error: &EngineError) -> Self {
        use EngineError::{BudgetTooSmall, DiskTooSmall, File, Io, Memory, OverBudget};
        let reason = error.to_string();
        let is_for_room = match error {
            OverBudget { .. } | BudgetTooSmall { .. } | DiskTooSmall { .. } | Memory { .. } => true,
            Io { source, .. } | File { source, .. } => {
                matches!(
                    source.kind(),
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                )
            }
            _ => false,
        };
        match is_for_room {
            true => Self::NoRoom { reason },
            false => Self::Internal { reason },
        }
    }

    /// The failure that a panic stands for.
    pub fn of_panic(payload: &(dyn Any + Send)) -> Self {
        match payload.downcast_ref::<EngineError>() {
            Some(engine) => Self::of_engine(engine),
            None => Self::Internal {
                reason: "a library gave up on the job; where, is in the server's log".to_owned(),
            },
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::of_engine(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_engine_are_found_within_others() {
        let too_small = || EngineError::BudgetTooSmall {
            what: "a proof".to_owned(),
            needed_bytes: 2,
            limit_bytes: 1,
        };
        let nested = io::Error::other(io::Error::other(too_small()));
        let failure = Failure::of_error(&nested);
        assert_eq!(failure.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(failure.sentence().contains("at least 2 bytes"), "{failure:?}");
        let payload: Box<dyn Any + Send> = Box::new(too_small());
        assert_eq!(Failure::of_panic(&*payload), failure);
    }

    #[test]
    fn texts_of_other_libraries_are_not_handed_on() {
        let failure = Failure::of_error(&io::Error::other("Expected boolean, found: 42"));
        assert_eq!(failure.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!failure.sentence().contains("42"), "{failure:?}");
        let payload: Box<dyn Any + Send> = Box::new("left: 42".to_owned());
        assert!(!Failure::of_panic(&*payload).sentence().contains("42"));
    }
}
