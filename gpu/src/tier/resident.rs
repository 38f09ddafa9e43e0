//! Sums over one set of bases that stays on the device: the first sum brings them, from then on only scalars pass.
//!
//! Nobody tells a tier when bases change, so this is for whoever has one set and one length: a measurement, a committer. Memory of the
//! host: [`super::UPLOAD_SLOTS`] pinned slots of a chunk, leased and kept as by [`super::GpuTier`]. Device memory: 64 bytes a point, and
//! what the plan says.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ark_bn254::G1Projective;
use spillproof::budget::{Budget, ByteSize};
use spillproof::tier::{Answer, Coset, ReadElements, Sums, Tier, Transform};

use super::host::{Staging, Stock};
use super::kernels;
use super::stop::Stop;
use super::sums::read;
use crate::error::BoxedError;
use crate::kernels::Kernels;
use crate::msm::{Bases, BasesAre, Msm, MsmPlan, POINT_BYTES, SCALAR_BYTES};
use crate::{Error, Gpu, Result, Vram};

/// A tier that sums over bases of its own memory, and declines everything else.
#[derive(Debug)]
pub struct Resident {
    plan: MsmPlan,
    device: Mutex<OnDevice>,
}

#[derive(Debug)]
struct OnDevice {
    // Jobs before what they use.
    msm: Option<Msm>,
    bases: Option<Bases>,
    upload_seconds: Option<f64>,
    stock: Stock,
    kernels: Kernels,
    vram: Vram,
    gpu: Gpu,
}

impl Resident {
    /// For sums of `points` terms within `vram` of the device's memory, in sessions that have `budget` left when they begin.
    ///
    /// # Errors
    /// [`Error::TooSmall`] if bases and a sum do not fit; those of [`Kernels::of_the_tier`]; [`Error::Driver`].
    pub fn new(gpu: &Gpu, vram: ByteSize, points: u64, budget: &Budget) -> Result<Self> {
        let vram = match vram {
            ByteSize::Bytes(bytes) => Vram::new(gpu, bytes),
            ByteSize::Auto => Vram::auto(gpu)?,
        };
        let stock = Stock::new(gpu, &Staging::default(), 1);
        let (limit_bytes, bases_bytes) = (vram.ledger().limit_bytes(), Bases::vram_bytes(points));
        let left_bytes = limit_bytes.saturating_sub(bases_bytes);
        let slot_bytes = stock.slot_bytes_max(budget, false);
        let plan = MsmPlan::of_columns(points, 1, BasesAre::Resident, left_bytes, slot_bytes);
        let plan = plan.map_err(|error| match error {
            Error::TooSmall {
                memory: memory @ "device memory",
                smallest_bytes,
                ..
            } => Error::TooSmall {
                what: format!("an MSM of {points} points and all its bases"),
                memory,
                budget_bytes: limit_bytes,
                smallest_bytes: smallest_bytes.saturating_add(bases_bytes),
            },
            other => other,
        })?;
        Ok(Self {
            plan,
            device: Mutex::new(OnDevice {
                msm: None,
                bases: None,
                upload_seconds: None,
                stock,
                kernels: kernels(gpu)?,
                vram,
                gpu: gpu.clone(),
            }),
        })
    }

    /// How its sums are cut.
    pub fn plan(&self) -> &MsmPlan {
        &self.plan
    }

    /// How long it took to bring the bases, from where they were; `None` before that.
    pub fn upload_seconds(&self) -> Option<f64> {
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        device.upload_seconds
    }
}

impl OnDevice {
    fn sum(&mut self, plan: &MsmPlan, job: &mut Sums<'_>, budget: &Budget) -> Result<G1Projective, Stop> {
        let [scalars] = &mut job.scalars[..] else {
            return Err(Stop::Declined("several sums at one time".into()));
        };
        if scalars.len != plan.points() {
            return Err(Stop::Declined(format!(
                "a sum of {} terms, where the bases are {}",
                scalars.len,
                plan.points()
            )));
        }
        let mut host = self
            .stock
            .host(budget, plan.slot_bytes().max(POINT_BYTES), false)?;
        let in_place = host.may_read();
        let _turn = self.gpu.take_turn();
        let bases = match self.bases.take() {
            Some(bases) => bases,
            None => {
                let start = Instant::now();
                let chunk_points = plan.slot_bytes().max(POINT_BYTES) / POINT_BYTES;
                let mut source = bytes_of(&mut *job.bases, POINT_BYTES, in_place);
                let (vram, upload) = (&self.vram, &mut host.upload);
                let bases = Bases::upload(vram, upload, plan.points(), chunk_points, &mut source)?;
                self.upload_seconds = Some(start.elapsed().as_secs_f64());
                bases
            }
        };
        let bases = self.bases.insert(bases);
        let msm = match self.msm.take() {
            Some(msm) => msm,
            None => Msm::new(&self.vram, &self.kernels, *plan)?,
        };
        let mut source = bytes_of(&mut *scalars.source, SCALAR_BYTES, in_place);
        let sums = self
            .msm
            .insert(msm)
            .run_over(bases, &mut host.upload, &mut source)?;
        self.stock.keep(host);
        let sum = sums.first().copied();
        sum.ok_or(Stop::Device(Error::Unusable { what: "an MSM" }))
    }
}

impl Tier for Resident {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof::Result<Answer<Vec<G1Projective>>> {
        let mut device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = match device.sum(&self.plan, job, budget) {
            Ok(sum) => return Ok(Answer::Done(vec![sum])),
            Err(stopped) => stopped,
        };
        match stopped.sorted() {
            Stop::Host(error) => Err(error),
            Stop::Declined(why) => Ok(Answer::Declined(why)),
            Stop::Device(error) => {
                device.msm = None;
                device.bases = None;
                Ok(Answer::Declined(error.to_string()))
            }
        }
    }

    fn transform(&self, _: &mut Transform<'_>, _: &Budget) -> spillproof::Result<Answer<()>> {
        Ok(Answer::Declined("its memory is for bases".into()))
    }

    fn quotient(&self, _: &mut Coset<'_>, _: &Budget) -> spillproof::Result<Answer<()>> {
        Ok(Answer::Declined("its memory is for bases".into()))
    }
}

/// A job's elements of so many bytes as a source of chunks.
fn bytes_of(
    from: &mut dyn ReadElements,
    element_bytes: u64,
    in_place: bool,
) -> impl FnMut(u64, &mut [u8]) -> Result<(), BoxedError> {
    move |offset, into| read(from, offset / element_bytes, into, in_place).map_err(BoxedError::from)
}
