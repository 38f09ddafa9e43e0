//! Multi-scalar multiplication over both groups of BN254 on a device, of any length: points and scalars stream through
//! a ring, buckets stay on the device.
//!
//! ```text
//! for each chunk:  kinds - sort - starts - lanes - digits - sort - starts - lengths - sort - accumulate (twice) - extras - fold - merge
//! at the end:      reduce - total, one point for each window to the host, which weighs them by 2^(c w), and one of all ones
//! ```
//!
//! Scalars of zero cost no more than to be found, and those of one and minus one an addition to each column of points.
//!
//! The method is in `gpu/kernels/msm.cuh`. [`MsmPlan`] chooses the width of windows and the length of chunks
//! from the number of points and the budget of device memory, and gives the bytes that the job leases for its
//! whole life before anything is allocated. A sum has two hard synchronisations, whatever the number of
//! chunks.
//!
//! Several columns of points, and several of scalars, are one job ([`SumsSize`], [`Msm::sum_columns`]): a chunk
//! has each of them once, and the digits of a column of scalars are sorted once for all points. Each sum has its own
//! buckets; the sums share everything else. Points for several jobs may stay on the device ([`Bases`],
//! [`PointSource`]); a chunk is then scalars only.
//!
//! A chunk, and each part of it that is in a slot, of `m` points is `m` points of each column, then `m` scalars of each
//! column, all in Montgomery form as in files ([`columns_of`] makes such a source): 64 bytes for a point of G1, 128 for
//! one of G2, which come after those of G1, and 32 for a scalar. Points must be on the curve, zeros are infinity; scalars
//! must be below the order.

mod bases;
mod launch;
mod plan;
mod sort;

use ark_bn254::{Fq, g1, g2};
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AdditiveGroup, AffineRepr, CurveGroup};
use ark_ff::{BigInt, Field};
use spillproof_engine::accelerator::{Arrivals, Group, Groups, Totals};
use spillproof_engine::budget::Lent;

pub use bases::{BaseColumns, Bases};
pub(crate) use plan::sum_bytes;
pub use plan::{BasesLocation, ELEMENT_BYTES, MsmPlan, MsmShape, POINT_BYTES, SCALAR_BYTES, SumsSize};

use crate::buffer::DeviceBuffer;
use crate::error::{BoxedError, Error, Invalid, Result};
use crate::kernels::{Argument, Kernels};
use crate::ring::{Chunk, Ring, RingJob, Source, Upload};
use crate::stream::Stream;
use crate::vram::Vram;
use launch::{Grid, Kernel, launch};
use plan::{KIND_BITS, SUM_OF_POINT};
use sort::{Pairs, Sort, SortSize, pointer};

const THREADS: u32 = 128;
/// Dynamic shared memory that every device has.
const SHARED_BYTES: u32 = 48 << 10;

/// A source of chunks from a source for each column of points that is streamed, and for each column of scalars.
pub fn columns_of<'a>(
    points: Vec<(Group, Box<dyn Source + 'a>)>,
    scalars: Vec<Box<dyn Source + 'a>>,
) -> impl Source + 'a {
    let points = points
        .into_iter()
        .map(|(group, source)| (group.point_bytes(), source));
    let scalars = scalars.into_iter().map(|source| (SCALAR_BYTES, source));
    Columns(points.chain(scalars).collect())
}

/// Columns, each with the bytes of an element.
struct Columns<'a>(Vec<(u64, Box<dyn Source + 'a>)>);

impl Source for Columns<'_> {
    fn begin(&mut self, offset: u64, mut into: Lent) -> Result<Arrivals, BoxedError> {
        let element_bytes: u64 = self.0.iter().map(|(bytes, _)| bytes).sum();
        let (first, count) = (offset / element_bytes, into.len() as u64 / element_bytes);
        let mut arrivals = Arrivals::default();
        for (bytes, source) in &mut self.0 {
            let part = into.take_first((count * *bytes) as usize);
            arrivals.append(source.begin(first * *bytes, part)?);
        }
        Ok(arrivals)
    }
}

