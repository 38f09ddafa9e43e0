//! Whole jobs for an accelerator, if the workspace has one: columns as ends that an [`Accelerator`] reads
//! from and writes to.
//!
//! Only BN254's types go there. What an accelerator declines the caller does, as if there were no
//! accelerator; a column that was half written is dropped. Memory while a job runs: two chunks for each
//! column that is read, a third where the accelerator asks for parts of chunks, and what a [`Writer`] takes;
//! for a transform in two steps what [`steps`] says. They are leased when the first element is asked for, so
//! a accelerator that declines at once costs nothing; and all is given back before the processor plans with
//! what the budget has left.
//!
//! A column on disk that is read upwards needs none of that where its frames can land in the accelerator's
//! own memory ([`InPlace`]): one frame, where parts end inside of one. Bytes are then not copied on the host,
//! and those of the next parts are on their way while one is checked; nor are those of a transform that goes to
//! disk. A column in memory is copied once, by all threads. Frames on disk do not land in memory that does
//! not begin at a page, holds no frame, or is write-combined. Nor do bases that are read downwards (they begin with
//! a short chunk, so no frame behind it stands on a page), and lines of a transform in two steps. All of these go
//! through buffers.

use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::Arc;

use ark_bn254::Fr;
use ark_ec::short_weierstrass::Projective;
use spillproof_format::GroupId;

mod steps;

use steps::{Moved, Parts, Steps};

use super::scalars::{ForeignScalars, Scalars};
use super::transform::Transform;
use crate::Error;
use crate::Result;
use crate::accelerator::{
    self, Accelerator, Answer, Arrivals, Groups, POINT_BYTES, POINT_BYTES_OF_G2, ReadElements, SCALAR_BYTES,
    Totals, WriteElements,
};
use crate::budget::{LeasedVec, Lent};
use crate::column::{
    Column, Draft, Element, InPlace, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Workspace, Writer,
    ascending, descending, digests_bytes,
};
use crate::dry::Job;
use crate::error::Invalid;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Chunks on the way for each reader.
const READ_AHEAD: usize = 2;
/// Scalars of another library that are converted at a time.
const FOREIGN_CHUNK: usize = 1 << 13;
/// Values that one thread writes as bytes at a time.
const ENCODED_AT_A_TIME: usize = 1 << 11;
/// The digests of an output take at most this part of what the budget has left.
const DIGESTS_SHARE: u64 = 256;

type Bytes<const N: usize> = Column<[u8; N]>;

/// Columns of points as an accelerator has them.
type Points = Groups<Vec<Bytes<POINT_BYTES>>, Vec<Bytes<POINT_BYTES_OF_G2>>>;

/// The sums by the accelerator, over one column of points; `None` if the processor has to make them.
pub(super) fn sums<P>(
    bases: &Column<Point<P>>,
    scalars: &[Scalars<'_, P::ScalarField>],
) -> Result<Option<Vec<Projective<P>>>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    let len = scalars.iter().map(Scalars::len).max().unwrap_or(0);
    let mut points = Points::default();
    if !enter::<P>(&mut points, bases, len)? {
        return Ok(None);
    }
    let totals = offered(bases.workspace(), &points, scalars)?;
    Ok(totals.map(|totals| of_group::<P>(&totals)))
}

/// Sums of the same scalars over several columns of points of two groups, by the accelerator in one job; `None` if
/// the processor has to make them.
///
/// # Errors
/// What the disk or the budget may give; [`Invalid::Region`] for more scalars than points.
pub fn sums_over<P, Q>(
    scalars: &Column<P::ScalarField>,
    first: &[&Column<Point<P>>],
    second: &[&Column<Point<Q>>],
) -> Result<Option<SumsOver<P, Q>>>
where
    P: Curve<ScalarField: Element>,
    Q: Curve<ScalarField = P::ScalarField>,
    Point<P>: Element,
    Point<Q>: Element,
{
    let mut points = Points::default();
    for bases in first {
        if !enter::<P>(&mut points, bases, scalars.len())? {
            return Ok(None);
        }
    }
    for bases in second {
        if !enter::<Q>(&mut points, bases, scalars.len())? {
            return Ok(None);
        }
    }
    let totals = offered(scalars.workspace(), &points, &[Scalars::Column(scalars)])?;
    Ok(totals.map(|totals| (of_group::<P>(&totals), of_group::<Q>(&totals))))
}

