//! Multi-scalar multiplication over bases on disk, which are read once for as many scalar columns as memory takes.
//!
//! Bases and scalars arrive in chunks, two of each on the way while the kernel works on a third; buckets stay. Memory:
//! [`MsmPlan::leased_bytes`], whatever n.

use ark_ec::short_weierstrass::Projective;
use spillproof_format::{SRS_FRAME_BYTES_DEFAULT, frame_bytes_for};

use super::offload;
use super::scalars::Scalars;
use crate::budget::{Budget, Lease, LeasedVec};
use crate::column::{Column, Element, SCRATCH_FRAME_BYTES, ascending};
use crate::dry::Work;
use crate::error::Invalid;
use crate::kernels::curve::{Curve, Point};
use crate::kernels::msm::{Msm, MsmConfig};
use crate::{Error, Result};

/// Chunks of points that are tried, largest first.
const LOG_CHUNKS: std::ops::RangeInclusive<u32> = 8..=16;
/// What it costs to read, check and decode a base, in batched additions.
const SHARED_READ_COST: f64 = 0.5;
/// Chunks on the way for each reader.
const READ_AHEAD: usize = 2;

/// How a streamed MSM uses its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsmPlan {
    config: MsmConfig,
    chunk: u64,
    columns_on_disk: u64,
}

impl MsmPlan {
    /// The fastest plan within `available_bytes` for sums over `points` bases: as many of `columns` columns of scalars at a time as
    /// do not cost more additions than it saves to read the bases less often.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest that works for one column.
    pub fn new<P: Curve>(
        points: u64,
        columns: usize,
        columns_on_disk: usize,
        available_bytes: u64,
    ) -> Result<Self> {
        let single = Self::with_columns::<P>(points, 1, columns_on_disk.min(1), available_bytes)?;
        let mut columns = columns.max(1);
        while columns > 1 {
            let on_disk = columns_on_disk.min(columns);
            match Self::with_columns::<P>(points, columns, on_disk, available_bytes) {
                Ok(plan)
                    if plan.cost::<P>(points)
                        <= single.cost::<P>(points) + SHARED_READ_COST * points as f64 =>
                {
                    return Ok(plan);
                }
                _ => columns = columns.div_ceil(2),
            }
        }
        Ok(single)
    }

    fn with_columns<P: Curve>(points: u64, columns: usize, on_disk: usize, available: u64) -> Result<Self> {
        let threads = rayon::current_num_threads();
        let mut refused = None;
        for log_chunk in LOG_CHUNKS.rev() {
            let plan = Self {
                config: MsmConfig::new(2, 0, columns, threads),
                chunk: 1 << log_chunk,
                columns_on_disk: on_disk as u64,
            };
            let smallest = log_chunk == *LOG_CHUNKS.start();
            // A chunk larger than the sum, or than a third of what there is, buys nothing.
            let useful = plan.chunk < 2 * points && plan.io_bytes::<P>() <= available / 3;
            if !(useful || smallest) {
                continue;
            }
            match MsmConfig::choose::<P>(
                points,
                columns,
                threads,
                available.saturating_sub(plan.io_bytes::<P>()),
            ) {
                Ok(config) => return Ok(Self { config, ..plan }),
                Err(Error::BudgetTooSmall {
                    what, needed_bytes, ..
                }) => {
                    refused = Some(Error::BudgetTooSmall {
                        what,
                        needed_bytes: needed_bytes + plan.io_bytes::<P>(),
                        limit_bytes: available,
                    });
                }
                Err(other) => return Err(other),
            }
        }
        Err(refused.unwrap_or(
            Invalid::Empty {
                what: "chunk sizes of an MSM",
            }
            .into(),
        ))
    }

    /// Additions for a column. A chunk that is smaller than a block is one.
    fn cost<P: Curve>(&self, points: u64) -> f64 {
        let block_points = self.config.block_points().min(self.chunk as usize);
        let config = MsmConfig::new(self.config.window_bits(), block_points, 1, 1);
        config.cost::<P>(points)
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
    }

