//! Sums: the bases are streamed once for as many vectors as [`MsmPlan::of_passes`] says, and again for the
//! next vectors.
//!
//! The longest vectors come first. A vector that is at least half as long as the longest of a pass joins it,
//! padded with zeros: the zeros have at most half the bytes of the points, which then need no pass of their
//! own. A shorter vector has another pass, over as many bases as it needs.
//!
//! Points with an id stay on the device as they are streamed, if they take at most half of its budget. Later
//! passes over them, and those of later jobs ([`Device::take_bases`]), stream scalars only.
//!
//! The first slots are filled before the job takes the device, and the slots of the next pass while the
//! device finishes the pass before.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] slots, and the leases of the ends of a pass:
//! [`ReadElements::lease_bytes`] limits how many vectors are read at one time.

use std::cmp::Reverse;

use ark_bn254::G1Projective;
use ark_ff::AdditiveGroup;
use spillproof_engine::accelerator::{Arrivals, ReadElements, Scalars, Sums};
use spillproof_engine::budget::{Budget, Lent};

use super::device::{Device, ResidentBases};
use super::rates::{Reads, Worth};
use super::slots::{HostRoom, JobSlots, UPLOAD_SLOTS};
use super::stop::Stop;
use super::worth::seconds;
use crate::error::BoxedError;
use crate::msm::{BasesLocation, MsmPlan, POINT_BYTES, PassLimit, PointSource, SCALAR_BYTES, columns_of};
use crate::ring::{Source, Upload};

/// A vector of scalars, and the index of its sum.
struct Vector<'v, 'a> {
    index: usize,
    scalars: &'v mut Scalars<'a>,
}

/// The length of a vector, and the bytes that its end leases.
#[derive(Debug, Clone, Copy)]
pub(super) struct VectorSize {
    pub len: u64,
    pub lease_bytes: u64,
}

/// What becomes of a job.
struct Outcome<'o> {
    worth: &'o mut Worth,
    sums: &'o mut [G1Projective],
}

/// Makes all sums of the job, with slots and ends that take about `room.given_bytes` of the budget, unless it turns out
/// not to be worth it.
pub(super) fn sum_all(
    device: &mut Device,
    job: &mut Sums<'_>,
    room: HostRoom<'_>,
    worth: &mut Worth,
) -> Result<Vec<G1Projective>, Stop> {
    let mut sums = vec![G1Projective::ZERO; job.scalars.len()];
    let vectors = job.scalars.iter_mut().enumerate();
    let vectors = vectors.map(|(index, scalars)| Vector { index, scalars });
    let mut vectors: Vec<Vector<'_, '_>> = vectors.filter(|vector| vector.scalars.len > 0).collect();
    vectors.sort_by_key(|vector| Reverse(vector.scalars.len));
    let Some(longest) = vectors.first() else {
        return Ok(sums);
    };
    let mut resident = device.take_bases(job.bases_id, longest.scalars.len)?;
    loop {
        let are_resident = resident.is_some() || device.has_bases();
        let made = all_passes(
            device,
            &mut *job.bases,
            &mut vectors,
            resident.as_mut(),
            room,
            Outcome {
                worth: &mut *worth,
                sums: &mut sums,
            },
        );
        if let Some(resident) = resident.take() {
            device.put_back(resident, made.is_ok());
        }
        match made {
            // Resident points only save time: sum again without them.
            Err(Stop::Device(error)) if error.is_memory_short() && are_resident => device.free_bases(),
            made => return made.map(|()| sums),
        }
    }
}

