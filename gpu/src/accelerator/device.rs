//! The state of one device between jobs: its budget, kernels, and memory that is kept for the next job.

use spillproof_engine::accelerator::{ColumnId, Groups, Half};
use spillproof_engine::budget::{Budget, ByteSize};

use super::columns::{Columns, KeptColumn};
use super::rates::KnownRates;
use super::slots::{SlotCache, Staging};
use crate::kernels::{Cache, Kernels};
use crate::msm::{Bases, BasesLocation, Msm, MsmPlan, SumsSize};
use crate::ntt::{Ntt, NttPlan, NttSpec, PanelNtt, PanelPlan};
use crate::program::{DeviceProgram, ProgramKernels};
use crate::{Error, Gpu, Result, Vram};

/// Points that stay leave this part of the device memory to the work of jobs, ...
const WORK_PART: u64 = 4;
/// ... and this much at least, or half of a budget that is smaller.
const WORK_BYTES: u64 = 1 << 30;

/// The most bytes of points that stay in so much device memory, all together.
fn bases_bytes_max(vram_bytes: u64) -> u64 {
    vram_bytes - (vram_bytes / WORK_PART).max(WORK_BYTES.min(vram_bytes / 2))
}

/// The least device memory in which so many bytes of points stay.
fn least_vram_bytes(bases_bytes: u64) -> u64 {
    let by_part = bases_bytes.div_ceil(WORK_PART - 1).saturating_mul(WORK_PART);
    let with_work = bases_bytes.saturating_add(WORK_BYTES).max(by_part);
    with_work.min(bases_bytes.saturating_mul(2))
}

/// Columns of points of sums on a device, or ids and a length for points that will be streamed there.
#[derive(Debug)]
pub(super) struct ResidentBases {
    key: BasesKey,
    points: u64,
    bases: Option<Bases>,
    /// Whether the points are on the device.
    pub are_resident: bool,
}

/// The columns of points of a job, each with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BasesKey {
    pub columns: Groups<u64>,
    pub ids: Vec<ColumnId>,
}

impl ResidentBases {
    /// Bytes of device memory of the points.
    pub fn vram_bytes(&self) -> u64 {
        Bases::vram_bytes(self.key.columns, self.points)
    }
}

/// One device, its memory in use, and whether it is usable.
#[derive(Debug)]
pub(super) struct Device {
    gpu: Gpu,
    budget: ByteSize,
    cache: Option<Cache>,
    // Jobs before the memory that they use.
    msm: Option<Msm>,
    ntt: Option<(NttSpec, Ntt)>,
    panel: Option<PanelNtt>,
    /// Columns of scalars.
    pub columns: Columns,
    /// Points of sums, the most recently used last.
    bases: Vec<ResidentBases>,
    bases_are: BasesLocation,
    /// The kernels of the last program of a quotient.
    program: Option<ProgramKernels>,
    kernels: Option<Kernels>,
    vram: Option<Vram>,
    refuses: Option<String>,
    /// Pinned slots of the host.
    pub slots: SlotCache,
    pub measured: KnownRates,
}

impl Device {
    /// The state of one of `devices` devices; uses no device memory yet.
    pub fn new(gpu: &Gpu, budget: ByteSize, staging: &Staging, devices: usize, cache: Option<Cache>) -> Self {
        Self {
            gpu: gpu.clone(),
            budget,
            cache,
            msm: None,
            ntt: None,
            panel: None,
            columns: Columns::default(),
            bases: Vec::new(),
            bases_are: BasesLocation::Resident,
            program: None,
            kernels: None,
            vram: None,
            refuses: None,
            slots: SlotCache::new(gpu, staging, devices),
            measured: KnownRates::default(),
        }
    }

    /// Gives it kernels and rates.
    #[cfg(test)]
    pub fn knows(&mut self, kernels: Kernels, rates: KnownRates) {
        self.kernels = Some(kernels);
        self.measured = rates;
    }

    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The reason why it takes no more jobs, if it does not.
    pub fn refuses(&self) -> Option<&str> {
        self.refuses.as_deref()
    }

    /// The budget of device memory in bytes.
    pub fn vram_bytes(&mut self) -> Result<u64> {
        Ok(self.vram()?.budget().limit_bytes())
    }

    /// The plans of the jobs whose memory is kept.
    pub fn plans(&self) -> (Option<MsmPlan>, Option<NttPlan>) {
        let ntt = self.ntt.as_ref().map(|(_, ntt)| *ntt.plan());
        (self.msm.as_ref().map(|msm| *msm.plan()), ntt)
    }

    /// The memory and kernels of a sum: those of the last sum if the plan is the same.
    pub fn msm(&mut self, plan: MsmPlan) -> Result<&mut Msm> {
        let kept = match self.msm.take() {
            Some(msm) if *msm.plan() == plan => msm,
            other => {
                drop(other);
                self.making_room(|vram, kernels| Msm::new(vram, kernels, plan))?
            }
        };
        Ok(self.msm.insert(kept))
    }

