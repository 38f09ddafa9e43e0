//! Multi-scalar multiplication over BN254's G1 on a device, of any length: points and scalars stream through
//! a ring, buckets stay on the device.
//!
//! ```text
//! for each chunk:  digits - sort - starts - lengths - sort - accumulate - extras - fold - merge      (kernels, one stream)
//! at the end:      reduce - total, one point for each window to the host, which weighs them by 2^(c w)
//! ```
//!
//! The method is in `gpu/kernels/msm.cuh`. [`MsmPlan`] chooses the width of windows and the length of chunks
//! from the number of points and the budget of device memory, and gives the bytes that the job leases for its
//! whole life before anything is allocated. A sum has two hard synchronisations, whatever the number of
//! chunks.
//!
//! Several sums over the same points are one job ([`MsmPlan::of_columns`], [`Msm::sum_columns`]): a chunk
//! then has its points once and the scalars of each column. Each column has its own buckets; the columns
//! share everything else. Points for several jobs may stay on the device ([`Bases`], [`PointSource`]); a
//! chunk is then scalars only.
//!
//! A chunk, and each part of it that is in a slot, of `m` points is `m` points of 64 bytes, then `m` scalars of 32 for each column, all in Montgomery
//! form as in files ([`columns_of`] makes such a source). Points must be on the curve, (0, 0) is infinity;
//! scalars must be below the order.

mod bases;
mod launch;
mod plan;
mod sort;

use ark_bn254::{Fq, G1Affine, G1Projective};
use ark_ec::{AdditiveGroup, AffineRepr, CurveGroup};
use ark_ff::BigInt;

pub use bases::Bases;
pub(crate) use plan::SUM_BYTES;
pub use plan::{BasesLocation, ELEMENT_BYTES, MsmPlan, MsmShape, POINT_BYTES, PassLimit, SCALAR_BYTES};

use crate::buffer::DeviceBuffer;
use crate::error::{BoxedError, Error, Invalid, Result};
use crate::kernels::{Argument, Kernels};
use crate::ring::{Chunk, Ring, RingJob, Source, Upload};
use crate::stream::Stream;
use crate::vram::Vram;
use launch::{Grid, Kernel, launch};
use sort::{Pairs, Sort, SortSize};

const THREADS: u32 = 128;

/// A source of chunks from a source of points, if they are streamed, and a source of scalars for each column.
pub fn columns_of<'a>(
    mut points: Option<Box<dyn Source + 'a>>,
    mut scalars: Vec<Box<dyn Source + 'a>>,
) -> impl Source + 'a {
    move |offset: u64, into: &mut [u8]| -> Result<(), BoxedError> {
        let of_point = points.as_ref().map_or(0, |_| POINT_BYTES);
        let element_bytes = of_point + scalars.len() as u64 * SCALAR_BYTES;
        let (first, count) = (offset / element_bytes, into.len() / element_bytes as usize);
        let (of_points, of_scalars) = into.split_at_mut(count * of_point as usize);
        if let Some(points) = &mut points {
            points.fill(first * POINT_BYTES, of_points)?;
        }
        let parts = of_scalars.chunks_exact_mut(count * SCALAR_BYTES as usize);
        let mut each = scalars.iter_mut().zip(parts);
        each.try_for_each(|(column, part)| column.fill(first * SCALAR_BYTES, part))
    }
}

