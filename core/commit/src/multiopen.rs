//! Openings of many polynomials at once (Boneh, Drake, Fisch and Gabizon, *Efficient polynomial commitment
//! schemes for multiple points and polynomials*, 2020; and the batching of Gabizon, Williamson and
//! Ciobotaru's PLONK, 2019).
//!
//! What SHPLONK and GWC commit to are sums of quotients
//! `scale * (sum of factor * p - low) / prod (X - root)`. All of them come out of one descending pass: every
//! distinct column is read once; each combination keeps a running chunk of its numerator and one carry for
//! each root (synthetic division, root after root); quotients are added up. The sum feeds the MSM; it and the
//! numerators are stored if a later step needs them. Chunks are produced in order while earlier ones are
//! added.
//!
//! An accelerator, if there is one, gets the sum, whose scalars are made as it asks for them.
//!
//! Memory: [`OpeningPlan::leased_bytes`], whatever n. Chunks of columns (512 scalars and more) are smaller
//! than those of the MSM: several of the former make one of the latter, so that a hundred columns leave room
//! for buckets.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::AdditiveGroup;

use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::accelerator::ReadElements;
use spillproof_engine::budget::{Budget, LeasedVec};
use spillproof_engine::column::{
    Column, Draft, Element, Placement, Region, SCRATCH_FRAME_BYTES, Workspace, descending, digests_bytes,
    memory_bytes,
};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{Combinations, beyond, descending_sum, distinct, leased_kernel, merged};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::msm::{Digits, Fillings, MsmConfig};
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::{add_scaled, divide_chunk};

/// What an opening gives.
pub struct Opened<P: Curve> {
    /// The commitment to the sum of quotients.
    pub commitment: Affine<P>,
    /// The sum, if it is kept.
    pub sum: Option<Column<P::ScalarField>>,
    /// Of each combination the numerator, before [`Combination::low`] is subtracted, if it is kept.
    pub numerators: Vec<Option<Column<P::ScalarField>>>,
    /// Of each combination the remainder by its last root.
    pub(super) remainders: Vec<P::ScalarField>,
}

/// What of an opening is wanted later, as columns of the length of the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// The sum of all quotients.
    Sum,
    /// The sum, and each numerator that moves fewer bytes than its columns do when they are read again, if
    /// the budget has room for its buffers.
    SumAndNumerators,
}

/// One quotient of an opening: `scale * (sum of factor * column - low) / prod (X - root)`, without remainder.
#[derive(Clone, Debug)]
pub struct Combination<'a, F> {
    /// What is added up: coefficients, lowest first; shorter columns count as padded with zeros.
    pub terms: Vec<(F, &'a Column<F>)>,
    /// Subtracted from the sum: coefficients of low degree, lowest first.
    pub low: Vec<F>,
    /// Divided by, one after the other.
    pub roots: Vec<F>,
    /// Multiplied with, at the end.
    pub scale: F,
}

/// Scalars of the smallest chunk: a frame of the column that is kept.
const CHUNK_MIN: u64 = (SCRATCH_FRAME_BYTES / 32) as u64;
/// Scalars of the largest chunk of a column, and of the MSM: while one is summed, the next one of every
/// column is on its way. A larger one for the MSM would save some additions, and leave the disk idle most of
/// the time.
const CHUNK_MAX: u64 = 1 << 14;
const MSM_CHUNK_MAX: u64 = 1 << 14;
/// With one column there is little to read for each chunk of points, and both may be so many times longer.
const LONE_TIMES: u64 = 8;
/// Points on their way: chunks.
const POINTS_AHEAD: u64 = 1;
/// Numbers of chunks in memory that are tried: some are added while the next is made.
const CHUNKS: [usize; 4] = [1, 2, 3, 4];
/// What a scalar of a column, of a quotient, and a point cost until they are added, in batched additions.
const COLUMN_COST: f64 = 0.3;
const QUOTIENT_COST: f64 = 0.5;
const POINT_COST: f64 = 1.0;
/// Chunks that a kept column's writer holds.
const WRITER_CHUNKS: u64 = 3;
/// A numerator is kept only if it replaces at least this many columns. A numerator on disk is written and
/// read, so only columns on disk count for it.
const COLUMNS_OF_KEPT: usize = 3;

