//! Whole transforms, in device memory. One that does not fit `--vram` as a whole is declined: in two steps it would have to go by way
//! of the disk once more, where the processor's own two passes are as good.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};
use spillproof::budget::Budget;
use spillproof::tier::{ReadElements, Transform, WriteElements};

use super::device::Device;
use super::host::{Host, slot_bytes_max};
use super::stop::Stop;
use crate::error::{BoxedError, Error};
use crate::ntt::{self, Ends, NttPlan, NttWay};

/// The whole job.
pub(super) fn run(device: &mut Device, job: &mut Transform<'_>, budget: &Budget) -> Result<(), Stop> {
    let transform = of(job)?;
    let vram_bytes = device.vram_bytes()?;
    let plan = NttPlan::new(job.log_n, vram_bytes, slot_bytes_max(budget, true))?;
    if plan.way() != NttWay::InDeviceMemory {
        return Err(Stop::Declined(format!(
            "a transform of 2^{} elements does not fit {vram_bytes} bytes of device memory as a whole",
            job.log_n
        )));
    }
    let mut host = Host::new(device.gpu(), budget, plan.slot_bytes(), true)?;
    transformed(
        device,
        &mut host,
        (plan, transform),
        &mut From(&mut *job.input),
        &mut To(&mut *job.output),
    )
}

/// One transform by a plan.
pub(super) fn transformed(
    device: &mut Device,
    host: &mut Host,
    (plan, transform): (NttPlan, ntt::Transform),
    from: &mut dyn ntt::ReadElements,
    to: &mut dyn ntt::WriteElements,
) -> Result<(), Stop> {
    tracing::debug!(?plan, "transform on the device");
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    let ends = Ends {
        upload: &mut host.upload,
        download: host.download.as_mut().ok_or(Error::Unusable {
            what: "a job without slots for the way back",
        })?,
    };
    let mut no_steps_between = Vec::new();
    device
        .ntt(plan, transform)?
        .run(ends, from, &mut no_steps_between, to)?;
    Ok(())
}

/// The device's word for it: forward, or inverse with 1 / n, on a coset or not.
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
            .ok_or_else(|| Stop::Declined("a transform by a root or a shift of 0".into()))
    };
    let n = Fr::from(2u64).pow([u64::from(log_n)]);
    let (transform, shift) = if after == Fr::ONE && scale == Fr::ONE {
        (ntt::Transform::by_root(omega, log_n)?, before)
    } else if before == Fr::ONE && scale * n == Fr::ONE {
        let transform = ntt::Transform::by_root(inverted(omega)?, log_n)?;
        (transform.inverse(), inverted(after)?)
    } else {
        return Err(Stop::Declined(
            "a transform that is neither forward nor inverse".into(),
        ));
    };
    if shift == Fr::ZERO {
        return Err(Stop::Declined("a transform by a root or a shift of 0".into()));
    }
    if shift == Fr::ONE {
        return Ok(transform);
    }
    Ok(transform.on_coset(shift)?)
}

struct From<'a>(&'a mut dyn ReadElements);

impl ntt::ReadElements for From<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        self.0.read(first, into).map_err(BoxedError::from)
    }
}

struct To<'a>(&'a mut dyn WriteElements);

impl ntt::WriteElements for To<'_> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        self.0.write(first, bytes).map_err(BoxedError::from)
    }
}
