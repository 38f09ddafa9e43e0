//! A buffer in device memory, with its lease.

use spillproof_engine::budget::Lease;

use crate::raw::DeviceMemory;

/// The driver's alignment. The budget counts a buffer rounded up to it.
pub const GRANULE_BYTES: u64 = 256;

/// The bytes that the budget counts for a buffer of `bytes`.
pub(crate) fn leased_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(GRANULE_BYTES)
}

/// Bytes on a device, with their lease. The owner waits for the work that uses the buffer before it drops it.
#[derive(Debug)]
pub struct DeviceBuffer {
    // Before the lease: memory is given back first.
    memory: DeviceMemory,
    _lease: Lease,
}

impl DeviceBuffer {
    pub(crate) fn new(memory: DeviceMemory, lease: Lease) -> Self {
        Self {
            memory,
            _lease: lease,
        }
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Its address on the device, for kernels' tables that hold addresses. Valid for as long as the buffer
    /// lives.
    pub fn address(&self) -> u64 {
        self.memory.start()
    }

    pub(crate) fn memory(&self) -> &DeviceMemory {
        &self.memory
    }
}