/// The sums over columns of two groups, each in the order of its columns.
pub type SumsOver<P, Q> = (Vec<Projective<P>>, Vec<Projective<Q>>);

/// Takes the first points of a column, if an accelerator may have those of its group.
fn enter<P: Curve>(points: &mut Points, bases: &Column<Point<P>>, len: u64) -> Result<bool>
where
    Point<P>: Element,
{
    let group = GroupId::of::<P>().filter(|group| group.curve == GroupId::BN254_G1.curve);
    match group.map(|group| group.degree) {
        Some(1) => points.g1.push(bases.prefix(len)?.cast()?),
        Some(2) => points.g2.push(bases.prefix(len)?.cast()?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// The sums that are of a group.
fn of_group<P: Curve>(totals: &Totals) -> Vec<Projective<P>> {
    let of_g1 = totals.g1.iter().filter_map(same);
    of_g1.chain(totals.g2.iter().filter_map(same)).collect()
}

/// Offers the sums of all columns of points with all scalars.
fn offered<F: Element>(
    workspace: &Workspace,
    bases: &Points,
    scalars: &[Scalars<'_, F>],
) -> Result<Option<Totals>> {
    let points = scalars.iter().map(Scalars::len).max().unwrap_or(0);
    let columns = scalars.iter().filter_map(|scalars| match scalars {
        Scalars::Column(column) => Some(column.frame_elements()),
        Scalars::Slice(_) | Scalars::Foreign(_) => None,
    });
    let of_g1 = bases.g1.iter().map(Column::frame_elements);
    let of_g2 = bases.g2.iter().map(Column::frame_elements);
    // All of them are powers of two.
    let step = columns.chain(of_g1).chain(of_g2).fold(1, u64::max);
    if let Some(dry_run) = workspace.dry_run() {
        let ends = |scalars: &Scalars<'_, F>| match scalars {
            Scalars::Column(column) => walk_bytes(column, column.sequential_chunk()),
            Scalars::Slice(_) | Scalars::Foreign(_) => 0,
        };
        let of_g1 = bases
            .g1
            .iter()
            .map(|bases| walk_bytes(bases, bases.sequential_chunk()));
        let of_g2 = bases
            .g2
            .iter()
            .map(|bases| walk_bytes(bases, bases.sequential_chunk()));
        let job = Job::Sums {
            points,
            bases: bases.counts(),
            columns: scalars.len() as u64,
            step: Some(step),
            bases_bytes: of_g1.chain(of_g2).sum(),
            scalars_bytes: scalars.iter().map(ends).max().unwrap_or(0),
        };
        dry_run.offered(job, 0);
        return Ok(None);
    }
    let Some(accelerator) = workspace.accelerator.as_deref() else {
        return Ok(None);
    };
    let mut job = sums_of(bases, scalars, 0..points, workspace)?;
    job.bases
        .g1
        .iter_mut()
        .zip(&bases.g1)
        .for_each(|(job, bases)| job.id = Some(bases.bases_id()));
    job.bases
        .g2
        .iter_mut()
        .zip(&bases.g2)
        .for_each(|(job, bases)| job.id = Some(bases.bases_id()));
    job.parts = Some(accelerator::Parts {
        step,
        of: Box::new(|points| sums_of(bases, scalars, points, workspace)),
    });
    let (count, answer) = (job.counts(), accelerator.sums(&mut job, &workspace.budget)?);
    drop(job);
    match answer {
        Answer::Done(totals) if totals.counts() == count => Ok(Some(totals)),
        Answer::Done(totals) => Err(wrong_answer(format!(
            "{:?} sums, where {count:?} were asked for",
            totals.counts()
        ))),
        Answer::Declined(why) => Ok(declined("sums", &why)),
    }
}

/// Bytes that a walk over a column leases between its first element and its last: chunks on the way, and the
/// tile.
fn walk_bytes<E: Element>(column: &Column<E>, chunk: u64) -> u64 {
    (READ_AHEAD as u64 + 1) * column.transfer_bytes(chunk)
}

/// The ends of the sums over a range of the bases.
fn sums_of<'a, F: Element>(
    bases: &Points,
    scalars: &[Scalars<'a, F>],
    points: Range<u64>,
    workspace: &Workspace,
) -> Result<accelerator::Sums<'a>> {
    let vectors = scalars.iter().map(|scalars| {
        let last = points.end.min(scalars.len());
        let own = points.start.min(last)..last;
        Ok(accelerator::Scalars {
            len: own.end - own.start,
            source: source_of(scalars, own, workspace)?,
        })
    });
    Ok(accelerator::Sums {
        scalars: vectors.collect::<Result<_>>()?,
        bases: Groups {
            g1: parts_of(&bases.g1, &points)?,
            g2: parts_of(&bases.g2, &points)?,
        },
        parts: None,
    })
}

/// A range of each column of points.
fn parts_of<'a, const N: usize>(
    columns: &[Bytes<N>],
    points: &Range<u64>,
) -> Result<Vec<accelerator::Bases<'a>>> {
    let part = |column: &Bytes<N>| {
        Ok(accelerator::Bases {
            source: Box::new(Walk::upwards(
                column.part(points.start, points.end - points.start)?,
            )),
            id: None,
        })
    };
    columns.iter().map(part).collect()
}