/// How [`divide_and_commit`] spends its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningPlan {
    chunk: u64,
    config: MsmConfig,
    leased_bytes: u64,
}

impl OpeningPlan {
    /// A plan within `available_bytes`, for a pass that keeps these columns.
    fn new<P: Curve<ScalarField: Element>>(
        bases: &Column<Point<P>>,
        Resolved { columns, sums, len }: &Resolved<'_, P::ScalarField>,
        kept: &KeptIn,
        available_bytes: u64,
    ) -> Result<Self> {
        let (combinations, len) = (sums.len(), *len);
        let base_frame_bytes = bases.transfer_bytes(1);
        let frames: Vec<u64> = columns.iter().map(|column| column.transfer_bytes(1)).collect();
        let threads = rayon::current_num_threads();
        let scalars = |count: u64| count * size_of::<P::ScalarField>() as u64;
        let chunk_bytes = |chunk: u64| {
            Combinations::<P::ScalarField>::bytes_of(frames.iter().copied(), chunk)
                + scalars((combinations as u64 + WRITER_CHUNKS * kept.numerators_count()) * chunk)
        };
        // Beside the kernel: points, those on their way, and the scalars that are made.
        let msm_bytes = |chunk: u64, chunks: usize| {
            let read = POINTS_AHEAD * (chunk * Point::<P>::BYTES as u64).max(base_frame_bytes);
            let points = chunks as u64 * chunk * size_of::<Point<P>>() as u64 + read;
            points
                + scalars(chunk)
                + if kept.sum.is_some() {
                    scalars(WRITER_CHUNKS * chunk)
                } else {
                    0
                }
        };
        let useful = len.next_power_of_two().max(CHUNK_MIN);
        let times = if frames.len() == 1 { LONE_TIMES } else { 1 };
        let mut chunk = (times * CHUNK_MAX).min(useful);
        while chunk > CHUNK_MIN && chunk_bytes(chunk) > available_bytes / 3 {
            chunk /= 2;
        }
        let filling = len as f64
            * (POINT_COST + COLUMN_COST * frames.len() as f64 + QUOTIENT_COST * combinations as f64);
        let cost = |config: &MsmConfig, chunks: usize| {
            // A chunk is made on few threads: the more chunks are there, the less the others wait for it.
            (config.cost::<P>(len) + filling) / threads as f64 + filling / chunks as f64
        };
        loop {
            let (mut best, mut needed_bytes) = (None::<(f64, Self)>, u64::MAX);
            let mut msm_chunk = (times * MSM_CHUNK_MAX).min(useful).max(chunk);
            while msm_chunk >= chunk {
                for (chunks, window_bits) in CHUNKS
                    .into_iter()
                    .flat_map(|n| MsmConfig::WINDOW_BITS.map(move |bits| (n, bits)))
                {
                    let config =
                        MsmConfig::new(window_bits, msm_chunk as usize, 1, threads).in_chunks(chunks);
                    let leased_bytes =
                        chunk_bytes(chunk) + msm_bytes(msm_chunk, chunks) + config.workspace_bytes::<P>();
                    needed_bytes = needed_bytes.min(leased_bytes);
                    let cost = cost(&config, chunks);
                    if leased_bytes <= available_bytes && best.is_none_or(|(least, _)| cost < least) {
                        let plan = Self {
                            chunk,
                            config,
                            leased_bytes,
                        };
                        best = Some((cost, plan));
                    }
                }
                msm_chunk /= 2;
            }
            match best {
                Some((_, plan)) => return Ok(plan),
                None if chunk > CHUNK_MIN => chunk /= 2,
                None => {
                    return Err(Error::BudgetTooSmall {
                        what: format!(
                            "an opening of {} columns in {combinations} combinations with {threads} threads",
                            frames.len()
                        ),
                        needed_bytes,
                        limit_bytes: available_bytes,
                    });
                }
            }
        }
    }

