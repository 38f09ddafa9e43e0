//! What is kept on the device between jobs.

use spillproof::budget::{Budget, ByteSize};

use super::host::{Staging, Stock};
use super::rates::Measured;
use crate::kernels::{Cache, Kernels};
use crate::msm::{Bases, BasesAre, Msm, MsmPlan};
use crate::ntt::{self, Ntt, NttPlan};
use crate::program::{Engine, Program};
use crate::{Error, Gpu, Result, Vram};

/// Points that stay take this part of the device memory at most, all together.
const BASES_PART: u64 = 2;

/// Points of sums on the device, or a place for them.
#[derive(Debug)]
pub(super) struct Stay {
    id: u64,
    points: u64,
    bases: Option<Bases>,
    /// Whether they have come.
    pub are_there: bool,
}

impl Stay {
    /// Bytes of device memory that they take.
    pub fn vram_bytes(&self) -> u64 {
        Bases::vram_bytes(self.points)
    }
}

/// One device, what of it is in use, and whether it is still to be trusted.
#[derive(Debug)]
pub(super) struct Device {
    gpu: Gpu,
    budget: ByteSize,
    cache: Option<Cache>,
    // Jobs before what they use.
    msm: Option<Msm>,
    ntt: Option<(ntt::Transform, Ntt)>,
    /// Points of sums, those that were used last at the end.
    bases: Vec<Stay>,
    bases_are: BasesAre,
    /// The last program of a quotient.
    engine: Option<Engine>,
    kernels: Option<Kernels>,
    vram: Option<Vram>,
    refuses: Option<String>,
    /// The host's slots.
    pub stock: Stock,
    pub measured: Measured,
}

impl Device {
    /// Nothing of the device, which is one of so many, is used yet.
    pub fn new(
        gpu: &Gpu,
        budget: ByteSize,
        (staging, devices): (&Staging, usize),
        cache: Option<Cache>,
    ) -> Self {
        Self {
            gpu: gpu.clone(),
            budget,
            cache,
            msm: None,
            ntt: None,
            bases: Vec::new(),
            bases_are: BasesAre::Resident,
            engine: None,
            kernels: None,
            vram: None,
            refuses: None,
            stock: Stock::new(gpu, staging, devices),
            measured: Measured::default(),
        }
    }

    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Why it takes no more jobs, if it does not.
    pub fn refuses(&self) -> Option<&str> {
        self.refuses.as_deref()
    }

    /// The budget of device memory in bytes.
    pub fn vram_bytes(&mut self) -> Result<u64> {
        Ok(self.vram()?.ledger().limit_bytes())
    }

    /// Of what is kept.
    pub fn plans(&self) -> (Option<MsmPlan>, Option<NttPlan>) {
        let ntt = self.ntt.as_ref().map(|(_, ntt)| *ntt.plan());
        (self.msm.as_ref().map(|msm| *msm.plan()), ntt)
    }

    /// What a sum needs on the device: that of the last one, if the plan is the same.
    pub fn msm(&mut self, plan: MsmPlan) -> Result<&mut Msm> {
        let kept = match self.msm.take() {
            Some(msm) if *msm.plan() == plan => msm,
            other => {
                drop(other);
                self.with_room(|vram, kernels| Msm::new(vram, kernels, plan))?
            }
        };
        Ok(self.msm.insert(kept))
    }

    /// What a transform needs on the device: that of the last one, if it is the same.
    pub fn ntt(&mut self, plan: NttPlan, transform: ntt::Transform) -> Result<&mut Ntt> {
        let kept = match self.ntt.take() {
            Some((kept, ntt)) if kept == transform && *ntt.plan() == plan => ntt,
            other => {
                drop(other);
                self.with_room(|vram, kernels| Ntt::new(vram, kernels, plan, transform))?
            }
        };
        Ok(&mut self.ntt.insert((transform, kept)).1)
    }

    /// Whether bases of sums stay, where there is room.
    pub fn set_bases(&mut self, are: BasesAre) {
        self.bases_are = are;
        self.bases.clear();
    }

    /// The points of that number for a sum of so many, or a place for them; `None` if they are not to stay, or have no room. They are the sum's
    /// until it puts them back. Nothing of the device is used yet.
    pub fn take_bases(&mut self, id: Option<u64>, points: u64) -> Result<Option<Stay>> {
        let Some(id) = id else {
            return Ok(None);
        };
        if let Some(at) = self.bases.iter().position(|stay| stay.id == id) {
            let stay = self.bases.remove(at);
            if stay.points >= points {
                return Ok(Some(stay));
            }
        }
        let Some(stay) = self.place_for_bases(id, points)? else {
            return Ok(None);
        };
        let most_bytes = self.bases_bytes_max()?;
        while self.bases_bytes() + stay.vram_bytes() > most_bytes {
            self.bases.remove(0);
        }
        Ok(Some(stay))
    }

