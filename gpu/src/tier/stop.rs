//! Why a job stopped, and whose matter that is.

use crate::Error;

/// Why a job did not come to its end on the device.
#[derive(Debug)]
pub(super) enum Stop {
    /// The host's side: its memory, or the job's own ends.
    Host(spillproof::Error),
    /// The device, or its memory.
    Device(Error),
    /// Nothing went wrong: the processor is the better one for it.
    Declined(String),
}

impl Stop {
    /// What a ring passed on from the job's ends is the host's; where the host has no memory for a device's sake, the processor can
    /// do without.
    pub fn sorted(self) -> Self {
        let error = match self {
            Self::Device(Error::Source {
                source,
                offset,
                bytes,
            }) => match source.downcast::<spillproof::Error>() {
                Ok(error) => *error,
                Err(source) => {
                    return Self::Device(Error::Source {
                        source,
                        offset,
                        bytes,
                    });
                }
            },
            Self::Device(Error::Sink {
                source,
                offset,
                bytes,
            }) => match source.downcast::<spillproof::Error>() {
                Ok(error) => *error,
                Err(source) => {
                    return Self::Device(Error::Sink {
                        source,
                        offset,
                        bytes,
                    });
                }
            },
            Self::Host(error) => error,
            other => return other,
        };
        match error {
            spillproof::Error::OverBudget { .. }
            | spillproof::Error::BudgetTooSmall { .. }
            | spillproof::Error::Memory { .. } => Self::Declined(format!("no memory of the host: {error}")),
            error => Self::Host(error),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Device(error)
    }
}

impl From<spillproof::Error> for Stop {
    fn from(error: spillproof::Error) -> Self {
        Self::Host(error)
    }
}
