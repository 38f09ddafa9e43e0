//! Whole jobs for an accelerator, if the workspace has one: columns as ends that an [`Accelerator`] reads
//! from and writes to.
//!
//! Only BN254's types go there. What an accelerator declines the caller does, as if there were no
//! accelerator; a column that was half written is dropped. Memory while a job runs: two chunks for each
//! column that is read, a third where the accelerator asks for parts of chunks, and what a [`Writer`] takes;
//! for a transform in two steps what [`steps`] says; less for columns that need no reader ([`walk`]). They are
//! leased when the first element is asked for, so an accelerator that declines at once costs nothing; and all is
//! given back before the processor plans with what the budget has left.

use std::any::{Any, TypeId};
use std::ops::Range;

use ark_bn254::Fr;
use ark_ec::short_weierstrass::Projective;
use spillproof_format::GroupId;

mod constraints;
mod of_terms;
mod panel;
mod steps;
mod walk;

pub use constraints::{System, system_quotient};
pub use of_terms::sums_of_terms;
pub(super) use panel::{Tried, half_of, offer_panel, panel};

use steps::{Moved, Parts, Steps};
use walk::{Walk, walk_bytes};

use super::scalars::{ForeignScalars, Scalars};
use super::transform::Transform;
use crate::Error;
use crate::Result;
use crate::accelerator::{
    self, Accelerator, Answer, ColumnId, Groups, POINT_BYTES, POINT_BYTES_OF_G2, ReadElements, SCALAR_BYTES,
    Totals, WriteElements,
};
use crate::budget::LeasedVec;
use crate::column::{
    Column, Draft, Element, Placement, SCRATCH_FRAME_BYTES, Workspace, Writer, digests_bytes,
};
use crate::dry::Job;
use crate::error::Invalid;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

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
/// the processor has to make them, none of the second group if it has to make those.
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
    let Some(points) = points_of::<P, Q>(first, second, |_| scalars.len())? else {
        return Ok(None);
    };
    let totals = offered(scalars.workspace(), &points, &[Scalars::Column(scalars)])?;
    Ok(totals.map(|totals| (of_group::<P>(&totals), of_group::<Q>(&totals))))
}

/// The sums over columns of two groups, each in the order of its columns.
pub type SumsOver<P, Q> = (Vec<Projective<P>>, Vec<Projective<Q>>);

/// The first points of columns of two groups, `len` of those of each column; `None` if no accelerator may have them.
fn points_of<P: Curve, Q: Curve>(
    first: &[&Column<Point<P>>],
    second: &[&Column<Point<Q>>],
    len: impl Fn(u64) -> u64,
) -> Result<Option<Points>>
where
    Point<P>: Element,
    Point<Q>: Element,
{
    let mut points = Points::default();
    for bases in first {
        if !enter::<P>(&mut points, bases, len(bases.len()))? {
            return Ok(None);
        }
    }
    for bases in second {
        if !enter::<Q>(&mut points, bases, len(bases.len()))? {
            return Ok(None);
        }
    }
    Ok(Some(points))
}

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
        .for_each(|(job, bases)| job.id = Some(bases.column_id()));
    job.bases
        .g2
        .iter_mut()
        .zip(&bases.g2)
        .for_each(|(job, bases)| job.id = Some(bases.column_id()));
    job.parts = Some(accelerator::Parts {
        step,
        of: Box::new(|points| sums_of(bases, scalars, points, workspace)),
    });
    asked(accelerator, job, workspace)
}

/// What an accelerator makes of sums; `None` if the processor has to make them.
fn asked(
    accelerator: &dyn Accelerator,
    mut job: accelerator::Sums<'_>,
    workspace: &Workspace,
) -> Result<Option<Totals>> {
    let (count, answer) = (job.counts(), accelerator.sums(&mut job, &workspace.budget)?);
    drop(job);
    match answer {
        Answer::Done(totals) if is_answer(totals.counts(), count) => Ok(Some(totals)),
        Answer::Done(totals) => Err(wrong_answer(format!(
            "{:?} sums, where {count:?} were asked for",
            totals.counts()
        ))),
        Answer::Declined(why) => Ok(declined("sums", &why)),
    }
}

/// Whether there are as many sums as were asked for, or all of G1 and none of G2.
fn is_answer(made: Groups<u64>, asked: Groups<u64>) -> bool {
    made == asked || (made.g1 == asked.g1 && made.g1 > 0 && made.g2 == 0)
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
    let mut output = Output::new(input, n, placement);
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
        input: elements_of(input)?,
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

/// A column of scalars as an accelerator reads it.
///
/// # Errors
/// [`Invalid`] for elements that are no scalars.
pub fn elements_of<F: Element>(column: &Column<F>) -> Result<Box<dyn ReadElements>> {
    Ok(Box::new(Walk::upwards(column.cast::<[u8; SCALAR_BYTES]>()?)))
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

/// A column that is made when the first element comes, since an accelerator may decline before.
struct Output<'a> {
    workspace: &'a Workspace,
    len: u64,
    placement: Placement,
    writer: Option<Writer<[u8; SCALAR_BYTES]>>,
    /// Bytes that go to the disk.
    written_bytes: u64,
}

impl<'a> Output<'a> {
    /// Of so many elements, made of a column.
    fn new<F: Element>(input: &'a Column<F>, len: u64, placement: Placement) -> Self {
        let bytes = len * SCALAR_BYTES as u64;
        Self {
            workspace: input.workspace(),
            len,
            placement,
            writer: None,
            // Where it will be is not known yet if that depends on the budget.
            written_bytes: match placement {
                Placement::Disk => bytes,
                Placement::Memory => 0,
                _ if input.on_disk() => bytes,
                _ => 0,
            },
        }
    }

    fn made(&self) -> Result<Writer<[u8; SCALAR_BYTES]>> {
        let (workspace, len) = (self.workspace, self.len);
        // Plain bytes go to disk from where they are, and keep digests in memory; scalars take theirs along in a copy.
        let bytes =
            digests_bytes::<[u8; SCALAR_BYTES]>(len * SCALAR_BYTES as u64, SCRATCH_FRAME_BYTES as u64);
        if bytes <= workspace.budget.available_bytes() / DIGESTS_SHARE {
            return Writer::scratch(workspace, "transform", len, self.placement);
        }
        let draft = Draft::<Fr>::scratch(workspace, "transform", len, self.placement)?;
        Ok(Writer::new(draft.cast()?))
    }
}

impl WriteElements for &mut Output<'_> {
    fn column_id(&self) -> Option<ColumnId> {
        self.writer.as_ref().map(Writer::column_id)
    }

    fn disk_seconds_to_write(&self) -> f64 {
        self.workspace.disk_seconds(0, self.written_bytes)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        if first == 0
            && let Some(void) = self.writer.take()
        {
            void.abandon();
        }
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.made()?,
        };
        self.writer.insert(writer).push_in_place(bytes)
    }
}