    /// Bytes that the pass leases.
    pub fn leased_bytes(&self) -> u64 {
        self.leased_bytes
    }

    /// Scalars of each column that are read at a time.
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Scalars that go into the MSM at a time.
    pub fn msm_chunk(&self) -> u64 {
        self.config.block_points() as u64
    }
}

/// Combinations in terms of their distinct columns.
struct Resolved<'a, F> {
    columns: Vec<&'a Column<F>>,
    /// For each combination: (column, factor), each column once.
    sums: Vec<Vec<(usize, F)>>,
    /// The length of the longest.
    len: u64,
}

fn resolve<'a, F: KernelField + Element>(combinations: &[Combination<'a, F>]) -> Resolved<'a, F> {
    let all = combinations.iter().flat_map(|combination| &combination.terms);
    let (columns, places) = distinct(all.map(|(_, column)| *column));
    let mut places = places.as_slice();
    let mut len = 0;
    let sums = combinations
        .iter()
        .map(|combination| {
            let (mine, others) = places.split_at(combination.terms.len());
            places = others;
            let lens = combination.terms.iter().map(|(_, column)| column.len());
            len = lens.fold(len.max(combination.low.len() as u64), u64::max);
            let factors: Vec<F> = combination.terms.iter().map(|(factor, _)| *factor).collect();
            merged(mine, &factors)
        })
        .collect();
    Resolved { columns, sums, len }
}

/// Where the columns are put that a pass keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptIn {
    sum: Option<Placement>,
    /// Of each combination.
    numerators: Vec<Option<Placement>>,
    /// What the columns hold of a budget.
    bytes: u64,
}

impl KeptIn {
    fn new<F: KernelField + Element>(
        budget: &Budget,
        resolved: &Resolved<'_, F>,
        (keep, placement): (Keep, Placement),
    ) -> Self {
        let frames = (resolved.len * F::BYTES as u64).div_ceil(SCRATCH_FRAME_BYTES as u64);
        let column_bytes = frames * SCRATCH_FRAME_BYTES as u64;
        let (mut in_memory, mut bytes) = (0, 0);
        let mut place = |is_wanted: &dyn Fn(Placement) -> bool| {
            let placement = placement.now(budget, (in_memory + 1) * column_bytes);
            if !is_wanted(placement) {
                return None;
            }
            in_memory += u64::from(placement == Placement::Memory);
            bytes += match placement {
                Placement::Memory => memory_bytes(frames, SCRATCH_FRAME_BYTES as u64),
                _ => digests_bytes::<F>(column_bytes, SCRATCH_FRAME_BYTES as u64),
            };
            Some(placement)
        };
        let sum = place(&|_| keep != Keep::Nothing);
        let numerator = |terms: &Vec<(usize, F)>| {
            let on_disk = terms
                .iter()
                .filter(|(column, _)| resolved.columns[*column].on_disk());
            place(&|placement| {
                let spared = match placement {
                    Placement::Memory => terms.len(),
                    _ => on_disk.clone().count(),
                };
                keep == Keep::SumAndNumerators && spared >= COLUMNS_OF_KEPT
            })
        };
        let numerators = resolved.sums.iter().map(numerator).collect();
        Self {
            sum,
            numerators,
            bytes,
        }
    }

    fn numerators_count(&self) -> u64 {
        self.numerators.iter().flatten().count() as u64
    }
}

