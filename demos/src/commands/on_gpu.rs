//! GPUs for a session, by the command line, and the jobs that each did.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use spillproof_engine::accelerator::Accelerator;
use spillproof_gpu::accelerator::{DeviceReport, GpuAccelerator, Offload, Report, Request};
use spillproof_gpu::trace::{Busy, Detail, SpanKind};
use spillproof_gpu::{Caching, Choice, Gpu as Device, GpuAbsence, Link, links};

use crate::args::Gpu;
use crate::ranks::Neighbours;
use crate::report::device::{self, Counts, OnDevices};
use crate::run::Result;

/// The GPUs of a run.
pub enum OnGpu {
    /// None was asked for.
    Off,
    /// The machine has none that can be used.
    None(GpuAbsence),
    /// One or several.
    Accelerator {
        /// What does jobs on them.
        accelerator: Arc<GpuAccelerator>,
        /// How they reach each other, and those of other ranks.
        links: Vec<LinkBetween>,
    },
}

/// How the memory of one device is reached from another one.
#[derive(Debug, Clone, Serialize)]
pub struct LinkBetween {
    devices: [usize; 2],
    link: Link,
}

impl std::fmt::Display for LinkBetween {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            devices: [a, b],
            link,
        } = self;
        write!(f, "between {a} and {b}: {link}")
    }
}

/// Spans of a device that are kept until a step of the report takes them.
const SPANS_MAX: usize = 1 << 16;

/// The jobs of each device and of the processor; `said` is the same as a sentence.
#[derive(Debug, Default, Serialize)]
pub struct Used {
    said: String,
    devices: Vec<ByDevice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkBetween>,
    /// What crossed for all jobs, by device; none in a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transfers: Vec<Transfers>,
    sums: u64,
    transforms: u64,
    panels: u64,
    quotients: u64,
    constraints: u64,
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
    panels: u64,
    quotients: u64,
    constraints: u64,
    left_to_others: Vec<Left>,
}

/// The bytes that crossed to a device and back, and the work that it was given.
#[derive(Debug, Clone, Copy, Serialize)]
struct Transfers {
    device: usize,
    #[serde(flatten)]
    counts: Counts,
}

