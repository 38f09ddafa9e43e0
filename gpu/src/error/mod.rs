//! The error type of the crate. Each variant gives the request, the figures, and a remedy.

mod invalid;

use std::path::PathBuf;

pub use invalid::Invalid;
pub(crate) use spillproof_engine::error::Invalid as Values;

use crate::probed::NoGpu;

/// `Result` with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The name of a device's memory in errors.
pub(crate) const DEVICE_MEMORY: &str = "device memory";
/// The name of [`Error::TooSmall::memory`] where slots are too short.
pub(crate) const A_PINNED_SLOT: &str = "a pinned slot";

/// The error of a [`Source`](crate::ring::Source) or a [`Sink`](crate::ring::Sink).
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// An error of a device or of a job on it.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no device to open.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// No device has this number.
    #[error(
        "there is no GPU {ordinal}: this machine has {count}, numbered from 0; name one of them, or `auto`"
    )]
    NoSuchDevice {
        /// The number that was asked for.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// A call of the driver failed.
    #[error("the CUDA driver failed to {operation}: {code:?}{}", crate::codes::hint(*.code))]
    Driver {
        /// The operation.
        operation: &'static str,
        /// The driver's code.
        code: cudarc::driver::sys::CUresult,
    },
    /// A lease would exceed a budget.
    #[error(
        "{memory}: {requested_bytes} bytes requested for {what}, {free_bytes} free of a budget of {budget_bytes} \
         (held: {holders}); {remedy}"
    )]
    OverBudget {
        /// `device memory` or `pinned memory`.
        memory: &'static str,
        /// The purpose of the memory.
        what: String,
        /// Bytes that were requested.
        requested_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
        /// The budget in bytes.
        budget_bytes: u64,
        /// The holders and their bytes, largest first.
        holders: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// No way to cut a job fits a budget.
    #[error(
        "{what} does not fit {budget_bytes} bytes of {memory}: it needs {smallest_bytes} at least; raise the budget, or \
         use the processor"
    )]
    TooSmall {
        /// The job.
        what: String,
        /// `device memory`, `a pinned slot`, or `pinned memory` as a whole.
        memory: &'static str,
        /// The budget in bytes.
        budget_bytes: u64,
        /// The smallest budget in bytes with which the job runs.
        smallest_bytes: u64,
    },
    /// A result of a device is provably wrong.
    #[error("the device computed a wrong result, {what}: do not trust the device, use the processor")]
    Wrong {
        /// The result.
        what: String,
    },
    /// The driver has no memory, though the budget has some left.
    #[error(
        "the driver refused {requested_bytes} bytes of {memory} for {what}, though {free_bytes} are free in a budget of \
         {budget_bytes}: other programs use the memory, or the budget is larger than the memory; {remedy}"
    )]
    OutOfMemory {
        /// `device memory` or `pinned memory`.
        memory: &'static str,
        /// The purpose of the memory.
        what: String,
        /// Bytes that were requested.
        requested_bytes: u64,
        /// Free bytes of the budget, the requested ones included.
        free_bytes: u64,
        /// The budget in bytes.
        budget_bytes: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// All slots of a pinned pool are taken.
    #[error(
        "{asked} pinned slots requested, {idle} of {count} are idle: give the pool more slots, or the job fewer"
    )]
    NoSlot {
        /// Slots that were asked for.
        asked: usize,
        /// Slots that are idle.
        idle: usize,
        /// Slots of the pool.
        count: usize,
    },
    /// A mistake in a call or a setting.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The source of a job failed.
    #[error("reading {bytes} bytes at {offset} for the device: {source}")]
    Source {
        /// Offset in the job, in bytes.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
        /// The source's error.
        source: BoxedError,
    },
    /// The sink of a job failed.
    #[error("writing {bytes} bytes at {offset} from the device: {source}")]
    Sink {
        /// Offset in the job, in bytes.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
        /// The sink's error.
        source: BoxedError,
    },
    /// An error of the engine: the host has no memory for a measurement, or the process was forked.
    #[error(transparent)]
    Host(#[from] spillproof_engine::Error),
    /// A part of a job is in an unknown state after an earlier failure.
    #[error("{what} is unusable after an earlier failure of the device: open the device again")]
    Unusable {
        /// The part.
        what: &'static str,
    },
    /// NVRTC is not on this machine.
    #[error(
        "kernels cannot be compiled: NVRTC (libnvrtc.so) is not found; install it with CUDA or Python's nvidia-cuda-nvrtc, name its folder in \
         {folder_variable}, or a compiled image in {image_variable}"
    )]
    NoCompiler {
        /// The environment variable that names the library's folder.
        folder_variable: &'static str,
        /// The environment variable that names a compiled image.
        image_variable: &'static str,
    },
    /// The compiler rejected the text of the kernels.
    #[error("the kernels do not compile for {arch}: {log}")]
    Compile {
        /// The architecture.
        arch: String,
        /// The compiler's log.
        log: String,
    },
    /// An image lacks a kernel.
    #[error(
        "the image of kernels has no `{name}`: it comes from another version of the kernels; delete it, or compile it again"
    )]
    NoKernel {
        /// The kernel.
        name: String,
    },
    /// A file of the cache, or an image, could not be read or written.
    #[error("cannot {operation} {}: {source}", file.display())]
    File {
        /// `read`, `create`, ...
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl From<Values> for Error {
    fn from(values: Values) -> Self {
        Self::Invalid(values.into())
    }
}

impl Error {
    /// Whether the context of the device is lost: nothing on it works any more, and everything has to be
    /// opened again.
    pub fn is_device_lost(&self) -> bool {
        match self {
            Error::Driver { code, .. } => crate::codes::is_final(*code),
            Error::Unusable { .. } => true,
            _ => false,
        }
    }

    /// Whether only memory was short: a smaller job, or the processor, would do.
    pub fn is_memory_short(&self) -> bool {
        matches!(
            self,
            Error::OverBudget { .. }
                | Error::TooSmall { .. }
                | Error::OutOfMemory { .. }
                | Error::NoSlot { .. }
        )
    }

    /// Whether a plan refused the job, before any of it began.
    pub(crate) fn is_of_a_plan(&self) -> bool {
        matches!(self, Error::TooSmall { .. })
    }

    /// Whether memory of the device was short, and not only the host's.
    pub(crate) fn is_device_memory_short(&self) -> bool {
        match self {
            Error::OverBudget { memory, .. }
            | Error::TooSmall { memory, .. }
            | Error::OutOfMemory { memory, .. } => *memory == DEVICE_MEMORY,
            _ => false,
        }
    }

    /// Whether the processor can still do the job: the device or its memory failed, and not the data of the
    /// job.
    pub fn leaves_the_processor(&self) -> bool {
        !matches!(
            self,
            Error::Source { .. } | Error::Sink { .. } | Error::Host(_) | Error::Invalid(_)
        )
    }
}