/// The sum by the accelerator of scalars that are made as they are asked for, over bases in descending
/// chunks, each in its own upward order; `None` if the processor has to make it.
pub fn descending_sum<P: Curve>(
    bases: &Column<Point<P>>,
    chunk: u64,
    scalars: &mut dyn ReadElements,
) -> Result<Option<Projective<P>>> {
    let workspace = bases.workspace();
    if GroupId::of::<P>() != Some(GroupId::BN254_G1) {
        return Ok(None);
    }
    if let Some(dry_run) = workspace.dry_run() {
        let job = Job::Sums {
            points: bases.len(),
            bases: Groups { g1: 1, g2: 0 },
            columns: 1,
            step: None,
            bases_bytes: walk_bytes(bases, chunk),
            scalars_bytes: 0,
        };
        dry_run.offered(job, 0);
        return Ok(None);
    }
    let Some(accelerator) = workspace.accelerator.as_deref() else {
        return Ok(None);
    };
    let mut job = accelerator::Sums {
        bases: Groups {
            g1: vec![accelerator::Bases {
                source: Box::new(Walk::downwards(bases.cast::<[u8; POINT_BYTES]>()?, chunk)),
                // Not in their own order.
                id: None,
            }],
            g2: Vec::new(),
        },
        scalars: vec![accelerator::Scalars {
            len: bases.len(),
            source: Box::new(|first: u64, into: &mut [u8]| scalars.read(first, into)),
        }],
        // They can only be made in this order.
        parts: None,
    };
    match accelerator.sums(&mut job, &workspace.budget)? {
        Answer::Done(totals) => match (&totals.g1[..], &totals.g2[..]) {
            ([sum], []) => Ok(same(sum)),
            _ => Err(wrong_answer(format!("{:?} sums of one vector", totals.counts()))),
        },
        Answer::Declined(why) => Ok(declined("sums", &why)),
    }
}

