//! Multi-scalar multiplication over bases on disk, which are read once for as many scalar columns as memory
//! takes.
//!
//! Bases and scalars arrive in chunks, of which some are in memory at a time, and one more of each of these
//! is on its way; buckets stay. Reading and recoding of chunks go on beside the additions ([`Msm`]'s
//! pipeline). Memory: [`MsmPlan::leased_bytes`], whatever n.

use std::sync::{Mutex, PoisonError};

use ark_ec::short_weierstrass::Projective;
use spillproof_format::{SRS_FRAME_BYTES_DEFAULT, frame_bytes_for};

use super::offload;
use super::scalars::Scalars;
use super::terms::{Chunk, Terms};
use crate::Error;
use crate::Result;
use crate::budget::{Budget, Lease, LeasedVec};
use crate::column::{Column, Element, Reader, Region, SCRATCH_FRAME_BYTES};
use crate::dry::Work;
use crate::error::Invalid;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::msm::{Digits, Fillings, Msm, MsmConfig};

/// The largest chunk of points that is tried, by its log2.
const LOG_CHUNK_MAX: u32 = 16;
/// Numbers of chunks in memory that are tried.
const CHUNKS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// Reading, checking and decoding a base, or doing so with a scalar and recoding it, in batched additions.
const FILL_COST: f64 = 1.0;
/// Sorting a base into a window's buckets once more, in batched additions.
const SORT_COST: f64 = 0.1;
/// The first touch of a byte, in batched additions: on average, since most pages were used before.
const TOUCH_COST: f64 = 0.004;

/// How a streamed MSM uses its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsmPlan {
    config: MsmConfig,
    columns_on_disk: u64,
    /// How many times its bytes are read for a chunk of bases, of which each run is less than a frame.
    spread: u64,
}

impl MsmPlan {
    /// The fastest plan within `available_bytes` for sums of `columns` columns of scalars, `columns_on_disk`
    /// of them on disk, over `points` bases, on the threads of the rayon pool that this is called from.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest that works for one column.
    pub fn new<P: Curve>(
        points: u64,
        columns: usize,
        columns_on_disk: usize,
        available_bytes: u64,
    ) -> Result<Self> {
        Self::of_spread::<P>(points, columns, columns_on_disk, (available_bytes, 1))
    }

    /// The same of bases that are read with so many times their bytes.
    fn of_spread<P: Curve>(
        points: u64,
        columns: usize,
        columns_on_disk: usize,
        (available_bytes, spread): (u64, u64),
    ) -> Result<Self> {
        let columns = columns.max(1);
        let threads = rayon::current_num_threads();
        let mut best: Option<(f64, Self)> = None;
        let together = std::iter::successors(Some(columns), |columns| {
            (*columns > 1).then(|| columns.div_ceil(2))
        });
        for together in together {
            for plan in Self::candidates::<P>(points, together, columns_on_disk.min(together), threads) {
                let plan = Self { spread, ..plan };
                if plan.leased_bytes::<P>() <= available_bytes {
                    let cost = plan.cost::<P>(points, columns);
                    if best.is_none_or(|(least, _)| cost < least) {
                        best = Some((cost, plan));
                    }
                }
            }
        }
        best.map(|(_, plan)| plan).ok_or_else(|| {
            let on_disk = columns_on_disk.min(1);
            let needed = Self::candidates::<P>(points, 1, on_disk, threads)
                .map(|plan| Self { spread, ..plan }.leased_bytes::<P>());
            Error::BudgetTooSmall {
                what: format!("a sum over {points} bases with {threads} threads"),
                needed_bytes: needed.min().unwrap_or(u64::MAX),
                limit_bytes: available_bytes,
            }
        })
    }

