//! Sums: columns of points are streamed once for as many vectors as [`MsmPlan::of_passes`] says, and again for
//! the next vectors.
//!
//! The longest vectors come first. A vector that is at least half as long as the longest of a pass joins it,
//! padded with zeros: the zeros have at most half the bytes of the points, which then need no pass of their
//! own. A shorter vector has another pass, over as many bases as it needs.
//!
//! A pass has all columns of points, so that scalars cross and are sorted once, or, where the buckets of all of them
//! leave too little device memory, a part of them; the estimated cost decides.
//!
//! Points with ids stay on the device as they are streamed, if all columns of the job take at most half of its
//! budget. Later passes over them, and those of later jobs ([`Device::take_bases`]), stream scalars only.
//!
//! Scalars of whole columns stay, too, where there is room beside the sums (`columns.rs`).
//!
//! The first slots are filled before the job takes the device, and the slots of the next pass while the
//! device finishes the pass before.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] slots, and the leases of the ends of a pass:
//! [`ReadElements::lease_bytes`] limits how many columns are read at one time.

use std::cmp::Reverse;
use std::ops::Range;

use spillproof_engine::accelerator::{
    Arrivals, Bases, ColumnId, Group, Groups, ReadElements, Scalars, Sums, Totals,
};
use spillproof_engine::budget::{Budget, Lent};

use super::columns::{KeptColumn, column_of};
use super::device::{BasesKey, Device, ResidentBases};
use super::rates::{Reads, Worth, seconds};
use super::slots::{HostRoom, JobSlots, UPLOAD_SLOTS};
use super::stop::Stop;
use crate::DeviceBuffer;
use crate::error::BoxedError;
use crate::msm::{BaseColumns, BasesLocation, MsmPlan, PointSource, SCALAR_BYTES, SumsSize, columns_of};
use crate::ring::{Source, Upload};

/// A vector of scalars, and the index of its sum.
struct Vector<'v, 'a> {
    index: usize,
    scalars: &'v mut Scalars<'a>,
}

/// Columns of points, and the bytes that their ends lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct BasesSize {
    pub columns: Groups<u64>,
    pub lease_bytes: u64,
}

/// A pass over columns of points, with vectors of scalars.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    pub plan: MsmPlan,
    /// The columns.
    bases: Range<u64>,
    /// The vectors, the longest first.
    vectors: Range<usize>,
}

/// The length of a vector, and the bytes that its end leases.
#[derive(Debug, Clone, Copy)]
pub(super) struct VectorSize {
    pub len: u64,
    pub lease_bytes: u64,
}

/// The cost of all sums of the job, in sums of G1.
pub(super) fn weight(job: &Sums<'_>) -> f64 {
    let size = SumsSize {
        points: job.points(),
        bases: job.bases.counts(),
        location: BasesLocation::Streamed,
        columns: job.scalars.len() as u64,
    };
    size.weight()
}

/// What becomes of a job.
struct Outcome<'o> {
    worth: &'o mut Worth,
    sums: &'o mut Totals,
}

/// Makes all sums of the job, with slots and ends that take about `room.given_bytes` of the budget, unless it turns out
/// not to be worth it.
pub(super) fn sum_all(
    device: &mut Device,
    job: &mut Sums<'_>,
    room: HostRoom<'_>,
    worth: &mut Worth,
) -> Result<Totals, Stop> {
    let mut sums = Totals::infinity(job.counts());
    let columns = job.bases.counts();
    let ids = job.bases.iter().map(|bases| bases.id).collect::<Option<Vec<_>>>();
    let key = ids.map(|ids| BasesKey { columns, ids });
    let vectors = job.scalars.iter_mut().enumerate();
    let vectors = vectors.map(|(index, scalars)| Vector { index, scalars });
    let mut vectors: Vec<Vector<'_, '_>> = vectors.filter(|vector| vector.scalars.len > 0).collect();
    vectors.sort_by_key(|vector| Reverse(vector.scalars.len));
    let Some(longest) = vectors.first() else {
        return Ok(sums);
    };
    let mut resident = device.take_bases(key, longest.scalars.len)?;
    loop {
        let are_resident = resident.is_some() || device.has_bases();
        let made = all_passes(
            device,
            (&mut job.bases, job.parts.is_some()),
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
            Err(Stop::Device(error)) if error.is_device_memory_short() && are_resident => device.free_bases(),
            made => return made.map(|()| sums),
        }
    }
}

/// Plans and runs the passes.
fn all_passes<'a>(
    device: &mut Device,
    (bases, may_stay): (&mut Groups<Vec<Bases<'a>>>, bool),
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
    let size = BasesSize {
        columns: bases.counts(),
        lease_bytes: bases.iter().map(|bases| bases.source.lease_bytes()).sum(),
    };
    let passes = plans(device, size, &sizes, room.given_bytes, resident.as_deref())?;
    let mut feed = Feed {
        bases: bases.iter_mut().map(|bases| &mut *bases.source).collect(),
        vectors,
        passes,
        current: 0,
        may_stay,
    };
    run_passes(device, &mut feed, size.columns, resident, room.budget, outcome)
}