/// The transform by the accelerator; `None` if the processor has to make it, which it would in so many passes over
/// the disk.
pub(super) fn transform<F: KernelField + Element>(
    input: &Column<F>,
    transform: &Transform<F>,
    placement: Placement,
    passes: u64,
) -> Result<Option<Column<F>>> {
    let workspace = input.workspace();
    let Some(transform) = (transform as &dyn Any).downcast_ref::<Transform<Fr>>() else {
        return Ok(None);
    };
    if let Some(dry_run) = workspace.dry_run() {
        let log_n = transform.log_n;
        dry_run.offered(Job::Transform { log_n }, 0);
        return Ok(None);
    }
    let Some(accelerator) = workspace.accelerator.as_deref() else {
        return Ok(None);
    };
    let n = 1u64 << transform.log_n;
    if input.len() > n {
        // Refused, in the processor's words.
        return Ok(None);
    }
    let mut output = Output {
        make: || {
            // Plain bytes go to disk from where they are, and keep digests in memory; scalars take theirs
            // along in a copy.
            let bytes = n * SCALAR_BYTES as u64;
            if digests_bytes::<[u8; SCALAR_BYTES]>(bytes, SCRATCH_FRAME_BYTES as u64)
                <= workspace.budget.available_bytes() / DIGESTS_SHARE
            {
                return Writer::scratch(workspace, "transform", n, placement);
            }
            let draft = Draft::<Fr>::scratch(workspace, "transform", n, placement)?;
            Ok(Writer::new(draft.cast()?))
        },
        writer: None,
        // Where it will be is not known yet if that depends on the budget.
        written_bytes: match placement {
            Placement::Disk => n * SCALAR_BYTES as u64,
            Placement::Memory => 0,
            _ if input.on_disk() => n * SCALAR_BYTES as u64,
            _ => 0,
        },
        workspace,
    };
    let moved = Moved {
        written_bytes: output.written_bytes,
        passes,
    };
    let mut steps = Steps::new(input.cast()?, transform.log_n, placement, moved);
    let answer = run_transform(accelerator, input, transform, (&mut output, &mut steps));
    let why = match (answer, output.writer.take(), steps.parts.take()) {
        (Ok(Answer::Done(())), Some(writer), None) => return writer.finish()?.cast().map(Some),
        (Ok(Answer::Done(())), None, Some(parts)) => return parts.finish()?.cast().map(Some),
        (Ok(Answer::Done(())), None, None) => {
            Err(wrong_answer("a transform of which nothing was written".into()))
        }
        (answer, writer, parts) => {
            writer.into_iter().for_each(Writer::abandon);
            parts.into_iter().for_each(Parts::abandon);
            match answer? {
                Answer::Declined(why) => Ok(why),
                Answer::Done(()) => Err(wrong_answer("a transform that was written in two ways".into())),
            }
        }
    };
    Ok(declined("transform", &why?))
}

/// Whether transforms of `2^log_n` elements are offered one by one, instead of sharing their passes.
pub(super) fn takes_transforms<F: 'static>(workspace: &Workspace, log_n: u32) -> bool {
    let Some(accelerator) = workspace.accelerator.as_deref() else {
        return false;
    };
    TypeId::of::<F>() == TypeId::of::<Fr>() && accelerator.would_transform(log_n, &workspace.budget)
}

fn run_transform<F: KernelField + Element>(
    accelerator: &dyn Accelerator,
    input: &Column<F>,
    transform: &Transform<Fr>,
    (output, steps): (impl WriteElements, &mut Steps),
) -> Result<Answer<()>> {
    let Transform {
        log_n,
        omega,
        before,
        after,
        scale,
    } = *transform;
    let mut job = accelerator::Transform {
        log_n,
        omega,
        before,
        after,
        scale,
        input: Box::new(Walk::upwards(input.cast::<[u8; SCALAR_BYTES]>()?)),
        output: Box::new(output),
        in_steps: Box::new(steps),
    };
    accelerator.transform(&mut job, &input.workspace().budget)
}

/// Says why, and that the processor has to do it.
pub fn declined<T>(what: &str, why: &str) -> Option<T> {
    tracing::debug!(what, why, "the accelerator declined");
    None
}

/// For an answer that cannot be.
pub fn wrong_answer(answer: String) -> Error {
    Invalid::AcceleratorAnswer { answer }.into()
}

/// The same value, whose type has two names here; none if they are not one type after all.
fn same<A: Any, B: Any + Copy>(value: &A) -> Option<B> {
    (value as &dyn Any).downcast_ref::<B>().copied()
}

