//! What the headers of a request ask for.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, header};
use spillproof_circuits::Scheme;

use crate::problem::{Code, Problem};
use crate::system::SystemKey;

/// The header of a deadline: seconds from the request's arrival.
pub(crate) const DEADLINE: HeaderName = HeaderName::from_static("spillproof-deadline");
/// The header of the multi-opening argument of a halo2 proof.
pub(crate) const SCHEME: HeaderName = HeaderName::from_static("spillproof-scheme");
/// The header of a key that makes a request one that may be sent again.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const SCHEME_SHOWN: &str = "Spillproof-Scheme";
const PREFER: HeaderName = HeaderName::from_static("prefer");

const IDEMPOTENCY_KEY_CHARACTERS_MAX: usize = 255;
/// Longer deadlines are none.
const DEADLINE_SECONDS_MAX: f64 = 1e9;

/// What a request for a proof asks for.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// To be answered at once, with a job.
    pub is_async: bool,
    /// To be answered with a job when the proof is not done by then.
    pub wait: Option<Duration>,
    /// To stop the job when it is not done by then.
    pub deadline: Option<Duration>,
    /// To be a halo2 proof with this multi-opening argument.
    pub scheme: Option<Scheme>,
    /// To be the same request as an earlier one.
    pub idempotency_key: Option<String>,
}

impl Asked {
    /// Reads the headers. Preferences that are not known are passed over, as RFC 7240 has it.
    ///
    /// # Errors
    /// [`Code::BadHeader`].
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut asked = Self::default();
        for preferences in headers.get_all(PREFER) {
            let preferences = preferences
                .to_str()
                .map_err(|_| refused("Prefer", "it has characters beside those of ASCII"))?;
            for preference in preferences.split([',', ';']) {
                let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
                match name.trim().to_ascii_lowercase().as_str() {
                    "respond-async" => asked.is_async = true,
                    "wait" => {
                        let seconds = value.trim().trim_matches('"').parse::<u32>();
                        let seconds =
                            seconds.map_err(|_| refused("Prefer", "wait is a number of whole seconds"))?;
                        asked.wait = Some(Duration::from_secs(seconds.into()));
                    }
                    _ => {}
                }
            }
        }
        if let Some(value) = single(headers, &DEADLINE, "Spillproof-Deadline")? {
            let seconds = value.trim().parse::<f64>().ok();
            let seconds = seconds.filter(|seconds| *seconds > 0.0 && *seconds <= DEADLINE_SECONDS_MAX);
            let seconds = seconds.ok_or_else(|| {
                refused(
                    "Spillproof-Deadline",
                    "it is a number of seconds above zero, such as 30 or 0.5",
                )
            })?;
            asked.deadline = Some(Duration::from_secs_f64(seconds));
        }
        if let Some(value) = single(headers, &SCHEME, SCHEME_SHOWN)? {
            asked.scheme = match value.trim().to_ascii_lowercase().as_str() {
                "shplonk" => Some(Scheme::Shplonk),
                "gwc" => Some(Scheme::Gwc),
                _ => return Err(refused(SCHEME_SHOWN, "it is shplonk or gwc")),
            };
        }
        if let Some(value) = single(headers, &IDEMPOTENCY_KEY, "Idempotency-Key")? {
            let value = value.trim();
            if value.is_empty() || value.len() > IDEMPOTENCY_KEY_CHARACTERS_MAX {
                return Err(refused("Idempotency-Key", "it has 1 to 255 characters"));
            }
            asked.idempotency_key = Some(value.to_owned());
        }
        Ok(asked)
    }

    /// Checks that the key's proofs have what was asked for.
    ///
    /// # Errors
    /// [`Code::BadHeader`].
    pub fn check_for(&self, key: &SystemKey) -> Result<(), Problem> {
        if self.scheme.is_some() && key.schemes().is_empty() {
            return Err(refused(
                SCHEME_SHOWN,
                "a proof with this key has no choice of multi-opening arguments: leave it out",
            ));
        }
        Ok(())
    }
}

/// Checks that a body is sent as bytes: no page of another site can make a browser send that without asking.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = given
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if kind.eq_ignore_ascii_case("application/octet-stream") {
        return Ok(());
    }
    Err(Problem::new(
        Code::ContentType,
        "send the witness with the header Content-Type: application/octet-stream",
    ))
}

/// The length of the body, where the head says it.
pub(crate) fn body_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName, shown: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(refused(shown, "it is there twice"));
    }
    let Some(value) = first else { return Ok(None) };
    let text = value.to_str();
    text.map(Some)
        .map_err(|_| refused(shown, "it has characters beside those of ASCII"))
}

fn refused(header: &str, reason: &str) -> Problem {
    Problem::new(Code::BadHeader, format!("the header {header}: {reason}"))
}
