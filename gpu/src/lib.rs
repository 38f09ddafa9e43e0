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
//! let job = ring::RingJob { total_bytes: 1 << 30, upload: Some((&mut upload, &mut source)), download: None };
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

mod buffer;
mod choice;
mod codes;
mod device;
mod driver;
mod error;
mod fallback;
mod fit;
pub mod kernels;
mod ledger;
mod lock;
pub mod measure;
pub mod msm;
pub mod ntt;
mod pinned;
mod probed;
pub mod program;
mod quotient;
mod raw;
pub mod ring;
mod stream;
pub mod tier;
pub mod trace;
mod vram;

pub use buffer::{DeviceBuffer, GRANULE_BYTES};
pub use choice::{Choice, Chosen, NotUsed, ParseChoiceError};
pub use device::{Gpu, Turn};
pub use error::{BoxedError, Error, Result};
pub use fallback::{DoneBy, with_fallback};
pub use ledger::{Lease, Ledger};
pub use pinned::{Caching, Pinned, PinnedPool, Slot};
pub use probed::{Device, NoGpu};
pub use stream::Stream;
pub use vram::Vram;

/// The devices of this machine, in the driver's order; never an empty list.
///
/// # Errors
/// [`NoGpu`], when there is no driver, no device, or the driver fails.
pub fn probe() -> Result<Vec<Device>, NoGpu> {
    driver::devices()
}