/// Those of a range, from its first as 0 on.
fn source_of<'a, F: Element>(
    scalars: &Scalars<'a, F>,
    range: Range<u64>,
    workspace: &Workspace,
) -> Result<Box<dyn ReadElements + 'a>> {
    let (start, len) = (range.start, range.end - range.start);
    // What is in memory has fewer than `usize::MAX`.
    let (first, last) = (start as usize, range.end as usize);
    Ok(match *scalars {
        // An empty range may begin inside of a frame.
        Scalars::Column(_) if len == 0 => Box::new(|first: u64, _: &mut [u8]| Err(beyond(first, 0))),
        Scalars::Column(column) => {
            let column = column.cast::<[u8; SCALAR_BYTES]>()?;
            Box::new(Walk::upwards(column.part(start, len)?))
        }
        Scalars::Slice(values) => {
            let values = values
                .get(first..last)
                .ok_or_else(|| beyond(start, len as usize))?;
            let workspace = workspace.clone();
            Box::new(move |first: u64, into: &mut [u8]| {
                let start = usize::try_from(first).unwrap_or(usize::MAX);
                let count = into.len() / SCALAR_BYTES;
                let values = values
                    .get(start..)
                    .and_then(|rest| rest.get(..count))
                    .ok_or_else(|| beyond(first, count))?;
                encode(&workspace, values, into)
            })
        }
        Scalars::Foreign(values) => Box::new(Foreign {
            values,
            range: first..last,
            workspace: workspace.clone(),
            tile: None,
        }),
    })
}

/// Writes values as bytes, on all threads.
fn encode<F: Element>(workspace: &Workspace, values: &[F], out: &mut [u8]) -> Result<()> {
    let jobs = (values.chunks(ENCODED_AT_A_TIME)).zip(out.chunks_mut(ENCODED_AT_A_TIME * F::BYTES));
    let encode = |(values, out): (&[F], &mut [u8])| {
        for (value, out) in values.iter().zip(out.chunks_exact_mut(F::BYTES)) {
            value.encode(out);
        }
    };
    match values.len() <= ENCODED_AT_A_TIME {
        true => jobs.for_each(encode),
        false => workspace.spread(|| jobs.parallel().for_each(encode))?,
    }
    Ok(())
}

/// For elements that there are not, or not in this order.
pub fn beyond(first: u64, count: usize) -> Error {
    Invalid::AcceleratorElements { first, count }.into()
}

/// A range of another library's scalars, through a tile.
struct Foreign<'a, F: Copy> {
    values: &'a dyn ForeignScalars<F>,
    range: Range<usize>,
    workspace: Workspace,
    tile: Option<LeasedVec<F>>,
}

impl<F: Element> ReadElements for Foreign<'_, F> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        let count = into.len() / SCALAR_BYTES;
        let start = usize::try_from(first)
            .ok()
            .and_then(|first| self.range.start.checked_add(first))
            .filter(|start| start.saturating_add(count) <= self.range.end)
            .ok_or_else(|| beyond(first, count))?;
        let tile = match &mut self.tile {
            Some(tile) => tile,
            none => {
                let len = FOREIGN_CHUNK.min(self.range.len());
                let zero = F::decode(&[0; SCALAR_BYTES]);
                let budget = &self.workspace.budget;
                none.insert(budget.vec(len, zero, "scalars for a compute accelerator")?)
            }
        };
        let starts = (start..).step_by(tile.len());
        for (start, out) in starts.zip(into.chunks_mut(tile.len() * SCALAR_BYTES)) {
            let values = &mut tile[..out.len() / SCALAR_BYTES];
            self.values.fill(start, values);
            encode(&self.workspace, values, out)?;
        }
        if start + count == self.range.end {
            self.tile = None;
        }
        Ok(())
    }

    fn lease_bytes(&self) -> u64 {
        (FOREIGN_CHUNK.min(self.range.len()) * size_of::<F>()) as u64
    }
}

/// A column in chunks, upwards or downwards, zeros behind the last: in place, or whole chunks to where they
/// are wanted, parts of one by way of a tile.
struct Walk<const N: usize> {
    column: Bytes<N>,
    chunk: u64,
    downwards: bool,
    in_place: Option<InPlace<N>>,
    reader: Option<Reader<[u8; N]>>,
    /// The element that is asked for next.
    next: u64,
    /// Chunks that the reader has not given.
    regions: Box<dyn Iterator<Item = Region>>,
    tile: Option<LeasedVec<[u8; N]>>,
    /// Of the tile, what has been read and not passed on.
    held: Range<usize>,
}

impl<const N: usize> Walk<N> {
    fn upwards(column: Bytes<N>) -> Self {
        let chunk = column.sequential_chunk();
        Self::new(column, chunk, false)
    }