    /// Plans for a pass with so many columns. A chunk smaller than a frame would bring the frame along each
    /// time, and one larger than the sum buys nothing.
    fn candidates<P: Curve>(
        points: u64,
        columns: usize,
        columns_on_disk: usize,
        threads: usize,
    ) -> impl Iterator<Item = Self> {
        let log_least = (point_frame_bytes::<P>() / Point::<P>::BYTES)
            .next_power_of_two()
            .ilog2();
        let useful = move |log_chunk: &u32| *log_chunk == log_least || 1 << log_chunk < 2 * points;
        (log_least..=LOG_CHUNK_MAX)
            .filter(useful)
            .flat_map(move |log_chunk| {
                let chunks = CHUNKS.into_iter().filter(move |chunks| {
                    *chunks == 1
                        || *chunks <= threads + 1 && *chunks as u64 <= points.div_ceil(1 << log_chunk)
                });
                chunks.flat_map(move |chunks| {
                    MsmConfig::WINDOW_BITS.map(move |window_bits| {
                        let config = MsmConfig::new(window_bits, 1 << log_chunk, columns, threads);
                        Self {
                            config: config.in_chunks(chunks),
                            columns_on_disk: columns_on_disk as u64,
                            spread: 1,
                        }
                    })
                })
            })
    }

    /// The time of `columns` columns, in batched additions of one thread.
    fn cost<P: Curve>(&self, points: u64, columns: usize) -> f64 {
        let per_pass = self.columns_per_pass(columns);
        let config = self.config_for(per_pass);
        let (bases, columns_in_pass) = (points as f64, per_pass as f64);
        let threads = config.threads() as f64;
        let again = (config.window_parts::<P>() - 1) as f64 * SORT_COST;
        let adding =
            columns_in_pass * (config.cost::<P>(points) + again * bases * config.windows::<P>() as f64);
        let fill_cost = FILL_COST * (1.0 + columns_in_pass);
        let filling = fill_cost * bases;
        let pass = match self.chunks() {
            1 => adding / threads + filling,
            chunks => ((adding + filling) / threads).max(filling / (chunks - 1) as f64),
        };
        // Nothing else goes on beside the first chunk's filling, and little beside a window's last addition.
        let ends = self.chunk() as f64 * (1.0 + fill_cost);
        let touched = self.leased_bytes::<P>() as f64 * TOUCH_COST;
        columns.div_ceil(per_pass) as f64 * (pass + ends) + touched
    }

    /// How many of `columns` columns go into a pass (the last may have fewer): as even as they go.
    pub(crate) fn columns_per_pass(&self, columns: usize) -> usize {
        columns.div_ceil(columns.div_ceil(self.columns()).max(1)).max(1)
    }

    /// The kernel's configuration for a pass with so many columns.
    pub(crate) fn config_for(&self, columns: usize) -> MsmConfig {
        let Self { config, .. } = self;
        MsmConfig::new(
            config.window_bits(),
            config.block_points(),
            columns,
            config.threads(),
        )
        .in_chunks(self.chunks())
    }

    /// Bytes of the chunks: points, raw points, scalars of one column, and raw scalars of each column on
    /// disk.
    fn chunks_bytes<P: Curve>(&self) -> u64 {
        let chunk = self.chunk();
        let raw_points =
            (self.spread * chunk * Point::<P>::BYTES as u64).max(point_frame_bytes::<P>() as u64);
        let raw_scalars = self.columns_on_disk * (chunk * 32).max(SCRATCH_FRAME_BYTES as u64);
        let points = chunk * size_of::<Point<P>>() as u64;
        self.chunks() as u64 * (points + raw_points + chunk * 32 + raw_scalars)
    }

    /// Bytes that [`msm`] leases.
    pub fn leased_bytes<P: Curve>(&self) -> u64 {
        self.chunks_bytes::<P>() + self.config.workspace_bytes::<P>()
    }