impl Transfers {
    fn of(gpu: &Device) -> Self {
        let trace = gpu.trace();
        Self {
            device: gpu.description().ordinal,
            counts: Counts {
                to_device_bytes: trace.total(SpanKind::ToDevicePinned).bytes,
                to_device_pageable_bytes: trace.total(SpanKind::ToDevicePageable).bytes,
                from_device_bytes: trace.total(SpanKind::FromDevicePinned).bytes,
                from_device_pageable_bytes: trace.total(SpanKind::FromDevicePageable).bytes,
                hard_syncs: trace.hard_syncs(),
                kernels: trace.total(SpanKind::Kernel).count,
            },
        }
    }
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
            panels: of.panels(),
            quotients: of.quotients(),
            constraints: of.constraints(),
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
        Self::opened(args, offload, args.gpu.clone(), Detail::Counts)
    }

    /// The same, whose transfers and busy times the phases and steps of a run have, if `is_watched`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_watched(args: &Gpu, offload: Offload, is_watched: bool) -> Result<Self> {
        let opened = Self::opened(args, offload, args.gpu.clone(), detail(is_watched))?;
        opened.watch(is_watched);
        Ok(opened)
    }

    /// The same for one of several ranks of a machine: each has devices of its own, as far as there are enough.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_of_rank(args: &Gpu, offload: Offload, place: Neighbours, is_watched: bool) -> Result<Self> {
        let choice = args.gpu.of_rank(place.rank, place.ranks);
        let mut opened = Self::opened(args, offload, choice, detail(is_watched));
        if let Ok(Self::Accelerator { accelerator, links }) = &mut opened {
            *links = links_of(accelerator, true);
        }
        if let Ok(opened) = &opened {
            opened.watch(is_watched);
        }
        match (&args.gpu, opened) {
            // What was not named is used if it can be.
            (Choice::Auto | Choice::All, Err(crate::failure::Failure::Gpu(error))) => {
                let reason = error.to_string();
                tracing::warn!(%error, "a device does not open and is not used");
                Ok(Self::None(GpuAbsence::WouldNotOpen(reason)))
            }
            (_, opened) => opened,
        }
    }

    fn opened(args: &Gpu, offload: Offload, choice: Choice, detail: Detail) -> Result<Self> {
        if choice == Choice::Off {
            return Ok(Self::Off);
        }
        let request = Request {
            choice,
            vram: args.vram,
            offload,
            pinned: args.pinned,
            upload: match args.write_combined {
                true => Caching::WriteCombined,
                false => Caching::Cached,
            },
            detail,
        };
        Ok(match GpuAccelerator::open(&request)? {
            Ok(accelerator) => Self::Accelerator {
                links: links_of(&accelerator, false),
                accelerator,
            },
            Err(reason) => Self::None(reason),
        })
    }

    /// Lets phases and steps have what crosses and how long devices are busy.
    fn watch(&self, is_watched: bool) {
        let Self::Accelerator { accelerator, .. } = self else {
            return;
        };
        if !is_watched {
            return;
        }
        // The report outlives the run's devices.
        let (devices, busy) = (Arc::downgrade(accelerator), Mutex::new(0.0));
        device::watch(Some(Arc::new(move || {
            let Some(accelerator) = devices.upgrade() else {
                return OnDevices::default();
            };
            let mut busy_seconds = busy.lock().unwrap_or_else(PoisonError::into_inner);
            let mut sums = OnDevices::default();
            for gpu in accelerator.gpus() {
                let spans = gpu.trace().take_spans();
                *busy_seconds += Busy::of(spans).map_or(0.0, |busy| busy.with_transfer_seconds);
                sums.devices += 1;
                sums.counts = sums.counts.plus(Transfers::of(gpu).counts);
            }
            sums.busy_seconds = *busy_seconds;
            sums
        })));
    }

    /// The identities of the devices.
    pub fn uuids(&self) -> Vec<[u8; 16]> {
        match self {
            Self::Off | Self::None(_) => Vec::new(),
            Self::Accelerator { accelerator, .. } => {
                let gpus = accelerator.gpus().iter();
                gpus.map(|gpu| gpu.description().uuid).collect()
            }
        }
    }

    /// For a session.
    pub fn accelerator(&self) -> Option<Arc<dyn Accelerator>> {
        match self {
            Self::Accelerator { accelerator, .. } => Some(Arc::clone(accelerator) as Arc<dyn Accelerator>),
            Self::Off | Self::None(_) => None,
        }
    }

    /// Whether a device did any job.
    pub fn took_part(&self) -> bool {
        matches!(self, Self::Accelerator { accelerator, .. } if accelerator.report().is_any_of_a_device())
    }

    /// The jobs so far; `None` if no GPU was asked for.
    pub fn used(&self) -> Option<Used> {
        match self {
            Self::Off => None,
            Self::None(reason) => Some(Used::none(reason)),
            Self::Accelerator { accelerator, links } => {
                let report = accelerator.report();
                for gpu in accelerator.gpus() {
                    tracing::debug!("device {}:\n{}", gpu.description().ordinal, gpu.trace().table());
                }
                let mut used = Used::of(&report, links);
                used.transfers = accelerator.gpus().iter().map(Transfers::of).collect();
                Some(used)
            }
        }
    }
}

/// How much a device's trace keeps.
fn detail(is_watched: bool) -> Detail {
    match is_watched {
        true => Detail::Timeline { spans_max: SPANS_MAX },
        false => Detail::Counts,
    }
}

/// The links between an accelerator's devices; of one rank's also those to the others of the machine.
fn links_of(accelerator: &GpuAccelerator, is_rank: bool) -> Vec<LinkBetween> {
    let own: Vec<usize> = (accelerator.gpus().iter())
        .map(|gpu| gpu.description().ordinal)
        .collect();
    if own.len() < 2 && !is_rank {
        return Vec::new();
    }
    let all = links().unwrap_or_default().into_iter();
    let is_wanted = |devices: &[usize; 2]| {
        let mut are_own = devices.iter().map(|ordinal| own.contains(ordinal));
        match is_rank {
            true => are_own.any(|is_own| is_own),
            false => are_own.all(|is_own| is_own),
        }
    };
    all.filter(|(devices, _)| is_wanted(devices))
        .map(|(devices, link)| LinkBetween { devices, link })
        .collect()
}

impl Used {
    /// The jobs of a report, and the links between the devices.
    pub fn of(report: &Report, links: &[LinkBetween]) -> Self {
        let mut said = format!("gpu: {report}");
        for link in links {
            said += &format!("; {link}");
        }
        Self {
            said,
            devices: report.devices().iter().map(ByDevice::from).collect(),
            links: links.to_vec(),
            transfers: Vec::new(),
            sums: report.sums(),
            transforms: report.transforms(),
            panels: report.panels(),
            quotients: report.quotients(),
            constraints: report.constraints(),
            by_the_processor: left(report.reasons()),
        }
    }

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
