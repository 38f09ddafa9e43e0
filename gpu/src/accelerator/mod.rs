//! The engine's accelerator on one device or several: [`GpuAccelerator`] does the whole jobs that
//! `spillproof` offers, or declines them with a reason.
//!
//! ```text
//! a job -> too small? measured rates -> a plan within VRAM -> pinned slots, leased from the session's budget -> filled -> ring -> answer
//!              |                            |                         |                                       |       |
//!              '----------------------------'-- declined with a reason '--------------------- slow to read? ---'-------' the device failed
//! ```
//!
//! - Kernels are compiled at the first job and kept; those of a quotient's program serve all programs of its
//!   shape. The memory of the last sum and of the last transform is kept for the next job with the same plan,
//!   and so are the points of sums if the engine gives an id for them, and columns of scalars (`columns.rs`). All of
//!   it is freed when another job needs the memory.
//! - Several devices share a sum (`shared.rs`); transforms and quotients run on the first device that is
//!   idle. If a device fails, another one does its share, or the whole job from the start; if none is left,
//!   the processor does.
//! - A device does one job at a time; a job that finds no idle device goes to the processor. No job waits for
//!   a device: a rayon worker that waits might block the very job that it waits for. Slots are filled from
//!   disk before the job takes the device.
//! - The [`Report`] keeps the errors of a device. A device that is lost, gave a wrong result, or has no
//!   kernels, gets no more jobs.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] pinned slots of a chunk for a sum; for a transform and a quotient
//! [`DOWNLOAD_SLOTS`] more. A slot takes at most an eighth of the free bytes of the budget (a sixth of what
//! the ends of a quotient leave), and 16 MiB. Slots are kept for the next job while neither the session's
//! budget nor that of pinned memory ([`Staging`]) needs their bytes. A transform that does not fit the budget
//! of device memory goes in two steps, through a scratch column, and the engine leases a tile for its lines.
//! Device memory:
//! the plans [`crate::msm::MsmPlan`], [`crate::ntt::NttPlan`] and those of quotients, within the given
//! budget.

mod columns;
mod constraints;
mod deal;
mod device;
mod device_rates;
mod plan;
mod quotient;
mod rates;
mod report;
mod request;
mod shared;
mod slots;
mod stop;
mod sums;
#[cfg(test)]
mod tests;
mod transform;
mod worth;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use spillproof_engine::accelerator::{
    Accelerator, Answer, Constraints, Coset, Panel, ReadElements, Sums, Totals, Transform,
};
use spillproof_engine::budget::{Budget, ByteSize};

pub use device_rates::DeviceRates;
pub use plan::{CosetProgram, Cut, Executor, JobPlan, JobPlans};
pub use rates::{JobRates, Offload, Seconds};
pub use report::{DeviceReport, JobKind, Report};
pub use request::{ParseOffloadError, Request, of_environment};
pub use slots::{DOWNLOAD_SLOTS, Staging, UPLOAD_SLOTS};
pub(crate) use worth::{bytes_of, points};

use crate::kernels::{Cache, Kernels};
use crate::lock::locked;
use crate::msm::{BasesLocation, MsmPlan};
use crate::ntt::NttPlan;
use crate::{Gpu, GpuAbsence, NoGpu, Result};
use device::Device;
use quotient::CosetRequest;
use report::{Book, Jobs};
use slots::HostRoom;
use stop::Stop;
use worth::{JobSize, PanelSize};

/// Devices that do the engine's jobs.
#[derive(Debug)]
pub struct GpuAccelerator {
    gpus: Vec<Gpu>,
    /// The state of each device, in the same order.
    devices: Vec<Mutex<Device>>,
    /// What each device forgets once it is idle.
    gone: Vec<Mutex<Gone>>,
    offload: Offload,
    book: Book,
}

/// What is of no more use to a device.
#[derive(Debug, Default)]
struct Gone {
    /// Columns of these frames.
    frames: Vec<u64>,
    /// Everything.
    all: bool,
}

impl Gone {
    fn is_nothing(&self) -> bool {
        self.frames.is_empty() && !self.all
    }
}

/// A usable device that was idle.
struct IdleDevice<'a> {
    number: usize,
    device: HeldDevice<'a>,
}

