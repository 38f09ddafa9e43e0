//! The launch of constraint programs.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::kernels::{Argument, Grid, Kernel};
use crate::stream::Stream;

/// Queues the interpreter, or a kernel of a compiled program. `words` are `Program` of rows.cuh.
pub(super) fn launch(kernel: &Kernel, stream: &Stream, grid: Grid, words: [u64; 11]) -> Result<()> {
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    // SAFETY: kernels are those of program.cuh, or generated from a `Program` whose numbers are checked; they take `Program` of rows.cuh.
    // Tables, tiles and scratch have the sizes of `ProgramPlan`, for strips no longer than its own, or are windows and tables of
    // `CosetPlan`. Memory and kernels belong to an `Evaluate` or a `DeviceCoset`, whose rings are dropped before them and wait for
    // their streams; resident columns outlive `Evaluate::run_over`, which waits too.
    unsafe { kernel.launch(stream, grid, &[Argument::Bytes(&bytes)]) }
}
