//! GPUs for a session, by the command line, and the jobs that each did.

use std::sync::Arc;

use serde::Serialize;
use spillproof_engine::accelerator::Accelerator;
use spillproof_gpu::accelerator::{DeviceReport, GpuAccelerator, Offload, Report, Request};
use spillproof_gpu::trace::SpanKind;
use spillproof_gpu::{Caching, Choice, GpuAbsence};

use crate::args::Gpu;
use crate::run::Result;

/// The GPUs of a run.
pub enum OnGpu {
    /// None was asked for.
    Off,
    /// The machine has none that can be used.
    None(GpuAbsence),
    /// One or several.
    Accelerator(Arc<GpuAccelerator>),
}

/// The jobs of each device and of the processor; `said` is the same as a sentence.
#[derive(Debug, Default, Serialize)]
pub struct Used {
    said: String,
    devices: Vec<ByDevice>,
    sums: u64,
    transforms: u64,
    quotients: u64,
    /// Between pinned slots and all devices, rates that were measured among them.
    bytes_to_devices: u64,
    bytes_from_devices: u64,
    hard_synchronisations: u64,
    by_the_processor: Vec<Left>,
}

/// The jobs of one device.
#[derive(Debug, Serialize)]
struct ByDevice {
    device: String,
    /// Computed by it alone.
    sums: u64,
    /// Shared with other devices; `points` are its own points of all sums.
    shared_sums: u64,
    points: u64,
    transforms: u64,
    quotients: u64,
    left_to_others: Vec<Left>,
}

/// Jobs that a device declined, or failed.
#[derive(Debug, Serialize)]
struct Left {
    why: String,
    jobs: u64,
}

fn left(reasons: &[(String, u64)]) -> Vec<Left> {
    let reasons = reasons.iter().map(|(why, jobs)| Left {
        why: why.clone(),
        jobs: *jobs,
    });
    reasons.collect()
}

impl From<&DeviceReport> for ByDevice {
    fn from(of: &DeviceReport) -> Self {
        Self {
            device: of.name().to_owned(),
            sums: of.sums(),
            shared_sums: of.shared_sums(),
            points: of.points(),
            transforms: of.transforms(),
            quotients: of.quotients(),
            left_to_others: left(of.left_to_others()),
        }
    }
}

impl OnGpu {
    /// Opens the GPUs that were asked for.
    ///
    /// # Errors
    /// Of a device that was named and cannot be used; of a budget of page-locked memory that is too small for
    /// any job.
    pub fn open(args: &Gpu, offload: Offload) -> Result<Self> {
        if args.gpu == Choice::Off {
            return Ok(Self::Off);
        }
        let request = Request {
            choice: args.gpu.clone(),
            vram: args.vram,
            offload,
            pinned: args.pinned,
            upload: match args.write_combined {
                true => Caching::WriteCombined,
                false => Caching::Cached,
            },
        };
        Ok(match GpuAccelerator::open(&request)? {
            Ok(accelerator) => Self::Accelerator(accelerator),
            Err(reason) => Self::None(reason),
        })
    }

    /// For a session.
    pub fn accelerator(&self) -> Option<Arc<dyn Accelerator>> {
        match self {
            Self::Accelerator(accelerator) => Some(Arc::clone(accelerator) as Arc<dyn Accelerator>),
            Self::Off | Self::None(_) => None,
        }
    }

    /// Whether a device did any job.
    pub fn took_part(&self) -> bool {
        matches!(self, Self::Accelerator(accelerator) if accelerator.report().is_any_of_a_device())
    }

    /// The jobs so far; `None` if no GPU was asked for.
    pub fn used(&self) -> Option<Used> {
        match self {
            Self::Off => None,
            Self::None(reason) => Some(Used::none(reason)),
            Self::Accelerator(accelerator) => {
                let report = accelerator.report();
                for gpu in accelerator.gpus() {
                    tracing::debug!("device {}:\n{}", gpu.description().ordinal, gpu.trace().table());
                }
                let bytes = |kind| {
                    let traces = accelerator.gpus().iter().map(|gpu| gpu.trace().total(kind).bytes);
                    traces.sum()
                };
                Some(Used {
                    bytes_to_devices: bytes(SpanKind::ToDevicePinned),
                    bytes_from_devices: bytes(SpanKind::FromDevicePinned),
                    hard_synchronisations: accelerator
                        .gpus()
                        .iter()
                        .map(|gpu| gpu.trace().hard_syncs())
                        .sum(),
                    ..Used::from(&report)
                })
            }
        }
    }
}

impl From<&Report> for Used {
    fn from(report: &Report) -> Self {
        Self {
            said: format!("gpu: {report}"),
            devices: report.devices().iter().map(ByDevice::from).collect(),
            sums: report.sums(),
            transforms: report.transforms(),
            quotients: report.quotients(),
            by_the_processor: left(report.reasons()),
            ..Self::default()
        }
    }
}

impl Used {
    /// No device did any job.
    pub fn none(reason: &GpuAbsence) -> Self {
        Self {
            said: reason.to_string(),
            ..Self::default()
        }
    }

    /// As a sentence.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Which device did the only job, or why the processor did it.
    pub fn done_by(&self) -> String {
        match (&self.devices[..], self.by_the_processor.first()) {
            ([], _) => format!("the processor: {}", self.said),
            (_, Some(left)) => format!("the processor: {}", left.why),
            ([_], None) => "the GPU".into(),
            (_, None) => format!("GPUs: {}", self.said),
        }
    }
}
