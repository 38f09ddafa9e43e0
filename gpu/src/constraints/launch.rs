//! The launches over the rows of a constraint system.
#![allow(unsafe_code)]

use spillproof_engine::accelerator::COEFFICIENT_BYTES;

use super::{ConstraintKernels, ConstraintsShape, RUN_BYTES};
use crate::buffer::DeviceBuffer;
use crate::error::Result;
use crate::kernels::{Argument, Grid, Kernel};
use crate::stream::Stream;

/// Threads of a block: `SPARSE_THREADS` of sparse.cuh.
const THREADS: u32 = 128;
/// Two elements of each thread.
const SHARED_BYTES: u32 = THREADS * 64;
/// The operation of `spk_elementwise_*` that subtracts.
const SUB: u32 = 1;

/// What the kernels work on.
pub(super) struct System<'a> {
    pub kernels: &'a ConstraintKernels,
    pub shape: ConstraintsShape,
    pub values: &'a DeviceBuffer,
    pub witness: &'a DeviceBuffer,
    pub columns: &'a [DeviceBuffer; 3],
    pub parts: &'a DeviceBuffer,
    pub state: &'a DeviceBuffer,
}

impl System<'_> {
    /// Queues the addition of a chunk of coefficients to the rows of A and B.
    pub fn add(&self, stream: &Stream, (from, at): (&DeviceBuffer, u64), count: u64) -> Result<()> {
        let [a, b, _] = self.columns;
        let words = [
            1 << self.shape.log_n,
            self.shape.signals,
            self.shape.values,
            self.values.address(),
            self.witness.address(),
            a.address(),
            b.address(),
            self.parts.address(),
            self.state.address(),
        ];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let grid = Grid {
            shared_bytes: SHARED_BYTES,
            ..Grid::for_threads(count.div_ceil(RUN_BYTES / COEFFICIENT_BYTES), THREADS)?
        };
        let arguments = [
            Argument::Bytes(&bytes),
            Argument::BufferAt(from, at),
            Argument::Word32(count as u32),
        ];
        launch(&self.kernels.runs, stream, grid, &arguments)?;
        launch(
            &self.kernels.join,
            stream,
            Grid {
                shared_bytes: 0,
                ..grid
            },
            &arguments,
        )
    }

    /// Queues `to = a b`.
    pub fn product(&self, stream: &Stream, to: &DeviceBuffer) -> Result<()> {
        let [a, b, _] = self.columns;
        let n = self.rows();
        let arguments = [to, a, b].map(Argument::Buffer);
        let arguments = [&arguments[..], &[Argument::Word32(n)]].concat();
        launch(&self.kernels.mul, stream, elementwise(n)?, &arguments)
    }

    /// Queues `a = a - c`.
    pub fn less(&self, stream: &Stream) -> Result<()> {
        let [a, _, c] = self.columns;
        let n = self.rows();
        let arguments = [a, a, c].map(Argument::Buffer);
        let arguments = [&arguments[..], &[Argument::Word32(n), Argument::Word32(SUB)]].concat();
        launch(&self.kernels.elementwise, stream, elementwise(n)?, &arguments)
    }

    fn rows(&self) -> u32 {
        1 << self.shape.log_n
    }
}

fn elementwise(n: u32) -> Result<Grid> {
    Grid::for_threads(n.into(), THREADS)
}

fn launch(kernel: &Kernel, stream: &Stream, grid: Grid, arguments: &[Argument<'_>]) -> Result<()> {
    // SAFETY: the kernels of sparse.cuh and elementwise.cuh, with the parameters that they have there; the first is
    // `Sparse`. Buffers have the sizes of `ConstraintsPlan`; coefficients that name anything else are not followed.
    // Buffers and kernels belong to a `DeviceConstraints`, whose ring is dropped before them and waits for its
    // stream, or to the caller of its run, which returns when the stream is done.
    unsafe { kernel.launch(stream, grid, arguments) }
}