/// What a pass keeps with what the budget has left now, and its plan: numerators, and columns in memory, only
/// if that leaves room for the rest.
fn planned<P: Curve<ScalarField: Element>>(
    budget: &Budget,
    bases: &Column<Point<P>>,
    resolved: &Resolved<'_, P::ScalarField>,
    keep: Keep,
) -> Result<(KeptIn, OpeningPlan)> {
    let with = |kept| {
        let kept = KeptIn::new(budget, resolved, kept);
        let available_bytes = budget.available_bytes().saturating_sub(kept.bytes);
        let plan = OpeningPlan::new::<P>(bases, resolved, &kept, available_bytes)?;
        Ok((kept, plan))
    };
    let least = match keep {
        Keep::SumAndNumerators => Keep::Sum,
        other => other,
    };
    let first = [(keep, Placement::Passing), (keep, Placement::Disk)];
    let fitting = first.into_iter().find_map(|kept| with(kept).ok());
    fitting.map_or_else(|| with((least, Placement::Disk)), Ok)
}

/// The plan that [`divide_and_commit`] follows with what the budget has left now.
///
/// # Errors
/// [`Error::BudgetTooSmall`] with the number of bytes that would do.
pub fn plan<P: Curve<ScalarField: Element>>(
    workspace: &Workspace,
    bases: &Column<Point<P>>,
    combinations: &[Combination<'_, P::ScalarField>],
    keep: Keep,
) -> Result<OpeningPlan> {
    let (_, plan) = planned::<P>(&workspace.budget, bases, &resolve(combinations), keep)?;
    Ok(plan)
}

/// Commits to the sum of all combinations, over the monomial form of an SRS, in one descending pass over all
/// columns.
///
/// # Errors
/// [`Error::Invalid`] for a column longer than `bases`; [`Error::BudgetTooSmall`] before any work;
/// [`Error::OverBudget`], [`Error::Io`], [`Error::Damaged`].
pub fn divide_and_commit<P: Curve<ScalarField: Element>>(
    workspace: &Workspace,
    bases: &Column<Point<P>>,
    combinations: &[Combination<'_, P::ScalarField>],
    keep: Keep,
) -> Result<Opened<P>> {
    workspace.run(|| divide_in_turn::<P>(workspace, bases, combinations, keep))
}

fn divide_in_turn<P: Curve<ScalarField: Element>>(
    workspace: &Workspace,
    bases: &Column<Point<P>>,
    combinations: &[Combination<'_, P::ScalarField>],
    keep: Keep,
) -> Result<Opened<P>> {
    let resolved = resolve(combinations);
    let len = resolved.len;
    Invalid::unless_at_most("coefficients for the points of an SRS", len, bases.len())?;
    let budget = &workspace.budget;
    let (kept_in, plan) = planned::<P>(budget, bases, &resolved, keep)?;
    tracing::debug!(
        columns = resolved.columns.len(),
        combinations = combinations.len(),
        ?kept_in,
        ?plan,
        "opening"
    );
    let bases = bases.prefix(len)?;
    if workspace.is_dry() {
        return rehearse::<P>(&bases, &resolved, &plan, &kept_in);
    }
    let pass = || Pass::new(workspace, combinations, &resolved, &plan, &kept_in);
    if let Some(done) = on_accelerator::<P>(&bases, &plan, pass)? {
        return Ok(done);
    }
    let (_msm_bytes, mut msm) = leased_kernel::<P>(plan.config, budget)?;
    let points = || budget.vec(plan.msm_chunk() as usize, Point::<P>::INFINITY, "MSM bases");
    let chunk = |_| {
        Ok(Chunk {
            points: points()?,
            len: 0,
        })
    };
    let mut chunks = (0..plan.config.chunks()).map(chunk).collect::<Result<Vec<_>>>()?;
    // Behind a lock that is never waited for, since chunks are filled one after the other.
    let source = Mutex::new((
        totals::<P::ScalarField>(workspace, &plan)?,
        pass()?,
        bases.reader(descending(len, plan.msm_chunk()), POINTS_AHEAD as usize)?,
    ));
    let fill = |_: usize, chunk: &mut Chunk<P>, digits: &mut [Digits]| {
        let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
        let (totals, pass, bases) = &mut *source;
        chunk.len = match bases.next_into(&mut chunk.points)? {
            Some(region) => pass.step(region, totals)?,
            None => 0,
        };
        digits
            .iter_mut()
            .for_each(|digits| digits.fill(&totals[..chunk.len]));
        Ok::<_, Error>(())
    };
    let count = len.div_ceil(plan.msm_chunk()) as usize;
    msm.run((count, Fillings::InOrder), &mut chunks, fill, |chunk| {
        &chunk.points[..chunk.len]
    })?;
    let sums = msm.finish();
    let sum = sums.first().map_or(Affine::zero(), |sum| sum.into_affine());
    let (_, pass, _) = source.into_inner().unwrap_or_else(PoisonError::into_inner);
    pass.finish::<P>(sum)
}

/// The dry run of a pass.
fn rehearse<P: Curve<ScalarField: Element>>(
    bases: &Column<Point<P>>,
    Resolved { columns, sums, .. }: &Resolved<'_, P::ScalarField>,
    plan: &OpeningPlan,
    kept_in: &KeptIn,
) -> Result<Opened<P>> {
    let (workspace, len, combinations) = (bases.workspace(), bases.len(), sums.len() as u64);
    let (chunk, msm_chunk) = (plan.chunk, plan.msm_chunk());
    let hold = |bytes| workspace.hold(bytes, WHAT);
    let scalars = |count: u64| count * size_of::<P::ScalarField>() as u64;
    let (sum, numerators) = drafts::<P::ScalarField>(workspace, len, kept_in)?;
    let _scalars = (hold(scalars(msm_chunk))?, hold(scalars(combinations * chunk))?);
    let _columns = Combinations::rehearse(workspace, columns, chunk)?;
    descending_sum::<P>(bases, msm_chunk, &mut |_: u64, _: &mut [u8]| Ok(()))?;
    let _msm = (
        hold(plan.config.workspace_bytes::<P>())?,
        hold(plan.config.chunks() as u64 * msm_chunk * size_of::<Point<P>>() as u64)?,
        hold(bases.reader_bytes(msm_chunk, POINTS_AHEAD))?,
    );
    bases.count_read();
    workspace.passed(1, Work::additions(plan.config.cost::<P>(len)));
    let products = (columns.len() as u64 + 2 * combinations) * len;
    workspace.passed(0, Work::products(products as f64));
    let writers = numerators.iter().flatten().map(|draft| draft.writer_bytes(chunk));
    let sum_bytes = sum.as_ref().map_or(0, |sum| sum.writer_bytes(msm_chunk));
    let _writers = hold(sum_bytes + writers.sum::<u64>())?;
    let finish = |draft: Option<Draft<_>>| draft.map(Draft::finish).transpose();
    Ok(Opened {
        commitment: Affine::zero(),
        sum: finish(sum)?,
        numerators: numerators.into_iter().map(finish).collect::<Result<_>>()?,
        remainders: vec![P::ScalarField::ZERO; sums.len()],
    })
}

const WHAT: &str = "opening";
const SUM: &str = "sum of quotients";
const NUMERATOR: &str = "numerator of a quotient";

/// Of the sum, and of each numerator.
type Drafts<F> = (Option<Draft<F>>, Vec<Option<Draft<F>>>);

fn drafts<F: Element>(workspace: &Workspace, len: u64, kept_in: &KeptIn) -> Result<Drafts<F>> {
    let draft = |what, placement: Option<Placement>| {
        let draft = placement.map(|placement| Draft::scratch(workspace, what, len, placement));
        draft.transpose()
    };
    let numerators = kept_in.numerators.iter();
    let numerators = numerators.map(|placement| draft(NUMERATOR, *placement));
    Ok((draft(SUM, kept_in.sum)?, numerators.collect::<Result<_>>()?))
}

/// The whole pass with the sum made by the workspace's accelerator; `None` if there is none, or it declined.
fn on_accelerator<'a, P: Curve<ScalarField: Element>>(
    bases: &Column<Point<P>>,
    plan: &OpeningPlan,
    pass: impl Fn() -> Result<Pass<'a, P::ScalarField>>,
) -> Result<Option<Opened<P>>> {
    if bases.workspace().accelerator.is_none() || bases.is_empty() {
        return Ok(None);
    }
    // Made now: what the accelerator leases comes out of the rest.
    let mut totals = Totals {
        values: totals(bases.workspace(), plan)?,
        pass: Some(pass()?),
        make: pass,
        shape: (bases.len(), plan.msm_chunk()),
        regions: Box::new(descending(bases.len(), plan.msm_chunk())),
        next: 0,
        held: 0..0,
    };
    let sum = descending_sum::<P>(bases, plan.msm_chunk(), &mut totals)?;
    match (sum, totals.pass) {
        (Some(sum), Some(pass)) => pass.finish::<P>(sum.into_affine()).map(Some),
        (_, pass) => {
            // The processor plans with what is left: nothing may be held.
            if let Some(pass) = pass {
                pass.abandon();
            }
            Ok(None)
        }
    }
}

/// Points of the SRS.
struct Chunk<P: Curve> {
    points: LeasedVec<Point<P>>,
    len: usize,
}

/// The scalars of a chunk of the sum.
fn totals<F: KernelField>(workspace: &Workspace, plan: &OpeningPlan) -> Result<LeasedVec<F>> {
    (workspace.budget).vec(plan.msm_chunk() as usize, F::ZERO, "MSM scalars")
}

/// One pass over all columns, a chunk of the MSM at a time from the top down: the scalars of the sum.
struct Pass<'a, F: KernelField + Element> {
    combinations: &'a [Combination<'a, F>],
    numerators: Combinations<'a, F>,
    divisions: Vec<Division<'a, F>>,
    quotients: LeasedVec<F>,
    chunk: u64,
    kept: Drafts<F>,
}