    /// The dry run of [`msm_of`].
    fn rehearse<P>(
        &self,
        bases: &Column<Point<P>>,
        scalars: &[Scalars<'_, P::ScalarField>],
        terms: Terms,
    ) -> Result<Vec<Projective<P>>>
    where
        P: Curve<ScalarField: Element>,
        Point<P>: Element,
    {
        let (workspace, chunk, chunks) = (bases.workspace(), self.chunk(), self.chunks() as u64);
        let per_pass = self.columns_per_pass(scalars.len());
        let scalar_bytes = <P::ScalarField as Element>::BYTES as u64;
        let hold = |bytes| workspace.hold(bytes, "MSM");
        let mut held = vec![
            hold(self.config_for(per_pass).workspace_bytes::<P>())?,
            hold(chunks * chunk * (<Point<P> as Element>::BYTES as u64 + scalar_bytes))?,
            hold(terms.reader_bytes(bases, |chunk| chunk.bases, (chunk, chunks)))?,
        ];
        for scalars in scalars.iter().take(per_pass) {
            if let Scalars::Column(column) = scalars {
                let terms = terms.within(column.len());
                held.push(hold(terms.reader_bytes(
                    column,
                    |chunk| chunk.scalars,
                    (chunk, chunks),
                ))?);
            }
        }
        for _ in 0..scalars.len().div_ceil(per_pass) {
            terms.count_read(bases, |chunk| chunk.bases)?;
            workspace.passed(1, Work::default());
        }
        for scalars in scalars {
            if let Scalars::Column(column) = scalars {
                let terms = terms.within(column.len());
                terms.count_read(column, |chunk| chunk.scalars)?;
            }
            workspace.passed(0, Work::additions(self.config.cost::<P>(terms.len())));
        }
        Ok(vec![Projective::default(); scalars.len()])
    }

    /// Columns of scalars that share one pass over the bases.
    pub fn columns(&self) -> usize {
        self.config.columns()
    }

    /// Points of a chunk.
    pub fn chunk(&self) -> u64 {
        self.config.block_points() as u64
    }

    /// Chunks in memory.
    pub fn chunks(&self) -> usize {
        self.config.chunks()
    }

    /// The kernel's configuration.
    pub fn config(&self) -> &MsmConfig {
        &self.config
    }
}

/// Bytes of a frame of an SRS.
fn point_frame_bytes<P: Curve>() -> usize {
    frame_bytes_for(Point::<P>::BYTES, SRS_FRAME_BYTES_DEFAULT as usize)
}

/// The sums of `scalars[column][i] * bases[i]`. Vectors may be shorter than the bases.
///
/// # Errors
/// [`Error::Invalid`] for more scalars than bases; [`Error::BudgetTooSmall`], [`Error::OverBudget`],
/// [`Error::Io`], [`Error::Damaged`].
pub fn msm<P>(bases: &Column<Point<P>>, scalars: &[Scalars<'_, P::ScalarField>]) -> Result<Vec<Projective<P>>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    bases.workspace().run(|| msm_in_turn(bases, scalars))
}

/// The sum over some terms of two columns.
///
/// # Errors
/// As [`msm`]; [`Invalid::Region`] for terms outside of the columns.
pub fn msm_of<P>(
    bases: &Column<Point<P>>,
    scalars: &Column<P::ScalarField>,
    terms: Terms,
) -> Result<Projective<P>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    bases.workspace().run(|| {
        let sums = match terms.is_empty() {
            true => Vec::new(),
            false => sums(bases, &[Scalars::Column(scalars)], terms)?,
        };
        Ok(sums.into_iter().next().unwrap_or_default())
    })
}

fn msm_in_turn<P>(
    bases: &Column<Point<P>>,
    scalars: &[Scalars<'_, P::ScalarField>],
) -> Result<Vec<Projective<P>>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    let points = scalars.iter().map(Scalars::len).max().unwrap_or(0);
    Invalid::unless_at_most(
        format!("scalars for the bases {}", bases.name()),
        points,
        bases.len(),
    )?;
    if points == 0 {
        return Ok(vec![Projective::default(); scalars.len()]);
    }
    match offload::sums(bases, scalars)? {
        Some(sums) => Ok(sums),
        None => sums(bases, scalars, Terms::first(points)),
    }
}

fn sums<P>(
    bases: &Column<Point<P>>,
    scalars: &[Scalars<'_, P::ScalarField>],
    terms: Terms,
) -> Result<Vec<Projective<P>>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    let points = terms.len();
    let on_disk = scalars
        .iter()
        .filter(|scalars| matches!(scalars, Scalars::Column(_)))
        .count();
    let available = bases.workspace().budget.available_bytes();
    let spread = terms.spread(bases.frame_elements());
    let plan = MsmPlan::of_spread::<P>(points, scalars.len(), on_disk, (available, spread))?;
    tracing::debug!(
        points,
        columns = plan.columns(),
        window_bits = plan.config.window_bits(),
        chunk = plan.chunk(),
        chunks = plan.chunks(),
        leased_bytes = plan.leased_bytes::<P>(),
        "streamed MSM"
    );
    if bases.workspace().is_dry() {
        return plan.rehearse(bases, scalars, terms);
    }
    let mut sums = Vec::with_capacity(scalars.len());
    let mut workspace: Option<Workspace<P>> = None;
    for group in scalars.chunks(plan.columns_per_pass(scalars.len())) {
        let mut fitting = match workspace.take() {
            Some(workspace) if workspace.kernel.config().columns() == group.len() => workspace,
            other => {
                drop(other);
                Workspace::new(&plan, group.len(), &bases.workspace().budget)?
            }
        };
        sums.extend(fitting.one_pass(bases, group, terms)?);
        workspace = Some(fitting);
    }
    Ok(sums)
}

/// A kernel whose blocks of points are leased pages, huge ones where the system has them: buckets in fresh
/// small pages cost a fault for every 64 of them.
pub type LeasedMsm<P> = Msm<P, LeasedVec<Point<P>>>;

/// The lease on what of [`MsmConfig::workspace_bytes`] is ordinary memory, and the kernel: in this order,
/// since what is bound last is dropped first.
///
/// # Errors
/// [`Error::OverBudget`], [`Error::Memory`].
pub fn leased_kernel<P: Curve>(config: MsmConfig, budget: &Budget) -> Result<(Lease, LeasedMsm<P>)> {
    let rest = config.workspace_bytes::<P>() - config.block_bytes::<P>();
    let rest = budget.lease(rest, "MSM queues")?;
    let block = |points| budget.vec(points, Point::<P>::INFINITY, "MSM buckets");
    Ok((rest, Msm::in_blocks(config, block)?))
}

/// The buffers of a pass, which the next one uses again: fresh memory is slow.
struct Workspace<P: Curve> {
    kernel: LeasedMsm<P>,
    chunk: u64,
    buffers: Vec<Buffers<P>>,
    _kernel_bytes: Lease,
}

/// A chunk, and the scalars of one column.
struct Buffers<P: Curve> {
    points: LeasedVec<Point<P>>,
    scalars: LeasedVec<P::ScalarField>,
}

/// Buffers for chunks i, i + slots, i + 2 slots, ...
struct Slot<'a, P: Curve>
where
    P::ScalarField: Element,
    Point<P>: Element,
{
    buffers: &'a mut Buffers<P>,
    len: usize,
    // Behind a lock that is never waited for: readers are not to be shared, and slots are.
    readers: Mutex<Readers<P>>,
}

struct Readers<P: Curve> {
    bases: Reader<Point<P>>,
    /// Of columns on disk.
    scalars: Vec<Option<Reader<P::ScalarField>>>,
}

impl<P> Workspace<P>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    fn new(plan: &MsmPlan, columns: usize, budget: &Budget) -> Result<Self> {
        let config = plan.config_for(columns);
        let chunk = plan.chunk() as usize;
        let zero = <P::ScalarField as ark_ff::AdditiveGroup>::ZERO;
        let (kernel_bytes, kernel) = leased_kernel(config, budget)?;
        let buffers = || -> Result<_> {
            Ok(Buffers {
                points: budget.vec(chunk, Point::<P>::INFINITY, "MSM bases")?,
                scalars: budget.vec(chunk, zero, "MSM scalars")?,
            })
        };
        Ok(Self {
            kernel,
            _kernel_bytes: kernel_bytes,
            chunk: plan.chunk(),
            buffers: (0..plan.chunks()).map(|_| buffers()).collect::<Result<_>>()?,
        })
    }