/// Where the points of a run come from.
#[derive(Debug, Clone, Copy)]
pub enum PointSource<'b> {
    /// They are streamed with their scalars.
    Stream,
    /// They are streamed with their scalars, and copied to these bases for later runs. The copy is valid if
    /// this run succeeds.
    StreamAndKeep(BaseColumns<'b>),
    /// They are the first points of these bases; only scalars are streamed.
    Resident(BaseColumns<'b>),
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
    kinds: Kernel,
    lanes: Kernel,
    digits: Kernel,
    sort: Sort,
    starts: Kernel,
    lengths: Kernel,
    of_groups: Groups<GroupLaunches>,
}

/// The kernels of one group.
#[derive(Debug)]
struct GroupLaunches {
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
    ones: DeviceBuffer,
    bounds: DeviceBuffer,
    lane_starts: DeviceBuffer,
    lane_order: DeviceBuffer,
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
        let launches = Launches {
            kinds: kernels.kernel("spk_msm_kinds_bn254")?,
            lanes: kernels.kernel("spk_msm_lanes")?,
            digits: kernels.kernel("spk_msm_digits_bn254")?,
            sort: Sort::new(kernels)?,
            starts: kernels.kernel("spk_msm_starts")?,
            lengths: kernels.kernel("spk_msm_lengths")?,
            of_groups: Groups {
                g1: GroupLaunches::new(kernels, "bn254")?,
                g2: GroupLaunches::new(kernels, "bn254_g2")?,
            },
        };
        let buffers = Buffers {
            buckets: vram.buffer(sizes.buckets, "MSM buckets")?,
            pairs: Pairs::new(vram, sizes.pairs, "MSM digits")?,
            starts: vram.buffer(sizes.starts, "MSM runs")?,
            order: Pairs::new(vram, sizes.order, "MSM order of buckets")?,
            counts: vram.buffer(sizes.counts, "MSM sort")?,
            ones: vram.buffer(sizes.ones, "MSM ones")?,
            bounds: vram.buffer(sizes.bounds, "MSM kinds of scalars")?,
            lane_starts: vram.buffer(sizes.lane_starts, "MSM runs of ones")?,
            lane_order: vram.buffer(sizes.lane_order, "MSM order of lanes")?,
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

    /// All sums: of each column of points in turn, with each column of scalars. `source` gives chunks as [`columns_of`] does: points, unless they
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
    ) -> Result<Totals> {
        self.queue(points, upload, source, &[])?;
        self.collect()
    }

    /// As [`Msm::sum_columns`]. Columns of scalars are copied to buffers for those that stay; what does not fit
    /// there is not. Calls `meanwhile` when all work is queued and the slots are free, while the
    /// device works; it may fill the slots with the start of the next job.
    ///
    /// # Errors
    /// As [`Msm::sum_columns`], and errors of `meanwhile`.
    pub fn sum_columns_and<S: Source>(
        &mut self,
        points: PointSource<'_>,
        (upload, source): (&mut Upload, &mut S),
        stay: &[Option<&DeviceBuffer>],
        meanwhile: impl FnOnce(&mut Upload, &mut S) -> Result<()>,
    ) -> Result<Totals> {
        self.queue(points, upload, source, stay)?;
        let staged = meanwhile(upload, source);
        let sums = self.collect();
        staged?;
        sums
    }

    /// Queues all work of the job. When this returns, the source has given all its bytes.
    fn queue(
        &mut self,
        points: PointSource<'_>,
        upload: &mut Upload,
        source: &mut dyn Source,
        stay: &[Option<&DeviceBuffer>],
    ) -> Result<()> {
        let work = &self.work;
        let size = work.plan.size();
        let resident = size.location == BasesLocation::Resident;
        if resident != matches!(points, PointSource::Resident(_)) {
            return Err(Invalid::OtherPlan {
                plan: format!("{:?} bases", size.location),
                job: "other bases".into(),
            }
            .into());
        }
        let bases = match points {
            PointSource::Stream => None,
            PointSource::StreamAndKeep(bases) | PointSource::Resident(bases) => {
                bases.check(size.bases, size.points)?;
                Some(bases)
            }
        };
        let of_points = size.bases.each().map(Group::point_bytes).filter(|_| !resident);
        let of_scalars = (0..size.columns).map(|_| SCALAR_BYTES);
        let arrays: Vec<u64> = of_points.chain(of_scalars).collect();
        let job = RingJob {
            total_bytes: work.plan.points() * work.plan.element_bytes(),
            upload: Some((upload, source)),
            arrays: &arrays,
            download: None,
        };
        self.ring.run_job(job, &mut |chunk| {
            work.keep(&chunk, stay)?;
            work.add(&chunk, bases)
        })?;
        let mut places =
            (0..size.bases.count()).flat_map(|base| (0..size.columns).map(move |column| (base, column)));
        places.try_for_each(|(base, column)| work.reduce(self.ring.stream(), base, column))
    }

    /// Waits for the queued work, and combines the sums of the windows.
    fn collect(&mut self) -> Result<Totals> {
        let work = &self.work;
        self.ring.finish()?;
        let mut sums = vec![0; work.buffers.totals.bytes() as usize];
        self.ring.stream().read((&work.buffers.totals, 0), &mut sums)?;
        let (mut totals, mut rest) = (Totals::default(), &sums[..]);
        let (windows, bits) = (work.plan.windows(), work.plan.shape().window_bits);
        for group in work.plan.size().bases.each() {
            for _ in 0..work.plan.columns() {
                let (own, others) = rest.split_at(((windows + 1) * sum_bytes(group)) as usize);
                rest = others;
                match group {
                    Group::G1 => totals.g1.push(combine::<g1::Config>(own, bits)?),
                    Group::G2 => totals.g2.push(combine::<g2::Config>(own, bits)?),
                }
            }
        }
        Ok(totals)
    }
}

impl GroupLaunches {
    fn new(kernels: &Kernels, group: &str) -> Result<Self> {
        let kernel = |name: &str| kernels.kernel(&format!("spk_msm_{name}_{group}"));
        Ok(Self {
            accumulate: kernel("accumulate")?,
            extras: kernel("extras")?,
            fold: kernel("fold")?,
            merge: kernel("merge")?,
            reduce: kernel("reduce")?,
            total: kernel("total")?,
        })
    }
}

/// The runs of a chunk's sorted digits, for the kernels of each column of points.
struct Runs<'a> {
    keys: Argument<'a>,
    values: Argument<'a>,
    order: Argument<'a>,
    points: u64,
}

