//! The engine's second compute tier on one device or several: [`GpuTier`] takes the whole jobs that `spillproof` offers, or declines with a
//! reason.
//!
//! ```text
//! a job -> small, by measured rates? -> a plan within --vram -> pinned slots, leased from the session's budget -> ring -> answer
//!              |                            |                         |                                            |
//!              '----------------------------'-- declined: why --------'---------------- the device failed ---------'
//! ```
//!
//! - Kernels are compiled at the first job and kept, and those of a quotient's program for all of its shape. So is what the last sum and the last transform had on the device, for the next one
//!   of the same plan, and points of sums, if the engine says that it may ask for them again; all of it goes when another job needs the memory.
//! - Of several devices all have a part in a sum (`shared.rs`); transforms and quotients are of the first that is idle. Where a device fails,
//!   another one does its part, or the whole job from its start; the processor, where none is left.
//! - A device does one job at a time; one that finds none idle is the processor's. Nobody waits: whoever waited on a rayon worker might hold up the very
//!   job that it waits for. Slots are filled from disk before the device's turn is taken.
//! - What goes wrong with a device is kept for the [`Report`]. One that is lost, computed what cannot be, or has no kernels, gets no more
//!   jobs.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] pinned slots of a chunk for a sum, as many and [`DOWNLOAD_SLOTS`] for a transform, and for a quotient; a slot has
//! at most an eighth of what the budget has left (in a quotient a sixth of what its ends leave), and 16 MiB. They are kept for the next job, as long as neither the session's budget
//! nor that of pinned memory ([`Staging`]) needs their room. A transform that `--vram` has no room for goes
//! in two steps, by way of the disk, and the engine leases a tile for its lines. Device memory: that of
//! [`crate::msm::MsmPlan`] and [`crate::ntt::NttPlan`], and of the quotient's plan, within the budget given.

mod device;
mod host;
mod plan;
mod quotient;
mod rates;
mod report;
mod request;
mod shared;
mod stop;
mod sums;
mod transform;
mod worth;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use ark_bn254::G1Projective;
use spillproof::budget::{Budget, ByteSize};
use spillproof::tier::{Answer, Coset, Sums, Tier, Transform};

pub use host::{DOWNLOAD_SLOTS, Staging, UPLOAD_SLOTS};
pub use plan::{By, Cut, Numerator, Planned, PlannedJob};
pub use rates::{Offload, Seconds};
pub use report::{JobKind, OfDevice, Report};
pub use request::{ParseOffloadError, Request};
pub(crate) use worth::{bytes_of, points};

use crate::kernels::{Cache, Kernels};
use crate::lock::locked;
use crate::msm::{BasesAre, MsmPlan};
use crate::ntt::NttPlan;
use crate::trace::Detail;
use crate::{Gpu, NoGpu, NotUsed, Result};
use device::Device;
use quotient::CosetShape;
use report::Book;
use stop::Stop;
use worth::JobSize;

/// Devices that do the engine's jobs.
#[derive(Debug)]
pub struct GpuTier {
    gpus: Vec<Gpu>,
    /// In the same order.
    devices: Vec<Mutex<Device>>,
    offload: Offload,
    book: Book,
}

/// A device that is idle, and still good, with its number.
type Idle<'a> = (usize, MutexGuard<'a, Device>);

impl GpuTier {
    /// The devices that are asked for, or why there is none.
    ///
    /// # Errors
    /// Those of [`Choice::open`](crate::Choice::open), for devices that were named, and of [`Staging::of`].
    pub fn open(request: &Request) -> Result<Result<Arc<Self>, NotUsed>> {
        let gpus = match request.choice.open_all(Detail::Counts)? {
            Ok(gpus) => gpus,
            Err(reason) => return Ok(Err(reason)),
        };
        let staging = Staging::of(request.pinned, request.upload, gpus.len())?;
        let tier = Self::over(gpus, request.vram, request.offload, &staging);
        Ok(Ok(Arc::new(tier)))
    }

    /// The same on devices that are open, with a budget of `vram` of each one's memory ([`ByteSize::Auto`]: what is free there at the first
    /// job).
    pub fn over(gpus: Vec<Gpu>, vram: ByteSize, offload: Offload, staging: &Staging) -> Self {
        let device =
            |gpu: &Gpu| Device::new(gpu, vram, (staging, gpus.len()), cache_folder().map(Cache::new));
        Self {
            offload,
            devices: gpus.iter().map(device).map(Mutex::new).collect(),
            book: Book::of(names(&gpus)),
            gpus,
        }
    }

