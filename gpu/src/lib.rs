//! The second compute tier, host side: devices, their memory, rings that stream through it, kernels, whole
//! jobs, and a record of it all.
//!
//! The driver's library and NVRTC are opened at run time, so nothing of CUDA is needed to build, and a machine without a device is a
//! normal answer, never a panic.
//!
//! ```
//! match spillproof_gpu::probe() {
//!     Ok(devices) => devices.iter().for_each(|device| println!("{device}")),
//!     Err(reason) => println!("{reason}"),
//! }
//! ```
//!
//! # The pieces, in the order in which a job meets them
//!
//! | piece | what it is |
//! |---|---|
//! | [`Choice`] | what the user said: `auto`, `off`, a number; opens a [`Gpu`], or says why the processor has to do |
//! | [`Pinned`], [`PinnedPool`] | page-locked slots under a budget of their own, made once and kept |
//! | [`ring::Upload::stage`] | the first chunks come from disk into slots, before the device is needed |
//! | [`Gpu::take_turn`] | one job at a time on a device |
//! | [`Vram`], [`DeviceBuffer`] | device memory under a budget in bytes; a refusal is an error that says by how much |
//! | [`kernels`] | a text, compiled by NVRTC for this device, kept on disk; launched on a stream |
//! | [`ring::Ring`] | disk to slot to buffer to kernel to slot to disk, all at once, each slot and buffer handed on by events |
//! | [`msm`], [`ntt`], [`program`] | whole jobs: a plan from length and budget, kernels over a ring |
//! | [`with_fallback`] | the same job by the processor if the device fails, and why |
//! | [`tier`] | the engine's second compute tier: whole jobs of a session, done here or declined |
//! | [`measure`] | what the device does in a second, and jobs that it and the processor make in turn |
//! | [`trace`] | every transfer and every wait, as a table and a timeline |
//!
//! ```no_run
//! use spillproof_gpu::{Caching, Choice, Chosen, Pinned, Vram, ring, trace};
//!
//! # fn main() -> Result<(), spillproof_gpu::Error> {
//! let Chosen::Gpu(gpu) = Choice::Auto.open(trace::Detail::Counts)? else { return Ok(()) };
//! let pool = Pinned::new(256 << 20).pool(&gpu, 3, 64 << 20, Caching::Cached, "upload")?;
//! let chunking = ring::Chunking::new(64 << 20, 32)?.growing_from(4 << 20)?;
//!
//! let mut source = |_offset: u64, into: &mut [u8]| { into.fill(1); Ok(()) };
//! let mut upload = ring::Upload::new(pool.take(3)?, gpu.trace())?;
//! upload.stage(&chunking, 1 << 30, &mut source)?; // nothing of the device is used yet
//!
//! let _turn = gpu.take_turn();
//! let vram = Vram::new(&gpu, 1 << 30);
//! let mut ring = ring::Ring::new(&vram, chunking, 2)?;
//! let job = ring::Job { total_bytes: 1 << 30, upload: Some((&mut upload, &mut source)), download: None };
//! ring.run(job, &mut |chunk| { /* launch kernels on chunk.stream over chunk.buffer */ Ok(()) })?;
//! ring.finish()?;
//! println!("{}", gpu.trace().table());
//! # Ok(())
//! # }
//! ```
//!
//! # What holds everywhere
//!
//! - **A slot's bytes belong to one side at a time.** Its type says to which: bytes can be had of an idle slot only, a copy makes it
//!   "in flight", and only waiting for its own event makes it idle again. No safe function gets around that. The ring's module says the
//!   same of device buffers.
//! - **The host waits for slots, not for streams.** A job has no hard synchronisation, whatever its length; `finish` has one. The trace
//!   counts them.
//! - **Budgets are first-class.** Device memory and pinned memory are leased from a number of bytes that the user gives. Too little is
//!   [`Error::OverBudget`] before anything was allocated; [`Error::is_memory_short`] says that a smaller job, or the processor, would do.
//! - **After an error nothing is in flight**, slots are idle, and memory is given back. If the device is lost
//!   ([`Error::is_device_lost`]), slots whose copies cannot be waited for leave their pool, and everything has to be opened anew.
//! - **Below the whole jobs nobody looks inside the data.** Chunks are bytes; fields, points and their order are the kernels' matter, and
//!   that of [`msm`], [`ntt`] and [`program`].
//! - `unsafe` code is in `driver.rs`, `raw/`, `kernels/nvrtc.rs`, and in one file each of `msm/`, `ntt/`, `program/` and
//!   `measure/` that launches kernels. Launching a kernel is unsafe for the caller, since nothing here knows
//!   its parameters; the rest of the interface is safe.

// Unit tests share the support module of `tests/all`, which names the crate from outside.
#[cfg(test)]
extern crate self as spillproof_gpu;
#[cfg(test)]
#[path = "../tests/all/support/mod.rs"]
mod support;

mod choice;
mod device;
mod driver;
mod error;
mod fallback;
pub mod kernels;
mod ledger;
pub mod measure;
pub mod msm;
pub mod ntt;
mod pinned;
pub mod program;
mod quotient;
mod raw;
pub mod ring;
pub mod tier;
pub mod trace;
mod vram;

use std::fmt;

pub use choice::{Choice, Chosen, NotUsed, ParseChoiceError};
pub use device::{Gpu, Stream, Turn};
pub use error::{BoxedError, Error, Result};
pub use fallback::{DoneBy, with_fallback};
pub use ledger::{Lease, Ledger};
pub use pinned::{Caching, Pinned, PinnedPool, Slot};
pub use vram::{DeviceBuffer, GRANULE_BYTES, Vram};

/// A device that could compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Which one, from 0, in the driver's order.
    pub ordinal: usize,
    /// What the maker calls it.
    pub name: String,
    /// Compute capability, (major, minor).
    pub compute_capability: (i32, i32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory_bytes: u64,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.compute_capability;
        let mib = self.memory_bytes >> 20;
        write!(
            f,
            "{}: {} (sm_{major}{minor}, {} multiprocessors, {mib} MiB)",
            self.ordinal, self.name, self.multiprocessors
        )
    }
}

/// Why there is no device.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGpu {
    /// The driver's library is not on this machine.
    #[error("no GPU: the CUDA driver (libcuda.so) is not installed")]
    NoDriver,
    /// The driver is there, and would not work.
    #[error("no GPU: the CUDA driver failed to {operation}: {reason}")]
    Driver {
        /// What was asked of it.
        operation: &'static str,
        /// What it said.
        reason: String,
    },
    /// The driver is too old.
    #[error(
        "no GPU: the CUDA driver knows CUDA {knows} at most, and {needed} is needed: install a newer driver"
    )]
    OldDriver {
        /// The newest CUDA that it knows.
        knows: String,
        /// The oldest that will do.
        needed: String,
    },
    /// The driver works, and knows no device.
    #[error("no GPU: the CUDA driver sees no device")]
    NoDevice,
}

/// The devices of this machine, in the driver's order; never an empty list.
///
/// # Errors
/// [`NoGpu`], when there is no driver, no device, or the driver fails.
pub fn probe() -> Result<Vec<Device>, NoGpu> {
    driver::devices()
}