    /// The memory and kernels of a transform: those of the last transform if it was the same.
    pub fn ntt(&mut self, plan: NttPlan, transform: NttSpec) -> Result<&mut Ntt> {
        let kept = match self.ntt.take() {
            Some((kept, ntt)) if kept == transform && *ntt.plan() == plan => ntt,
            other => {
                drop(other);
                self.making_room(|vram, kernels| Ntt::new(vram, kernels, plan, transform))?
            }
        };
        Ok(&mut self.ntt.insert((transform, kept)).1)
    }

    /// The memory and kernels of panels: those of the last one if it had the same plan and halves.
    pub fn panel(&mut self, plan: PanelPlan, halves: &[Half]) -> Result<&mut PanelNtt> {
        let kept = match self.panel.take() {
            Some(kept) if kept.is_for(&plan, halves) => kept,
            other => {
                drop(other);
                self.making_room(|vram, kernels| PanelNtt::new(vram, kernels, plan, halves))?
            }
        };
        Ok(self.panel.insert(kept))
    }

    /// Sets whether bases of sums stay, where they fit.
    pub fn set_bases(&mut self, are: BasesLocation) {
        self.bases_are = are;
        self.bases.clear();
    }

    /// The resident columns of these ids for sums of `points` points, or an entry for them if they are not
    /// resident; `None` if they must not stay or do not fit. The sums own them until they put them back. Uses
    /// no device memory yet.
    pub fn take_bases(&mut self, key: Option<BasesKey>, points: u64) -> Result<Option<ResidentBases>> {
        let Some(key) = key else {
            return Ok(None);
        };
        if let Some(at) = self.bases.iter().position(|resident| resident.key == key) {
            let resident = self.bases.remove(at);
            if resident.points >= points {
                return Ok(Some(resident));
            }
        }
        let Some(resident) = self.entry_for_bases(key, points)? else {
            return Ok(None);
        };
        let most_bytes = self.bases_bytes_max()?;
        while self.bases_bytes() + resident.vram_bytes() > most_bytes {
            self.bases.remove(0);
        }
        Ok(Some(resident))
    }

    /// An entry for points that are not resident, if they may stay.
    pub fn entry_for_bases(&mut self, key: BasesKey, points: u64) -> Result<Option<ResidentBases>> {
        let resident = ResidentBases {
            key,
            points,
            bases: None,
            are_resident: false,
        };
        let fits = resident.vram_bytes() <= self.bases_bytes_max()?;
        Ok(Some(resident).filter(|_| fits && self.bases_are == BasesLocation::Resident))
    }

    /// The plan of a sum of `points` points that stay.
    ///
    /// # Errors
    /// [`Error::TooSmall`] if they do not fit.
    pub fn plan_over_bases(&mut self, points: u64, budget: &Budget) -> Result<MsmPlan> {
        let size = SumsSize {
            location: BasesLocation::Resident,
            ..SumsSize::one(points)
        };
        let (limit_bytes, bytes) = (self.vram_bytes()?, Bases::vram_bytes(size.bases, points));
        let too_small = |smallest_bytes| Error::TooSmall {
            what: format!("an MSM of {points} points that stay"),
            memory: "device memory",
            budget_bytes: limit_bytes,
            smallest_bytes,
        };
        if bytes > self.bases_bytes_max()? {
            return Err(too_small(least_vram_bytes(bytes)));
        }
        let slot_bytes = self.slots.slot_bytes_max(budget, false);
        let left_bytes = limit_bytes - bytes;
        MsmPlan::of(size, left_bytes, slot_bytes).map_err(|error| match error {
            Error::TooSmall {
                memory: "device memory",
                smallest_bytes,
                ..
            } => too_small(smallest_bytes.saturating_add(bytes)),
            other => other,
        })
    }

