//! The one place where this folder launches kernels.
#![allow(unsafe_code)]

use crate::device::Stream;
use crate::error::Result;
use crate::kernels::{Argument, Grid, Kernel};
use crate::vram::DeviceBuffer;

/// A kernel of `rates.cuh` with what it reads and writes.
#[derive(Debug)]
pub(super) struct Chains {
    // Before the buffers: what is dropped first is no longer launched.
    kernel: Kernel,
    to: DeviceBuffer,
    from: DeviceBuffer,
    elements: u32,
    grid: Grid,
}

impl Chains {
    /// Threads of `grid`, each with `to_bytes` of `to`, over `elements` elements in `from`.
    pub fn new(
        kernel: Kernel,
        (to, to_bytes): (DeviceBuffer, u64),
        (from, from_bytes, elements): (DeviceBuffer, u64, u32),
        grid: Grid,
    ) -> Result<Self> {
        let threads = u64::from(grid.blocks.0) * u64::from(grid.threads.0);
        let fits = elements > 0
            && to.bytes() >= threads * to_bytes
            && from.bytes() >= u64::from(elements) * from_bytes;
        match fits {
            true => Ok(Self {
                kernel,
                to,
                from,
                elements,
                grid,
            }),
            false => Err(crate::Error::Invalid {
                what: "chains of operations",
                details: format!("{threads} threads over {elements} elements do not fit their buffers"),
            }),
        }
    }

    /// What the kernel has written.
    pub fn results(&self) -> &DeviceBuffer {
        &self.to
    }

    /// All threads, so many steps each, to their end.
    pub fn run(&self, stream: &Stream, times: u32) -> Result<()> {
        let arguments = [
            Argument::Buffer(&self.to),
            Argument::Buffer(&self.from),
            Argument::Word32(self.elements),
            Argument::Word32(times),
        ];
        // SAFETY: kernels of rates.cuh take two addresses and two words. A thread writes one element of `to` and reads some of the first
        // `elements` of `from`, for which `new` has found room; both live until the stream is done, which is waited for here, also after
        // a launch that failed.
        let launched = unsafe { self.kernel.launch(stream, self.grid, &arguments) };
        let waited = stream.synchronize();
        launched.and(waited)
    }
}