/// Plans and runs the passes.
fn all_passes<'a>(
    device: &mut Device,
    bases: &mut (dyn ReadElements + 'a),
    vectors: &mut [Vector<'_, 'a>],
    resident: Option<&mut ResidentBases>,
    room: HostRoom<'_>,
    outcome: Outcome<'_>,
) -> Result<(), Stop> {
    let sizes = vectors.iter().map(|vector| VectorSize {
        len: vector.scalars.len,
        lease_bytes: vector.scalars.source.lease_bytes(),
    });
    let sizes: Vec<VectorSize> = sizes.collect();
    let plans = plans(
        device,
        &sizes,
        room.given_bytes,
        bases.lease_bytes(),
        resident.as_deref(),
    )?;
    let mut rest = vectors;
    let mut passes = Vec::with_capacity(plans.len());
    for plan in plans {
        let (vectors, others) = std::mem::take(&mut rest).split_at_mut(plan.columns() as usize);
        rest = others;
        passes.push((plan, vectors));
    }
    let mut feed = Feed {
        bases,
        passes,
        current: 0,
    };
    run_passes(device, &mut feed, resident, room.budget, outcome)
}

/// Runs one pass after the other. Bases that may stay are copied in the first pass.
fn run_passes(
    device: &mut Device,
    feed: &mut Feed<'_, '_, '_>,
    mut resident: Option<&mut ResidentBases>,
    budget: &Budget,
    outcome: Outcome<'_>,
) -> Result<(), Stop> {
    let gpu = device.gpu().clone();
    let mut staged: Option<JobSlots> = None;
    let plans: Vec<MsmPlan> = feed.passes.iter().map(|(plan, _)| *plan).collect();
    for (at, plan) in plans.iter().enumerate() {
        tracing::debug!(?plan, "sums on the device");
        let mut slots = match staged.take() {
            Some(slots) => slots,
            None => {
                let mut slots = device.slots.take(budget, plan.slot_bytes(), false)?;
                let (staged, seconds) = seconds(|| feed.stage(at, &mut slots.upload));
                let all_passes = plans.iter().map(|plan| plan.points() * plan.element_bytes());
                let reads = Reads {
                    seconds,
                    sample_bytes: staged?,
                    total_bytes: all_passes.sum(),
                    writing: 0.0,
                    by_the_processor: match outcome.worth.is_asked() {
                        true => feed.disk_seconds(),
                        false => 0.0,
                    },
                    is_beside: true,
                };
                if at == 0 && !outcome.worth.with_reads(reads) {
                    slots.upload.unstage();
                    device.slots.keep(slots);
                    return Err(Stop::slow_reads("the points and scalars of sums"));
                }
                slots
            }
        };
        let next = plans
            .get(at + 1)
            .filter(|next| next.slot_bytes() <= slots.upload.slot_bytes());
        let turn = gpu.take_turn();
        let there = match resident.as_mut() {
            Some(resident) => Some(device.memory_of_bases(resident)?),
            None => None,
        };
        let points = match (there, plan.bases()) {
            (Some(there), BasesLocation::Resident) => PointSource::Resident(there),
            (Some(there), BasesLocation::Streamed) => PointSource::StreamAndKeep(there),
            (None, _) => PointSource::Stream,
        };
        let msm = device.msm(*plan)?;
        let made = msm.sum_columns_and(points, &mut slots.upload, feed, |upload, feed| match next {
            Some(_) => feed.stage(at + 1, upload).map(drop),
            None => Ok(()),
        })?;
        drop(turn);
        for (vector, sum) in feed.passes[at].1.iter().zip(made) {
            outcome.sums[vector.index] = sum;
        }
        match next {
            Some(_) => staged = Some(slots),
            None => device.slots.keep(slots),
        }
    }
    Ok(())
}

