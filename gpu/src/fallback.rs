//! When a device cannot, the processor does: the same result, later, and the reason is told.

use std::fmt;

use crate::error::Error;

/// Who did a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoneBy {
    /// The device.
    Device,
    /// The processor, since the device failed, or was too small.
    Processor {
        /// What the device, or the tier, said.
        why: String,
        /// Whether the device is lost: the next job needs it opened anew.
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

/// Does a job on a device; if that fails for a reason of the device's ([`Error::leaves_the_processor`]), on the processor, from the
/// beginning. `device_work` must have given back what it held when it returns, and may have written part of a result, which is void.
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
/// Those of `device_work` that are the job's own, and those of `processor_work`.
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
    tracing::warn!(what, %error, "the device did not do it, the processor will");
    let done_by = DoneBy::Processor {
        why: error.to_string(),
        device_is_lost: error.is_device_lost(),
    };
    Ok((processor_work()?, done_by))
}