/// A device that only this thread uses. When it is let go, it forgets what went meanwhile.
struct HeldDevice<'a> {
    // The first field: the device is idle when it forgets.
    device: MutexGuard<'a, Device>,
    _forgetting: Forgetting<'a>,
}

impl Deref for HeldDevice<'_> {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

impl DerefMut for HeldDevice<'_> {
    fn deref_mut(&mut self) -> &mut Device {
        &mut self.device
    }
}

/// At its drop, a device forgets what is gone.
struct Forgetting<'a> {
    accelerator: &'a GpuAccelerator,
    number: usize,
}

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        self.accelerator.forget_gone(self.number);
    }
}

impl GpuAccelerator {
    /// Opens the devices of the request, or gives the reason why there is none.
    ///
    /// # Errors
    /// As [`Choice::open`](crate::Choice::open) for devices that were named, and [`Staging::of`].
    pub fn open(request: &Request) -> Result<Result<Arc<Self>, GpuAbsence>> {
        let gpus = match request.choice.open_all(request.detail)? {
            Ok(gpus) => gpus,
            Err(reason) => return Ok(Err(reason)),
        };
        let staging = Staging::of(request.pinned, request.upload, gpus.len())?;
        let accelerator = Self::over(gpus, request.vram, request.offload, &staging);
        Ok(Ok(Arc::new(accelerator)))
    }

    /// An accelerator on open devices, with a budget of `vram` of the memory of each ([`ByteSize::Auto`]: the
    /// memory that is free at the first job).
    pub fn over(gpus: Vec<Gpu>, vram: ByteSize, offload: Offload, staging: &Staging) -> Self {
        let device = |gpu: &Gpu| Device::new(gpu, vram, staging, gpus.len(), cache_folder().map(Cache::new));
        Self {
            offload,
            devices: gpus.iter().map(device).map(Mutex::new).collect(),
            gone: gpus.iter().map(|_| Mutex::default()).collect(),
            book: Book::of(names(&gpus)),
            gpus,
        }
    }

    /// Whether points of sums stay on the devices for later sums. By default they do where they fit;
    /// [`BasesLocation::Streamed`] turns that off.
    #[must_use]
    pub fn with_bases(mut self, are: BasesLocation) -> Self {
        for device in &mut self.devices {
            let device = device.get_mut().unwrap_or_else(PoisonError::into_inner);
            device.set_bases(are);
        }
        self
    }

    /// The plan of the first device for a sum of `points` points that stay there, in sessions whose budget
    /// has the free bytes of `budget`.
    ///
    /// # Errors
    /// [`Error::TooSmall`](crate::Error::TooSmall) if the points do not fit beside the sum, or take more than
    /// their part of the device memory; they are then streamed each time.
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn plan_over_bases(&self, points: u64, budget: &Budget) -> Result<MsmPlan> {
        match self.first() {
            Some(mut device) => device.plan_over_bases(points, budget),
            None => Err(NoGpu::NoDevice.into()),
        }
    }

    /// The rates of the first device, for plans of ranks, each of which has one like it; else why they are not known.
    /// They are measured now, if they were not, within `budget`: call it on the session's threads.
    ///
    /// # Errors
    /// Errors of the budget.
    pub fn rates(&self, budget: &Budget) -> spillproof_engine::Result<Answer<DeviceRates>> {
        let book = Book::of_a_plan(names(&self.gpus));
        self.attempt(&book, Jobs::one(JobKind::Sum), |_, device, _| {
            Ok(DeviceRates {
                sums: JobSize::Sum(0).rates(device, budget)?,
                transforms: JobSize::Transform(0).rates(device, budget)?,
            })
        })
    }

    /// The jobs so far, by device, and those of the processor.
    pub fn report(&self) -> Report {
        self.book.report()
    }

    /// The devices.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// The plans of the last sum and the last transform of the first device, if it still has their memory.
    pub fn last_plans(&self) -> (Option<MsmPlan>, Option<NttPlan>) {
        match self.first() {
            Some(device) => device.plans(),
            None => (None, None),
        }
    }

