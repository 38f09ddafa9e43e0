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
use spillproof_engine::budget::Budget;
use spillproof_engine::tier::{ReadElements, Scalars, Sums};

use super::device::{Device, ResidentBases};
use super::host::{Host, UPLOAD_SLOTS};
use super::stop::Stop;
use crate::error::BoxedError;
use crate::msm::{BasesAre, MsmPlan, POINT_BYTES, Points, SCALAR_BYTES, columns_of};
use crate::ring::{Source, Upload};

/// A vector, and the index of its sum.
type Vector<'v, 'a> = (usize, &'v mut Scalars<'a>);

/// All sums of the job, with slots and ends that take about `given_bytes` of the budget.
pub(super) fn run(
    device: &mut Device,
    job: &mut Sums<'_>,
    (budget, given_bytes): (&Budget, u64),
) -> Result<Vec<G1Projective>, Stop> {
    let mut sums = vec![G1Projective::ZERO; job.scalars.len()];
    let mut vectors: Vec<Vector<'_, '_>> = job
        .scalars
        .iter_mut()
        .enumerate()
        .filter(|(_, scalars)| scalars.len > 0)
        .collect();
    vectors.sort_by_key(|(_, scalars)| Reverse(scalars.len));
    let Some((_, longest)) = vectors.first() else {
        return Ok(sums);
    };
    let mut stay = device.take_bases(job.bases_id, longest.len)?;
    loop {
        let are_resident = stay.is_some() || device.has_bases();
        let made = all_passes(
            device,
            &mut *job.bases,
            &mut vectors,
            stay.as_mut(),
            (budget, given_bytes),
            &mut sums,
        );
        if let Some(stay) = stay.take() {
            device.put_back(stay, made.is_ok());
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
    stay: Option<&mut ResidentBases>,
    (budget, given_bytes): (&Budget, u64),
    sums: &mut [G1Projective],
) -> Result<(), Stop> {
    let lengths: Vec<Length> = vectors
        .iter()
        .map(|(_, scalars)| (scalars.len, scalars.source.lease_bytes()))
        .collect();
    let room = (given_bytes, bases.lease_bytes());
    let plans = plans(device, &lengths, room, stay.as_deref())?;
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
        in_place: false,
    };
    run_passes(device, &mut feed, stay, budget, sums)
}

/// Runs one pass after the other. Bases that may stay are copied in the first pass.
fn run_passes(
    device: &mut Device,
    feed: &mut Feed<'_, '_, '_>,
    mut stay: Option<&mut ResidentBases>,
    budget: &Budget,
    sums: &mut [G1Projective],
) -> Result<(), Stop> {
    let gpu = device.gpu().clone();
    let mut staged: Option<Host> = None;
    let plans: Vec<MsmPlan> = feed.passes.iter().map(|(plan, _)| *plan).collect();
    for (at, plan) in plans.iter().enumerate() {
        tracing::debug!(?plan, "sums on the device");
        let mut host = match staged.take() {
            Some(host) => host,
            None => {
                let mut host = device.stock.host(budget, plan.slot_bytes(), false)?;
                feed.in_place = host.may_read();
                feed.stage(at, &mut host.upload)?;
                host
            }
        };
        let next = plans
            .get(at + 1)
            .filter(|next| next.slot_bytes() <= host.upload.slot_bytes());
        let turn = gpu.take_turn();
        let there = match stay.as_mut() {
            Some(stay) => Some(device.memory_of_bases(stay)?),
            None => None,
        };
        let bases = match (there, plan.bases()) {
            (Some(there), BasesAre::Resident) => Points::There(there),
            (Some(there), BasesAre::Streamed) => Points::Stay(there),
            (None, _) => Points::Pass,
        };
        let msm = device.msm(*plan)?;
        let made = msm.run_columns_and(bases, &mut host.upload, feed, |upload, feed| match next {
            Some(_) => feed.stage(at + 1, upload),
            None => Ok(()),
        })?;
        drop(turn);
        for ((to, _), sum) in feed.passes[at].1.iter().zip(made) {
            sums[*to] = sum;
        }
        match next {
            Some(_) => staged = Some(host),
            None => device.stock.keep(host),
        }
    }
    Ok(())
}

/// The length of a vector, and the bytes that its end leases.
pub(super) type Length = (u64, u64);

/// The plan of each pass over vectors of these lengths, the longest first: each pass takes as many of the
/// next vectors as it has columns.
pub(super) fn plans(
    device: &mut Device,
    lengths: &[Length],
    (given_bytes, bases_bytes): (u64, u64),
    stay: Option<&ResidentBases>,
) -> Result<Vec<MsmPlan>, Stop> {
    let slot_bytes = device.stock.slot_bytes_of(given_bytes, false);
    // The bytes for the ends of vectors, beside slots and bases.
    let held_bytes = UPLOAD_SLOTS as u64 * slot_bytes + bases_bytes;
    let given_bytes = given_bytes.saturating_sub(held_bytes);
    let vram_bytes = device.vram_bytes_beside_bases(stay)?;
    // Points that are not resident yet are after the first pass.
    let where_at = |pass: usize| match stay {
        Some(stay) if stay.are_resident || pass > 0 => BasesAre::Resident,
        _ => BasesAre::Streamed,
    };
    let mut plans = Vec::new();
    let mut rest = lengths;
    while let Some(&(points, _)) = rest.first() {
        let alike = rest.partition_point(|(len, _)| *len >= points.div_ceil(2));
        let (group, others) = rest.split_at(alike);
        rest = others;
        let largest_bytes = group.iter().map(|(_, bytes)| *bytes).max();
        let at_once = given_bytes / largest_bytes.unwrap_or(0).max(1);
        let columns = (group.len() as u64, at_once);
        let plan = MsmPlan::of_passes(points, columns, where_at(plans.len()), vram_bytes, slot_bytes)?;
        for together in group.chunks(plan.columns() as usize) {
            plans.push(plan.with_columns(together.len() as u64, where_at(plans.len()))?);
        }
    }
    Ok(plans)
}

/// The source of the passes: points, unless they are resident, and the scalars of the vectors of one pass.
struct Feed<'p, 'v, 'a> {
    bases: &'p mut (dyn ReadElements + 'a),
    passes: Vec<(MsmPlan, &'p mut [Vector<'v, 'a>])>,
    current: usize,
    /// Whether the host may read the slots.
    in_place: bool,
}

