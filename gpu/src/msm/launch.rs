//! The launches of the kernels of MSMs.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::kernels::Argument;
pub(super) use crate::kernels::{Grid, Kernel};
use crate::stream::Stream;

/// Queues a kernel of `msm.cuh` or `sort.cuh`.
pub(super) fn launch(kernel: &Kernel, stream: &Stream, grid: Grid, arguments: &[Argument<'_>]) -> Result<()> {
    // SAFETY: this folder launches the kernels of two texts of the program with the parameters that they have
    // there; an image from elsewhere is compiled from the same texts, by the contract of its variable.
    // Buffers have the sizes of `MsmPlan::sizes`, for chunks no longer than the plan's. Buffers and kernels
    // belong to an `Msm`, whose ring is dropped before them and waits for its stream.
    unsafe { kernel.launch(stream, grid, arguments) }
}