    /// The first device, once it is idle.
    fn first(&self) -> Option<HeldDevice<'_>> {
        let device = locked(self.devices.first()?);
        Some(self.held(0, device))
    }

    /// A device that can begin a job now, or the reason why it cannot.
    fn idle(&self, number: usize) -> Result<IdleDevice<'_>, String> {
        let Some(device) = self.try_lock(number) else {
            return Err("the device is busy with another job of this session".to_owned());
        };
        let device = self.held(number, device);
        match device.refuses() {
            Some(why) => Err(why.to_owned()),
            None => Ok(IdleDevice { number, device }),
        }
    }

    fn held<'a>(&'a self, number: usize, device: MutexGuard<'a, Device>) -> HeldDevice<'a> {
        HeldDevice {
            device,
            _forgetting: Forgetting {
                accelerator: self,
                number,
            },
        }
    }

    /// A device that is idle.
    fn try_lock(&self, number: usize) -> Option<MutexGuard<'_, Device>> {
        match self.devices.get(number)?.try_lock() {
            Ok(device) => Some(device),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Runs jobs on the first idle and usable device. If it fails, runs them on the next one from
    /// the start. The book records the result. `work` may do fewer jobs, and changes their count.
    fn attempt<T>(
        &self,
        book: &Book,
        jobs: Jobs,
        work: impl FnMut(usize, &mut Device, &mut u64) -> Result<T, Stop>,
    ) -> spillproof_engine::Result<Answer<T>> {
        let answer = self.first_attempt(book, jobs, work)?;
        if let Answer::Declined(why) = &answer {
            book.declined(why, jobs.count);
        }
        Ok(answer)
    }

    /// The same for jobs that are offered again in another way if they are declined: that is not recorded.
    fn first_attempt<T>(
        &self,
        book: &Book,
        jobs: Jobs,
        mut work: impl FnMut(usize, &mut Device, &mut u64) -> Result<T, Stop>,
    ) -> spillproof_engine::Result<Answer<T>> {
        let mut last = "there is no device".to_owned();
        for number in 0..self.devices.len() {
            let mut device = match self.idle(number) {
                Ok(idle) => idle.device,
                Err(why) => {
                    last = why;
                    continue;
                }
            };
            let mut done = jobs;
            match work(number, &mut device, &mut done.count).map_err(Stop::sorted) {
                Ok(result) => {
                    book.done(number, done);
                    return Ok(Answer::Done(result));
                }
                Err(Stop::Host(error)) => return Err(error),
                Err(Stop::Declined(why)) => return Ok(Answer::Declined(why)),
                Err(Stop::Device(error)) => {
                    last = device.failed(&error);
                    book.failed(number, jobs, &error, &last);
                }
            }
        }
        Ok(Answer::Declined(last))
    }

    /// Frees what is of no more use to a device, if the device is idle. If a thread holds the device, that thread calls
    /// this when it lets the device go.
    fn forget_gone(&self, number: usize) {
        let Some(gone) = self.gone.get(number) else {
            return;
        };
        loop {
            if locked(gone).is_nothing() {
                return;
            }
            let Some(mut device) = self.try_lock(number) else {
                return;
            };
            let Gone { frames, all } = std::mem::take(&mut *locked(gone));
            if all {
                device.free_all();
            }
            let columns = device.columns.take_gone(&frames);
            // Jobs take the device while columns are overwritten.
            drop(device);
            drop(columns);
        }
    }
}

/// Leaves jobs to the processor, and records the reason.
fn declined<T>(book: &Book, why: String, count: u64) -> Answer<T> {
    book.declined(&why, count);
    Answer::Declined(why)
}

/// The names of devices in a report.
fn names(gpus: &[Gpu]) -> impl Iterator<Item = String> {
    gpus.iter().map(|gpu| gpu.description().to_string())
}