    /// One pass over the bases.
    fn one_pass(
        &mut self,
        bases: &Column<Point<P>>,
        scalars: &[Scalars<'_, P::ScalarField>],
        terms: Terms,
    ) -> Result<Vec<Projective<P>>> {
        let (chunk, slots) = (self.chunk, self.buffers.len());
        // Each slot reads every so many chunks, one ahead.
        let every = |slot: usize, terms: Terms, side: fn(Chunk) -> Region| {
            let chunks = (0..terms.chunks(chunk)).skip(slot).step_by(slots);
            chunks.map(move |index| side(terms.chunk(index, chunk)))
        };
        let slot = |(index, buffers)| -> Result<Slot<'_, P>> {
            let readers = scalars.iter().map(|scalars| match scalars {
                Scalars::Column(column) => {
                    let regions = every(index, terms.within(column.len()), |chunk| chunk.scalars);
                    column.reader(regions, 1).map(Some)
                }
                Scalars::Slice(_) | Scalars::Foreign(_) => Ok(None),
            });
            Ok(Slot {
                buffers,
                len: 0,
                readers: Mutex::new(Readers {
                    bases: bases.reader(every(index, terms, |chunk| chunk.bases), 1)?,
                    scalars: readers.collect::<Result<_>>()?,
                }),
            })
        };
        let mut slots = (self.buffers.iter_mut().enumerate())
            .map(slot)
            .collect::<Result<Vec<_>>>()?;
        let fill = |index: usize, slot: &mut Slot<'_, P>, digits: &mut [Digits]| {
            slot.fill(index * chunk as usize, scalars, digits)
        };
        let chunks = (terms.chunks(chunk) as usize, Fillings::SideBySide);
        self.kernel
            .run(chunks, &mut slots, fill, |slot| &slot.buffers.points[..slot.len])?;
        drop(slots);
        Ok(self.kernel.drain())
    }
}

