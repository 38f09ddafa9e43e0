//! Why a job stopped, and whether the host, the device or neither failed.

use crate::Error;
use spillproof_kernels::error::{RootOfUnityError, WorkspaceError};

/// Why a job did not finish on a device.
#[derive(Debug)]
pub(super) enum Stop {
    /// The host failed: its memory, or the ends of the job.
    Host(spillproof_engine::Error),
    /// The device or its memory failed.
    Device(Error),
    /// No failure: the processor does the job better.
    Declined(String),
}

impl Stop {
    /// Declines a job whose data is read so slowly that the processor is faster.
    pub fn slow_reads(what: &str) -> Self {
        Self::Declined(format!(
            "{what} are read in more time than the processor takes, at the pace of the first"
        ))
    }

    /// Sorts errors by their cause: an error of the job's ends, which a ring passes on, is the host's; if the
    /// host lacks memory for a device, the job is declined, since the processor needs less.
    pub fn sorted(self) -> Self {
        let error = match self {
            Self::Device(error) => match from_an_end(error) {
                Ok(error) => error,
                Err(error) => return Self::Device(error),
            },
            Self::Host(error) => error,
            Self::Declined(_) => return self,
        };
        match error {
            spillproof_engine::Error::OverBudget { .. }
            | spillproof_engine::Error::BudgetTooSmall { .. }
            | spillproof_engine::Error::Memory { .. } => {
                Self::Declined(format!("the host lacks memory: {error}"))
            }
            error => Self::Host(error),
        }
    }
}

/// The engine's error inside an error of a ring, if there is one; else the error itself.
fn from_an_end(error: Error) -> Result<spillproof_engine::Error, Error> {
    match error {
        Error::Host(error) => Ok(error),
        Error::Source {
            source,
            offset,
            bytes,
        }
        | Error::Sink {
            source,
            offset,
            bytes,
        } if source.is::<spillproof_engine::Error>() => match source.downcast::<spillproof_engine::Error>() {
            Ok(error) => Ok(*error),
            Err(source) => Err(Error::Source {
                source,
                offset,
                bytes,
            }),
        },
        other => Err(other),
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Device(error)
    }
}

impl From<RootOfUnityError> for Stop {
    fn from(error: RootOfUnityError) -> Self {
        spillproof_engine::Error::from(error).into()
    }
}

impl From<WorkspaceError> for Stop {
    fn from(error: WorkspaceError) -> Self {
        spillproof_engine::Error::from(error).into()
    }
}

impl From<spillproof_engine::Error> for Stop {
    fn from(error: spillproof_engine::Error) -> Self {
        Self::Host(error)
    }
}
