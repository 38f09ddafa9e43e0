//! A GPU for a session, as the command line asks for it, and who did what in the end.

use std::sync::Arc;

use serde::Serialize;
use spillproof::tier::Tier;
use spillproof_gpu::tier::{GpuTier, Offload};
use spillproof_gpu::{Choice, NotUsed};

use crate::args::Gpu;
use crate::run::Result;

/// What came of what was asked for.
pub enum OnGpu {
    /// Nobody asked.
    Off,
    /// There is none.
    None(NotUsed),
    /// There is one.
    Tier(Arc<GpuTier>),
}

/// Who did which jobs, for machines; `said` is for people.
#[derive(Debug, Serialize)]
pub struct Used {
    said: String,
    device: Option<String>,
    sums: u64,
    transforms: u64,
    quotients: u64,
    by_the_processor: Vec<Left>,
}

/// Jobs that were left to the processor.
#[derive(Debug, Serialize)]
struct Left {
    why: String,
    jobs: u64,
}

impl OnGpu {
    /// Opens what was asked for.
    ///
    /// # Errors
    /// Of a device that was named and can't be had.
    pub fn open(args: &Gpu, offload: Offload) -> Result<Self> {
        Ok(match args.gpu {
            Choice::Off => Self::Off,
            choice => match GpuTier::open(choice, args.vram, offload)? {
                Ok(tier) => Self::Tier(tier),
                Err(reason) => Self::None(reason),
            },
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
        matches!(self, Self::Tier(tier) if tier.report().is_any_of_the_device())
    }

    /// Who did what so far; `None` if nobody asked for a GPU.
    pub fn used(&self) -> Option<Used> {
        match self {
            Self::Off => None,
            Self::None(reason) => Some(Used {
                said: reason.to_string(),
                device: None,
                sums: 0,
                transforms: 0,
                quotients: 0,
                by_the_processor: Vec::new(),
            }),
            Self::Tier(tier) => {
                let report = tier.report();
                let reasons = report.reasons().iter().map(|(why, jobs)| Left {
                    why: why.clone(),
                    jobs: *jobs,
                });
                tracing::debug!("device:\n{}", tier.gpu().trace().table());
                Some(Used {
                    said: format!("gpu: {report}"),
                    device: Some(report.device().to_owned()),
                    sums: report.sums(),
                    transforms: report.transforms(),
                    quotients: report.quotients(),
                    by_the_processor: reasons.collect(),
                })
            }
        }
    }
}

impl Used {
    /// For people.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Who did the one job that there was.
    pub fn done_by(&self) -> String {
        match (self.device.is_some(), self.by_the_processor.first()) {
            (false, _) => format!("the processor: {}", self.said),
            (true, None) => "the GPU".into(),
            (true, Some(left)) => format!("the processor: {}", left.why),
        }
    }
}
