//! The host side of the accelerator: devices, their memory, rings that stream data through it, kernels, whole
//! jobs, and a record of transfers and waits.
//!
//! The libraries of the driver and of NVRTC are opened at run time. So the build needs nothing of CUDA, and a
//! machine without a device is a normal answer, never a panic.
//!
//! ```
//! match spillproof_gpu::probe() {
//!     Ok(devices) => devices.iter().for_each(|device| println!("{device}")),
//!     Err(reason) => println!("{reason}"),
//! }
//! ```
//!
//! # Modules and types, in the order in which a job uses them
//!
//! | item | purpose |
//! |---|---|
//! | [`Choice`] | which devices to use: `auto`, `off`, `all`, numbers; opens a [`Gpu`], or gives the reason why there is none |
//! | [`Pinned`], [`PinnedPool`] | page-locked slots under a budget of their own, allocated once and kept |
//! | [`ring::Upload::stage`] | fills slots with the first chunks, before the job has the device |
//! | [`Gpu::take_turn`] | one job at a time on a device |
//! | [`Vram`], [`DeviceBuffer`] | device memory under a budget in bytes; a refusal gives the figures |
//! | [`kernels`] | source text, compiled by NVRTC for this device and cached on disk; launches on a stream |
//! | [`ring::Ring`] | disk to slot to buffer to kernel to slot to disk, all stages at once, synchronised by events |
//! | [`msm`], [`ntt`], [`program`] | whole jobs: a plan from length and budget, kernels over a ring |
//! | [`accelerator`] | the engine's jobs, done on devices or declined with a reason |
//! | [`measure`] | rates of a device, and jobs that several accelerators do in turn |
//! | [`trace`] | every transfer and every wait, as a table and as spans |
//!
//! ```no_run
//! use spillproof_gpu::{Caching, Choice, Pinned, Vram, ring, trace};
//!
//! # fn main() -> Result<(), spillproof_gpu::Error> {
//! let Ok(gpu) = Choice::Auto.open(trace::Detail::Counts)? else { return Ok(()) };
//! let pool = Pinned::new(256 << 20).pool(&gpu, 3, 64 << 20, Caching::Cached, "upload")?;
//! let chunking = ring::Chunking::new(64 << 20, 32)?.growing_from(4 << 20)?;
//!
//! let mut source = |_offset: u64, into: &mut [u8]| { into.fill(1); Ok(()) };
//! let mut upload = ring::Upload::new(pool.take(3)?, gpu.trace())?;
//! upload.stage(&chunking, 1 << 30, &mut source)?; // needs no device yet
//!
//! let _turn = gpu.take_turn();
//! let vram = Vram::new(&gpu, 1 << 30);
//! let mut ring = ring::Ring::new(&vram, chunking, 2)?;
//! let job = ring::RingJob {
//!     total_bytes: 1 << 30,
//!     upload: Some((&mut upload, &mut source)),
//!     arrays: &[],
//!     download: None,
//! };
//! ring.run_job(job, &mut |chunk| { /* launch kernels on chunk.stream over chunk.buffer */ Ok(()) })?;
//! ring.finish()?;
//! println!("{}", gpu.trace().table());
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//!
//! - **The bytes of a slot belong to one side at a time.** The bytes of an idle slot are accessible; a copy
//!   makes the slot "in flight", and only a wait for its own event makes it idle again. No safe function can
//!   bypass this. The ring handles device buffers by the same rule.
//! - **The host waits for slots, not for streams.** A job has no hard synchronisation, whatever its length;
//!   `finish` has one. The trace counts them.
//! - **Budgets.** Device memory and pinned memory are leased from a number of bytes that the user gives. If
//!   it is too small, [`Error::OverBudget`] comes before any allocation; [`Error::is_memory_short`] says that
//!   a smaller job, or the processor, would do.
//! - **After an error nothing is in flight**, slots are idle, and memory is given back. If the device is lost
//!   ([`Error::is_device_lost`]), slots whose copies cannot be waited for leave their pool, and everything
//!   has to be opened again.
//! - **Below the whole jobs data is bytes.** Only the kernels and [`msm`], [`ntt`] and [`program`] know
//!   fields, points and their order.
//! - `unsafe` code is in `driver.rs`, `raw/`, `kernels/nvrtc.rs`, and one file each of `msm/`, `ntt/`,
//!   `constraints/`, `program/` and `measure/` that launches kernels. To launch a kernel is unsafe, since no type describes
//!   its parameters; the rest of the interface is safe.

// Unit tests share the support module of `tests/all`, which names the crate from outside.
#[cfg(test)]
extern crate self as spillproof_gpu;
#[cfg(test)]
#[path = "../tests/all/support/mod.rs"]
mod support;

pub mod accelerator;
mod budget;
mod buffer;
mod choice;
mod codes;
mod constraints;
mod device;
mod driver;
mod error;
mod fit;
pub mod kernels;
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
pub mod trace;
mod vram;

pub use buffer::{DeviceBuffer, GRANULE_BYTES};
pub use choice::{Choice, GpuAbsence, ParseChoiceError};
pub use device::{Gpu, Turn};
pub use error::{BoxedError, Error, Invalid, Result};
pub use pinned::{Caching, Pinned, PinnedPool, Slot};
pub use probed::{Device, Link, NoGpu};
pub use stream::Stream;
pub use vram::Vram;

/// The devices of this machine, in the driver's order; never an empty list.
///
/// # Errors
/// [`NoGpu`], when there is no driver, no device, or the driver fails.
pub fn probe() -> Result<Vec<Device>, NoGpu> {
    driver::devices()
}

/// How the devices of each pair of this machine reach each other's memory, the lower number first.
///
/// # Errors
/// As [`probe`].
pub fn links() -> Result<Vec<([usize; 2], Link)>, NoGpu> {
    driver::links()
}
