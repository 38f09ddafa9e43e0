//! The errors that a client gets: `application/problem+json` (RFC 9457), each with a code that stays the same.

use std::io;
use std::path::Path;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use spillproof_circuits::axiom::dropin::halo2::spillproof::SavedError;
use spillproof_circuits::saved::Cause;
use spillproof_engine::error::Invalid;
use spillproof_format::FormatError;

/// What a witness is called in errors: it is no file.
pub(crate) const WITNESS: &str = "the witness";

/// The media type of errors.
pub(crate) const PROBLEM: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident = $text:literal, $status:ident, $title:literal;)+) => {
        /// What went wrong, as clients tell it apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[doc = $doc])+ $code,)+
        }

        /// All codes.
        pub const CODES: &[Code] = &[$(Code::$code,)+];

        impl Code {
            /// Its text.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$code => $text,)+ }
            }

            /// The status of its answers.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$code => StatusCode::$status,)+ }
            }

            /// What it is, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$code => $title,)+ }
            }
        }
    };
}

codes! {
    /// Bytes that are no HTTP request.
    Malformed = "malformed_request", BAD_REQUEST, "the request is not HTTP/1.1";
    /// A header with a value that means nothing.
    BadHeader = "bad_header", BAD_REQUEST, "a header has a value that means nothing";
    /// A part of the path that is no text.
    BadPath = "bad_path", BAD_REQUEST, "the path is no text";
    /// The body ended before the witness did.
    BodyIncomplete = "body_incomplete", BAD_REQUEST, "the body ended early";
    /// No token, or another one.
    Unauthorized = "unauthorized", UNAUTHORIZED, "a bearer token is needed";
    /// No such route.
    NoRoute = "no_such_route", NOT_FOUND, "there is no such route";
    /// No such key.
    NoKey = "no_such_key", NOT_FOUND, "there is no such key";
    /// No such job, or one that is forgotten.
    NoJob = "no_such_job", NOT_FOUND, "there is no such job";
    /// Another method.
    Method = "method_not_allowed", METHOD_NOT_ALLOWED, "the route has no such method";
    /// The body stood still.
    BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "the body stood still for too long";
    /// The first request with this idempotency key is still being received.
    InProgress = "idempotency_in_progress", CONFLICT, "the first request with this key is still being received";
    /// The job was stopped.
    Stopped = "job_stopped", CONFLICT, "the job was stopped";
    /// More bytes than a witness of this key has.
    TooLarge = "witness_too_large", PAYLOAD_TOO_LARGE, "the body is longer than a witness of this key";
    /// A path that is too long.
    UriTooLong = "uri_too_long", URI_TOO_LONG, "the path is too long";
    /// A body of another type.
    ContentType = "content_type", UNSUPPORTED_MEDIA_TYPE, "a witness is sent as application/octet-stream";
    /// A host that is a name, where no token is asked for.
    Host = "host_refused", MISDIRECTED_REQUEST, "the host is not an address of this machine";
    /// Fewer bytes than a witness of this key has.
    WitnessLength = "witness_length", UNPROCESSABLE_ENTITY, "the body is shorter than a witness of this key";
    /// A body that is no witness for this key.
    WitnessInvalid = "witness_invalid", UNPROCESSABLE_ENTITY, "the body is no witness for this key";
    /// A witness that does not satisfy the circuit.
    Unsatisfied = "witness_unsatisfied", UNPROCESSABLE_ENTITY, "the witness does not satisfy the circuit";
    /// The idempotency key was used with another body, or another scheme.
    KeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "this idempotency key came with another body or scheme before";
    /// The budget is too small for any proof with this key.
    BudgetTooSmall = "budget_too_small", UNPROCESSABLE_ENTITY, "the server's budget is too small for this key";
    /// The queue is full.
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "the queue is full";
    /// Headers that are too long, or too many.
    HeadTooLarge = "head_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long, or too many";
    /// A defect, or a failure of the machine; the log has more.
    Internal = "internal", INTERNAL_SERVER_ERROR, "the server failed; its log says more";
    /// Keys are being opened.
    Starting = "starting", SERVICE_UNAVAILABLE, "keys are being opened";
    /// The server ends.
    Draining = "draining", SERVICE_UNAVAILABLE, "the server ends, and takes no new jobs";
    /// The system, or the budget, has no room now.
    NoRoom = "no_room", SERVICE_UNAVAILABLE, "there is no room for the proof now";
    /// The request's deadline.
    Deadline = "deadline_exceeded", GATEWAY_TIMEOUT, "the proof was not done at the request's deadline";
    /// The server's limit on the time of a job.
    TimeLimit = "time_limit", GATEWAY_TIMEOUT, "the proof took longer than the server allows";
    /// The disk of scratch files is full.
    DiskFull = "disk_full", INSUFFICIENT_STORAGE, "the disk for scratch files is full";
}

/// An error as a client gets it.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub code: Code,
    /// What was found, and what to do.
    pub detail: String,
    /// When to come again.
    pub retry_after: Option<Duration>,
    /// The budget that would do, and the one there is.
    pub budget: Option<Needed>,
}

/// A budget that is too small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    pub needed_bytes: u64,
    pub limit_bytes: u64,
}