/// Where the points of a run come from.
#[derive(Debug, Clone, Copy)]
pub enum PointSource<'b> {
    /// They are streamed with their scalars.
    Stream,
    /// They are streamed with their scalars, and copied to these bases for later runs. The copy is valid if
    /// this run succeeds.
    StreamAndKeep(&'b Bases),
    /// They are the first points of these bases; only scalars are streamed.
    Resident(&'b Bases),
}

/// The device memory and kernels for sums by one plan. Runs one sum at a time.
#[derive(Debug)]
pub struct Msm {
    // The first field: its drop waits for the kernels, and only then may buffers be freed.
    ring: Ring,
    work: MsmLauncher,
}

#[derive(Debug)]
struct MsmLauncher {
    plan: MsmPlan,
    launches: Launches,
    buffers: Buffers,
}

#[derive(Debug)]
struct Launches {
    digits: Kernel,
    sort: Sort,
    starts: Kernel,
    lengths: Kernel,
    accumulate: Kernel,
    extras: Kernel,
    fold: Kernel,
    merge: Kernel,
    reduce: Kernel,
    total: Kernel,
}

#[derive(Debug)]
struct Buffers {
    buckets: DeviceBuffer,
    pairs: Pairs,
    starts: DeviceBuffer,
    order: Pairs,
    counts: DeviceBuffer,
    partials: DeviceBuffer,
    totals: DeviceBuffer,
}

impl Msm {
    /// Leases the device memory of the plan.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`], [`Error::NoKernel`], [`Error::Driver`].
    pub fn new(vram: &Vram, kernels: &Kernels, plan: MsmPlan) -> Result<Self> {
        let sizes = plan.sizes();
        let of_the_curve = |name: &str| kernels.kernel(&format!("spk_msm_{name}_bn254"));
        let launches = Launches {
            digits: of_the_curve("digits")?,
            sort: Sort::new(kernels)?,
            starts: kernels.kernel("spk_msm_starts")?,
            lengths: kernels.kernel("spk_msm_lengths")?,
            accumulate: of_the_curve("accumulate")?,
            extras: of_the_curve("extras")?,
            fold: of_the_curve("fold")?,
            merge: of_the_curve("merge")?,
            reduce: of_the_curve("reduce")?,
            total: of_the_curve("total")?,
        };
        let buffers = Buffers {
            buckets: vram.buffer(sizes.buckets, "MSM buckets")?,
            pairs: Pairs::new(vram, sizes.pairs, "MSM digits")?,
            starts: vram.buffer(sizes.starts, "MSM runs")?,
            order: Pairs::new(vram, sizes.order, "MSM order of buckets")?,
            counts: vram.buffer(sizes.counts, "MSM sort")?,
            partials: vram.buffer(sizes.partials, "MSM partial sums")?,
            totals: vram.buffer(sizes.totals, "MSM window sums")?,
        };
        Ok(Self {
            ring: Ring::new(vram, plan.chunking()?, plan.shape().ring_buffers)?,
            work: MsmLauncher {
                plan,
                launches,
                buffers,
            },
        })
    }

    /// The plan.
    pub fn plan(&self) -> &MsmPlan {
        &self.work.plan
    }

    /// The sums of all columns, in order. `source` gives chunks as [`columns_of`] does: points, unless they
    /// are resident, then scalars. `upload` has slots of at least [`MsmPlan::slot_bytes`]; chunks of this job
    /// that are staged in them are used.
    ///
    /// # Errors
    /// [`Error::Source`]; [`Error::Driver`]; [`Error::Wrong`] if the sum of a window is not on the curve;
    /// [`Error::Invalid`] for slots that are too short, or points that are not where the plan has them. After
    /// an error nothing is in flight, and the next sums start afresh unless the device is lost.
    pub fn sum_columns(
        &mut self,
        points: PointSource<'_>,
        upload: &mut Upload,
        source: &mut dyn Source,
    ) -> Result<Vec<G1Projective>> {
        self.queue(points, upload, source)?;
        self.collect()
    }

    /// As [`Msm::sum_columns`]. Calls `meanwhile` when all work is queued and the slots are free, while the
    /// device works; it may fill the slots with the start of the next job.
    ///
    /// # Errors
    /// As [`Msm::sum_columns`], and errors of `meanwhile`.
    pub fn sum_columns_and<S: Source>(
        &mut self,
        points: PointSource<'_>,
        upload: &mut Upload,
        source: &mut S,
        meanwhile: impl FnOnce(&mut Upload, &mut S) -> Result<()>,
    ) -> Result<Vec<G1Projective>> {
        self.queue(points, upload, source)?;
        let staged = meanwhile(upload, source);
        let sums = self.collect();
        staged?;
        sums
    }

    /// Queues all work of the job. When this returns, the source has given all its bytes.
    fn queue(&mut self, points: PointSource<'_>, upload: &mut Upload, source: &mut dyn Source) -> Result<()> {
        let work = &self.work;
        let resident = work.plan.bases() == BasesLocation::Resident;
        if resident != matches!(points, PointSource::Resident(_)) {
            return Err(Invalid::OtherPlan {
                plan: format!("{:?} bases", work.plan.bases()),
                job: "other bases".into(),
            }
            .into());
        }
        let buffer = match points {
            PointSource::Stream => None,
            PointSource::StreamAndKeep(bases) | PointSource::Resident(bases) => {
                Some(bases.for_points(work.plan.points())?)
            }
        };
        let of_points = (!resident).then_some(POINT_BYTES);
        let of_scalars = (0..work.plan.columns()).map(|_| SCALAR_BYTES);
        let arrays: Vec<u64> = of_points.into_iter().chain(of_scalars).collect();
        let job = RingJob {
            total_bytes: work.plan.points() * work.plan.element_bytes(),
            upload: Some((upload, source)),
            arrays: &arrays,
            download: None,
        };
        self.ring.run_job(job, &mut |chunk| work.add(&chunk, buffer))?;
        (0..work.plan.columns()).try_for_each(|column| work.reduce(self.ring.stream(), column))
    }

    /// Waits for the queued work, and combines the sums of the windows.
    fn collect(&mut self) -> Result<Vec<G1Projective>> {
        let work = &self.work;
        self.ring.finish()?;
        let mut sums = vec![0; work.buffers.totals.bytes() as usize];
        self.ring.stream().read((&work.buffers.totals, 0), &mut sums)?;
        let of_columns = sums.chunks_exact(work.plan.sizes().totals_of_column as usize);
        of_columns
            .map(|sums| combine(sums, work.plan.shape().window_bits))
            .collect()
    }
}

impl MsmLauncher {
    /// Queues the kernels that add a chunk's products to the buckets of all columns.
    fn add(&self, chunk: &Chunk<'_>, bases: Option<&DeviceBuffer>) -> Result<()> {
        if chunk.piece.index == 0 {
            // Zeros are points at infinity. Queued with the first chunk and not before the job, since from
            // the first chunk on the ring waits for its stream on drop.
            chunk.stream.fill(&self.buffers.buckets, 0)?;
        }
        let element_bytes = self.plan.element_bytes();
        let n = chunk.piece.bytes / element_bytes;
        let at_bytes = chunk.piece.offset / element_bytes * POINT_BYTES;
        let (points, scalars) = match (bases, self.plan.bases()) {
            (Some(bases), BasesLocation::Resident) => (Argument::BufferAt(bases, at_bytes), 0),
            (bases, _) => {
                let bytes = n * POINT_BYTES;
                if let Some(bases) = bases {
                    chunk.stream.copy((bases, at_bytes), (chunk.buffer, 0), bytes)?;
                }
                (Argument::Buffer(chunk.buffer), bytes)
            }
        };
        (0..self.plan.columns()).try_for_each(|column| {
            let scalars = Argument::BufferAt(chunk.buffer, scalars + column * n * SCALAR_BYTES);
            self.add_column(chunk.stream, points, scalars, n, column)
        })
    }

    /// Queues the kernels that add `n` products to the buckets of one column.
    fn add_column(
        &self,
        stream: &Stream,
        points: Argument<'_>,
        scalars: Argument<'_>,
        n: u64,
        column: u64,
    ) -> Result<()> {
        let (plan, kernels, buffers) = (&self.plan, &self.launches, &self.buffers);
        let (windows, items, slots) = (plan.windows(), plan.items(), plan.slots(n));
        let shape = plan.shape();
        let [n32, windows32, buckets32, items32, split32, slots32] =
            [n, windows, plan.buckets(), items, shape.split, slots]
                .map(|value| Argument::Word32(value as u32));
        let row = Grid::for_threads(n, THREADS)?;
        let all_items = Grid::for_threads(items, THREADS)?;
        let [starts, partials] = [&buffers.starts, &buffers.partials].map(Argument::Buffer);
        let sums = Argument::BufferAt(&buffers.buckets, column * plan.sizes().buckets_of_column);

        let pairs = buffers.pairs.unsorted();
        let bits = Argument::Word32(shape.window_bits);
        let [keys, values] = [pairs.keys, pairs.values].map(Argument::Buffer);
        launch(
            &kernels.digits,
            stream,
            row,
            &[scalars, n32, bits, windows32, keys, values],
        )?;
        let counts = &buffers.counts;
        let size = SortSize {
            pairs: n,
            rows: windows,
            bits: shape.window_bits,
        };
        let sorted = kernels.sort.sort(stream, &buffers.pairs, counts, size)?;
        let [keys, values] = [sorted.keys, sorted.values].map(Argument::Buffer);
        let ends = by_windows(Grid::for_threads(plan.buckets() + 1, THREADS)?, windows);
        launch(&kernels.starts, stream, ends, &[keys, n32, buckets32, starts])?;

        let order = buffers.order.unsorted();
        let [order_keys, order_values] = [order.keys, order.values].map(Argument::Buffer);
        launch(
            &kernels.lengths,
            stream,
            all_items,
            &[starts, buckets32, items32, split32, order_keys, order_values],
        )?;
        let size = SortSize {
            pairs: items,
            rows: 1,
            bits: plan.order_bits(),
        };
        let order = kernels.sort.sort(stream, &buffers.order, counts, size)?;
        let order = Argument::Buffer(order.values);
        launch(
            &kernels.accumulate,
            stream,
            all_items,
            &[
                points, values, starts, order, n32, buckets32, items32, split32, sums,
            ],
        )?;
        // No run of points is longer than one piece.
        if slots <= 1 {
            return Ok(());
        }
        let pieces = by_windows(Grid::for_threads(slots, THREADS)?, windows);
        launch(
            &kernels.extras,
            stream,
            pieces,
            &[
                points, keys, values, starts, n32, buckets32, split32, slots32, partials,
            ],
        )?;
        let mut stride = 1;
        while stride < slots {
            let stride32 = Argument::Word32(stride as u32);
            launch(
                &kernels.fold,
                stream,
                pieces,
                &[keys, starts, n32, buckets32, split32, slots32, stride32, partials],
            )?;
            stride *= 2;
        }
        launch(
            &kernels.merge,
            stream,
            all_items,
            &[starts, buckets32, items32, split32, slots32, partials, sums],
        )
    }

    /// Queues the kernels that reduce each window of a column to one point.
    fn reduce(&self, stream: &Stream, column: u64) -> Result<()> {
        let (plan, buffers) = (&self.plan, &self.buffers);
        let (windows, segments) = (plan.windows(), plan.segments());
        let [buckets32, segment32, segments32] =
            [plan.buckets(), plan.segment(), segments].map(|value| Argument::Word32(value as u32));
        let sizes = plan.sizes();
        let partials = Argument::Buffer(&buffers.partials);
        let sums = Argument::BufferAt(&buffers.buckets, column * sizes.buckets_of_column);
        let totals = Argument::BufferAt(&buffers.totals, column * sizes.totals_of_column);
        // Places for a point in shared memory: see `Shared` in the kernels.
        let place_bytes = SUM_BYTES as u32 + 16;
        let grid = Grid {
            shared_bytes: 2 * THREADS * place_bytes,
            ..by_windows(Grid::for_threads(segments, THREADS)?, windows)
        };
        launch(
            &self.launches.reduce,
            stream,
            grid,
            &[sums, buckets32, segment32, segments32, partials],
        )?;
        let threads = segments.next_power_of_two().min(u64::from(THREADS)) as u32;
        let grid = Grid {
            blocks: (1, windows as u32, 1),
            threads: (threads, 1, 1),
            shared_bytes: threads * place_bytes,
        };
        launch(
            &self.launches.total,
            stream,
            grid,
            &[partials, segments32, totals],
        )
    }
}

fn by_windows(grid: Grid, windows: u64) -> Grid {
    Grid {
        blocks: (grid.blocks.0, windows as u32, 1),
        ..grid
    }
}

/// The sum over all windows w of the window's sum times 2^(c w).
fn combine(sums: &[u8], window_bits: u32) -> Result<G1Projective> {
    let mut result = G1Projective::ZERO;
    for (window, sum) in sums.chunks_exact(SUM_BYTES as usize).enumerate().rev() {
        for _ in 0..window_bits {
            result.double_in_place();
        }
        result += point(sum).ok_or_else(|| Error::Wrong {
            what: format!("the sum of window {window}, a point off the curve"),
        })?;
    }
    Ok(result)
}

/// The point with the coordinates X, Y, ZZ, ZZZ; `None` if it is not on the curve.
pub(crate) fn point(bytes: &[u8]) -> Option<G1Affine> {
    let [x, y, zz, zzz] = std::array::from_fn(|i| coordinate(&bytes[32 * i..32 * (i + 1)]));
    if zz == Fq::ZERO {
        return Some(G1Affine::zero());
    }
    // In Jacobian coordinates with Z = ZZ: X / ZZ = X ZZ / Z^2, and Y / ZZZ = Y ZZZ / Z^3, since ZZ^3 =
    // ZZZ^2.
    let point = G1Projective::new_unchecked(x * zz, y * zzz, zz).into_affine();
    (zz * zz * zz == zzz * zzz && point.is_on_curve()).then_some(point)
}

/// A coordinate from 32 bytes in Montgomery form.
fn coordinate(bytes: &[u8]) -> Fq {
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    Fq::new_unchecked(BigInt(words))
}
