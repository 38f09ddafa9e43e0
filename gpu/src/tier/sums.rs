//! Sums: the bases pass once for as many vectors as [`MsmPlan::of_passes`] says, and again for the next ones.
//!
//! The longest vectors come first. One that is at least half as long as the longest of a pass goes with it, zeros behind its end: they
//! have at most half the bytes of its points, which then need no pass of their own. A shorter one has another pass, over only as many of the bases.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] slots, and what the ends of a pass lease: their [`ReadElements::lease_bytes`] say how many vectors
//! may be read at one time.

use std::cmp::Reverse;

use ark_bn254::G1Projective;
use ark_ff::AdditiveGroup;
use spillproof::budget::Budget;
use spillproof::tier::{ReadElements, Scalars, Sums};

use super::device::Device;
use super::host::{Host, UPLOAD_SLOTS};
use super::stop::Stop;
use crate::error::BoxedError;
use crate::msm::{BasesAre, MsmPlan, POINT_BYTES, SCALAR_BYTES, columns_of};
use crate::ring::Source;

/// All sums of the job.
pub(super) fn run(
    device: &mut Device,
    job: &mut Sums<'_>,
    budget: &Budget,
) -> Result<Vec<G1Projective>, Stop> {
    let slot_bytes = device.stock.slot_bytes_max(budget, false);
    // Before anything is held: what is left for the vectors beside slots and bases.
    let held_bytes = UPLOAD_SLOTS as u64 * slot_bytes + job.bases.lease_bytes();
    let room_bytes = budget.available_bytes().saturating_sub(held_bytes);
    let mut sums = vec![G1Projective::ZERO; job.scalars.len()];
    let mut vectors: Vec<(usize, &mut Scalars<'_>)> = job
        .scalars
        .iter_mut()
        .enumerate()
        .filter(|(_, scalars)| scalars.len > 0)
        .collect();
    vectors.sort_by_key(|(_, scalars)| Reverse(scalars.len));
    let mut rest = &mut vectors[..];
    while let Some((_, longest)) = rest.first() {
        let points = longest.len;
        let alike = rest.partition_point(|(_, scalars)| scalars.len >= points.div_ceil(2));
        let (group, others) = std::mem::take(&mut rest).split_at_mut(alike);
        rest = others;
        let largest_bytes = group
            .iter()
            .map(|(_, scalars)| scalars.source.lease_bytes())
            .max();
        let at_once = room_bytes / largest_bytes.unwrap_or(0).max(1);
        let vram_bytes = device.vram_bytes()?;
        let plan = MsmPlan::of_passes(points, group.len() as u64, at_once, vram_bytes, slot_bytes)?;
        for together in group.chunks_mut(plan.columns() as usize) {
            let plan = plan.with_columns(together.len() as u64, BasesAre::Streamed)?;
            let mut host = device.stock.host(budget, plan.slot_bytes(), false)?;
            let in_place = host.may_read();
            let sources = together
                .iter_mut()
                .map(|(_, scalars)| padded(scalars, in_place))
                .collect();
            let made = pass(
                device,
                &mut host,
                plan,
                elements(&mut *job.bases, POINT_BYTES, in_place),
                sources,
            )?;
            device.stock.keep(host);
            for ((at, _), sum) in together.iter().zip(made) {
                sums[*at] = sum;
            }
        }
    }
    Ok(sums)
}

/// The sums of one pass over the bases.
pub(super) fn pass<'a>(
    device: &mut Device,
    host: &mut Host,
    plan: MsmPlan,
    bases: impl Source + 'a,
    scalars: Vec<Box<dyn Source + 'a>>,
) -> Result<Vec<G1Projective>, Stop> {
    tracing::debug!(?plan, "sums on the device");
    let mut source = columns_of(Some(Box::new(bases)), scalars);
    let total_bytes = plan.points() * plan.element_bytes();
    host.upload.stage(&plan.chunking()?, total_bytes, &mut source)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    Ok(device.msm(plan)?.run_columns(&mut host.upload, &mut source)?)
}

/// Elements of so many bytes, as a ring asks for them.
fn elements(from: &mut dyn ReadElements, element_bytes: u64, in_place: bool) -> impl Source {
    move |offset: u64, into: &mut [u8]| {
        let read = read(from, offset / element_bytes, into, in_place);
        read.map_err(BoxedError::from)
    }
}

/// Into a slot that may be read, or not.
pub(super) fn read(
    from: &mut dyn ReadElements,
    first: u64,
    into: &mut [u8],
    in_place: bool,
) -> spillproof::Result<()> {
    match in_place {
        true => from.read_in_place(first, into),
        false => from.read(first, into),
    }
}

/// Scalars, and zeros behind the last.
fn padded<'a>(scalars: &'a mut Scalars<'_>, in_place: bool) -> Box<dyn Source + 'a> {
    Box::new(move |offset: u64, into: &mut [u8]| {
        let there_bytes = (scalars.len * SCALAR_BYTES).saturating_sub(offset);
        let (own, behind) = into.split_at_mut((into.len() as u64).min(there_bytes) as usize);
        behind.fill(0);
        if own.is_empty() {
            return Ok(());
        }
        let first = offset / SCALAR_BYTES;
        let read = read(&mut *scalars.source, first, own, in_place);
        read.map_err(BoxedError::from)
    })
}