pub(crate) type Answer = Result<Response, Problem>;

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retry_after: None,
            budget: None,
        }
    }

    /// With when to come again.
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// For a budget that no proof with a key fits into.
    pub fn too_small(needed: Needed) -> Self {
        let detail = format!(
            "a proof with this key needs a budget of {} bytes, and the server has {}: it will never fit; start the server with that budget",
            needed.needed_bytes, needed.limit_bytes
        );
        Self {
            budget: Some(needed),
            ..Self::new(Code::BudgetTooSmall, detail)
        }
    }

    /// For a job that failed, in a budget of `limit_bytes`.
    pub fn of_job(error: &spillproof_circom::Error, limit_bytes: u64) -> Self {
        use spillproof_circom::Error;
        let error = match error {
            Error::Engine(error) => error,
            Error::Content { .. } => return Self::new(Code::WitnessInvalid, error.to_string()),
            other => return Self::internal(other),
        };
        Self::of_engine(error, limit_bytes)
    }

    /// For an error of the engine.
    pub fn of_engine(error: &spillproof_engine::Error, limit_bytes: u64) -> Self {
        use spillproof_engine::Error;
        match error {
            Error::Format { file, source } if file == Path::new(WITNESS) => {
                Self::new(Code::WitnessInvalid, without_values(source))
            }
            Error::Invalid(Invalid::OtherCurve { .. }) => Self::new(Code::WitnessInvalid, error.to_string()),
            Error::Invalid(Invalid::NotSatisfied) => Self::new(Code::Unsatisfied, error.to_string()),
            Error::BudgetTooSmall { needed_bytes, .. } => Self::too_small(Needed {
                needed_bytes: *needed_bytes,
                limit_bytes,
            }),
            Error::OverBudget { .. } | Error::Memory { .. } | Error::Threads { .. } => {
                tracing::warn!(%error, "a job had no room");
                Self::new(
                    Code::NoRoom,
                    "the machine or the budget has no room for the proof now: send it again",
                )
                .retry_after(Duration::from_secs(5))
            }
            Error::DiskTooSmall { .. } => Self::disk_full(error),
            Error::Io { source, .. } | Error::File { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                ) =>
            {
                Self::disk_full(error)
            }
            Error::Stopped => Self::new(Code::Stopped, "the job was stopped"),
            other => Self::internal(other),
        }
    }

    /// For a saved witness that came, and is none of its key.
    pub fn of_sent(error: io::Error, limit_bytes: u64) -> Self {
        match error.downcast::<spillproof_engine::Error>() {
            Ok(spillproof_engine::Error::Invalid(invalid)) => {
                Self::new(Code::WitnessInvalid, invalid.to_string())
            }
            Ok(error) => Self::of_engine(&error, limit_bytes),
            Err(other) => Self::of_saved(other, limit_bytes),
        }
    }

    /// For a proof from a saved witness.
    pub fn of_halo2(cause: Cause, limit_bytes: u64) -> Self {
        match cause {
            Cause::Unverified(words) => Self::new(Code::Unsatisfied, words),
            Cause::Io(error) => Self::of_saved(error, limit_bytes),
            Cause::Other(words) => Self::internal(&io::Error::other(words)),
        }
    }

    /// For an error that a drop-in of halo2 has of a saved witness.
    pub fn of_saved(error: io::Error, limit_bytes: u64) -> Self {
        let error = match error.downcast::<spillproof_engine::Error>() {
            Ok(engine) => return Self::of_engine(&engine, limit_bytes),
            Err(other) => other,
        };
        match error.downcast::<SavedError>() {
            Ok(saved) => Self::new(Code::WitnessInvalid, saved.to_string()),
            Err(other) => Self::internal(&other),
        }
    }

    fn disk_full(error: &spillproof_engine::Error) -> Self {
        tracing::warn!(%error, "the disk for scratch files is full");
        Self::new(
            Code::DiskFull,
            "the server's disk has no room for the scratch files of this proof: send it again later",
        )
    }

    /// For what a client can do nothing about: the log has it.
    pub fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %error, "a job failed");
        Self::new(
            Code::Internal,
            "the server failed, through no fault of the request: its log says more",
        )
    }

    /// In JSON.
    pub fn value(&self) -> serde_json::Value {
        let mut value = json!({
            "type": "about:blank",
            "title": self.code.title(),
            "status": self.code.status().as_u16(),
            "code": self.code.text(),
            "detail": self.detail,
        });
        if let Some(Needed {
            needed_bytes,
            limit_bytes,
        }) = self.budget
        {
            value["neededBytes"] = needed_bytes.into();
            value["limitBytes"] = limit_bytes.into();
        }
        value
    }
}

/// What is wrong with a witness, without any value of it: answers are kept with their jobs.
fn without_values(error: &FormatError) -> String {
    match error {
        FormatError::Element {
            what, index, offset, ..
        } => {
            format!(
                "{what}: the value at index {index}, offset {offset}, is not below the modulus: reduce it"
            )
        }
        FormatError::Field {
            what, offset, remedy, ..
        } => format!("{what} at offset {offset}: {remedy}"),
        other => other.to_string(),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), self.value().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if self.code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs().max(1);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self.code);
        response
    }
}