    /// A place for points that come for the first time, if they may stay at all.
    pub fn place_for_bases(&mut self, id: u64, points: u64) -> Result<Option<Stay>> {
        let stay = Stay {
            id,
            points,
            bases: None,
            are_there: false,
        };
        let fits = stay.vram_bytes() <= self.bases_bytes_max()?;
        Ok(Some(stay).filter(|_| fits && self.bases_are == BasesAre::Resident))
    }

    /// How a sum of so many points is cut if they stay.
    ///
    /// # Errors
    /// [`Error::TooSmall`] if they have no room.
    pub fn plan_over_bases(&mut self, points: u64, budget: &Budget) -> Result<MsmPlan> {
        let (limit_bytes, bytes) = (self.vram_bytes()?, Bases::vram_bytes(points));
        let too_small = |smallest_bytes| Error::TooSmall {
            what: format!("an MSM of {points} points that stay"),
            memory: "device memory",
            budget_bytes: limit_bytes,
            smallest_bytes,
        };
        if bytes > self.bases_bytes_max()? {
            return Err(too_small(BASES_PART * bytes));
        }
        let slot_bytes = self.stock.slot_bytes_max(budget, false);
        let left_bytes = limit_bytes - bytes;
        MsmPlan::of_columns(points, 1, BasesAre::Resident, left_bytes, slot_bytes).map_err(
            |error| match error {
                Error::TooSmall {
                    memory: "device memory",
                    smallest_bytes,
                    ..
                } => too_small(smallest_bytes.saturating_add(bytes)),
                other => other,
            },
        )
    }

    /// Where those points are, or are to be, on the device.
    pub fn room_for_bases<'s>(&mut self, stay: &'s mut Stay) -> Result<&'s Bases> {
        let bases = match stay.bases.take() {
            Some(bases) => bases,
            None => self.with_room(|vram, _| Bases::reserve(vram, stay.points))?,
        };
        Ok(stay.bases.insert(bases))
    }

    /// Keeps the points of a sum that went well for the next one; else what is there is in doubt.
    pub fn put_back(&mut self, stay: Stay, is_good: bool) {
        if is_good {
            self.bases.push(Stay {
                are_there: true,
                ..stay
            });
        } else {
            // It waits for what may still be on its way there.
            self.msm = None;
        }
    }

    /// Whether there are points that no sum has taken.
    pub fn has_bases(&self) -> bool {
        !self.bases.is_empty()
    }

    /// Lets them go.
    pub fn let_bases_go(&mut self) {
        self.bases.clear();
    }

    /// What sums may plan with.
    pub fn vram_bytes_beside_bases(&mut self, of_the_sum: Option<&Stay>) -> Result<u64> {
        let own_bytes = of_the_sum.map_or(0, Stay::vram_bytes);
        Ok(self.vram_bytes()?.saturating_sub(self.bases_bytes() + own_bytes))
    }

    /// What all that stay may take.
    fn bases_bytes_max(&mut self) -> Result<u64> {
        Ok(self.vram_bytes()? / BASES_PART)
    }

    fn bases_bytes(&self) -> u64 {
        self.bases.iter().map(Stay::vram_bytes).sum()
    }

    /// What runs a program: the kernels of the last one, if it had the same shape.
    pub fn engine(&mut self, program: Program) -> Result<Engine> {
        let kept = self.engine.as_ref();
        if let Some(engine) = kept.and_then(|kept| kept.of_the_same_shape(&program)) {
            return Ok(engine);
        }
        let kernels = self.kernels()?;
        let engine = Engine::new(&self.gpu, &kernels, program, self.cache.as_ref())?;
        tracing::debug!(way = ?engine.way(), "the program of a quotient");
        Ok(self.engine.insert(engine).clone())
    }

    /// Makes something, in place of what is kept of other jobs if need be: what a sum or a transform had, then bases.
    pub fn with_room<T>(&mut self, make: impl Fn(&Vram, &Kernels) -> Result<T>) -> Result<T> {
        let (vram, kernels) = (self.vram()?, self.kernels()?);
        loop {
            match make(&vram, &kernels) {
                Err(error) if error.is_memory_short() && self.lets_something_go() => {}
                made => return made,
            }
        }
    }

    fn lets_something_go(&mut self) -> bool {
        let of_a_job = self.msm.take().is_some() | self.ntt.take().is_some();
        // The one that was used last is last.
        of_a_job || self.bases.drain(..self.bases.len().min(1)).count() > 0
    }

    /// Puts away what an error leaves in doubt, and says it, with what would help.
    pub fn failed(&mut self, error: &Error) -> String {
        self.after(error);
        match self.stock.remedy(error) {
            Some(remedy) => format!("{error}; {remedy}"),
            None => error.to_string(),
        }
    }

    fn after(&mut self, error: &Error) {
        self.msm = None;
        self.ntt = None;
        self.bases.clear();
        let gone = error.is_device_lost();
        if gone {
            self.stock.clear();
            self.engine = None;
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
        let kernels = Kernels::of_the_tier(&self.gpu, self.cache.as_ref())?;
        Ok(self.kernels.insert(kernels).clone())
    }
}