impl<'a, F: KernelField + Element> Pass<'a, F> {
    fn new(
        workspace: &Workspace,
        combinations: &'a [Combination<'a, F>],
        resolved: &Resolved<'a, F>,
        plan: &OpeningPlan,
        kept_in: &KeptIn,
    ) -> Result<Self> {
        let budget = &workspace.budget;
        let Resolved { columns, sums, len } = resolved;
        let (len, chunk) = (*len, plan.chunk as usize);
        Ok(Self {
            combinations,
            kept: drafts(workspace, len, kept_in)?,
            quotients: budget.vec(combinations.len() * chunk, F::ZERO, "quotients")?,
            divisions: combinations.iter().map(Division::new).collect(),
            numerators: Combinations::new(workspace, columns, sums.clone(), len, plan.chunk)?,
            chunk: plan.chunk,
        })
    }

    /// The scalars of `region`, the next one, to the start of `totals`, and how many those are. What is kept
    /// is written.
    fn step(&mut self, region: Region, totals: &mut [F]) -> Result<usize> {
        let Region::Span { start, len } = region else {
            return Ok(0);
        };
        let totals = &mut totals[..len as usize];
        let chunk = self.chunk as usize;
        let (sum, numerators) = &mut self.kept;
        for at in descending(len, self.chunk) {
            let Region::Span { start: within, len } = at else {
                continue;
            };
            let read = self.numerators.next_into(&mut self.quotients)?;
            debug_assert_eq!(read.map(|region| region.len()), Some(len));
            let region = Region::Span {
                start: start + within,
                len,
            };
            let (within, len) = (within as usize, len as usize);
            self.quotients
                .chunks_mut(chunk)
                .zip(&mut self.divisions)
                .zip(&mut *numerators)
                .parallel()
                .try_for_each(|((values, division), numerator)| {
                    let values = &mut values[..len];
                    if let Some(numerator) = numerator {
                        numerator.write(region, values)?;
                    }
                    division.step(start + within as u64, values);
                    Ok::<_, Error>(())
                })?;
            let total = &mut totals[within..within + len];
            total.fill(F::ZERO);
            for (values, combination) in self.quotients.chunks(chunk).zip(self.combinations) {
                add_scaled(total, &combination.scale, &values[..len]);
            }
        }
        if let Some(sum) = sum {
            sum.write(region, totals)?;
        }
        Ok(totals.len())
    }

    /// With the commitment to the sum.
    fn finish<P: Curve<ScalarField = F>>(self, commitment: Affine<P>) -> Result<Opened<P>> {
        // The last root's carries.
        let carries = self.divisions.iter().map(|division| division.carries.last());
        let remainders = carries.map(|carry| carry.copied().unwrap_or(F::ZERO)).collect();
        let finish = |draft: Option<Draft<F>>| draft.map(Draft::finish).transpose();
        let (sum, numerators) = self.kept;
        Ok(Opened {
            commitment,
            sum: finish(sum)?,
            numerators: numerators.into_iter().map(finish).collect::<Result<_>>()?,
            remainders,
        })
    }

    /// Lets everything go: when this returns, its leases are given back.
    fn abandon(self) {
        self.numerators.abandon();
        let (sum, numerators) = self.kept;
        sum.into_iter()
            .chain(numerators.into_iter().flatten())
            .for_each(Draft::abandon);
    }
}

