//! Devices for a session: from variables, or by the builder. Without the feature `gpu` there is no code for
//! devices in here, and asking for one by a variable is an error.
//!
//! ```no_run
//! use std::sync::Arc;
//! use halo2_axiom::spillproof::{ByteSize, Choice, GpuRequest, Session, UseGpu};
//!
//! let gpu = GpuRequest { choice: Choice::Auto, vram: ByteSize::Bytes(2 << 30), ..GpuRequest::default() };
//! let session = Session::builder().memory(ByteSize::Auto).gpu(&gpu)?.build()?;
//! let _current = Arc::new(session).install();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use spillproof_engine::Result;

pub(super) use ::spillproof_gpu::accelerator::of_environment;
pub use ::spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request as GpuRequest};
pub use ::spillproof_gpu::{Caching, Choice};

use super::SessionBuilder;

/// Devices for a [`SessionBuilder`].
pub trait UseGpu: Sized {
    /// The devices that are asked for take part; none, where `auto` or `all` finds none. To see afterwards
    /// who did what, open it with [`GpuRequest::open`], give it to [`SessionBuilder::accelerator`], and ask
    /// its [`GpuAccelerator::report`].
    ///
    /// # Errors
    /// Of a device that was named, and can't be had; of a budget of page-locked memory in which no job has
    /// room.
    fn gpu(self, request: &GpuRequest) -> Result<Self>;
}

impl UseGpu for SessionBuilder {
    fn gpu(self, request: &GpuRequest) -> Result<Self> {
        Ok(match request.for_session()? {
            Some(accelerator) => self.accelerator(accelerator),
            None => self,
        })
    }
}
