//! The engine's second compute tier on a device: [`GpuTier`] takes the whole jobs that `spillproof` offers, or declines with a reason.
//!
//! ```text
//! a job -> small, by measured rates? -> a plan within --vram -> pinned slots, leased from the session's budget -> ring -> answer
//!              |                            |                         |                                            |
//!              '----------------------------'-- declined: why --------'---------------- the device failed ---------'
//! ```
//!
//! - Kernels are compiled at the first job and kept, and those of a quotient's program for all of its shape. So is what the last sum and the last transform had on the device, for the next one
//!   of the same plan; it goes when another job needs its memory.
//! - One job at a time; one that comes meanwhile is the processor's. Nobody waits: whoever waited on a rayon worker might hold up the very
//!   job that it waits for. Slots are filled from disk before the device's turn is taken.
//! - What goes wrong with the device is a reason to decline, kept for the [`Report`]. A device that is lost, computed what cannot be, or
//!   has no kernels, declines everything from then on.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] pinned slots of a chunk for a sum, as many and [`DOWNLOAD_SLOTS`] for a transform, and for a quotient; a slot has
//! at most an eighth of what the budget has left (in a quotient a sixth of what its ends leave), and 16 MiB. They are kept for the next job, as long as neither the session's budget
//! nor that of pinned memory ([`Staging`]) needs their room. A transform that `--vram` has no room for goes
//! in two steps, by way of the disk, and the engine leases a tile for its lines. Device memory: that of
//! [`crate::msm::MsmPlan`] and [`crate::ntt::NttPlan`], and of the quotient's plan, within the budget given.

mod device;
mod host;
mod quotient;
mod rates;
mod report;
mod request;
mod resident;
mod stop;
mod sums;
mod transform;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use ark_bn254::G1Projective;
use spillproof::budget::{Budget, ByteSize};
use spillproof::tier::{Answer, Coset, Sums, Tier, Transform};

pub use host::{DOWNLOAD_SLOTS, Staging, UPLOAD_SLOTS};
pub use rates::Offload;
pub(crate) use rates::{bytes_of, points};
pub use report::{Job, Report};
pub use request::{ParseOffloadError, Request};
pub use resident::Resident;

use crate::kernels::{Cache, Kernels};
use crate::msm::MsmPlan;
use crate::ntt::NttPlan;
use crate::trace::Detail;
use crate::{Choice, Chosen, Gpu, NotUsed, Result};
use device::Device;
use stop::Stop;

/// A device that does the engine's jobs.
#[derive(Debug)]
pub struct GpuTier {
    gpu: Gpu,
    offload: Offload,
    device: Mutex<Device>,
    report: Mutex<Report>,
}

impl GpuTier {
    /// The device that `choice` says, with a budget of `vram` of its memory ([`ByteSize::Auto`]: what is free there at the first job); or
    /// why there is none.
    ///
    /// # Errors
    /// Those of [`Choice::open`], for a device that was named.
    pub fn open(choice: Choice, vram: ByteSize, offload: Offload) -> Result<Result<Arc<Self>, NotUsed>> {
        Ok(match choice.open(Detail::Counts)? {
            Chosen::Processor(reason) => Err(reason),
            Chosen::Gpu(gpu) => Ok(Arc::new(Self::over(gpu, vram, offload, Staging::default()))),
        })
    }

    /// The same on a device that is open, with page-locked memory as `staging` says.
    pub fn over(gpu: Gpu, vram: ByteSize, offload: Offload, staging: Staging) -> Self {
        Self {
            offload,
            device: Mutex::new(Device::new(&gpu, vram, staging, cache_folder().map(Cache::new))),
            report: Mutex::new(Report::new(gpu.description().to_string())),
            gpu,
        }
    }

    /// Who did which jobs so far.
    pub fn report(&self) -> Report {
        locked(&self.report).clone()
    }

    /// How the last sum and the last transform were cut, if the device still has what they needed there.
    pub fn last_plans(&self) -> (Option<MsmPlan>, Option<NttPlan>) {
        locked(&self.device).plans()
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Lets the device do `count` jobs of one kind, and writes down who did them.
    fn attempt<T>(
        &self,
        job: Job,
        count: u64,
        work: impl FnOnce(&mut Device) -> Result<T, Stop>,
    ) -> spillproof::Result<Answer<T>> {
        let mut device = match self.device.try_lock() {
            Ok(device) => device,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let why = "the device is busy with another job of this session".to_owned();
                locked(&self.report).declined(&why, count);
                return Ok(Answer::Declined(why));
            }
        };
        let stopped = match device.refuses() {
            Some(why) => Stop::Declined(why.to_owned()),
            None => match work(&mut device) {
                Ok(result) => {
                    locked(&self.report).done(job, count);
                    tracing::debug!(?job, count, "done by the device");
                    return Ok(Answer::Done(result));
                }
                Err(stopped) => stopped,
            },
        };
        let why = match stopped.sorted() {
            Stop::Host(error) => return Err(error),
            Stop::Declined(why) => why,
            Stop::Device(error) => {
                tracing::warn!(?job, %error, "the device did not do it, the processor will");
                device.after(&error);
                error.to_string()
            }
        };
        locked(&self.report).declined(&why, count);
        Ok(Answer::Declined(why))
    }
}

impl Tier for GpuTier {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof::Result<Answer<Vec<G1Projective>>> {
        let count = job.scalars.len() as u64;
        self.attempt(Job::Sum, count, |device| {
            let longest = job.scalars.iter().map(|scalars| scalars.len).max().unwrap_or(0);
            if self.offload == Offload::Measured {
                rates::worth_a_sum(device, longest, budget)?;
            }
            sums::run(device, job, budget)
        })
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof::Result<Answer<()>> {
        self.attempt(Job::Transform, 1, |device| {
            if self.offload == Offload::Measured {
                rates::worth_a_transform(device, job.log_n, budget)?;
            }
            transform::run(device, job, budget)
        })
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof::Result<Answer<()>> {
        self.attempt(Job::Quotient, 1, |device| {
            if self.offload == Offload::Measured {
                rates::worth_a_quotient(device, job, budget)?;
            }
            quotient::run(device, job, budget)
        })
    }
}

/// The tier's kernels on a device, by way of its folder of compiled ones.
///
/// # Errors
/// Those of [`Kernels::of_the_tier`].
pub fn kernels(gpu: &Gpu) -> Result<Kernels> {
    Kernels::of_the_tier(gpu, cache_folder().map(Cache::new).as_ref())
}

/// What is behind a lock is whole between jobs, so poison is no matter.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where compiled kernels are kept: `$XDG_CACHE_HOME/spillproof/kernels`, or `~/.cache/spillproof/kernels`.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(caches.join("spillproof").join("kernels"))
}