impl Feed<'_, '_, '_> {
    /// Fills the slots with the start of a pass.
    fn stage(&mut self, pass: usize, upload: &mut Upload) -> crate::Result<()> {
        self.current = pass;
        if let Some((plan, _)) = self.passes.get(pass) {
            let (chunking, total_bytes) = (plan.chunking()?, plan.points() * plan.element_bytes());
            upload.stage(&chunking, total_bytes, self)?;
        }
        Ok(())
    }
}

impl Source for Feed<'_, '_, '_> {
    /// A chunk is its points, if they are streamed, then the scalars of each vector.
    fn fill(&mut self, offset: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        let Some((plan, vectors)) = self.passes.get_mut(self.current) else {
            return Err("the pass does not exist".into());
        };
        let element_bytes = plan.element_bytes();
        let (first, count) = (offset / element_bytes, into.len() / element_bytes as usize);
        let of_point = match plan.bases() {
            BasesAre::Streamed => POINT_BYTES as usize,
            BasesAre::Resident => 0,
        };
        let (points, scalars) = into.split_at_mut(count * of_point);
        if !points.is_empty() {
            read(self.bases, first, points, self.in_place)?;
        }
        let parts = scalars.chunks_exact_mut(count * SCALAR_BYTES as usize);
        for ((_, vector), part) in vectors.iter_mut().zip(parts) {
            padded(vector, first, part, self.in_place)?;
        }
        Ok(())
    }
}

/// Reads scalars, with zeros behind the last.
fn padded(
    scalars: &mut Scalars<'_>,
    first: u64,
    into: &mut [u8],
    in_place: bool,
) -> spillproof_engine::Result<()> {
    let there_bytes = scalars.len.saturating_sub(first) * SCALAR_BYTES;
    let (own, behind) = into.split_at_mut((into.len() as u64).min(there_bytes) as usize);
    behind.fill(0);
    match own {
        [] => Ok(()),
        own => read(&mut *scalars.source, first, own, in_place),
    }
}

/// Reads into a slot, in place if the host may read it.
pub(super) fn read(
    from: &mut dyn ReadElements,
    first: u64,
    into: &mut [u8],
    in_place: bool,
) -> spillproof_engine::Result<()> {
    match in_place {
        true => from.read_in_place(first, into),
        false => from.read(first, into),
    }
}

/// The sums of one pass over any bases: to measure rates.
pub(super) fn pass<'a>(
    device: &mut Device,
    host: &mut Host,
    plan: MsmPlan,
    bases: impl Source + 'a,
    scalars: Vec<Box<dyn Source + 'a>>,
) -> Result<Vec<G1Projective>, Stop> {
    let mut source = columns_of(Some(Box::new(bases)), scalars);
    let total_bytes = plan.points() * plan.element_bytes();
    host.upload.stage(&plan.chunking()?, total_bytes, &mut source)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    Ok(device.msm(plan)?.run_columns(&mut host.upload, &mut source)?)
}