impl<P> Slot<'_, P>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    /// Fills in the chunk at `start`, the next of its readers.
    fn fill(
        &mut self,
        start: usize,
        scalars: &[Scalars<'_, P::ScalarField>],
        digits: &mut [Digits],
    ) -> Result<()> {
        let zero = <P::ScalarField as ark_ff::AdditiveGroup>::ZERO;
        let Buffers {
            points,
            scalars: values,
        } = &mut *self.buffers;
        let readers = self.readers.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.len = readers
            .bases
            .next_into(points)?
            .map_or(0, |region| region.len() as usize);
        let values = &mut values[..self.len];
        for ((scalars, reader), digits) in scalars.iter().zip(&mut readers.scalars).zip(digits) {
            let filled = match (scalars, reader) {
                (Scalars::Slice(slice), _) => {
                    let part = slice
                        .get(start..slice.len().min(start + values.len()))
                        .unwrap_or(&[]);
                    values[..part.len()].copy_from_slice(part);
                    part.len()
                }
                (Scalars::Column(_), Some(reader)) => reader
                    .next_into(values)?
                    .map_or(0, |region| region.len() as usize),
                (Scalars::Foreign(foreign), _) => {
                    let count = foreign.count().saturating_sub(start).min(values.len());
                    foreign.fill(start, &mut values[..count]);
                    count
                }
                (Scalars::Column(_), None) => 0,
            };
            values[filled..].fill(zero);
            digits.fill(values);
        }
        Ok(())
    }
}
