//! The launches of the kernels that measure a device.
#![allow(unsafe_code)]

use crate::buffer::DeviceBuffer;
use crate::error::{Invalid, Result};
use crate::kernels::{Argument, Grid, Kernel};
use crate::stream::Stream;

/// Threads of a block, the bound of these kernels.
const THREADS: u32 = 128;

/// Threads of `blocks` blocks.
pub(super) fn threads(blocks: u32) -> u64 {
    u64::from(blocks) * u64::from(THREADS)
}

/// The buffer of the results, and the bytes of each thread.
#[derive(Debug)]
pub(super) struct ChainResults {
    pub buffer: DeviceBuffer,
    pub bytes: u64,
}

/// The buffer of the elements that threads read, the bytes of an element, and their number.
#[derive(Debug)]
pub(super) struct ChainElements {
    pub buffer: DeviceBuffer,
    pub bytes: u64,
    pub count: u32,
}

/// A kernel of `rates.cuh`, with its buffers.
#[derive(Debug)]
pub(super) struct Chains {
    stream: Stream,
    kernel: Kernel,
    to: DeviceBuffer,
    from: DeviceBuffer,
    elements: u32,
    blocks_max: u32,
}

impl Chains {
    /// For launches of at most `blocks_max` blocks.
    pub fn new(
        stream: Stream,
        kernel: Kernel,
        to: ChainResults,
        from: ChainElements,
        blocks_max: u32,
    ) -> Result<Self> {
        let threads = threads(blocks_max);
        let fits = from.count > 0
            && to.buffer.bytes() >= threads * to.bytes
            && from.buffer.bytes() >= u64::from(from.count) * from.bytes;
        match fits {
            true => Ok(Self {
                stream,
                kernel,
                to: to.buffer,
                from: from.buffer,
                elements: from.count,
                blocks_max,
            }),
            false => Err(Invalid::Size {
                what: "buffers of a measurement",
                reason: format!("too short for {threads} threads over {} elements", from.count),
            }
            .into()),
        }
    }

    /// Clears the results of the launch before.
    pub fn clear(&self) -> Result<()> {
        self.stream.fill(&self.to, 0)?;
        self.stream.synchronize()
    }

    /// Runs `blocks` blocks to their end; each thread makes `times` steps.
    pub fn launch(&self, blocks: u32, times: u32) -> Result<()> {
        let grid = Grid {
            blocks: (blocks.min(self.blocks_max), 1, 1),
            threads: (THREADS, 1, 1),
            shared_bytes: 0,
        };
        let arguments = [
            Argument::Buffer(&self.to),
            Argument::Buffer(&self.from),
            Argument::Word32(self.elements),
            Argument::Word32(times),
        ];
        // SAFETY: kernels of rates.cuh take two addresses and two words. A thread writes one element of `to`
        // and reads some of the first `elements` of `from`, for which `new` has found room for `blocks_max`
        // blocks. Kernel and buffers are dropped after the stream was waited for, see `drop`.
        unsafe { self.kernel.launch(&self.stream, grid, &arguments) }?;
        self.stream.synchronize()
    }

    /// Reads results from `offset` on.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.stream.read((&self.to, offset), into)
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        // A second wait after one that failed: buffers must not be freed while a kernel uses them.
        let _ = self.stream.synchronize();
    }
}
