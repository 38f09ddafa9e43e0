//! The result of a probe: devices, or the reason why none can be used.

use std::fmt;

/// A device of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number from 0, in the driver's order.
    pub ordinal: usize,
    /// Its product name.
    pub name: String,
    /// Compute capability, (major, minor).
    pub compute_capability: (i32, i32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Its identity, which no other device has.
    pub uuid: [u8; 16],
}

/// How one device reaches the memory of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// Directly, with atomic operations, as over NVLink.
    NvLink,
    /// Directly, over PCIe.
    Pcie,
    /// By way of the host's memory.
    Host,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::NvLink => "NVLink",
            Link::Pcie => "PCIe",
            Link::Host => "the host",
        })
    }
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

/// Why no device can be used.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGpu {
    /// The driver's library is not on this machine.
    #[error("no GPU: the CUDA driver (libcuda.so) is not installed")]
    NoDriver,
    /// The driver is installed, and a call of it failed.
    #[error("no GPU: the CUDA driver failed to {operation}: {reason}")]
    Driver {
        /// The operation that failed.
        operation: &'static str,
        /// The driver's answer.
        reason: String,
    },
    /// The driver is too old.
    #[error(
        "no GPU: the CUDA driver knows CUDA {knows} at most, and {needed} is needed: install a newer driver"
    )]
    OldDriver {
        /// The newest CUDA version that it supports.
        knows: String,
        /// The oldest version that this crate works with.
        needed: String,
    },
    /// The driver works, and reports no device.
    #[error("no GPU: the CUDA driver sees no device")]
    NoDevice,
}