    /// The memory of the points, leased now if need be.
    pub fn memory_of_bases<'s>(&mut self, resident: &'s mut ResidentBases) -> Result<&'s Bases> {
        let bases = match resident.bases.take() {
            Some(bases) => bases,
            None => {
                self.making_room(|vram, _| Bases::reserve(vram, resident.key.columns, resident.points))?
            }
        };
        Ok(resident.bases.insert(bases))
    }

    /// Keeps the points of a sum that succeeded. After a sum that did not, points stay that were on the device before it,
    /// since sums only read them; points that this sum was copying are freed.
    pub fn put_back(&mut self, mut resident: ResidentBases, is_good: bool) {
        if is_good {
            resident.are_resident = true;
        } else {
            self.end_sums();
        }
        if resident.are_resident {
            self.bases.push(resident);
        }
    }

    /// Frees the memory of sums that failed, once all that uses it and what stays is over.
    pub fn end_sums(&mut self) {
        self.msm = None;
    }

    /// Whether any points are kept that no sum has taken.
    pub fn has_bases(&self) -> bool {
        !self.bases.is_empty()
    }

    /// Frees all points that are kept.
    pub fn free_bases(&mut self) {
        self.bases.clear();
    }

    /// Bytes of device memory for sums, beside the points that stay.
    pub fn vram_bytes_beside_bases(&mut self, of_the_sum: Option<&ResidentBases>) -> Result<u64> {
        let own_bytes = of_the_sum.map_or(0, ResidentBases::vram_bytes);
        Ok(self.vram_bytes()?.saturating_sub(self.bases_bytes() + own_bytes))
    }

    /// The most bytes for all points that stay.
    fn bases_bytes_max(&mut self) -> Result<u64> {
        Ok(bases_bytes_max(self.vram_bytes()?))
    }

    fn bases_bytes(&self) -> u64 {
        self.bases.iter().map(ResidentBases::vram_bytes).sum()
    }

    /// The kernels of a program: the last ones if the shape is the same.
    pub fn program_kernels(&mut self, program: DeviceProgram) -> Result<ProgramKernels> {
        let kept = self.program.as_ref();
        if let Some(kernels) = kept.and_then(|kept| kept.of_the_same_shape(&program)) {
            return Ok(kernels);
        }
        let kernels = self.kernels()?;
        let of_program = ProgramKernels::new(&self.gpu, &kernels, program, self.cache.as_ref())?;
        tracing::debug!(method = ?of_program.method(), "the program of a quotient");
        Ok(self.program.insert(of_program).clone())
    }

    /// Room for a column of so many bytes that may stay after the job, if there is any.
    pub fn room_for_column(&mut self, bytes: u64, of_the_job: &[ColumnId]) -> Option<KeptColumn> {
        let vram = self.vram().ok()?;
        self.columns.room(&vram, bytes, of_the_job)
    }

    /// Runs `make`, and while it lacks memory frees the memory that is kept: first that of the last sum and
    /// transform, then columns, then points, the least recently used first.
    pub fn making_room<T>(&mut self, make: impl Fn(&Vram, &Kernels) -> Result<T>) -> Result<T> {
        let (vram, kernels) = (self.vram()?, self.kernels()?);
        loop {
            match make(&vram, &kernels) {
                Err(error) if error.is_memory_short() && self.frees_something() => {}
                made => return made,
            }
        }
    }

    fn frees_something(&mut self) -> bool {
        let of_a_job = self.msm.take().is_some() | self.ntt.take().is_some() | self.panel.take().is_some();
        // The most recently used is last.
        of_a_job || self.columns.free_one() || self.bases.drain(..self.bases.len().min(1)).count() > 0
    }

    /// Drops all state that an error leaves in doubt: none where a plan refused the job. Returns the error's text, with a
    /// remedy.
    pub fn failed(&mut self, error: &Error) -> String {
        if !error.is_of_a_plan() {
            self.after(error);
        }
        self.slots.with_remedy(error)
    }

    /// Frees all that is kept for later jobs.
    pub fn free_all(&mut self) {
        self.free_device_memory();
        self.slots.clear();
    }

    fn free_device_memory(&mut self) {
        self.msm = None;
        self.ntt = None;
        self.panel = None;
        self.columns.free_all();
        self.bases.clear();
    }

    fn after(&mut self, error: &Error) {
        self.free_device_memory();
        let gone = error.is_device_lost();
        if gone {
            self.slots.clear();
            self.program = None;
            self.kernels = None;
            self.vram = None;
        }
        let never_again = matches!(
            error,
            Error::Wrong { .. }
                | Error::NoCompiler { .. }
                | Error::Compile { .. }
                | Error::NoKernel { .. }
                | Error::File { .. }
                | Error::NoGpu(_)
        );
        if gone || never_again {
            self.refuses = Some(error.to_string());
        }
    }

    fn vram(&mut self) -> Result<Vram> {
        if let Some(vram) = &self.vram {
            return Ok(vram.clone());
        }
        let vram = match self.budget {
            ByteSize::Bytes(bytes) => Vram::new(&self.gpu, bytes),
            ByteSize::Auto => Vram::auto(&self.gpu)?,
        };
        Ok(self.vram.insert(vram).clone())
    }

    fn kernels(&mut self) -> Result<Kernels> {
        if let Some(kernels) = &self.kernels {
            return Ok(kernels.clone());
        }
        let kernels = Kernels::built_in(&self.gpu, self.cache.as_ref())?;
        Ok(self.kernels.insert(kernels).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_stay_leave_room_for_jobs() {
        const GIB: u64 = 1 << 30;
        for (vram_gib, points_gib) in [(1.0, 0.5), (2.0, 1.0), (3.0, 2.0), (4.0, 3.0), (16.0, 12.0)] {
            let vram_bytes = (vram_gib * GIB as f64) as u64;
            assert_eq!(
                bases_bytes_max(vram_bytes) as f64,
                points_gib * GIB as f64,
                "{vram_gib}"
            );
        }
        for bytes in [
            0,
            1,
            5000,
            GIB / 3,
            GIB,
            GIB + 1,
            2 * GIB,
            3 * GIB,
            3 * GIB + 7,
            100 * GIB,
        ] {
            let least = least_vram_bytes(bytes);
            assert!(bases_bytes_max(least) >= bytes, "{bytes}");
            // Rounded up by a part at most.
            let fewer = least.saturating_sub(WORK_PART + 1);
            assert!(bytes == 0 || bases_bytes_max(fewer) < bytes, "{bytes}");
        }
    }
}
