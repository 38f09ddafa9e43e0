//! Sums: one after the other, each a pass over the bases. A vector that is shorter than the bases takes only as many of them.

use ark_bn254::G1Projective;
use ark_ff::AdditiveGroup;
use spillproof::budget::Budget;
use spillproof::tier::{ReadElements, Sums};

use super::device::Device;
use super::host::{Host, slot_bytes_max};
use super::stop::Stop;
use crate::error::BoxedError;
use crate::msm::{ELEMENT_BYTES, MsmPlan, POINT_BYTES, SCALAR_BYTES, columns};
use crate::ring::Source;

/// All sums of the job.
pub(super) fn run(
    device: &mut Device,
    job: &mut Sums<'_>,
    budget: &Budget,
) -> Result<Vec<G1Projective>, Stop> {
    let slot_bytes = slot_bytes_max(budget, false);
    let mut sums = Vec::with_capacity(job.scalars.len());
    let mut kept: Option<(u64, Host)> = None;
    for scalars in &mut job.scalars {
        if scalars.len == 0 {
            sums.push(G1Projective::ZERO);
            continue;
        }
        let plan = MsmPlan::new(scalars.len, device.vram_bytes()?, slot_bytes)?;
        let host = match kept.take() {
            Some((bytes, host)) if bytes == plan.slot_bytes() => host,
            other => {
                drop(other);
                Host::new(device.gpu(), budget, plan.slot_bytes(), false)?
            }
        };
        let (_, host) = kept.insert((plan.slot_bytes(), host));
        sums.push(sum(
            device,
            host,
            plan,
            elements(&mut *job.bases, POINT_BYTES),
            elements(&mut *scalars.source, SCALAR_BYTES),
        )?);
    }
    Ok(sums)
}

/// One sum by a plan.
pub(super) fn sum(
    device: &mut Device,
    host: &mut Host,
    plan: MsmPlan,
    bases: impl Source,
    scalars: impl Source,
) -> Result<G1Projective, Stop> {
    tracing::debug!(?plan, "sum on the device");
    let mut source = columns(bases, scalars);
    let total_bytes = plan.points() * ELEMENT_BYTES;
    host.upload.stage(&plan.chunking()?, total_bytes, &mut source)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    Ok(device.msm(plan)?.run(&mut host.upload, &mut source)?)
}

/// Elements of so many bytes, as a ring asks for them.
pub(super) fn elements(from: &mut dyn ReadElements, element_bytes: u64) -> impl Source {
    move |offset: u64, into: &mut [u8]| from.read(offset / element_bytes, into).map_err(BoxedError::from)
}
