//! Measurements of a device: its properties, its rates, and jobs that several accelerators do in turn in
//! one session.
//!
//! | type | content |
//! |---|---|
//! | [`Facts`] | the properties that the driver reports |
//! | [`Rates`] | products, mixed additions and copies in a second, each alone: upper bounds for any job |
//! | [`AcceleratorSwitch`] | a session's accelerator that forwards to another one, which changes between jobs; the columns stay |
//!
//! Peak device memory: 128 bytes for each of 15360 threads of a multiprocessor, then 48 MiB for copies.
//! Memory of the host: pinned slots, leased from the given budget.

mod launch;
mod rates;
mod switch;

use std::fmt;

use cudarc::driver::sys::CUdevice_attribute::{
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
};
use serde::Serialize;

pub use rates::Rates;
pub use switch::{AcceleratorSwitch, Outcome};

use crate::{Gpu, Result, driver};

/// The file with the version of NVIDIA's kernel module.
const MODULE_VERSION: &str = "/proc/driver/nvidia/version";

/// The properties that the driver reports; `None` for a property that it does not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Its number from 0, in the driver's order.
    pub ordinal: usize,
    /// Its product name.
    pub name: String,
    /// Compute capability, major and minor.
    pub compute_capability: [i32; 2],
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// The highest clock of the multiprocessors.
    pub clock_hz: Option<u64>,
    /// Device memory.
    pub memory_bytes: u64,
    /// The highest clock of the memory.
    pub memory_clock_hz: Option<u64>,
    /// Width of the memory's bus.
    pub memory_bus_bits: Option<u64>,
    /// The newest CUDA version that the driver supports.
    pub cuda_version: String,
    /// The version of the kernel module.
    pub driver_version: Option<String>,
}

impl Facts {
    /// The properties of an open device.
    ///
    /// # Errors
    /// [`crate::Error::Driver`].
    pub fn of(gpu: &Gpu) -> Result<Self> {
        let attribute = |which| {
            let value = gpu.context().attribute(which)?;
            Ok::<_, crate::Error>(u64::try_from(value).ok().filter(|&value| value > 0))
        };
        let hertz = |kilohertz: Option<u64>| kilohertz.map(|value| value * 1000);
        let description = gpu.description();
        let version = driver::cuda_version()?;
        Ok(Self {
            ordinal: description.ordinal,
            name: description.name.clone(),
            compute_capability: description.compute_capability.into(),
            multiprocessors: description.multiprocessors,
            clock_hz: hertz(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?),
            memory_bytes: description.memory_bytes,
            memory_clock_hz: hertz(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?),
            memory_bus_bits: attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
            cuda_version: driver::named(version),
            driver_version: module_version(),
        })
    }
}

/// `0: NVIDIA H200 (sm_90, 132 multiprocessors at 1.98 GHz, 143771 MiB), CUDA 13.0, driver ..`.
impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.compute_capability;
        write!(
            f,
            "{}: {} (sm_{major}{minor}, {} multiprocessors",
            self.ordinal, self.name, self.multiprocessors
        )?;
        if let Some(clock_hz) = self.clock_hz {
            write!(f, " at {:.2} GHz", clock_hz as f64 / 1e9)?;
        }
        write!(
            f,
            ", {} MiB), CUDA {}",
            self.memory_bytes >> 20,
            self.cuda_version
        )?;
        match &self.driver_version {
            Some(version) => write!(f, ", driver {version}"),
            None => Ok(()),
        }
    }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..`, without the first two words.
fn module_version() -> Option<String> {
    let text = std::fs::read_to_string(MODULE_VERSION).ok()?;
    let line = text.lines().next()?;
    let words: Vec<&str> = line
        .trim_start_matches("NVRM version:")
        .split_whitespace()
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}