    /// The last chunk first, each in its own upward order.
    fn downwards(column: Bytes<N>, chunk: u64) -> Self {
        Self::new(column, chunk, true)
    }

    fn new(column: Bytes<N>, chunk: u64, downwards: bool) -> Self {
        Self {
            column,
            chunk,
            downwards,
            in_place: None,
            reader: None,
            next: 0,
            regions: Box::new(std::iter::empty()),
            tile: None,
            held: 0..0,
        }
    }

    /// Begins with what is asked for as element `first`: 0, or where upwards it goes on by way of buffers.
    fn begin_reader(&mut self, first: u64) -> Result<()> {
        self.abandon();
        let (len, chunk) = (self.column.len(), self.chunk);
        let (chunks, skipped) = match self.downwards {
            true => self.chunks_before(first),
            false => (first / chunk, first % chunk),
        };
        self.reader = Some(if self.downwards {
            let regions = descending(len, chunk).skip(chunks as usize);
            self.regions = Box::new(regions.clone());
            self.column.reader(regions, READ_AHEAD)?
        } else {
            let regions = ascending(len, chunk).skip(chunks as usize);
            self.regions = Box::new(regions.clone());
            self.column.reader(regions, READ_AHEAD)?
        });
        (self.next, self.held) = (first, 0..0);
        let skipped = skipped as usize;
        if skipped > 0
            && let Some(region) = self.next_region()
        {
            self.next_to_tile(region.len() as usize)?;
            self.held.start = skipped.min(self.held.end);
        }
        Ok(())
    }

    /// What the reader gives next; there is none without a reader.
    fn next_region(&mut self) -> Option<Region> {
        self.reader.as_ref()?;
        self.regions.next()
    }

    /// The reader's next chunk, of so many elements, to the tile.
    fn next_to_tile(&mut self, elements: usize) -> Result<()> {
        let tile = match &mut self.tile {
            Some(tile) => tile,
            none => {
                let len = self.chunk.min(self.column.len()) as usize;
                let budget = &self.column.workspace().budget;
                none.insert(budget.vec(len, [0; N], "elements for a compute accelerator")?)
            }
        };
        if let Some(reader) = &mut self.reader {
            reader.next_into(tile)?;
        }
        self.held = 0..elements;
        Ok(())
    }

    /// The rest of a part, by way of buffers.
    fn read_on(&mut self, mut into: &mut [[u8; N]]) -> Result<()> {
        self.next += into.len() as u64;
        while !into.is_empty() {
            let count = self.some(into)?;
            into = &mut into[count..];
        }
        if self.next >= self.column.len() {
            // Others that are read after this one want the room.
            self.tile = None;
        }
        Ok(())
    }

    /// Elements, and that they are the ones to be asked for.
    fn in_order<'a>(&self, first: u64, into: &'a mut [u8]) -> Result<&'a mut [[u8; N]]> {
        let (elements, rest) = into.as_chunks_mut::<N>();
        if first != self.next || !rest.is_empty() {
            return Err(beyond(first, elements.len()));
        }
        Ok(elements)
    }

    /// Copies elements of a column in memory, as [`ReadElements::read`] gives them; `false` if it is not there, or
    /// was read otherwise before.
    fn copy(&mut self, first: u64, into: &mut [u8]) -> Result<bool> {
        if self.reader.is_some() || self.in_place.is_some() {
            return Ok(false);
        }
        let (len, mut next, mut rest) = (self.column.len(), first, into);
        let count = (rest.len() / N) as u64;
        if first != self.next || !rest.len().is_multiple_of(N) {
            return Err(beyond(first, rest.len() / N));
        }
        while !rest.is_empty() && next < len {
            let (start, left) = self.place(next);
            let bytes = rest.len().min(left as usize * N);
            let (part, later) = rest.split_at_mut(bytes);
            if !self.column.copy_out(start, part)? {
                return Ok(false);
            }
            (rest, next) = (later, next + (bytes / N) as u64);
        }
        rest.fill(0);
        self.next += count;
        Ok(true)
    }

    /// Where the element that is asked for as `position` is in the column, and how many follow it there.
    fn place(&self, position: u64) -> (u64, u64) {
        let (len, chunk) = (self.column.len(), self.chunk);
        if !self.downwards {
            return (position, len - position);
        }
        let (chunks, within) = self.chunks_before(position);
        let start = (len.div_ceil(chunk) - 1 - chunks) * chunk;
        (start + within, chunk.min(len - start) - within)
    }

    /// Of a column that is read downwards, the chunks before the element that is asked for as `position`, and the
    /// elements of its own chunk: the last chunk, which is first, may be short.
    fn chunks_before(&self, position: u64) -> (u64, u64) {
        let (len, chunk) = (self.column.len(), self.chunk);
        let of_first = len - (len.div_ceil(chunk).max(1) - 1) * chunk;
        match position.checked_sub(of_first) {
            None => (0, position),
            Some(behind) => (1 + behind / chunk, behind % chunk),
        }
    }

    /// Some of what comes next, at the start of `into`; how many.
    fn some(&mut self, into: &mut [[u8; N]]) -> Result<usize> {
        if self.held.is_empty() {
            let Some(region) = self.next_region() else {
                into.fill([0; N]);
                return Ok(into.len());
            };
            let coming = region.len() as usize;
            if coming <= into.len()
                && let Some(reader) = &mut self.reader
            {
                reader.next_into(into)?;
                return Ok(coming);
            }
            self.next_to_tile(coming)?;
        }
        let count = self.held.len().min(into.len());
        if let Some(tile) = &self.tile {
            into[..count].copy_from_slice(&tile[self.held.start..][..count]);
        }
        self.held.start += count;
        Ok(count)
    }

    /// Read-ahead that is still under way holds its leases.
    fn abandon(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.abandon();
        }
    }
}

