//! One error type for the tier. Every variant says what was asked, what there was, and what would help.

use std::path::PathBuf;

use crate::probed::NoGpu;

/// `Result` with the tier's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Of [`Error::TooSmall`], what slots are too short for.
pub(crate) const A_PINNED_SLOT: &str = "a pinned slot";

/// What a [`Source`](crate::ring::Source) or a [`Sink`](crate::ring::Sink) says went wrong.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// What can go wrong with a device.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no device to open.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// There are devices, but not that one.
    #[error(
        "there is no GPU {ordinal}: this machine has {count}, numbered from 0; name one of them, or `auto`"
    )]
    NoSuchDevice {
        /// What was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A call of the driver failed.
    #[error("the CUDA driver failed to {operation}: {code:?}{}", crate::codes::hint(*.code))]
    Driver {
        /// What was asked of it.
        operation: &'static str,
        /// What it said.
        code: cudarc::driver::sys::CUresult,
    },
    /// A lease would pass a budget.
    #[error(
        "{memory}: {requested_bytes} bytes for {what} asked, {free_bytes} free of a budget of {budget_bytes} \
         (held: {holders}); {remedy}"
    )]
    OverBudget {
        /// `device memory` or `pinned memory`.
        memory: &'static str,
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        requested_bytes: u64,
        /// Bytes that are left.
        free_bytes: u64,
        /// The limit.
        budget_bytes: u64,
        /// Who holds how much, largest first.
        holders: String,
        /// What to do.
        remedy: &'static str,
    },
    /// No way to cut a job fits a budget.
    #[error(
        "{what} does not fit {budget_bytes} bytes of {memory}: it needs {smallest_bytes} at least; raise the budget, or let \
         the processor do it"
    )]
    TooSmall {
        /// The job.
        what: String,
        /// `device memory`, `a pinned slot`, or `pinned memory` as a whole.
        memory: &'static str,
        /// What there is.
        budget_bytes: u64,
        /// The smallest budget with which this job runs.
        smallest_bytes: u64,
    },
    /// What a device computed cannot be right.
    #[error("the device computed {what}, which cannot be: do not trust it, let the processor do the job")]
    Wrong {
        /// What is wrong.
        what: String,
    },
    /// The driver has no memory where the budget still had some.
    #[error(
        "the driver gave no {requested_bytes} bytes of {memory} for {what}, though {free_bytes} are free in a budget of \
         {budget_bytes}: somebody else uses the memory, or the budget is larger than the machine; {remedy}"
    )]
    OutOfMemory {
        /// `device memory` or `pinned memory`.
        memory: &'static str,
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        requested_bytes: u64,
        /// Bytes that are left in the budget, those asked for included.
        free_bytes: u64,
        /// The limit.
        budget_bytes: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// All slots of a pinned pool are taken.
    #[error("{asked} pinned slots asked, {idle} idle of {count}: give the pool more slots, or the job fewer")]
    NoSlot {
        /// How many were asked for.
        asked: usize,
        /// How many are idle.
        idle: usize,
        /// How many there are.
        count: usize,
    },
    /// A call with arguments that cannot be right.
    #[error("{what}: {details}")]
    Invalid {
        /// What was asked for.
        what: &'static str,
        /// What is wrong with it, with the values.
        details: String,
    },
    /// What a job reads from failed.
    #[error("reading {bytes} bytes at {offset} for the device: {source}")]
    Source {
        /// Offset in the job, in bytes.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
        /// What the source said.
        source: BoxedError,
    },
    /// What a job writes to failed.
    #[error("writing {bytes} bytes at {offset} from the device: {source}")]
    Sink {
        /// Offset in the job, in bytes.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
        /// What the sink said.
        source: BoxedError,
    },
    /// A part of a job is in an unknown state after an earlier failure.
    #[error("{what} is unusable after an earlier failure of the device: open it anew")]
    Unusable {
        /// Which part.
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
        /// The one that names an image.
        image_variable: &'static str,
    },
    /// The kernels' text was rejected.
    #[error("the kernels do not compile for {arch}: {log}")]
    Compile {
        /// The architecture.
        arch: String,
        /// What the compiler said.
        log: String,
    },
    /// An image lacks a kernel.
    #[error(
        "the image of kernels has no `{name}`: it was made from another version of the kernels; delete it, or make it anew"
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
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether the device's context is lost: nothing on it works any more, everything has to be opened anew.
    pub fn is_device_lost(&self) -> bool {
        match self {
            Error::Driver { code, .. } => crate::codes::is_final(*code),
            Error::Unusable { .. } => true,
            _ => false,
        }
    }

    /// Whether a smaller job, or the processor, would do: memory was short, nothing is broken.
    pub fn is_memory_short(&self) -> bool {
        matches!(
            self,
            Error::OverBudget { .. }
                | Error::TooSmall { .. }
                | Error::OutOfMemory { .. }
                | Error::NoSlot { .. }
        )
    }

    /// Whether the processor could still do the job: it is the device, or its memory, that failed, not the job's own data.
    pub fn leaves_the_processor(&self) -> bool {
        !matches!(
            self,
            Error::Source { .. } | Error::Sink { .. } | Error::Invalid { .. }
        )
    }
}
