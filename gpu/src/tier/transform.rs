//! Whole transforms: in device memory, or in two steps if they do not fit the budget of device memory.
//!
//! In two steps the data crosses to the device twice and to the disk once more, through the ends of
//! [`spillproof_engine::tier::InSteps`], which gather and scatter the lines of chunks. Chunks then have a power of
//! two of elements.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};
use spillproof_engine::budget::Budget;
use spillproof_engine::tier::{Matrix, ReadElements, ReadWriteElements, Transform, WriteElements};

use super::device::Device;
use super::host::Host;
use super::stop::Stop;
use super::sums;
use crate::error::{BoxedError, Error};
use crate::ntt::{self, Ends, NttPlan, NttWay};

/// The plan of a transform of 2^`log_n` elements.
pub(super) fn plan(device: &mut Device, log_n: u32, budget: &Budget) -> Result<NttPlan, Stop> {
    let slot_bytes = device.stock.slot_bytes_max(budget, true);
    let plan = NttPlan::new(log_n, device.vram_bytes()?, slot_bytes)?;
    Ok(match plan.way() {
        NttWay::InDeviceMemory => plan,
        NttWay::TwoSteps { .. } => plan.with_even_chunks(),
    })
}

/// The matrix of a transform in two steps; `None` for a whole one.
pub(super) fn matrix(plan: &NttPlan) -> Option<Matrix> {
    match plan.way() {
        NttWay::InDeviceMemory => None,
        NttWay::TwoSteps { log_rows } => Some(Matrix {
            log_rows,
            log_columns: plan.log_n() - log_rows,
            log_chunk: plan.chunk_elements().ilog2(),
        }),
    }
}

/// Runs the whole job. `begun` says how another device that failed has begun it, since the output must be
/// written in one way.
pub(super) fn run(
    device: &mut Device,
    job: &mut Transform<'_>,
    budget: &Budget,
    begun: &mut Option<bool>,
) -> Result<(), Stop> {
    let transform = of(job)?;
    let plan = plan(device, job.log_n, budget)?;
    let matrix = matrix(&plan);
    let is_whole = matrix.is_none();
    if *begun.get_or_insert(is_whole) != is_whole {
        return Err(Stop::Declined(
            "a device failed at the transform, and the next one lacks the memory to do it in the same way"
                .into(),
        ));
    }
    let mut host = device.stock.host(budget, plan.slot_bytes(), true)?;
    let in_place = host.may_read();
    let Some(matrix) = matrix else {
        transformed(
            device,
            &mut host,
            (plan, transform),
            &mut From(&mut *job.input, in_place),
            &mut To(&mut *job.output),
        )?;
        device.stock.keep(host);
        return Ok(());
    };
    let mut ends = job.in_steps.ends(matrix)?;
    by_plan(
        device,
        &mut host,
        (plan, transform),
        &mut From(&mut *ends.input, in_place),
        &mut Between(&mut *ends.between),
        &mut To(&mut *ends.output),
    )?;
    device.stock.keep(host);
    Ok(())
}

/// Runs one transform in device memory, by a plan.
pub(super) fn transformed(
    device: &mut Device,
    host: &mut Host,
    by: (NttPlan, ntt::Transform),
    from: &mut dyn ntt::ReadElements,
    to: &mut dyn ntt::WriteElements,
) -> Result<(), Stop> {
    let mut no_steps_between = Vec::new();
    by_plan(device, host, by, from, &mut no_steps_between, to)
}

fn by_plan(
    device: &mut Device,
    host: &mut Host,
    (plan, transform): (NttPlan, ntt::Transform),
    from: &mut dyn ntt::ReadElements,
    between: &mut (impl ntt::ReadElements + ntt::WriteElements),
    to: &mut dyn ntt::WriteElements,
) -> Result<(), Stop> {
    tracing::debug!(?plan, "transform on the device");
    ntt::stage(&plan, &mut host.upload, from)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    let ends = Ends {
        upload: &mut host.upload,
        download: host.download.as_mut().ok_or(Error::Unusable {
            what: "a job without slots for its download",
        })?,
    };
    device.ntt(plan, transform)?.run(ends, from, between, to)?;
    Ok(())
}

/// The transform in this crate's type: forward, or inverse with 1 / n, on a coset or not.
fn of(job: &Transform<'_>) -> Result<ntt::Transform, Stop> {
    let Transform {
        log_n,
        omega,
        before,
        after,
        scale,
        ..
    } = *job;
    let inverted = |value: Fr| {
        value
            .inverse()
            .ok_or_else(|| Stop::Declined("the root or the shift of the transform is 0".into()))
    };
    let n = Fr::from(2u64).pow([u64::from(log_n)]);
    let (transform, shift) = if after == Fr::ONE && scale == Fr::ONE {
        (ntt::Transform::by_root(omega, log_n)?, before)
    } else if before == Fr::ONE && scale * n == Fr::ONE {
        let transform = ntt::Transform::by_root(inverted(omega)?, log_n)?;
        (transform.inverse(), inverted(after)?)
    } else {
        return Err(Stop::Declined(
            "the transform is neither forward nor inverse".into(),
        ));
    };
    if shift == Fr::ZERO {
        return Err(Stop::Declined(
            "the root or the shift of the transform is 0".into(),
        ));
    }
    if shift == Fr::ONE {
        return Ok(transform);
    }
    Ok(transform.on_coset(shift)?)
}

/// The input of the job; reads in place if the host may read the slots.
struct From<'a>(&'a mut dyn ReadElements, bool);

impl ntt::ReadElements for From<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        sums::read(self.0, first, into, self.1).map_err(BoxedError::from)
    }
}

struct To<'a>(&'a mut dyn WriteElements);

impl ntt::WriteElements for To<'_> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        self.0.write(first, bytes).map_err(BoxedError::from)
    }
}

struct Between<'a>(&'a mut dyn ReadWriteElements);

impl ntt::ReadElements for Between<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        self.0.read(first, into).map_err(BoxedError::from)
    }
}

impl ntt::WriteElements for Between<'_> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        self.0.write(first, bytes).map_err(BoxedError::from)
    }
}