    /// Bytes of chunks: points and scalars, decoded once and raw [`READ_AHEAD`] times.
    fn io_bytes<P: Curve>(&self) -> u64 {
        let raw = READ_AHEAD as u64;
        // A chunk that is smaller than a frame brings a frame along.
        let point_frame = frame_bytes_for(Point::<P>::BYTES, SRS_FRAME_BYTES_DEFAULT as usize) as u64;
        let raw_points = (self.chunk * Point::<P>::BYTES as u64).max(point_frame);
        let points = self.chunk * size_of::<Point<P>>() as u64 + raw * raw_points;
        let scalars = self.config.columns() as u64 * self.chunk * 32;
        let raw_scalars = self.columns_on_disk * raw * (self.chunk * 32).max(SCRATCH_FRAME_BYTES as u64);
        points + scalars + raw_scalars
    }

    /// Bytes that [`msm`] leases.
    pub fn leased_bytes<P: Curve>(&self) -> u64 {
        self.io_bytes::<P>() + self.config.workspace_bytes::<P>()
    }

    /// The dry run of [`msm`] over bases as many as the longest vector has scalars.
    fn rehearse<P>(
        &self,
        bases: &Column<Point<P>>,
        scalars: &[Scalars<'_, P::ScalarField>],
    ) -> Result<Vec<Projective<P>>>
    where
        P: Curve<ScalarField: Element>,
        Point<P>: Element,
    {
        let (workspace, chunk, ahead) = (bases.workspace(), self.chunk, READ_AHEAD as u64);
        let per_pass = self.columns_per_pass(scalars.len());
        let scalar_bytes = <P::ScalarField as Element>::BYTES as u64;
        let hold = |bytes| workspace.hold(bytes, "MSM");
        let mut held = vec![
            hold(self.config_for(per_pass).workspace_bytes::<P>())?,
            hold(chunk * <Point<P> as Element>::BYTES as u64)?,
            hold(bases.reader_bytes(chunk, ahead))?,
        ];
        for scalars in scalars.iter().take(per_pass) {
            held.push(hold(chunk * scalar_bytes)?);
            if let Scalars::Column(column) = scalars {
                held.push(hold(column.reader_bytes(chunk, ahead))?);
            }
        }
        for _ in 0..scalars.len().div_ceil(per_pass) {
            bases.count_read();
            workspace.passed(1, Work::default());
        }
        for scalars in scalars {
            if let Scalars::Column(column) = scalars {
                column.count_read();
            }
            workspace.passed(0, Work::additions(self.config.cost::<P>(bases.len())));
        }
        Ok(vec![Projective::default(); scalars.len()])
    }

    /// Columns of scalars that share one pass over the bases.
    pub fn columns(&self) -> usize {
        self.config.columns()
    }

    /// Points of a chunk.
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    /// The kernel's configuration.
    pub fn config(&self) -> &MsmConfig {
        &self.config
    }
}

/// The sums of `scalars[column][i] * bases[i]`. Vectors may be shorter than the bases.
///
/// # Errors
/// [`Error::Invalid`] for more scalars than bases; [`Error::BudgetTooSmall`], [`Error::OverBudget`], [`Error::Io`],
/// [`Error::Damaged`].
pub fn msm<P>(bases: &Column<Point<P>>, scalars: &[Scalars<'_, P::ScalarField>]) -> Result<Vec<Projective<P>>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    bases.workspace().run(|| msm_in_turn(bases, scalars))
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
    if let Some(sums) = offload::sums(bases, scalars)? {
        return Ok(sums);
    }
    let on_disk = scalars
        .iter()
        .filter(|scalars| matches!(scalars, Scalars::Column(_)))
        .count();
    let available = bases.workspace().budget.available_bytes();
    let plan = MsmPlan::new::<P>(points, scalars.len(), on_disk, available)?;
    tracing::debug!(
        points,
        columns = plan.columns(),
        window_bits = plan.config.window_bits(),
        chunk = plan.chunk,
        leased_bytes = plan.leased_bytes::<P>(),
        "streamed MSM"
    );
    if bases.workspace().is_dry() {
        return plan.rehearse(&bases.prefix(points)?, scalars);
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
        sums.extend(fitting.one_pass(bases, group)?);
        workspace = Some(fitting);
    }
    Ok(sums)
}

/// A kernel whose blocks of points are leased pages, huge ones where the system has them: buckets in fresh small pages cost a
/// fault for every 64 of them.
pub(crate) type LeasedMsm<P> = Msm<P, LeasedVec<Point<P>>>;

/// The lease on what of [`MsmConfig::workspace_bytes`] is ordinary memory, and the kernel: in this order, since what is bound last is
/// dropped first.
///
/// # Errors
/// [`Error::OverBudget`], [`Error::Memory`].
pub(crate) fn leased_kernel<P: Curve>(config: MsmConfig, budget: &Budget) -> Result<(Lease, LeasedMsm<P>)> {
    let rest = config.workspace_bytes::<P>() - config.block_bytes::<P>();
    let rest = budget.lease(rest, "MSM queues")?;
    let block = |points| budget.vec(points, Point::<P>::INFINITY, "MSM buckets");
    Ok((rest, Msm::in_blocks(config, block)?))
}

/// The buffers of a pass, which the next one uses again: fresh memory is slow.
struct Workspace<P: Curve> {
    kernel: LeasedMsm<P>,
    chunk: u64,
    points: LeasedVec<Point<P>>,
    scalars: Vec<LeasedVec<P::ScalarField>>,
    _kernel_bytes: Lease,
}

impl<P> Workspace<P>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    fn new(plan: &MsmPlan, columns: usize, budget: &Budget) -> Result<Self> {
        let config = plan.config_for(columns);
        let chunk = plan.chunk as usize;
        let zero = <P::ScalarField as ark_ff::AdditiveGroup>::ZERO;
        let (kernel_bytes, kernel) = leased_kernel(config, budget)?;
        Ok(Self {
            kernel,
            _kernel_bytes: kernel_bytes,
            chunk: plan.chunk,
            points: budget.vec(chunk, Point::<P>::INFINITY, "MSM bases")?,
            scalars: (0..columns)
                .map(|_| budget.vec(chunk, zero, "MSM scalars"))
                .collect::<Result<_>>()?,
        })
    }

    /// One pass over the bases.
    fn one_pass(
        &mut self,
        bases: &Column<Point<P>>,
        scalars: &[Scalars<'_, P::ScalarField>],
    ) -> Result<Vec<Projective<P>>> {
        let points = scalars.iter().map(Scalars::len).max().unwrap_or(0);
        let zero = <P::ScalarField as ark_ff::AdditiveGroup>::ZERO;
        let readers = scalars.iter().map(|scalars| match scalars {
            Scalars::Column(column) => column
                .reader(ascending(column.len(), self.chunk), READ_AHEAD)
                .map(Some),
            Scalars::Slice(_) | Scalars::Foreign(_) => Ok(None),
        });
        let mut readers = readers.collect::<Result<Vec<_>>>()?;
        let mut bases = bases
            .prefix(points)?
            .reader(ascending(points, self.chunk), READ_AHEAD)?;
        let mut start = 0usize;
        while let Some(region) = bases.next_into(&mut self.points)? {
            let len = region.len() as usize;
            for ((scalars, reader), values) in scalars.iter().zip(&mut readers).zip(&mut self.scalars) {
                let filled = match (scalars, reader) {
                    (Scalars::Slice(slice), _) => {
                        let part = slice.get(start..slice.len().min(start + len)).unwrap_or(&[]);
                        values[..part.len()].copy_from_slice(part);
                        part.len()
                    }
                    (Scalars::Column(_), Some(reader)) => reader
                        .next_into(values)?
                        .map_or(0, |region| region.len() as usize),
                    (Scalars::Foreign(foreign), _) => {
                        let count = foreign.count().saturating_sub(start).min(len);
                        foreign.fill(start, &mut values[..count]);
                        count
                    }
                    (Scalars::Column(_), None) => 0,
                };
                values[filled..len].fill(zero);
            }
            let columns: Vec<&[P::ScalarField]> = self.scalars.iter().map(|values| &values[..len]).collect();
            self.kernel.update(&self.points[..len], &columns);
            start += len;
        }
        Ok(self.kernel.drain())
    }
}
