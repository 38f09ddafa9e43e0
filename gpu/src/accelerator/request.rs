//! A request for devices: which ones, how much of their memory, for which jobs, with how much page-locked
//! memory; from environment variables, or in code.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::error::Invalid;
use spillproof_engine::session::{GPU_VARIABLE, OFFLOAD_VARIABLE, PINNED_VARIABLE, VRAM_VARIABLE, variable};

use super::{GpuAccelerator, Offload};
use crate::error::Values;
use crate::trace::Detail;
use crate::{Caching, Choice, Result};

/// A request for devices: which ones, how much of their memory, for which jobs, and how data is staged. By
/// default none.
///
/// ```
/// use spillproof_gpu::accelerator::Request;
///
/// let accelerator = Request::default().open()?;
/// assert!(accelerator.is_none());
/// # Ok::<(), spillproof_gpu::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which devices.
    pub choice: Choice,
    /// The budget of the memory of each device; [`ByteSize::Auto`] is the memory that is free at the first
    /// job.
    pub vram: ByteSize,
    /// Which jobs.
    pub offload: Offload,
    /// The budget of page-locked memory, of which each device has an equal part; [`ByteSize::Auto`] is the
    /// most that a job takes, 80 MiB, for each device.
    pub pinned: ByteSize,
    /// How the host caches the slots of uploads: see [`Staging`](super::Staging).
    pub upload: Caching,
    /// How much the trace of each device keeps.
    pub detail: Detail,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            choice: Choice::Off,
            vram: ByteSize::Auto,
            offload: Offload::Measured,
            pinned: ByteSize::Auto,
            upload: Caching::Cached,
            detail: Detail::Counts,
        }
    }
}

impl Request {
    /// The values of [`GPU_VARIABLE`], [`VRAM_VARIABLE`], [`OFFLOAD_VARIABLE`] and [`PINNED_VARIABLE`]; the
    /// default for a variable that is not set.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`], which names the variable, for a value that does not parse.
    pub fn from_environment() -> Result<Self> {
        Self::from_variables(variable)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            choice: parsed(&variable, GPU_VARIABLE)?.unwrap_or(default.choice),
            vram: parsed(&variable, VRAM_VARIABLE)?.unwrap_or(default.vram),
            offload: parsed(&variable, OFFLOAD_VARIABLE)?.unwrap_or(default.offload),
            pinned: parsed(&variable, PINNED_VARIABLE)?.unwrap_or(default.pinned),
            ..default
        })
    }

    /// Opens the devices, or `None` where [`Choice::Auto`] or [`Choice::All`] finds none; the reason is
    /// logged at level info.
    ///
    /// # Errors
    /// Those of [`GpuAccelerator::open`].
    pub fn open(&self) -> Result<Option<Arc<GpuAccelerator>>> {
        if self.choice == Choice::Off {
            return Ok(None);
        }
        match GpuAccelerator::open(self)? {
            Ok(accelerator) => {
                for gpu in accelerator.gpus() {
                    tracing::info!(device = %gpu.description(), "spillproof: using a device");
                }
                Ok(Some(accelerator))
            }
            Err(reason) => {
                tracing::info!(%reason, "spillproof: no device; the processor does all jobs");
                Ok(None)
            }
        }
    }

    /// As [`Self::open`], for a session.
    ///
    /// # Errors
    /// As there, as [`Invalid::Setting`].
    pub fn for_session(&self) -> spillproof_engine::Result<Option<Arc<dyn Accelerator>>> {
        let accelerator = self.open().map_err(|error| Invalid::Setting {
            name: GPU_VARIABLE,
            reason: format!("`{}`: {error}", self.choice),
        })?;
        Ok(accelerator.map(|accelerator| accelerator as Arc<dyn Accelerator>))
    }
}

/// What the environment asks for: for [`Session::current_with`](spillproof_engine::Session::current_with).
///
/// # Errors
/// [`Invalid::Environment`] for a value that does not parse; as [`Request::for_session`].
pub fn of_environment() -> spillproof_engine::Result<Option<Arc<dyn Accelerator>>> {
    let request = Request::from_environment().map_err(|error| Invalid::Environment {
        // The variable is named in the error's own words.
        reason: error.to_string(),
    })?;
    request.for_session()
}

fn parsed<T: FromStr<Err: fmt::Display>>(
    variable: impl Fn(&str) -> Option<OsString>,
    name: &'static str,
) -> Result<Option<T>> {
    let Some(value) = variable(name) else {
        return Ok(None);
    };
    let value = value.to_string_lossy().parse();
    value.map(Some).map_err(|error: T::Err| {
        Values::Setting {
            name,
            reason: error.to_string(),
        }
        .into()
    })
}

/// A text that is no [`Offload`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no choice of jobs: say `measured` (jobs that a device does faster) or `always`")]
pub struct ParseOffloadError {
    text: String,
}

impl FromStr for Offload {
    type Err = ParseOffloadError;

    fn from_str(text: &str) -> Result<Self, ParseOffloadError> {
        match text {
            "measured" => Ok(Self::Measured),
            "always" => Ok(Self::Always),
            _ => Err(ParseOffloadError {
                text: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(set: &[(&str, &str)]) -> Result<Request> {
        Request::from_variables(|name| {
            let value = set.iter().find(|(variable, _)| *variable == name);
            value.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn variables_say_what_the_flags_say() {
        assert_eq!(request(&[]).unwrap(), Request::default());
        assert!(Request::default().open().unwrap().is_none());
        let all = [
            ("SPILLPROOF_GPU", "1"),
            ("SPILLPROOF_VRAM", "2GiB"),
            ("SPILLPROOF_OFFLOAD", "always"),
            ("SPILLPROOF_PINNED", "1GiB"),
        ];
        let expected = Request {
            choice: Choice::Device(1),
            vram: ByteSize::Bytes(2 << 30),
            offload: Offload::Always,
            pinned: ByteSize::Bytes(1 << 30),
            ..Request::default()
        };
        assert_eq!(request(&all).unwrap(), expected);
        for (text, choice) in [("all", Choice::All), ("2,0", Choice::Devices(vec![2, 0]))] {
            assert_eq!(request(&[("SPILLPROOF_GPU", text)]).unwrap().choice, choice);
        }
    }

    #[test]
    fn a_bad_value_is_named_with_its_variable_and_what_would_be_right() {
        for (name, value, remedy) in [
            ("SPILLPROOF_GPU", "first", "say `auto`, `off`, a number"),
            ("SPILLPROOF_VRAM", "two", "two"),
            ("SPILLPROOF_OFFLOAD", "never", "say `measured`"),
            ("SPILLPROOF_PINNED", "much", "much"),
        ] {
            let said = request(&[(name, value)]).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name}: `{value}`")), "{said}");
            assert!(said.contains(remedy), "{said}");
        }
    }
}
