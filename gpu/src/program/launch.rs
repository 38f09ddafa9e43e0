//! The launch of constraint programs.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::kernels::{Argument, Grid, Kernel};
use crate::stream::Stream;

/// Queues the interpreter, or a kernel of a compiled program. `words` are `Program` of rows.cuh.
pub(super) fn launch(kernel: &Kernel, stream: &Stream, grid: Grid, words: [u64; 11]) -> Result<()> {
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    // SAFETY: kernels are that of program.cuh, or generated from a `DeviceProgram` whose numbers are checked;
    // they take `Program` of rows.cuh. Windows and tables have the sizes of `CosetPlan`, scratch that of
    // `Strips`. Memory and kernels belong to a `DeviceCoset`, whose rings are dropped before them and wait
    // for their streams.
    unsafe { kernel.launch(stream, grid, &[Argument::Bytes(&bytes)]) }
}