/// The plan of each pass over vectors of these lengths, the longest first: each pass takes as many of the
/// next vectors as it has columns.
pub(super) fn plans(
    device: &mut Device,
    sizes: &[VectorSize],
    given_bytes: u64,
    bases_bytes: u64,
    resident: Option<&ResidentBases>,
) -> Result<Vec<MsmPlan>, Stop> {
    let slot_bytes = device.slots.slot_bytes_of(given_bytes, false);
    // The bytes for the ends of vectors, beside slots and bases.
    let held_bytes = UPLOAD_SLOTS as u64 * slot_bytes + bases_bytes;
    let given_bytes = given_bytes.saturating_sub(held_bytes);
    let vram_bytes = device.vram_bytes_beside_bases(resident)?;
    // Points that are not resident yet are after the first pass.
    let location = |pass: usize| match resident {
        Some(resident) if resident.are_resident || pass > 0 => BasesLocation::Resident,
        _ => BasesLocation::Streamed,
    };
    let mut plans = Vec::new();
    let mut rest = sizes;
    while let Some(&VectorSize { len: points, .. }) = rest.first() {
        let alike = rest.partition_point(|size| size.len >= points.div_ceil(2));
        let (group, others) = rest.split_at(alike);
        rest = others;
        let largest_bytes = group.iter().map(|size| size.lease_bytes).max();
        let limit = PassLimit {
            columns: group.len() as u64,
            at_once: given_bytes / largest_bytes.unwrap_or(0).max(1),
        };
        let plan = MsmPlan::of_passes(points, limit, location(plans.len()), vram_bytes, slot_bytes)?;
        for together in group.chunks(plan.columns() as usize) {
            plans.push(plan.with_columns(together.len() as u64, location(plans.len()))?);
        }
    }
    Ok(plans)
}

/// The source of the passes: points, unless they are resident, and the scalars of the vectors of one pass.
struct Feed<'p, 'v, 'a> {
    bases: &'p mut (dyn ReadElements + 'a),
    passes: Vec<(MsmPlan, &'p mut [Vector<'v, 'a>])>,
    current: usize,
}

impl Feed<'_, '_, '_> {
    /// Seconds in which the disk gives the points and the scalars of all passes.
    fn disk_seconds(&self) -> f64 {
        let vectors = self.passes.iter().flat_map(|(_, vectors)| vectors.iter());
        let scalars = vectors.map(|vector| vector.scalars.source.disk_seconds_to_read());
        self.bases.disk_seconds_to_read() + scalars.sum::<f64>()
    }

    /// Fills the slots with the start of a pass; the bytes in them.
    fn stage(&mut self, pass: usize, upload: &mut Upload) -> crate::Result<u64> {
        self.current = pass;
        let Some((plan, _)) = self.passes.get(pass) else {
            return Ok(0);
        };
        let (chunking, total_bytes) = (plan.chunking()?, plan.points() * plan.element_bytes());
        upload.stage(&chunking, total_bytes, self)
    }
}

impl Source for Feed<'_, '_, '_> {
    /// A chunk is its points, if they are streamed, then the scalars of each vector. All of them are on their way
    /// at one time.
    fn begin(&mut self, offset: u64, mut into: Lent) -> Result<Arrivals, BoxedError> {
        let Some((plan, vectors)) = self.passes.get_mut(self.current) else {
            return Err("the pass does not exist".into());
        };
        let element_bytes = plan.element_bytes();
        let (first, count) = (offset / element_bytes, into.len() / element_bytes as usize);
        let mut arrivals = Arrivals::default();
        if plan.bases() == BasesLocation::Streamed {
            let points = into.take_first(count * POINT_BYTES as usize);
            arrivals.append(self.bases.begin(first, points)?);
        }
        for vector in vectors.iter_mut() {
            // Zeros behind the last scalar.
            let Scalars { len, source } = &mut *vector.scalars;
            let mut part = into.take_first(count * SCALAR_BYTES as usize);
            let there_bytes = len.saturating_sub(first).saturating_mul(SCALAR_BYTES);
            let own = part.take_first(usize::try_from(there_bytes).unwrap_or(usize::MAX));
            part.fill(0);
            if !own.is_empty() {
                arrivals.append(source.begin(first, own)?);
            }
        }
        Ok(arrivals)
    }
}

/// Makes the sums of one pass over any bases: to measure rates.
pub(super) fn one_pass<'a>(
    device: &mut Device,
    slots: &mut JobSlots,
    plan: MsmPlan,
    bases: impl Source + 'a,
    scalars: Vec<Box<dyn Source + 'a>>,
) -> Result<Vec<G1Projective>, Stop> {
    let mut source = columns_of(Some(Box::new(bases)), scalars);
    let total_bytes = plan.points() * plan.element_bytes();
    slots.upload.stage(&plan.chunking()?, total_bytes, &mut source)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    Ok(device
        .msm(plan)?
        .sum_columns(PointSource::Stream, &mut slots.upload, &mut source)?)
}
