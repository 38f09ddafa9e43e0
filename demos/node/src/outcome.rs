//! Results and errors, as the program gets them. The README lists the codes, but for two: of a proof or of signals that
//! are none, the program says that the proof is not valid.

use std::path::{Path, PathBuf};

use napi_derive::napi;
use spillproof_bindings::error::explain;
use spillproof_circom::prove::WITHOUT_CONTRIBUTION;
use spillproof_engine::Error;
use spillproof_engine::error::Invalid;

/// What errors call a proof to be verified.
pub const PROOF: &str = "the proof";
/// What errors call its public signals.
pub const SIGNALS: &str = "the public signals";

/// How a call ended: texts in JSON, or a failure.
#[napi(object)]
pub struct Outcome {
    /// The results, in the order that the function says.
    pub texts: Option<Vec<String>>,
    /// The error.
    pub failure: Option<Failure>,
}

/// An error's fields.
#[napi(object)]
#[derive(Default)]
pub struct Failure {
    /// Its kind.
    pub code: String,
    /// What was asked, what was found, what to do.
    pub message: String,
    /// Bytes that were asked of the budget, or of the disk.
    pub bytes_asked: Option<f64>,
    /// Bytes of the budget that were held already.
    pub bytes_held: Option<f64>,
    /// The budget, or what is free on the disk.
    pub bytes_limit: Option<f64>,
    /// The smallest budget, or room on the disk, that would do, as far as is known.
    pub bytes_needed: Option<f64>,
}

/// What a call fails with.
pub enum Failed {
    Circom {
        error: Box<spillproof_circom::Error>,
        /// The path of a file without a name, which says nothing to the program, and what the file holds.
        unnamed: Option<(PathBuf, &'static str)>,
    },
    /// A verification key with which proofs can be forged.
    Insecure,
    /// A panic.
    Internal,
}

impl From<spillproof_circom::Error> for Failed {
    fn from(error: spillproof_circom::Error) -> Self {
        Self::Circom {
            error: Box::new(error),
            unnamed: None,
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        spillproof_circom::Error::from(error).into()
    }
}

impl Failed {
    /// Whether more room in the budget, or on the disk, might help.
    pub fn is_of_room(&self) -> bool {
        matches!(
            self.engine(),
            Some(Error::OverBudget { .. } | Error::BudgetTooSmall { .. } | Error::DiskTooSmall { .. })
        )
    }

    /// Whether scratch, or a file, could not be read back.
    pub fn is_of_disk(&self) -> bool {
        matches!(self.engine(), Some(Error::Damaged { .. } | Error::Io { .. }))
    }

    /// The same, where a file without a name stands for what the program gave as bytes.
    pub fn of_bytes(self, path: PathBuf, what: &'static str) -> Self {
        match self {
            Self::Circom { error, .. } => Self::Circom {
                error,
                unnamed: Some((path, what)),
            },
            other => other,
        }
    }

    fn engine(&self) -> Option<&Error> {
        let Self::Circom { error, .. } = self else {
            return None;
        };
        match &**error {
            spillproof_circom::Error::Engine(error) => Some(error),
            _ => None,
        }
    }

    fn code(&self) -> &'static str {
        use spillproof_circom::Error as Circom;
        let error = match self {
            Self::Insecure => return "SPILLPROOF_INSECURE_KEY",
            Self::Internal => return "SPILLPROOF_INTERNAL",
            Self::Circom { error, .. } => error,
        };
        match &**error {
            Circom::Json(_) => "SPILLPROOF_INTERNAL",
            Circom::File { .. } => "SPILLPROOF_FILE",
            Circom::Content { file, .. } if file == Path::new(PROOF) => "SPILLPROOF_PROOF",
            Circom::Content { file, .. } if file == Path::new(SIGNALS) => "SPILLPROOF_SIGNALS",
            Circom::Content { .. } => "SPILLPROOF_FORMAT",
            Circom::Engine(error) => code(error),
            _ => "SPILLPROOF_SYSTEM",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Insecure => {
                format!("{WITHOUT_CONTRIBUTION}; for tests there is the option `allowInsecure`")
            }
            Self::Internal => "an internal error of spillproof: please report it".into(),
            Self::Circom { error, unnamed } => {
                let text = explain(&**error);
                match unnamed {
                    Some((path, what)) => text.replace(&path.display().to_string(), what),
                    None => text,
                }
            }
        }
    }
}

fn code(error: &Error) -> &'static str {
    match error {
        Error::Stopped => "SPILLPROOF_STOPPED",
        Error::OverBudget { .. } | Error::BudgetTooSmall { .. } | Error::NestedTask { .. } => {
            "SPILLPROOF_OVER_BUDGET"
        }
        Error::DiskTooSmall { .. } => "SPILLPROOF_DISK_FULL",
        Error::Io { source, .. } | Error::File { source, .. } if is_full(source) => "SPILLPROOF_DISK_FULL",
        Error::Io { .. } | Error::File { .. } => "SPILLPROOF_FILE",
        Error::Format { .. } => "SPILLPROOF_FORMAT",
        Error::Damaged { .. } => "SPILLPROOF_DAMAGED",
        Error::Invalid(Invalid::NotSatisfied | Invalid::WitnessStart { .. }) => "SPILLPROOF_WITNESS",
        Error::Invalid(Invalid::Length { what, .. }) if what == "values of a witness" => "SPILLPROOF_WITNESS",
        Error::Invalid(Invalid::OtherCurve { .. } | Invalid::OtherRanks { .. }) => "SPILLPROOF_FORMAT",
        Error::Invalid(_) | Error::Checkpoint(_) => "SPILLPROOF_SETTING",
        _ => "SPILLPROOF_SYSTEM",
    }
}

fn is_full(source: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(source.kind(), StorageFull | QuotaExceeded)
}

impl From<Failed> for Outcome {
    fn from(failed: Failed) -> Self {
        let mut failure = Failure {
            code: failed.code().into(),
            message: failed.message(),
            ..Failure::default()
        };
        if let Some(error) = failed.engine() {
            let bytes = |bytes: u64| Some(bytes as f64);
            match error {
                Error::OverBudget {
                    asked_bytes,
                    held_bytes,
                    limit_bytes,
                    ..
                } => {
                    failure.bytes_asked = bytes(*asked_bytes);
                    failure.bytes_held = bytes(*held_bytes);
                    failure.bytes_limit = bytes(*limit_bytes);
                    failure.bytes_needed = bytes(held_bytes.saturating_add(*asked_bytes));
                }
                Error::BudgetTooSmall {
                    needed_bytes,
                    limit_bytes,
                    ..
                } => {
                    failure.bytes_asked = bytes(*needed_bytes);
                    failure.bytes_limit = bytes(*limit_bytes);
                    failure.bytes_needed = bytes(*needed_bytes);
                }
                Error::DiskTooSmall {
                    needed_bytes,
                    free_bytes,
                    ..
                } => {
                    failure.bytes_asked = bytes(*needed_bytes);
                    failure.bytes_limit = bytes(*free_bytes);
                    failure.bytes_needed = bytes(*needed_bytes);
                }
                _ => {}
            }
        }
        Self {
            texts: None,
            failure: Some(failure),
        }
    }
}

impl Outcome {
    /// Results.
    pub fn of(texts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        // They are made of digits and names.
        let texts = texts.into_iter();
        Self {
            texts: Some(
                texts
                    .map(|text| String::from_utf8_lossy(&text).into_owned())
                    .collect(),
            ),
            failure: None,
        }
    }
}
