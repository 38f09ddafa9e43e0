//! A device's primary context, retained.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute};
use cudarc::driver::{CudaContext, result};

use super::failed;
use crate::driver;
use crate::error::{Error, Result};
use crate::lock::locked;

/// The most failures that are kept: after a device is lost every release fails.
const FAILURES_KEPT_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Context {
    device: CUdevice,
    raw: CUcontext,
    ordinal: usize,
    failures: Mutex<Vec<Error>>,
}

// SAFETY: a context is a handle; the driver's functions may be called with it from any thread, and the list
// has a lock.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of device `ordinal`.
    pub(crate) fn retain(ordinal: usize) -> Result<Arc<Self>> {
        driver::check()?;
        let count = CudaContext::device_count().map_err(failed("count its devices"))?;
        let count = usize::try_from(count).unwrap_or(0);
        let index = i32::try_from(ordinal).ok().filter(|_| ordinal < count);
        let index = index.ok_or(Error::NoSuchDevice { ordinal, count })?;
        let device = result::device::get(index).map_err(failed("find a device"))?;
        // SAFETY: `device` is a handle that the driver gave out; released once, in `drop`.
        let raw =
            unsafe { result::primary_ctx::retain(device) }.map_err(failed("retain a device's context"))?;
        let context = Arc::new(Self {
            device,
            raw,
            ordinal,
            failures: Mutex::default(),
        });
        context.bind()?;
        Ok(context)
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Makes this the context of the calling thread, which the driver's functions use.
    pub(crate) fn bind(&self) -> Result<()> {
        let bound = result::ctx::get_current().map_err(failed("name the current context"))?;
        if bound != Some(self.raw) {
            // SAFETY: retained until `drop`.
            unsafe { result::ctx::set_current(self.raw) }.map_err(failed("make a context current"))?;
        }
        Ok(())
    }

    pub(crate) fn attribute(&self, which: CUdevice_attribute) -> Result<i32> {
        // SAFETY: `device` is a handle that the driver gave out.
        unsafe { result::device::get_attribute(self.device, which) }.map_err(failed("describe a device"))
    }

    /// Free and total device memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> Result<(u64, u64)> {
        self.bind()?;
        let (free, total) = result::mem_get_info().map_err(failed("report its free memory"))?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work of the device.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        result::ctx::synchronize().map_err(failed("synchronise a device"))
    }

    /// Keeps the error of a release.
    pub(crate) fn note(&self, released: Result<()>) {
        if let Err(error) = released {
            let mut failures = locked(&self.failures);
            if failures.len() < FAILURES_KEPT_MAX {
                failures.push(error);
            }
        }
    }

    /// The errors of releases since the last call.
    pub(crate) fn failures(&self) -> Vec<Error> {
        std::mem::take(&mut *locked(&self.failures))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, and nothing holds it any more: every handle of this crate keeps its context
        // alive.
        let released = unsafe { result::primary_ctx::release(self.device) };
        self.note(released.map_err(failed("release a device's context")));
    }
}
