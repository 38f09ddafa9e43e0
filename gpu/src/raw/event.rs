//! A point in the work of a stream.
#![allow(unsafe_code)]

use std::sync::Arc;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult};
use cudarc::driver::{DriverError, result};

use super::{Context, failed};
use crate::error::Result;

#[derive(Debug)]
pub(crate) struct Event {
    raw: CUevent,
    context: Arc<Context>,
}

// SAFETY: an event is a handle; the driver's functions may be called with it from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that the host waits for: the waiting thread sleeps instead of spinning.
    pub(crate) fn for_host(context: &Arc<Context>) -> Result<Self> {
        use CUevent_flags::{CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING};
        Self::with(
            context,
            CU_EVENT_BLOCKING_SYNC as u32 | CU_EVENT_DISABLE_TIMING as u32,
        )
    }

    /// An event that streams wait for.
    pub(crate) fn between_streams(context: &Arc<Context>) -> Result<Self> {
        Self::with(context, CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)
    }

    /// An event with a time stamp.
    pub(crate) fn timed(context: &Arc<Context>) -> Result<Self> {
        Self::with(context, CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    fn with(context: &Arc<Context>, flags: u32) -> Result<Self> {
        context.bind()?;
        let mut raw: CUevent = std::ptr::null_mut();
        // SAFETY: writes one handle; `cudarc`'s wrapper takes one flag only, the driver takes their union.
        unsafe { sys::cuEventCreate(&raw mut raw, flags).result() }.map_err(failed("make an event"))?;
        Ok(Self {
            raw,
            context: context.clone(),
        })
    }

    /// Blocks until the work before the event is done; returns at once if the event was never recorded.
    pub(crate) fn wait(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle lives as long as its owner.
        unsafe { result::event::synchronize(self.raw) }.map_err(failed("wait for an event"))
    }

    /// Whether the work before the event is done.
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the handle lives as long as its owner.
        match unsafe { result::event::query(self.raw) } {
            Ok(()) => Ok(true),
            Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(failed("query an event")(error)),
        }
    }

    /// Seconds from `start` to this event; both are timed and done.
    pub(crate) fn seconds_since(&self, start: &Event) -> Result<f64> {
        self.context.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes one number; both handles live as long as their owners.
        unsafe { elapsed()?(&raw mut milliseconds, start.raw, self.raw).result() }
            .map_err(failed("time an event"))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    pub(super) fn raw(&self) -> CUevent {
        self.raw
    }
}

type Elapsed = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// The driver's `cuEventElapsedTime`. `cudarc` loads its second version, and panics with drivers before CUDA
/// 12.8, which do not have it.
fn elapsed() -> Result<Elapsed> {
    // SAFETY: an event exists, so the driver's library is loaded; the signature is the header's, and the
    // library stays.
    let found = unsafe { sys::culib().get::<Elapsed>(b"cuEventElapsedTime") };
    let missing = |_| failed("time an event")(DriverError(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    found.map(|elapsed| *elapsed).map_err(missing)
}

impl Drop for Event {
    fn drop(&mut self) {
        let bound = self.context.bind();
        // SAFETY: made once, destroyed once; waits of streams that name it keep their point.
        let destroyed = unsafe { result::event::destroy(self.raw) };
        self.context.note(bound);
        self.context.note(destroyed.map_err(failed("destroy an event")));
    }
}