impl Accelerator for GpuAccelerator {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<Totals>> {
        if let Some(answer) = self.shared_sums(job, budget)? {
            return Ok(answer);
        }
        self.attempt(
            &self.book,
            Jobs {
                kind: JobKind::Sum,
                count: job.count(),
            },
            |_, device, count| {
                let one = JobSize::Sum(job.points()).worth(self.offload, device, budget)?;
                let sum_all = |device: &mut Device, job: &mut Sums<'_>| {
                    let mut worth = one.times(sums::weight(job));
                    let sums = sums::sum_all(device, job, HostRoom::all_of(budget), &mut worth)?;
                    self.book.taken(JobKind::Sum, &worth);
                    Ok(sums)
                };
                match sum_all(device, job) {
                    // The buckets of G1 alone may fit.
                    Err(Stop::Device(error)) if error.is_memory_short() && job.has_both_groups() => {
                        let why = device.failed(&error);
                        let of_g2 = std::mem::take(&mut job.bases.g2);
                        let left = *count - job.count();
                        let sums = sum_all(device, job);
                        job.bases.g2 = of_g2;
                        if sums.is_ok() {
                            *count -= left;
                            self.book.declined(&why, left);
                        }
                        sums
                    }
                    sums => sums,
                }
            },
        )
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        let mut begun = None;
        self.attempt(&self.book, Jobs::one(JobKind::Transform), |_, device, _| {
            let mut worth = JobSize::Transform(job.log_n).worth(self.offload, device, budget)?;
            transform::transform(device, job, budget, &mut begun, &mut worth)?;
            self.book.taken(JobKind::Transform, &worth);
            Ok(())
        })
    }

    fn panel(&self, job: &mut Panel<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        let mut is_begun = false;
        self.attempt(&self.book, Jobs::one(JobKind::Panel), |_, device, _| {
            let worth = JobSize::Panel(PanelSize::of(job)).worth(self.offload, device, budget)?;
            transform::panel(device, job, budget, &mut is_begun)?;
            self.book.taken(JobKind::Panel, &worth);
            Ok(())
        })
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.attempt(&self.book, Jobs::one(JobKind::Quotient), |_, device, _| {
            let mut worth = JobSize::Quotient(&CosetRequest::of(job)).worth(self.offload, device, budget)?;
            quotient::compute(device, job, budget, &mut worth)?;
            self.book.taken(JobKind::Quotient, &worth);
            Ok(())
        })
    }

    fn quotient_of(
        &self,
        job: &mut Coset<'_>,
        inputs: &mut [Box<dyn ReadElements + '_>],
        budget: &Budget,
    ) -> spillproof_engine::Result<Answer<()>> {
        self.first_attempt(&self.book, Jobs::one(JobKind::Quotient), |_, device, _| {
            let mut worth = JobSize::Quotient(&CosetRequest::of(job)).worth(self.offload, device, budget)?;
            quotient::compute_of(device, job, inputs, budget, &mut worth)?;
            self.book.taken(JobKind::Quotient, &worth);
            Ok(())
        })
    }

    fn constraints(
        &self,
        job: &mut Constraints<'_>,
        budget: &Budget,
    ) -> spillproof_engine::Result<Answer<()>> {
        self.attempt(&self.book, Jobs::one(JobKind::Constraints), |_, device, _| {
            let size = JobSize::Constraints(constraints::shape_of(job));
            let mut worth = size.worth(self.offload, device, budget)?;
            constraints::quotient(device, job, budget, &mut worth)?;
            self.book.taken(JobKind::Constraints, &worth);
            Ok(())
        })
    }

    fn forget(&self, frames: u64) {
        for (number, gone) in self.gone.iter().enumerate() {
            locked(gone).frames.push(frames);
            // This thread may hold it: a column goes while its job runs.
            self.forget_gone(number);
        }
    }

    fn distrust(&self) {
        for (number, gone) in self.gone.iter().enumerate() {
            locked(gone).all = true;
            self.forget_gone(number);
        }
    }

    fn would_transform(&self, log_n: u32, budget: &Budget) -> bool {
        let mut idle = (0..self.devices.len()).filter_map(|number| self.idle(number).ok());
        idle.next().is_some_and(|IdleDevice { mut device, .. }| {
            let size = JobSize::Transform(log_n);
            size.worth(self.offload, &mut device, budget).is_ok()
                && transform::plan(&mut device, log_n, budget).is_ok()
        })
    }
}

/// Loads the accelerator's kernels on a device, with the cache of compiled images.
///
/// # Errors
/// As [`Kernels::built_in`].
pub fn kernels(gpu: &Gpu) -> Result<Kernels> {
    Kernels::built_in(gpu, cache_folder().map(Cache::new).as_ref())
}

/// The folder of compiled kernels: `$XDG_CACHE_HOME/spillproof/kernels`, or `~/.cache/spillproof/kernels`.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(caches.join("spillproof").join("kernels"))
}