/// Runs one pass after the other. Bases that may stay are copied in the first pass.
fn run_passes(
    device: &mut Device,
    feed: &mut Feed<'_, '_, '_>,
    columns: Groups<u64>,
    mut resident: Option<&mut ResidentBases>,
    budget: &Budget,
    outcome: Outcome<'_>,
) -> Result<(), Stop> {
    let gpu = device.gpu().clone();
    let mut staged: Option<JobSlots> = None;
    let count = outcome.sums.counts().count() / columns.count().max(1);
    let passes = feed.passes.clone();
    for (at, Pass { plan, bases, vectors }) in passes.iter().enumerate() {
        tracing::debug!(?plan, "sums on the device");
        let mut slots = match staged.take() {
            Some(slots) => slots,
            None => {
                let mut slots = device.slots.take(budget, plan.slot_bytes(), false)?;
                let (staged, seconds) = seconds(|| feed.stage(at, &mut slots.upload));
                let all_passes = passes
                    .iter()
                    .map(|pass| pass.plan.points() * pass.plan.element_bytes());
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
                let what = "the points and scalars of sums";
                match at {
                    0 => device.slots.worth_its_reads(slots, reads, outcome.worth, what)?,
                    _ => slots,
                }
            }
        };
        let next = passes
            .get(at + 1)
            .filter(|next| next.plan.slot_bytes() <= slots.upload.slot_bytes());
        let turn = gpu.take_turn();
        let there = match resident.as_mut() {
            Some(resident) => Some(BaseColumns {
                bases: device.memory_of_bases(resident)?,
                first: bases.start,
            }),
            None => None,
        };
        let points = match (there, plan.size().location) {
            (Some(there), BasesLocation::Resident) => PointSource::Resident(there),
            (Some(there), BasesLocation::Streamed) => PointSource::StreamAndKeep(there),
            (None, _) => PointSource::Stream,
        };
        device.msm(*plan)?;
        let mut kept = match feed.may_stay {
            true => room_for(device, &feed.vectors[vectors.clone()]),
            false => Vec::new(),
        };
        let stay = kept
            .iter()
            .map(|kept| kept.as_ref().map(|(_, column)| column.buffer()));
        let stay: Vec<Option<&DeviceBuffer>> = stay.collect();
        let msm = device.msm(*plan)?;
        let ends = (&mut slots.upload, &mut *feed);
        let made = msm.sum_columns_and(points, ends, &stay, |upload, feed| match next {
            Some(_) => feed.stage(at + 1, upload).map(drop),
            None => Ok(()),
        });
        if made.is_err() {
            // Copies to columns may be on their way.
            device.end_sums();
        }
        let made = made?;
        drop(turn);
        for (id, column) in kept.drain(..).flatten() {
            device.columns.keep(id, column);
        }
        // The place of each sum among those of its group.
        let vectors = &feed.vectors[vectors.clone()];
        let places = |columns: Range<u64>| {
            columns.flat_map(move |column| {
                vectors
                    .iter()
                    .map(move |vector| (column * count) as usize + vector.index)
            })
        };
        let before = columns.range(0..bases.start);
        let own = plan.size().bases;
        for (place, sum) in places(before.g1..before.g1 + own.g1).zip(made.g1) {
            outcome.sums.g1[place] = sum;
        }
        for (place, sum) in places(before.g2..before.g2 + own.g2).zip(made.g2) {
            outcome.sums.g2[place] = sum;
        }
        match next {
            Some(_) => staged = Some(slots),
            None => device.slots.keep(slots),
        }
    }
    Ok(())
}

/// Room for the columns of scalars that may stay.
fn room_for(device: &mut Device, vectors: &[Vector<'_, '_>]) -> Vec<Option<(ColumnId, KeptColumn)>> {
    let bytes = |vector: &Vector<'_, '_>| vector.scalars.len * SCALAR_BYTES;
    let id = |vector: &Vector<'_, '_>| column_of(&*vector.scalars.source, bytes(vector));
    let ids: Vec<ColumnId> = vectors.iter().filter_map(id).collect();
    let room = |vector| {
        let bytes = bytes(vector);
        let id = id(vector)?;
        match device.columns.find(&*vector.scalars.source, bytes) {
            Some(_) => None,
            None => Some((id, device.room_for_column(bytes, &ids)?)),
        }
    };
    vectors.iter().map(room).collect()
}

/// A run of the columns of points, and its plan.
type PlannedRun = (Range<u64>, MsmPlan);

