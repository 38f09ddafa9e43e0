//! The one place where this folder launches kernels.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::kernels::Argument;
pub(super) use crate::kernels::{Grid, Kernel};
use crate::stream::Stream;

/// Queues a kernel of `msm.cuh` or `sort.cuh`.
pub(super) fn launch(kernel: &Kernel, stream: &Stream, grid: Grid, arguments: &[Argument<'_>]) -> Result<()> {
    // SAFETY: this folder launches the kernels of two texts that are part of the program, with the parameters that they have there;
    // an image from elsewhere is its giver's promise to be of the same text. Buffers have the sizes of `MsmPlan::sizes`, for chunks no
    // longer than the plan's. They and the kernels are `Buffers` and `Launches` of an `Msm`, whose ring is dropped before them and
    // waits for its stream.
    unsafe { kernel.launch(stream, grid, arguments) }
}
