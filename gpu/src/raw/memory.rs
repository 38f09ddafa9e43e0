//! Device memory and page-locked host memory.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdeviceptr};
use spillproof_engine::budget::Lendable;

use super::{Context, failed};
use crate::error::{Invalid, Result, Values};

/// An allocation on a device. Only copies and kernels access its content.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    start: CUdeviceptr,
    bytes: u64,
    context: Arc<Context>,
}

impl DeviceMemory {
    pub(crate) fn new(context: &Arc<Context>, bytes: u64) -> Result<Self> {
        context.bind()?;
        // SAFETY: released once, in `drop`. Only the device reads its initial content.
        let start =
            unsafe { result::malloc_sync(bytes as usize) }.map_err(failed("allocate device memory"))?;
        Ok(Self {
            start,
            bytes,
            context: context.clone(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The address of the first byte.
    pub(crate) fn start(&self) -> CUdeviceptr {
        self.start
    }

    /// The address of `offset`, if `bytes` from there are inside the allocation.
    pub(crate) fn at(&self, offset: u64, bytes: u64) -> Result<CUdeviceptr> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.start + offset),
            _ => Err(Values::OutOfRange {
                what: "buffer of device memory".into(),
                start: offset,
                end: offset.saturating_add(bytes),
                len: self.bytes,
            }
            .into()),
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let bound = self.context.bind();
        // SAFETY: allocated once, freed once; owners wait for the work that uses it.
        let freed = unsafe { result::free_sync(self.start) };
        self.context.note(bound);
        self.context.note(freed.map_err(failed("free device memory")));
    }
}

/// Page-locked host memory, zeroed. [`RawSlot`](super::RawSlot) controls access to it while copies run.
#[derive(Debug)]
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    write_combined: bool,
    context: Arc<Context>,
}

// SAFETY: the memory belongs to this value alone, and any thread may free it.
unsafe impl Send for HostMemory {}
// SAFETY: shared references only read.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// `write_combined` memory is faster to copy from and very slow to read on the host.
    pub(crate) fn new(context: &Arc<Context>, bytes: usize, write_combined: bool) -> Result<Self> {
        // The limit of a slice.
        if bytes == 0 || isize::try_from(bytes).is_err() {
            return Err(Invalid::memory_size("pinned memory", bytes as u64).into());
        }
        context.bind()?;
        // All devices of the process can copy from it.
        let mut flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        if write_combined {
            flags |= sys::CU_MEMHOSTALLOC_WRITECOMBINED;
        }
        // SAFETY: released once, in `drop`.
        let start = unsafe { result::malloc_host(bytes, flags) }.map_err(failed("allocate pinned memory"))?;
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| {
            Invalid::call("the driver returned a null address for pinned memory without an error")
        })?;
        // SAFETY: `bytes` bytes from `start` are ours; after this they are initialised.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self {
            start,
            bytes,
            write_combined,
            context: context.clone(),
        })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: initialised in `new`, alive until `drop`. Copies that write here need `&mut self` and an
        // unsafe function, whose caller prevents other accesses until they are done.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

// SAFETY: initialised in `new`, at one address until `drop`; `RawSlot` lends it only while the device does not use it.
unsafe impl Lendable for HostMemory {
    fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_readable(&self) -> bool {
        !self.write_combined
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let bound = self.context.bind();
        // SAFETY: allocated once, freed once; `RawSlot` has waited for copies, or could not, and then the
        // driver does.
        let freed = unsafe { result::free_host(self.start.as_ptr().cast()) };
        self.context.note(bound);
        self.context.note(freed.map_err(failed("free pinned memory")));
    }
}