impl MsmLauncher {
    /// Queues the copies of a chunk's scalars that stay.
    fn keep(&self, chunk: &Chunk<'_>, stay: &[Option<&DeviceBuffer>]) -> Result<()> {
        let element_bytes = self.plan.element_bytes();
        let [first, n] = [chunk.piece.offset, chunk.piece.bytes].map(|bytes| bytes / element_bytes);
        let scalars = n * (element_bytes - self.plan.columns() * SCALAR_BYTES);
        for (column, to) in (0..self.plan.columns()).zip(stay) {
            if let Some(to) = to {
                let at = first * SCALAR_BYTES;
                // Zeros behind the last scalar do not stay.
                let bytes = (n * SCALAR_BYTES).min(to.bytes().saturating_sub(at));
                let from = scalars + column * n * SCALAR_BYTES;
                if bytes > 0 {
                    chunk.stream.copy((*to, at), (chunk.buffer, from), bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Queues the kernels that add a chunk's products to the buckets of all sums.
    fn add(&self, chunk: &Chunk<'_>, bases: Option<BaseColumns<'_>>) -> Result<()> {
        if chunk.piece.index == 0 {
            // Zeros are points at infinity. Queued with the first chunk and not before the job, since from
            // the first chunk on the ring waits for its stream on drop.
            chunk.stream.fill(&self.buffers.buckets, 0)?;
        }
        let (size, element_bytes) = (self.plan.size(), self.plan.element_bytes());
        let (first, n) = (
            chunk.piece.offset / element_bytes,
            chunk.piece.bytes / element_bytes,
        );
        let mut points = Vec::new();
        for (base, group) in (0..).zip(size.bases.each()) {
            let there = bases.as_ref().map(|bases| bases.place(base, first));
            let streamed = (chunk.buffer, n * size.bases.range(0..base).point_bytes());
            let (buffer, at) = match (there, size.location) {
                (Some(there), BasesLocation::Resident) => there,
                (there, _) => {
                    if let Some(there) = there {
                        chunk.stream.copy(there, streamed, n * group.point_bytes())?;
                    }
                    streamed
                }
            };
            points.push((group, Argument::BufferAt(buffer, at)));
        }
        let scalars = n * (element_bytes - size.columns * SCALAR_BYTES);
        (0..size.columns).try_for_each(|column| {
            let scalars = Argument::BufferAt(chunk.buffer, scalars + column * n * SCALAR_BYTES);
            let runs = self.sort(chunk.stream, scalars, n)?;
            let mut points = (0..).zip(&points);
            points.try_for_each(|(base, (group, points))| {
                let sums = self.places_of_sums(base, column);
                let sums = sums.map(|place| Argument::BufferAt(&self.buffers.buckets, place));
                self.add_sorted(chunk.stream, *group, *points, &runs, sums)
            })
        })
    }

    /// The place of the first bucket of a sum, or of its first total; it has so many.
    fn place(&self, base: u64, column: u64, count: u64) -> u64 {
        let SumsSize { bases, columns, .. } = self.plan.size();
        let before =
            columns * bases.range(0..base).point_bytes() + column * bases.group_of(base).point_bytes();
        SUM_OF_POINT * count * before
    }

    /// The places of the first bucket of a sum and of its first lane, which is behind its buckets.
    fn places_of_sums(&self, base: u64, column: u64) -> [u64; 2] {
        let items = self.plan.items();
        let place = self.place(base, column, items + self.plan.lanes());
        let group = self.plan.size().bases.group_of(base);
        [place, place + items * sum_bytes(group)]
    }

    /// Queues the kernels that put the indices of `n` scalars in the order of their kinds: those that are neither zero nor
    /// one, whose end is the first of `bounds`, then ones, which lanes share. Returns the list.
    fn by_kind(&self, stream: &Stream, scalars: Argument<'_>, n: u64) -> Result<&DeviceBuffer> {
        let (kernels, buffers) = (&self.launches, &self.buffers);
        let pairs = buffers.pairs.unsorted();
        let [keys, values] = [pairs.keys, pairs.values].map(Argument::Buffer);
        let n32 = Argument::Word32(n as u32);
        let threads = Grid::for_threads(n, THREADS)?;
        launch(&kernels.kinds, stream, threads, &[scalars, n32, keys, values])?;
        let size = SortSize {
            pairs: n,
            length: None,
            rows: 1,
            bits: KIND_BITS,
        };
        let sorted = kernels.sort.sort(stream, &buffers.pairs, &buffers.counts, size)?;
        let arguments = [
            Argument::Buffer(sorted.keys),
            n32,
            pointer(None),
            Argument::Word32(1),
            Argument::Buffer(&buffers.bounds),
        ];
        launch(
            &kernels.starts,
            stream,
            Grid::for_threads(2, THREADS)?,
            &arguments,
        )?;
        let lanes = self.plan.lanes();
        let arguments = [
            Argument::Buffer(&buffers.bounds),
            Argument::Word32(lanes as u32),
            Argument::Buffer(&buffers.lane_starts),
            Argument::Buffer(&buffers.lane_order),
        ];
        launch(
            &kernels.lanes,
            stream,
            Grid::for_threads(lanes + 1, THREADS)?,
            &arguments,
        )?;
        Ok(sorted.values)
    }

    /// Queues the kernels that sort the digits of `n` scalars into runs, and the runs by their lengths.
    fn sort(&self, stream: &Stream, scalars: Argument<'_>, n: u64) -> Result<Runs<'_>> {
        let (plan, kernels, buffers) = (&self.plan, &self.launches, &self.buffers);
        let (windows, items, shape) = (plan.windows(), plan.items(), plan.shape());
        let [n32, windows32, buckets32, items32, split32] =
            [n, windows, plan.buckets(), items, shape.split].map(|value| Argument::Word32(value as u32));
        let [starts, ones] = [&buffers.starts, &buffers.ones].map(Argument::Buffer);
        let bounds = Argument::Buffer(&buffers.bounds);
        let listed = Argument::Buffer(self.by_kind(stream, scalars, n)?);

        let pairs = buffers.pairs.unsorted();
        let bits = Argument::Word32(shape.window_bits);
        let [keys, values] = [pairs.keys, pairs.values].map(Argument::Buffer);
        launch(
            &kernels.digits,
            stream,
            Grid::for_threads(n, THREADS)?,
            &[scalars, listed, bounds, n32, bits, windows32, keys, values, ones],
        )?;
        let counts = &buffers.counts;
        // Of each row there are only the digits of scalars that are neither zero nor one: the first of the bounds.
        let length = Some(&buffers.bounds);
        let size = SortSize {
            pairs: n,
            length,
            rows: windows,
            bits: shape.window_bits,
        };
        let sorted = kernels.sort.sort(stream, &buffers.pairs, counts, size)?;
        let [keys, values] = [sorted.keys, sorted.values].map(Argument::Buffer);
        let ends = by_windows(Grid::for_threads(plan.buckets() + 1, THREADS)?, windows);
        let arguments = [keys, n32, pointer(length), buckets32, starts];
        launch(&kernels.starts, stream, ends, &arguments)?;

        let order = buffers.order.unsorted();
        let [order_keys, order_values] = [order.keys, order.values].map(Argument::Buffer);
        launch(
            &kernels.lengths,
            stream,
            Grid::for_threads(items, THREADS)?,
            &[starts, buckets32, items32, split32, order_keys, order_values],
        )?;
        let size = SortSize {
            pairs: items,
            length: None,
            rows: 1,
            bits: plan.order_bits(),
        };
        let order = kernels.sort.sort(stream, &buffers.order, counts, size)?;
        Ok(Runs {
            keys,
            values,
            order: Argument::Buffer(order.values),
            points: n,
        })
    }

    /// Queues the kernels that add the products of one column of points to their buckets.
    fn add_sorted(
        &self,
        stream: &Stream,
        group: Group,
        points: Argument<'_>,
        runs: &Runs<'_>,
        [sums, of_lanes]: [Argument<'_>; 2],
    ) -> Result<()> {
        let (plan, kernels, buffers) = (&self.plan, self.launches.of_groups.of(group), &self.buffers);
        let Runs {
            keys,
            values,
            order,
            points: n,
        } = *runs;
        let (windows, items, slots) = (plan.windows(), plan.items(), plan.slots(n));
        let [n32, buckets32, items32, split32, slots32] =
            [n, plan.buckets(), items, plan.shape().split, slots].map(|value| Argument::Word32(value as u32));
        let all_items = Grid::for_threads(items, THREADS)?;
        let [starts, partials] = [&buffers.starts, &buffers.partials].map(Argument::Buffer);
        launch(
            &kernels.accumulate,
            stream,
            all_items,
            &[
                points, values, starts, order, n32, buckets32, items32, split32, sums,
            ],
        )?;
        // The runs of lanes, which are as long as they are, in the one row of ones.
        let [ones, lane_starts, lane_order] =
            [&buffers.ones, &buffers.lane_starts, &buffers.lane_order].map(Argument::Buffer);
        let [lanes32, whole32] = [plan.lanes() as u32, u32::MAX].map(Argument::Word32);
        launch(
            &kernels.accumulate,
            stream,
            Grid::for_threads(plan.lanes(), THREADS)?,
            &[
                points,
                ones,
                lane_starts,
                lane_order,
                n32,
                lanes32,
                lanes32,
                whole32,
                of_lanes,
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

    /// Queues the kernels that reduce each window of a sum to one point, and its lanes.
    fn reduce(&self, stream: &Stream, base: u64, column: u64) -> Result<()> {
        let (plan, buffers) = (&self.plan, &self.buffers);
        let group = plan.size().bases.group_of(base);
        let kernels = self.launches.of_groups.of(group);
        let (windows, segments) = (plan.windows(), plan.segments());
        let [buckets32, segment32, segments32] =
            [plan.buckets(), plan.segment(), segments].map(|value| Argument::Word32(value as u32));
        let partials = Argument::Buffer(&buffers.partials);
        let [sums, of_lanes] = self.places_of_sums(base, column);
        let [sums, of_lanes] = [sums, of_lanes].map(|place| Argument::BufferAt(&buffers.buckets, place));
        let total = self.place(base, column, windows + 1);
        let totals = Argument::BufferAt(&buffers.totals, total);
        // A point in shared memory, as `Shared` of the kernels has it.
        let place_bytes = sum_bytes(group) as u32 + 16;
        let threads = (SHARED_BYTES / (2 * place_bytes)).min(THREADS) / 32 * 32;
        let grid = Grid {
            shared_bytes: 2 * threads * place_bytes,
            ..by_windows(Grid::for_threads(segments, threads)?, windows)
        };
        launch(
            &kernels.reduce,
            stream,
            grid,
            &[sums, buckets32, segment32, segments32, partials],
        )?;
        let summed_up = |from: Argument<'_>, rows: u64, count: u64, to: Argument<'_>| {
            let threads = count.next_power_of_two().min(u64::from(THREADS)) as u32;
            let grid = Grid {
                blocks: (1, rows as u32, 1),
                threads: (threads, 1, 1),
                shared_bytes: threads * place_bytes,
            };
            launch(
                &kernels.total,
                stream,
                grid,
                &[from, Argument::Word32(count as u32), to],
            )
        };
        summed_up(partials, windows, segments, totals)?;
        let of_ones = Argument::BufferAt(&buffers.totals, total + windows * sum_bytes(group));
        let rows = plan.lane_rows();
        summed_up(of_lanes, rows, plan.lanes() / rows, partials)?;
        summed_up(partials, 1, rows, of_ones)
    }
}

fn by_windows(grid: Grid, windows: u64) -> Grid {
    Grid {
        blocks: (grid.blocks.0, windows as u32, 1),
        ..grid
    }
}

/// The sum over all windows w of the window's sum times 2^(c w), and that of the ones, which is the last.
fn combine<P: SWCurveConfig<BaseField: Field<BasePrimeField = Fq>>>(
    sums: &[u8],
    window_bits: u32,
) -> Result<Projective<P>> {
    let coordinates = 4 * P::BaseField::extension_degree() as usize;
    let mut result = Projective::<P>::ZERO;
    let on_the_curve = |what: &dyn std::fmt::Display, sum: &[u8]| {
        point::<P>(sum).ok_or_else(|| Error::Wrong {
            what: format!("the sum of {what}, a point off the curve"),
        })
    };
    let (windows, of_ones) = sums.split_at(sums.len().saturating_sub(32 * coordinates));
    for (window, sum) in windows.chunks_exact(32 * coordinates).enumerate().rev() {
        for _ in 0..window_bits {
            result.double_in_place();
        }
        result += on_the_curve(&format_args!("window {window}"), sum)?;
    }
    result += on_the_curve(&"ones", of_ones)?;
    Ok(result)
}

/// The point with the coordinates X, Y, ZZ, ZZZ; `None` if it is not on the curve.
pub(crate) fn point<P: SWCurveConfig<BaseField: Field<BasePrimeField = Fq>>>(
    bytes: &[u8],
) -> Option<Affine<P>> {
    let of_each = 32 * P::BaseField::extension_degree() as usize;
    let mut coordinates = bytes.chunks_exact(of_each).map(|bytes| {
        let parts = bytes.chunks_exact(32).map(prime_element);
        P::BaseField::from_base_prime_field_elems(parts)
    });
    let mut next = || coordinates.next().flatten();
    let [x, y, zz, zzz] = [next()?, next()?, next()?, next()?];
    if zz == P::BaseField::ZERO {
        return Some(Affine::zero());
    }
    // In Jacobian coordinates with Z = ZZ: X / ZZ = X ZZ / Z^2, and Y / ZZZ = Y ZZZ / Z^3, since ZZ^3 =
    // ZZZ^2.
    let point = Projective::<P>::new_unchecked(x * zz, y * zzz, zz).into_affine();
    (zz * zz * zz == zzz * zzz && point.is_on_curve()).then_some(point)
}

/// An element of the prime field from 32 bytes in Montgomery form.
fn prime_element(bytes: &[u8]) -> Fq {
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    Fq::new_unchecked(BigInt(words))
}