    /// Whether points of sums stay on the devices for later ones: they do where they fit, unless this says [`BasesAre::Streamed`].
    #[must_use]
    pub fn with_bases(mut self, are: BasesAre) -> Self {
        for device in &mut self.devices {
            let device = device.get_mut().unwrap_or_else(PoisonError::into_inner);
            device.set_bases(are);
        }
        self
    }

    /// How the first device cuts a sum of so many points that stay there, in sessions that have `budget` left.
    ///
    /// # Errors
    /// [`Error::TooSmall`](crate::Error::TooSmall) if they have no room beside the sum, or would take more than the part of the device memory that they may; then they
    /// pass each time. [`Error::Driver`](crate::Error::Driver).
    pub fn plan_over_bases(&self, points: u64, budget: &Budget) -> Result<MsmPlan> {
        match self.devices.first() {
            Some(device) => locked(device).plan_over_bases(points, budget),
            None => Err(NoGpu::NoDevice.into()),
        }
    }

    /// Who did which jobs so far.
    pub fn report(&self) -> Report {
        self.book.report()
    }

    /// The devices.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// How the first device's last sum and last transform were cut, if it still has what they needed.
    pub fn last_plans(&self) -> (Option<MsmPlan>, Option<NttPlan>) {
        match self.devices.first() {
            Some(device) => locked(device).plans(),
            None => (None, None),
        }
    }

    /// A device that can begin a job now, or why it can't.
    fn idle(&self, number: usize) -> Result<Idle<'_>, String> {
        let device = match self.devices.get(number).map(Mutex::try_lock) {
            Some(Ok(device)) => device,
            Some(Err(TryLockError::Poisoned(poisoned))) => poisoned.into_inner(),
            Some(Err(TryLockError::WouldBlock)) | None => {
                return Err("the device is busy with another job of this session".to_owned());
            }
        };
        match device.refuses() {
            Some(why) => Err(why.to_owned()),
            None => Ok((number, device)),
        }
    }

    /// Lets one device do `count` jobs of one kind, and writes into the book who did them: the first that is idle and good, and if it
    /// fails the next one, from the start.
    fn attempt<T>(
        &self,
        book: &Book,
        (job, count): (JobKind, u64),
        mut work: impl FnMut(usize, &mut Device) -> Result<T, Stop>,
    ) -> spillproof::Result<Answer<T>> {
        let mut last = "there is no device".to_owned();
        for number in 0..self.devices.len() {
            let (_, mut device) = match self.idle(number) {
                Ok(idle) => idle,
                Err(why) => {
                    last = why;
                    continue;
                }
            };
            match work(number, &mut device).map_err(Stop::sorted) {
                Ok(result) => {
                    book.done(number, job, count);
                    return Ok(Answer::Done(result));
                }
                Err(Stop::Host(error)) => return Err(error),
                Err(Stop::Declined(why)) => return Ok(declined(book, why, count)),
                Err(Stop::Device(error)) => {
                    last = device.failed(&error);
                    book.failed(number, job, (&error, &last), count);
                }
            }
        }
        Ok(declined(book, last, count))
    }
}

/// Leaves jobs to the processor.
fn declined<T>(book: &Book, why: String, count: u64) -> Answer<T> {
    book.declined(&why, count);
    Answer::Declined(why)
}

/// As people know them.
fn names(gpus: &[Gpu]) -> impl Iterator<Item = String> {
    gpus.iter().map(|gpu| gpu.description().to_string())
}

impl Tier for GpuTier {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof::Result<Answer<Vec<G1Projective>>> {
        if let Some(answer) = self.shared_sums(job, budget)? {
            return Ok(answer);
        }
        let longest = job.scalars.iter().map(|scalars| scalars.len).max().unwrap_or(0);
        self.attempt(
            &self.book,
            (JobKind::Sum, job.scalars.len() as u64),
            |_, device| {
                JobSize::Sum(longest).is_worth_it(self.offload, device, budget)?;
                sums::run(device, job, (budget, budget.available_bytes()))
            },
        )
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof::Result<Answer<()>> {
        let mut begun = None;
        self.attempt(&self.book, (JobKind::Transform, 1), |_, device| {
            JobSize::Transform(job.log_n).is_worth_it(self.offload, device, budget)?;
            transform::run(device, job, budget, &mut begun)
        })
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof::Result<Answer<()>> {
        self.attempt(&self.book, (JobKind::Quotient, 1), |_, device| {
            JobSize::Quotient(&CosetShape::of(job)).is_worth_it(self.offload, device, budget)?;
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