/// The scalars of a pass, for an accelerator: chunk after chunk, the last one first.
struct Totals<'a, F: KernelField + Element, M> {
    make: M,
    pass: Option<Pass<'a, F>>,
    /// Those of the pass's current chunk.
    values: LeasedVec<F>,
    /// Scalars, and those of a chunk.
    shape: (u64, u64),
    /// Chunks that were not begun.
    regions: Box<dyn Iterator<Item = Region>>,
    next: u64,
    /// Of these, what was not passed on.
    held: Range<usize>,
}

impl<'a, F: KernelField + Element, M: Fn() -> Result<Pass<'a, F>>> Totals<'a, F, M> {
    fn begin_anew(&mut self) -> Result<()> {
        if let Some(pass) = self.pass.take() {
            pass.abandon();
        }
        self.pass = Some((self.make)()?);
        let (len, chunk) = self.shape;
        self.regions = Box::new(descending(len, chunk));
        (self.next, self.held) = (0, 0..0);
        Ok(())
    }
}

impl<'a, F: KernelField + Element, M: Fn() -> Result<Pass<'a, F>>> ReadElements for Totals<'a, F, M> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        if first == 0 && self.next > 0 {
            self.begin_anew()?;
        }
        let pass = match &mut self.pass {
            Some(pass) if first == self.next => pass,
            _ => return Err(beyond(first, into.len() / F::BYTES)),
        };
        let mut into = into;
        while !into.is_empty() {
            if self.held.is_empty() {
                let region = self.regions.next();
                let region = region.ok_or_else(|| beyond(first, into.len() / F::BYTES))?;
                self.held = 0..pass.step(region, &mut self.values)?;
            }
            let count = self.held.len().min(into.len() / F::BYTES);
            let (now, rest) = into.split_at_mut(count * F::BYTES);
            let values = &self.values[self.held.start..][..count];
            for (value, out) in values.iter().zip(now.chunks_exact_mut(F::BYTES)) {
                value.encode(out);
            }
            self.held.start += count;
            self.next += count as u64;
            into = rest;
        }
        Ok(())
    }
}

/// The state of one combination's division: what each root has carried down so far.
struct Division<'a, F> {
    low: &'a [F],
    roots: &'a [F],
    carries: Vec<F>,
}

impl<'a, F: KernelField> Division<'a, F> {
    fn new(combination: &'a Combination<'_, F>) -> Self {
        Self {
            low: &combination.low,
            roots: &combination.roots,
            carries: vec![F::ZERO; combination.roots.len()],
        }
    }

    /// Takes coefficients `start ..` of the numerator to the quotient's, in place.
    fn step(&mut self, start: u64, values: &mut [F]) {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let low = self.low.get(start..).unwrap_or(&[]);
        for (value, low) in values.iter_mut().zip(low) {
            *value = value.minus(low);
        }
        for (root, carry) in self.roots.iter().zip(&mut self.carries) {
            *carry = divide_chunk(values, root, *carry);
        }
    }
}
