//! A job on a device, or on the processor if the device fails.

use std::fmt;

use crate::error::Error;

/// Where a job was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoneBy {
    /// The device.
    Device,
    /// The processor, since the device failed or was too small.
    Processor {
        /// The error of the device.
        why: String,
        /// Whether the device is lost, and the next job must open it again.
        device_is_lost: bool,
    },
}

impl fmt::Display for DoneBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DoneBy::Device => f.write_str("the GPU"),
            DoneBy::Processor { why, .. } => write!(f, "the processor: {why}"),
        }
    }
}

/// Runs `device_work`. If it fails for a reason of the device ([`Error::leaves_the_processor`]), runs
/// `processor_work` from the start. `device_work` has given back all it held when it returns; a partial
/// result that it wrote is void.
///
/// ```
/// use spillproof_gpu::{DoneBy, Error, NoGpu, with_fallback};
///
/// let on_a_device = || Err::<u32, Error>(NoGpu::NoDevice.into());
/// let (sum, done_by) = with_fallback("a sum", on_a_device, || Ok::<_, Error>(7)).unwrap();
/// assert_eq!((sum, done_by.to_string().as_str()), (7, "the processor: no GPU: the CUDA driver sees no device"));
/// ```
///
/// # Errors
/// Errors of `device_work` that are not the device's, and errors of `processor_work`.
pub fn with_fallback<T, E: From<Error>>(
    what: &str,
    device_work: impl FnOnce() -> Result<T, Error>,
    processor_work: impl FnOnce() -> Result<T, E>,
) -> Result<(T, DoneBy), E> {
    let error = match device_work() {
        Ok(result) => return Ok((result, DoneBy::Device)),
        Err(error) if error.leaves_the_processor() => error,
        Err(error) => return Err(error.into()),
    };
    tracing::warn!(what, %error, "the device failed, the processor does the job");
    let done_by = DoneBy::Processor {
        why: error.to_string(),
        device_is_lost: error.is_device_lost(),
    };
    Ok((processor_work()?, done_by))
}
