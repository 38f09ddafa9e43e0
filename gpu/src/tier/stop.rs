//! Why a job stopped, and whose matter that is.

use crate::Error;
use crate::msm::DeviceError;

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
            Self::Device(error) => match from_an_end(error) {
                Ok(error) => error,
                Err(error) => return Self::Device(error),
            },
            Self::Host(error) => error,
            Self::Declined(_) => return self,
        };
        match error {
            spillproof::Error::OverBudget { .. }
            | spillproof::Error::BudgetTooSmall { .. }
            | spillproof::Error::Memory { .. } => Self::Declined(format!("no memory of the host: {error}")),
            error => Self::Host(error),
        }
    }
}

/// Where one device has no memory of the host, another one may.
impl DeviceError for Stop {
    fn stops_the_device(&self) -> Option<String> {
        match self {
            Self::Host(_) => None,
            Self::Declined(why) => Some(why.clone()),
            Self::Device(error) => error.stops_the_device(),
        }
    }
}

/// The engine's error, if one of the job's ends ended it with that; else the tier's own again.
fn from_an_end(error: Error) -> Result<spillproof::Error, Error> {
    match error {
        Error::Source {
            source,
            offset,
            bytes,
        }
        | Error::Sink {
            source,
            offset,
            bytes,
        } if source.is::<spillproof::Error>() => match source.downcast::<spillproof::Error>() {
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

impl From<spillproof::Error> for Stop {
    fn from(error: spillproof::Error) -> Self {
        Self::Host(error)
    }
}