impl<const N: usize> Drop for Walk<N> {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl<const N: usize> ReadElements for Walk<N> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        if first == 0 {
            self.next = 0;
        }
        if self.copy(first, into)? {
            return Ok(());
        }
        let into = self.in_order(first, into)?;
        if first == 0 || self.in_place.take().is_some() || self.reader.is_none() {
            self.in_place = None;
            self.begin_reader(first)?;
        }
        self.read_on(into)
    }

    fn begin(&mut self, first: u64, mut into: Lent) -> Result<Arrivals> {
        if first == 0 {
            self.abandon();
            self.next = 0;
            self.in_place = match self.downwards {
                true => None,
                false => InPlace::of(&self.column, &into),
            };
        }
        let Some(in_place) = &mut self.in_place else {
            self.read(first, &mut into)?;
            return Ok(Arrivals::default());
        };
        let count = (into.len() / N) as u64;
        if first != self.next || !into.len().is_multiple_of(N) {
            return Err(beyond(first, into.len() / N));
        }
        let workspace = self.column.workspace().clone();
        let mut arrivals = Arrivals::by(Arc::new(move |work| workspace.spread(work)));
        let left = in_place.begin(first, into, &mut arrivals)?;
        self.next += count;
        if let Some(mut left) = left {
            // It turned out that nothing lands there.
            self.in_place = None;
            self.next -= (left.len() / N) as u64;
            self.begin_reader(self.next)?;
            let (rest, _) = left.as_chunks_mut::<N>();
            self.read_on(rest)?;
        }
        Ok(arrivals)
    }

    fn disk_seconds_to_read(&self) -> f64 {
        match self.column.on_disk() {
            true => (self.column.workspace()).disk_seconds(self.column.len() * N as u64, 0),
            false => 0.0,
        }
    }

    fn lease_bytes(&self) -> u64 {
        walk_bytes(&self.column, self.chunk)
    }
}

/// A column that is made when the first element comes, since an accelerator may decline before.
struct Output<'a, M> {
    make: M,
    writer: Option<Writer<[u8; SCALAR_BYTES]>>,
    /// Bytes that go to the disk.
    written_bytes: u64,
    workspace: &'a Workspace,
}

impl<M: Fn() -> Result<Writer<[u8; SCALAR_BYTES]>>> WriteElements for &mut Output<'_, M> {
    fn disk_seconds_to_write(&self) -> f64 {
        self.workspace.disk_seconds(0, self.written_bytes)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        if first == 0
            && let Some(void) = self.writer.take()
        {
            void.abandon();
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert((self.make)()?),
        };
        writer.push_in_place(bytes)
    }
}
