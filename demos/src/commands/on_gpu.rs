//! GPUs for a session, as the command line asks for them, and who did what in the end.

use std::sync::Arc;

use serde::Serialize;
use spillproof::tier::Tier;
use spillproof_gpu::tier::{GpuTier, OfDevice, Offload, Report, Request};
use spillproof_gpu::{Caching, Choice, NotUsed};

use crate::args::Gpu;
use crate::run::Result;

/// What came of what was asked for.
pub enum OnGpu {
    /// Nobody asked.
    Off,
    /// There is none.
    None(NotUsed),
    /// There is one, or several.
    Tier(Arc<GpuTier>),
}

/// Who did which jobs, for machines; `said` is for people.
#[derive(Debug, Default, Serialize)]
pub struct Used {
    said: String,
    devices: Vec<ByDevice>,
    sums: u64,
    transforms: u64,
    quotients: u64,
    by_the_processor: Vec<Left>,
}

/// What one of them did.
#[derive(Debug, Serialize)]
struct ByDevice {
    device: String,
    /// Made by it alone.
    sums: u64,
    /// Of which others had a part, and how many points of each it had, all in all.
    shared_sums: u64,
    points: u64,
    transforms: u64,
    quotients: u64,
    left_to_others: Vec<Left>,
}

/// Jobs that were left to somebody else.
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

impl From<&OfDevice> for ByDevice {
    fn from(of: &OfDevice) -> Self {
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
    /// Opens what was asked for.
    ///
    /// # Errors
    /// Of a device that was named and can't be had; of a budget of page-locked memory that is too small for any job.
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
        Ok(match GpuTier::open(&request)? {
            Ok(tier) => Self::Tier(tier),
            Err(reason) => Self::None(reason),
        })
    }

    /// For a session.
    pub fn tier(&self) -> Option<Arc<dyn Tier>> {
        match self {
            Self::Tier(tier) => Some(Arc::clone(tier) as Arc<dyn Tier>),
            Self::Off | Self::None(_) => None,
        }
    }

    /// Whether a device did anything.
    pub fn took_part(&self) -> bool {
        matches!(self, Self::Tier(tier) if tier.report().is_any_of_a_device())
    }

    /// Who did what so far; `None` if nobody asked for a GPU.
    pub fn used(&self) -> Option<Used> {
        match self {
            Self::Off => None,
            Self::None(reason) => Some(Used::nobody(reason)),
            Self::Tier(tier) => {
                let report = tier.report();
                for gpu in tier.gpus() {
                    tracing::debug!("device {}:\n{}", gpu.description().ordinal, gpu.trace().table());
                }
                Some(Used::from(&report))
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
        }
    }
}

impl Used {
    /// There is no device.
    pub fn nobody(reason: &NotUsed) -> Self {
        Self {
            said: reason.to_string(),
            ..Self::default()
        }
    }

    /// For people.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Who did the one job that there was.
    pub fn done_by(&self) -> String {
        match (&self.devices[..], self.by_the_processor.first()) {
            ([], _) => format!("the processor: {}", self.said),
            (_, Some(left)) => format!("the processor: {}", left.why),
            ([_], None) => "the GPU".into(),
            (_, None) => format!("GPUs: {}", self.said),
        }
    }
}
