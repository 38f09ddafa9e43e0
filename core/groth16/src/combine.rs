//! Linear combinations of points by signal: what a setup makes of the points of the rows.
//!
//! Of the terms (row, signal, value) of a matrix and a point for each row, the sum of `value * points[row]`
//! over the terms of each signal.
//!
//! Algorithm: the sums of a range of signals are in memory. For each range the terms are read once, in the
//! order of rows, and the points beside them. The terms of a chunk that are in the range are sorted by
//! signal; points of other values than one and minus one are multiplied, those of a value together
//! ([`Multiplier`]), then the points of a signal are added up in a tree, and what is left to the signal's
//! sum, many additions to one inversion. Each thread has the signals of a part of the chunk. No order of
//! signals costs more than another.
//!
//! Memory: the distinct values; a chunk of terms, points and products; the sums of a range, in what is left.
//! Passes: as many as ranges.

use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use super::{Coefficient, Constraints};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::{Lease, LeasedVec};
use spillproof_engine::column::{Column, Element, Reader, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::msm::BucketAdder;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::points::{BLOCK_POINTS_MIN, Multiplier};

/// Terms that are worked on at a time, and points of rows in memory: the largest and the smallest number.
const CHUNK_MAX: u64 = 1 << 15;
const CHUNK_MIN: u64 = 1 << 10;
/// Points of one value that are multiplied by themselves at least.
const RUN_MIN: usize = 64;
/// Points in a block of the multiplier at most.
const BLOCK_POINTS_MAX: usize = 512;

/// The terms of one matrix over points, one for each row.
pub(crate) struct Source<'a, P: Curve>
where
    Point<P>: Element,
{
    pub matrix: u32,
    pub points: &'a Column<Point<P>>,
}

/// Pushes the sums of `signals` signals over all sources. `constraints` may have any matrices.
///
/// # Errors
/// [`Error::BudgetTooSmall`], [`Error::OverBudget`]; what reading and writing columns may give.
pub(crate) fn combine<P>(
    constraints: &Constraints<P::ScalarField>,
    sources: &[Source<'_, P>],
    signals: u64,
    writer: &mut Writer<Point<P>>,
) -> Result<()>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    let workspace = constraints.coefficients().workspace();
    workspace.run(|| {
        let mut combiner = Combiner::<P>::new(workspace, constraints, sources, signals)?;
        let range = combiner.sums.len() as u64;
        let mut first = 0;
        while first < signals {
            let last = signals.min(first + range);
            combiner.range(first..last, constraints, sources)?;
            writer.push(&combiner.sums[..(last - first) as usize])?;
            first = last;
        }
        Ok(())
    })
}

/// A term of a chunk.
#[derive(Clone, Copy, Default)]
struct Term {
    /// From the first of the range.
    signal: u32,
    /// From the first of the points in memory.
    row: u32,
    value: u32,
}

/// The terms of a signal that are still to be added up, in the chunk's points.
#[derive(Clone, Copy)]
struct Run {
    signal: u32,
    start: u32,
    len: u32,
}

/// The buffers of a pass.
struct Combiner<P: Curve> {
    values: LeasedVec<P::ScalarField>,
    /// Places of one and minus one among the values.
    ones: [Option<u32>; 2],
    chunk: usize,
    coefficients: LeasedVec<Coefficient>,
    rows: LeasedVec<Point<P>>,
    terms: LeasedVec<Term>,
    points: LeasedVec<Point<P>>,
    products: LeasedVec<Point<P>>,
    factors: LeasedVec<P::ScalarField>,
    /// Values and places of the terms that are multiplied.
    others: LeasedVec<[u32; 2]>,
    multiplier: Multiplier<P>,
    adders: Vec<BucketAdder<P>>,
    sums: LeasedVec<Point<P>>,
    _kernels: Lease,
}

impl<P> Combiner<P>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    fn new(
        workspace: &Workspace,
        constraints: &Constraints<P::ScalarField>,
        sources: &[Source<'_, P>],
        signals: u64,
    ) -> Result<Self> {
        let budget = &workspace.budget;
        let threads = rayon::current_num_threads();
        let count = constraints.values().len() as usize;
        let mut values = budget.vec(count, P::ScalarField::ZERO, "values of coefficients")?;
        let tile = constraints.values().sequential_chunk();
        let mut reader = constraints.values().read_ascending(tile)?;
        for part in values.chunks_mut(tile as usize) {
            reader.next_into(part)?;
        }
        drop(reader);
        let kernels_bytes = |block_points| {
            Multiplier::<P>::bytes(threads, block_points) + threads as u64 * BucketAdder::<P>::bytes()
        };
        let point_bytes = Point::<P>::BYTES as u64;
        // Terms, points, products and factors of a chunk, its readers, queues of its additions, and three
        // buffers of the writer.
        let beside_bytes = |chunk: u64, block_points| {
            let each = 16 + size_of::<Term>() as u64 + 3 * point_bytes + 32 + 8 + 24;
            let read = constraints.coefficients().reader_bytes(chunk, 2)
                + (sources.iter().map(|source| source.points.reader_bytes(chunk, 2)))
                    .max()
                    .unwrap_or(0);
            kernels_bytes(block_points) + chunk * each + read + 3 * (1 << 20).min(chunk * point_bytes)
        };
        let available_bytes = budget.available_bytes();
        let sizes = [
            (CHUNK_MAX, BLOCK_POINTS_MAX),
            (CHUNK_MAX / 4, BLOCK_POINTS_MAX),
            (CHUNK_MIN, BLOCK_POINTS_MIN),
        ];
        // A larger chunk is quicker, and so are fewer passes.
        let found = sizes.into_iter().find(|(chunk, block)| {
            let left_bytes = available_bytes.saturating_sub(beside_bytes(*chunk, *block));
            left_bytes
                >= (signals * point_bytes)
                    .min(available_bytes / 2)
                    .max(CHUNK_MIN * point_bytes)
        });
        let Some((chunk, block_points)) = found else {
            let needed_bytes = 2 * beside_bytes(CHUNK_MIN, BLOCK_POINTS_MIN) + CHUNK_MIN * point_bytes;
            return Err(Error::BudgetTooSmall {
                what: format!(
                    "linear combinations of points beside {} bytes held",
                    budget.held_bytes()
                ),
                needed_bytes: needed_bytes + budget.held_bytes(),
                limit_bytes: budget.limit_bytes(),
            });
        };
        let left_bytes = available_bytes - beside_bytes(chunk, block_points);
        let range = signals.min(left_bytes / point_bytes - CHUNK_MIN / 2).max(1);
        let one = P::ScalarField::ONE;
        let place = |one: P::ScalarField| {
            let place = values.iter().position(|value| *value == one)?;
            Some(place as u32)
        };
        let ones = [place(one), place(-one)];
        let chunk = chunk as usize;
        let points = |what| budget.vec(chunk, Point::<P>::INFINITY, what);
        Ok(Self {
            ones,
            values,
            chunk,
            coefficients: budget.vec(chunk, Coefficient::default(), "terms")?,
            rows: points("points of rows")?,
            terms: budget.vec(chunk, Term::default(), "terms")?,
            points: points("points of terms")?,
            products: points("products of points")?,
            others: budget.vec(chunk, [0; 2], "places of products")?,
            factors: budget.vec(chunk, P::ScalarField::ZERO, "factors of points")?,
            _kernels: budget.lease(
                kernels_bytes(block_points) + 24 * chunk as u64,
                "multiples of points",
            )?,
            multiplier: Multiplier::new(Backend::detect(), block_points),
            adders: (0..threads).map(|_| BucketAdder::on(Backend::detect())).collect(),
            sums: budget.vec(range as usize, Point::<P>::INFINITY, "sums of points")?,
        })
    }

    /// The sums of a range of signals.
    fn range(
        &mut self,
        signals: Range<u64>,
        constraints: &Constraints<P::ScalarField>,
        sources: &[Source<'_, P>],
    ) -> Result<()> {
        self.sums.fill(Point::<P>::INFINITY);
        for source in sources {
            let mut coefficients = constraints.coefficients().read_ascending(self.chunk as u64)?;
            let mut rows = Rows::<P> {
                reader: source.points.read_ascending(self.chunk as u64)?,
                first: 0,
                end: 0,
            };
            let mut queued = 0;
            while let Some(region) = coefficients.next_into(&mut self.coefficients)? {
                for at in 0..region.len() as usize {
                    let term = self.coefficients[at];
                    let is_wanted = term.matrix == source.matrix && signals.contains(&u64::from(term.signal));
                    if !is_wanted {
                        continue;
                    }
                    let row = u64::from(term.row);
                    if row >= rows.end || queued == self.chunk {
                        self.add_queued(queued);
                        queued = 0;
                    }
                    while row >= rows.end {
                        rows.advance(&mut self.rows)?;
                    }
                    self.terms[queued] = Term {
                        // Both below the lengths of slices in memory.
                        signal: (u64::from(term.signal) - signals.start) as u32,
                        row: (row - rows.first) as u32,
                        value: term.value,
                    };
                    queued += 1;
                }
            }
            self.add_queued(queued);
        }
        Ok(())
    }

    /// Adds the first `queued` terms to their signals' sums.
    fn add_queued(&mut self, queued: usize) {
        self.terms[..queued].par_sort_unstable_by_key(|term| term.signal);
        let terms = &self.terms[..queued];
        let [one, minus_one] = self.ones;
        let mut others = 0;
        for (place, (point, term)) in (0..).zip(self.points.iter_mut().zip(terms)) {
            *point = self.rows[term.row as usize];
            if Some(term.value) == one {
                continue;
            }
            if Some(term.value) == minus_one {
                *point = point.negated();
                continue;
            }
            self.others[others] = [term.value, place];
            others += 1;
        }
        self.multiply(others);
        let terms = &self.terms[..queued];
        // A part ends where a signal's terms do.
        let part_terms = queued.div_ceil(self.adders.len()).max(1);
        let (mut terms, mut points, mut sums) = (terms, &mut self.points[..queued], &mut self.sums[..]);
        let mut first = 0;
        let mut parts = Vec::with_capacity(self.adders.len());
        while let Some(last) = terms.get(part_terms.min(terms.len()).saturating_sub(1)) {
            let count = terms.partition_point(|term| term.signal <= last.signal);
            let (part, terms_after) = terms.split_at(count);
            let (part_points, points_after) = std::mem::take(&mut points).split_at_mut(count);
            let end = last.signal + 1;
            let (part_sums, sums_after) = std::mem::take(&mut sums).split_at_mut((end - first) as usize);
            parts.push((part, part_points, part_sums, first));
            (terms, points, sums, first) = (terms_after, points_after, sums_after, end);
        }
        (parts.into_iter())
            .zip(&mut self.adders)
            .parallel()
            .for_each(|((terms, points, sums, first), adder)| add_part(adder, terms, points, sums, first));
    }

    /// Multiplies the points at the places of the first `count` others by their values. Circuits have few
    /// values: the points of one take the steps of that value alone, which for a power of two are its
    /// doublings.
    fn multiply(&mut self, count: usize) {
        let others = &mut self.others[..count];
        others.par_sort_unstable_by_key(|[value, _]| *value);
        let places = self.products.iter_mut().zip(self.factors.iter_mut());
        for ((product, factor), [value, place]) in places.zip(&*others) {
            *product = self.points[*place as usize];
            *factor = self.values[*value as usize];
        }
        let multiplier = &self.multiplier;
        let jobs = jobs::<P>(&mut self.products[..count], &self.factors[..count]);
        jobs.into_iter()
            .parallel()
            .for_each(|Job { points, factors }| match factors {
                [factor, ..] if factors.iter().all(|other| other == factor) => {
                    multiplier.multiply(points, factor)
                }
                _ => multiplier.multiply_each(points, factors),
            });
        for ([_, place], product) in others.iter().zip(&*self.products) {
            self.points[*place as usize] = *product;
        }
    }
}

/// Points of one value, or of several of which each has few.
struct Job<'a, P: Curve> {
    points: &'a mut [Point<P>],
    factors: &'a [P::ScalarField],
}

/// Cuts points, which are sorted by their factors, into jobs.
fn jobs<'a, P: Curve>(mut points: &'a mut [Point<P>], mut factors: &'a [P::ScalarField]) -> Vec<Job<'a, P>> {
    let mut jobs = Vec::new();
    while !factors.is_empty() {
        let mut count = 0;
        for run in factors.chunk_by(|a, b| a == b) {
            let is_long = run.len() >= RUN_MIN;
            if is_long && count > 0 {
                break;
            }
            count += run.len();
            if is_long {
                break;
            }
        }
        let (now, later) = points.split_at_mut(count);
        let (factors_now, factors_later) = factors.split_at(count);
        jobs.push(Job {
            points: now,
            factors: factors_now,
        });
        (points, factors) = (later, factors_later);
    }
    jobs
}

/// Adds up the points of each signal, then to its sum; the sums begin with that of the signal `first`.
fn add_part<P: Curve>(
    adder: &mut BucketAdder<P>,
    terms: &[Term],
    points: &mut [Point<P>],
    sums: &mut [Point<P>],
    first: u32,
) {
    let mut runs: Vec<Run> = Vec::new();
    for (place, term) in (0..).zip(terms) {
        match runs.last_mut() {
            Some(run) if run.signal == term.signal => run.len += 1,
            _ => runs.push(Run {
                signal: term.signal,
                start: place,
                len: 1,
            }),
        }
    }
    let mut pairs: Vec<[u32; 2]> = Vec::with_capacity(terms.len() / 2);
    loop {
        pairs.clear();
        for run in &mut runs {
            let half = run.len / 2;
            run.len -= half;
            pairs.extend((run.start..run.start + half).map(|place| [place, place + run.len]));
        }
        if pairs.is_empty() {
            break;
        }
        adder.add_in_place(&pairs, points);
    }
    pairs.extend(runs.iter().map(|run| [run.signal - first, run.start << 1]));
    adder.add(&pairs, sums, points);
}

/// The points of the rows, a chunk of which is in memory.
struct Rows<P: Curve>
where
    Point<P>: Element,
{
    reader: Reader<Point<P>>,
    first: u64,
    end: u64,
}

impl<P: Curve> Rows<P>
where
    Point<P>: Element,
{
    /// Goes to the next chunk, of which there is one: no row is past the points.
    fn advance(&mut self, rows: &mut [Point<P>]) -> Result<()> {
        self.first = self.end;
        match self.reader.next_into(rows)? {
            Some(region) => self.end += region.len(),
            None => {
                return Err(Invalid::OutOfRange {
                    what: "row of a term".into(),
                    start: self.end,
                    end: self.end,
                    len: self.end,
                }
                .into());
            }
        }
        Ok(())
    }
}