/// The passes over columns of points and vectors of these lengths, the longest first.
pub(super) fn plans(
    device: &mut Device,
    bases: BasesSize,
    sizes: &[VectorSize],
    given_bytes: u64,
    resident: Option<&ResidentBases>,
) -> Result<Vec<Pass>, Stop> {
    let slot_bytes = device.slots.slot_bytes_of(given_bytes, false);
    let vram_bytes = device.vram_bytes_beside_bases(resident)?;
    let count = bases.columns.count();
    // Columns that are resident, or will be after a pass.
    let mut there = vec![resident.is_some_and(|resident| resident.are_resident); count as usize];
    let location = |there: &[bool], run: &Range<u64>| match there[run.start as usize..run.end as usize]
        .iter()
        .all(|is_there| *is_there)
    {
        true => BasesLocation::Resident,
        false => BasesLocation::Streamed,
    };
    let mut passes = Vec::new();
    let mut next = 0;
    while let Some(&VectorSize { len: points, .. }) = sizes.get(next) {
        let alike = sizes.partition_point(|size| size.len >= points.div_ceil(2));
        let group = next..alike;
        next = alike;
        let largest_bytes = sizes[group.clone()].iter().map(|size| size.lease_bytes).max();
        let largest_bytes = largest_bytes.unwrap_or(0).max(1);
        let mut best: Option<(f64, Vec<PlannedRun>)> = None;
        for runs in 1..=count {
            // The bytes for the ends of vectors, beside slots and the points of a run.
            let of_points = bases.lease_bytes / count * count.div_ceil(runs);
            let left_bytes = given_bytes.saturating_sub(UPLOAD_SLOTS as u64 * slot_bytes + of_points);
            if left_bytes < largest_bytes && runs < count {
                continue;
            }
            let of_run = |run: u64| {
                let run = count * run / runs..count * (run + 1) / runs;
                let size = SumsSize {
                    points,
                    bases: bases.columns.range(run.clone()),
                    location: location(&there, &run),
                    columns: group.len() as u64,
                };
                let (plan, cost) =
                    MsmPlan::of_passes(size, left_bytes / largest_bytes, vram_bytes, slot_bytes)?;
                Ok((cost, (run, plan)))
            };
            let planned: crate::Result<(Vec<f64>, Vec<_>)> = (0..runs).map(of_run).collect();
            let (costs, planned) = match planned {
                Err(error) if error.is_memory_short() && (runs < count || best.is_some()) => continue,
                planned => planned?,
            };
            let cost = costs.iter().sum();
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, planned));
            }
        }
        for (run, plan) in best.into_iter().flat_map(|(_, planned)| planned) {
            for first in group.clone().step_by(plan.columns() as usize) {
                let vectors = first..group.end.min(first + plan.columns() as usize);
                let size = SumsSize {
                    columns: vectors.len() as u64,
                    location: location(&there, &run),
                    ..plan.size()
                };
                passes.push(Pass {
                    plan: plan.for_sums(size)?,
                    bases: run.clone(),
                    vectors,
                });
                if resident.is_some() {
                    there[run.start as usize..run.end as usize].fill(true);
                }
            }
        }
    }
    Ok(passes)
}

/// The source of the passes: points, unless they are resident, and the scalars of the vectors of one pass.
struct Feed<'p, 'v, 'a> {
    bases: Vec<&'p mut (dyn ReadElements + 'a)>,
    vectors: &'p mut [Vector<'v, 'a>],
    passes: Vec<Pass>,
    current: usize,
    /// Whether the vectors are whole, and not a device's share of them.
    may_stay: bool,
}

impl Feed<'_, '_, '_> {
    /// Seconds in which the disk gives the points and the scalars of all passes.
    fn disk_seconds(&self) -> f64 {
        let scalars = self.vectors.iter();
        let scalars = scalars.map(|vector| vector.scalars.source.disk_seconds_to_read());
        let bases = self.bases.iter().map(|bases| bases.disk_seconds_to_read());
        bases.chain(scalars).sum()
    }

    /// Fills the slots with the start of a pass; the bytes in them.
    fn stage(&mut self, pass: usize, upload: &mut Upload) -> crate::Result<u64> {
        self.current = pass;
        let Some(Pass { plan, .. }) = self.passes.get(pass) else {
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
        let Some(Pass { plan, bases, vectors }) = self.passes.get(self.current) else {
            return Err("the pass does not exist".into());
        };
        let element_bytes = plan.element_bytes();
        let (first, count) = (offset / element_bytes, into.len() / element_bytes as usize);
        let mut arrivals = Arrivals::default();
        if plan.size().location == BasesLocation::Streamed {
            let bases = &mut self.bases[bases.start as usize..bases.end as usize];
            for (bases, group) in bases.iter_mut().zip(plan.size().bases.each()) {
                let points = into.take_first(count * group.point_bytes() as usize);
                arrivals.append(bases.begin(first, points)?);
            }
        }
        for vector in &mut self.vectors[vectors.clone()] {
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
) -> Result<Totals, Stop> {
    let mut source = columns_of(vec![(Group::G1, Box::new(bases))], scalars);
    let total_bytes = plan.points() * plan.element_bytes();
    slots.upload.stage(&plan.chunking()?, total_bytes, &mut source)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    Ok(device
        .msm(plan)?
        .sum_columns(PointSource::Stream, &mut slots.upload, &mut source)?)
}
