//! What is kept on the device between jobs.

use spillproof::budget::ByteSize;

use super::host::{Staging, Stock};
use super::rates::Measured;
use crate::kernels::{Cache, Kernels};
use crate::msm::{Msm, MsmPlan};
use crate::ntt::{self, Ntt, NttPlan};
use crate::program::{Engine, Program};
use crate::{Error, Gpu, Result, Vram};

/// One device, what of it is in use, and whether it is still to be trusted.
#[derive(Debug)]
pub(super) struct Device {
    gpu: Gpu,
    budget: ByteSize,
    cache: Option<Cache>,
    // Jobs before what they use.
    msm: Option<Msm>,
    ntt: Option<(ntt::Transform, Ntt)>,
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
                let (vram, kernels) = (self.vram()?, self.kernels()?);
                match Msm::new(&vram, &kernels, plan) {
                    Err(error) if error.is_memory_short() && self.ntt.take().is_some() => {
                        Msm::new(&vram, &kernels, plan)?
                    }
                    made => made?,
                }
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
                let (vram, kernels) = (self.vram()?, self.kernels()?);
                match Ntt::new(&vram, &kernels, plan, transform) {
                    Err(error) if error.is_memory_short() && self.msm.take().is_some() => {
                        Ntt::new(&vram, &kernels, plan, transform)?
                    }
                    made => made?,
                }
            }
        };
        Ok(&mut self.ntt.insert((transform, kept)).1)
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

    /// Makes something that is not kept, in place of what is kept of other jobs if need be.
    pub fn with_room<T>(&mut self, make: impl Fn(&Vram, &Kernels) -> Result<T>) -> Result<T> {
        let (vram, kernels) = (self.vram()?, self.kernels()?);
        match make(&vram, &kernels) {
            Err(error) if error.is_memory_short() && (self.msm.is_some() || self.ntt.is_some()) => {
                (self.msm, self.ntt) = (None, None);
                make(&vram, &kernels)
            }
            made => made,
        }
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
