//! How an MSM is cut: the width of windows, the points of a chunk, and the bytes of device memory.

use spillproof_engine::accelerator::{self, Group, Groups};

use crate::buffer::leased_bytes;
use crate::error::{A_PINNED_SLOT, Error, Invalid, Result, Values};
use crate::fit::largest;
use crate::ring::Chunking;

/// Bytes of a point of G1 and its scalar.
pub const ELEMENT_BYTES: u64 = POINT_BYTES + SCALAR_BYTES;
/// Bytes of a point of G1: x, y in Montgomery form, least significant word first; zeros for infinity.
pub const POINT_BYTES: u64 = Group::G1.point_bytes();
/// Bytes of a scalar in Montgomery form.
pub const SCALAR_BYTES: u64 = accelerator::SCALAR_BYTES as u64;

/// Bits of a scalar, and one bit for the sign of its digits.
const SIGNED_BITS: u32 = 255;
/// A bucket has four coordinates, X, Y, ZZ, ZZZ, and a point has two.
pub(super) const SUM_OF_POINT: u64 = 2;
/// Bits of the kind of a scalar.
pub(super) const KIND_BITS: u32 = 2;
const WORD_BYTES: u64 = 4;
const WINDOW_BITS: std::ops::RangeInclusive<u32> = 1..=20;
/// Shorter chunks would spend their time on launches.
const CHUNK_POINTS_MIN: u64 = 32;
/// Indices of points have 31 bits, so a chunk is 6 GiB at most.
const CHUNK_POINTS_MAX: u64 = 1 << 26;
/// Longer chunks save hardly any launches, and take memory that points could stay in.
const CHUNK_POINTS_WANTED: u64 = 1 << 22;
/// Chunks are multiples of this many points, whole frames of columns that can be read straight into a slot,
/// or of [`CHUNK_PAGES`].
const CHUNK_FRAMES: u64 = 1 << 10;
/// This many points, and as many scalars, are whole pages.
const CHUNK_PAGES: u64 = 1 << 7;
/// The most sums of one pass: more would leave no memory for their buckets.
const SUMS_MAX: u64 = 1 << 16;
const POINTS: &str = "points of an MSM";
const SUMS: &str = "sums at one time";
/// The points of a bucket are cut into pieces of at least this many.
const SPLIT_MIN: u64 = 16;
const SPLIT_MAX: u64 = 1 << 15;
/// Threads that keep a device busy: two thousand for each of 32 multiprocessors.
const THREADS_WANTED: u64 = 1 << 16;
/// Ones of a chunk, if half of its scalars are, are summed by lanes of at least half as many.
const POINTS_OF_A_LANE: u64 = 64;
/// The first of two steps leaves at most so many sums of lanes.
const LANE_ROWS_MAX: u64 = 128;
/// Words on the device: the ends of the scalars that are neither zero nor one, and of the ones.
const BOUNDS: u64 = 2;

/// The first chunk is this part of a full one, so that the first copy is short.
const FIRST_PART: u64 = 8;

/// Costs of parts of the work, in mixed additions of G1: estimated from instructions and bytes, not measured.
mod cost {
    /// A mixed addition of G2: 28 products of the base field, where G1 has 10.
    pub const OF_G2: f64 = 2.8;
    /// A digit and its sorting, for each point and window.
    pub const PAIR: f64 = 0.15;
    /// A bucket that is read, written and put in order, for each chunk.
    pub const BUCKET: f64 = 0.5;
    /// Two full additions for each bucket at the end.
    pub const REDUCED: f64 = 2.5;
    /// A launch: 5 us on a device with 6.5 G additions a second.
    pub const LAUNCH: f64 = 32_000.0;
    /// The copy of a point, if no kernel runs meanwhile.
    pub const COPY: f64 = 12.0;
    /// A byte that is read for a pass, from a disk of 7 GB/s.
    pub const READ: f64 = 0.94;
}

/// The four numbers of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MsmShape {
    /// Bits of a digit, from 1 to 20.
    pub window_bits: u32,
    /// Points of a full chunk.
    pub chunk_points: u64,
    /// Chunks on the device at one time: with two, one is copied while the other is summed.
    pub ring_buffers: usize,
    /// The most points that one thread adds up; a power of two.
    pub split: u64,
}

/// Sums that are made together, without their data: one for each column of points and each column of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumsSize {
    /// Terms of each sum.
    pub points: u64,
    /// Columns of points.
    pub bases: Groups<u64>,
    /// Where all of them are.
    pub location: BasesLocation,
    /// Columns of scalars.
    pub columns: u64,
}

/// The plan of an MSM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MsmPlan {
    size: SumsSize,
    shape: MsmShape,
    /// The most points of a chunk, with their scalars, that are in one slot.
    slot_points: u64,
}

/// Where the points are while sums run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasesLocation {
    /// On the host: they stream through the ring with their scalars.
    Streamed,
    /// On the device, all of them: [`super::Bases`]. Only scalars are streamed.
    Resident,
}

/// Bytes of each buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub chunk: u64,
    pub buckets: u64,
    /// One of four equal buffers: keys and values, before and after a pass of the sort.
    pub pairs: u64,
    pub starts: u64,
    /// One of four equal buffers, as `pairs`.
    pub order: u64,
    pub counts: u64,
    /// Values of ones.
    pub ones: u64,
    pub bounds: u64,
    pub lane_starts: u64,
    pub lane_order: u64,
    pub partials: u64,
    pub totals: u64,
}

impl SumsSize {
    /// One sum over points of G1 that are streamed.
    pub fn one(points: u64) -> Self {
        Self {
            points,
            bases: Groups { g1: 1, g2: 0 },
            location: BasesLocation::Streamed,
            columns: 1,
        }
    }

    /// The number of sums.
    pub fn sums(&self) -> u64 {
        self.columns.saturating_mul(self.bases.count())
    }

    /// Bytes of a point of each column, if they are streamed, and of its scalars.
    pub fn element_bytes(&self) -> u64 {
        let of_points = match self.location {
            BasesLocation::Streamed => self.bases.point_bytes(),
            BasesLocation::Resident => 0,
        };
        of_points + self.columns * SCALAR_BYTES
    }

    /// The cost of all sums, in sums of G1.
    pub(crate) fn weight(&self) -> f64 {
        self.columns as f64 * self.additions()
    }

    /// The cost of an addition to each column of points.
    fn additions(&self) -> f64 {
        self.bases.g1 as f64 + cost::OF_G2 * self.bases.g2 as f64
    }
}

impl MsmPlan {
    /// The plan for `points` points with the least estimated cost within `vram_bytes` of device memory and
    /// pinned slots of `slot_bytes`.
    ///
    /// # Errors
    /// [`Error::TooSmall`] with the smallest budget that works; [`Error::Invalid`] for no points.
    pub fn new(points: u64, vram_bytes: u64, slot_bytes: u64) -> Result<Self> {
        Self::of(SumsSize::one(points), vram_bytes, slot_bytes)
    }

    /// The plan for sums that are made together: points and scalars are uploaded once, or scalars only. Each sum
    /// has its own buckets, so a small budget holds fewer of them. The bytes of resident bases do not count.
    ///
    /// # Errors
    /// As [`MsmPlan::new`]; [`Error::Invalid`] for no sums.
    pub fn of(size: SumsSize, vram_bytes: u64, slot_bytes: u64) -> Result<Self> {
        let points = size.points;
        check_count(POINTS, points, u64::MAX)?;
        check_count(SUMS, size.sums(), SUMS_MAX)?;
        let element_bytes = size.element_bytes();
        let what = || match size.sums() {
            1 => format!("an MSM of {points} points"),
            sums => format!("{sums} MSMs over {points} points"),
        };
        let shortest = CHUNK_POINTS_MIN.min(points);
        let slot_points = slot_bytes / element_bytes;
        let longest = CHUNK_POINTS_WANTED.min(points);
        if slot_points < shortest {
            return Err(Error::TooSmall {
                what: what(),
                memory: A_PINNED_SLOT,
                budget_bytes: slot_bytes,
                smallest_bytes: shortest * element_bytes,
            });
        }
        let mut best: Option<(f64, Self)> = None;
        let mut smallest_bytes = u64::MAX;
        for window_bits in WINDOW_BITS {
            for ring_buffers in [1, 2] {
                let with = |chunk_points| {
                    let shape = Self::shaped(window_bits, chunk_points, ring_buffers);
                    Self {
                        size,
                        shape,
                        slot_points: match slot_points < chunk_points {
                            true => even(slot_points),
                            false => chunk_points,
                        },
                    }
                };
                smallest_bytes = smallest_bytes.min(with(shortest).vram_bytes());
                if with(shortest).vram_bytes() > vram_bytes {
                    continue;
                }
                let fits = largest(shortest, longest + 1, |chunk_points| {
                    with(chunk_points).vram_bytes() <= vram_bytes
                });
                // A chunk of all points is not rounded. A rounded chunk may need more memory for pieces of
                // buckets.
                let rounded =
                    Some(with(even(fits))).filter(|plan| fits < points && plan.vram_bytes() <= vram_bytes);
                let plan = rounded.unwrap_or_else(|| with(fits));
                let cost = plan.cost();
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, plan));
                }
            }
        }
        best.map(|(_, plan)| plan).ok_or_else(|| Error::TooSmall {
            what: what(),
            memory: "device memory",
            budget_bytes: vram_bytes,
            smallest_bytes,
        })
    }

    /// The plan for one of the passes that make the sums of `size`, with at most `at_once` columns of scalars, and
    /// the estimated cost of all passes, which is the least. More columns a pass mean fewer passes over the
    /// bases, and less memory for the buckets and the chunks of each. The passes are as even as possible;
    /// [`MsmPlan::for_sums`] gives the plan of a last pass with fewer columns.
    ///
    /// # Errors
    /// As [`MsmPlan::of`] for one column, if not even one fits.
    pub fn of_passes(size: SumsSize, at_once: u64, vram_bytes: u64, slot_bytes: u64) -> Result<(Self, f64)> {
        let columns = size.columns;
        let mut best: Option<(Self, f64)> = None;
        let mut last = None;
        let fewest = columns.div_ceil(at_once.clamp(1, SUMS_MAX)).max(1);
        for passes in fewest..=columns.max(1) {
            let width = columns.div_ceil(passes);
            if last.replace(width) == Some(width) {
                continue;
            }
            let plan = match Self::of(
                SumsSize {
                    columns: width,
                    ..size
                },
                vram_bytes,
                slot_bytes,
            ) {
                Err(error) if error.is_memory_short() && width > 1 => continue,
                plan => plan?,
            };
            let sums = plan.cost() / width as f64 * columns as f64;
            let of_points = passes * (plan.element_bytes() - width * SCALAR_BYTES);
            let read_bytes = (of_points + columns * SCALAR_BYTES) as f64 * size.points as f64;
            let cost = sums + read_bytes * cost::READ;
            if best.as_ref().is_none_or(|(_, least)| cost < *least) {
                best = Some((plan, cost));
            }
        }
        best.ok_or(Error::Unusable {
            what: "a plan of sums",
        })
    }

    /// The plan of this shape, whatever its cost.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number out of range.
    pub fn with_shape(points: u64, shape: MsmShape) -> Result<Self> {
        let possible = points > 0
            && WINDOW_BITS.contains(&shape.window_bits)
            && (1..=CHUNK_POINTS_MAX).contains(&shape.chunk_points)
            && shape.ring_buffers > 0
            && shape.split.is_power_of_two()
            && shape.split <= SPLIT_MAX;
        if !possible {
            return Err(Invalid::Size {
                what: "an MSM",
                reason: format!("{points} points cannot have the shape {shape:?}"),
            }
            .into());
        }
        Ok(Self {
            size: SumsSize::one(points),
            shape,
            slot_points: shape.chunk_points,
        })
    }

    /// The same, with slots of `slot_points` points and their scalars at most: chunks that are longer come in
    /// parts.
    ///
    /// # Errors
    /// [`Error::Invalid`] for none.
    pub fn with_slots(self, slot_points: u64) -> Result<Self> {
        check_count("points of a slot", slot_points, u64::MAX)?;
        let slot_points = slot_points.min(self.shape.chunk_points);
        Ok(Self { slot_points, ..self })
    }

    /// The same shape for these sums.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no sums, or more than 65536.
    pub fn for_sums(self, size: SumsSize) -> Result<Self> {
        check_count(SUMS, size.sums(), SUMS_MAX)?;
        Ok(Self { size, ..self })
    }

    fn shaped(window_bits: u32, chunk_points: u64, ring_buffers: usize) -> MsmShape {
        let windows = u64::from(SIGNED_BITS.div_ceil(window_bits));
        let buckets = 1u64 << (window_bits - 1);
        let of_a_bucket = (2 * chunk_points / buckets).max(1).next_power_of_two();
        let busy = (windows * chunk_points / THREADS_WANTED)
            .max(1)
            .next_power_of_two();
        let split = of_a_bucket.min(busy).clamp(SPLIT_MIN, SPLIT_MAX);
        MsmShape {
            window_bits,
            chunk_points,
            ring_buffers,
            split,
        }
    }

    /// The sums.
    pub fn size(&self) -> SumsSize {
        self.size
    }

    /// Points of each sum.
    pub fn points(&self) -> u64 {
        self.size.points
    }

    /// Columns of scalars.
    pub fn columns(&self) -> u64 {
        self.size.columns
    }

    /// Bytes of a point of each column, if they are streamed, and of its scalars.
    pub fn element_bytes(&self) -> u64 {
        self.size.element_bytes()
    }

    /// The numbers of the plan.
    pub fn shape(&self) -> MsmShape {
        self.shape
    }

    /// Digits of a scalar.
    pub fn windows(&self) -> u64 {
        u64::from(SIGNED_BITS.div_ceil(self.shape.window_bits))
    }

    /// Buckets of a window.
    pub fn buckets(&self) -> u64 {
        1 << (self.shape.window_bits - 1)
    }

    /// Bytes of device memory that the job leases.
    pub fn vram_bytes(&self) -> u64 {
        let sizes = self.sizes();
        let one_each = [
            sizes.buckets,
            sizes.starts,
            sizes.counts,
            sizes.ones,
            sizes.bounds,
            sizes.lane_starts,
            sizes.lane_order,
            sizes.partials,
            sizes.totals,
        ];
        let once: u64 = one_each.into_iter().map(leased_bytes).sum();
        once + self.shape.ring_buffers as u64 * leased_bytes(sizes.chunk)
            + 4 * (leased_bytes(sizes.pairs) + leased_bytes(sizes.order))
    }

    /// Bytes that a pinned slot must have.
    pub fn slot_bytes(&self) -> u64 {
        self.slot_points * self.element_bytes()
    }

    /// The chunks of the job, and their parts.
    ///
    /// # Errors
    /// [`Error::Invalid`], never for a plan that was constructed.
    pub fn chunking(&self) -> Result<Chunking> {
        let chunk = self.shape.chunk_points;
        let first = even(chunk / FIRST_PART).max(CHUNK_POINTS_MIN.min(chunk));
        let element_bytes = self.element_bytes();
        let chunking = Chunking::new(chunk * element_bytes, element_bytes)?;
        chunking
            .growing_from(first * element_bytes)?
            .in_parts(self.slot_bytes())
    }

    /// The number of chunks.
    ///
    /// # Errors
    /// As [`MsmPlan::chunking`].
    pub fn chunks(&self) -> Result<u64> {
        Ok(self
            .chunking()?
            .pieces(self.points() * self.element_bytes())?
            .count() as u64)
    }

    /// The number of launches of the whole job.
    ///
    /// # Errors
    /// As [`MsmPlan::chunking`].
    pub fn launches(&self) -> Result<u64> {
        let pieces = self.chunking()?.pieces(self.points() * self.element_bytes())?;
        let chunks: u64 = pieces
            .map(|piece| self.launches_of(piece.bytes / self.element_bytes()))
            .sum();
        Ok(self.columns() * chunks + 4 * self.size.sums())
    }

    /// Launches of a chunk for one column of scalars.
    fn launches_of(&self, points: u64) -> u64 {
        let sort = |n, rows, bits: u32| 3 * super::sort::passes(n, rows, bits);
        let slots = self.slots(points);
        let pieces = if slots > 1 {
            2 + u64::from(slots.next_power_of_two().ilog2())
        } else {
            0
        };
        6 + sort(points, 1, KIND_BITS)
            + sort(points, self.windows(), self.shape.window_bits)
            + sort(self.items(), 1, self.order_bits())
            + self.size.bases.count() * (2 + pieces)
    }

    fn cost(&self) -> f64 {
        let (points, windows) = (self.points() as f64, self.windows() as f64);
        let (items, additions) = (self.items() as f64, self.size.additions());
        let chunks = self.points().div_ceil(self.shape.chunk_points) as f64;
        let launches = self.launches_of(self.shape.chunk_points) as f64;
        let alone = if self.shape.ring_buffers > 1 {
            0.0
        } else {
            cost::COPY
        };
        let of_a_column = points * windows * (additions + cost::PAIR)
            + chunks * (items * additions * cost::BUCKET + launches * cost::LAUNCH)
            + items * additions * cost::REDUCED;
        let copied = points * alone * self.element_bytes() as f64 / ELEMENT_BYTES as f64;
        self.columns() as f64 * of_a_column + copied
    }

    /// Lanes of a sum: as many threads as keep a device busy, or fewer that have some work.
    pub(super) fn lanes(&self) -> u64 {
        let lanes = self.shape.chunk_points / POINTS_OF_A_LANE;
        lanes.clamp(1, THREADS_WANTED).next_power_of_two()
    }

    /// Rows of the lanes of a sum, each of which is summed up first.
    pub(super) fn lane_rows(&self) -> u64 {
        self.lanes().min(LANE_ROWS_MAX)
    }

    /// Buckets of all windows.
    pub(super) fn items(&self) -> u64 {
        self.windows() * self.buckets()
    }

    /// Bits of the lengths by which the buckets of a chunk are ordered.
    pub(super) fn order_bits(&self) -> u32 {
        self.shape.split.ilog2() + 1
    }

    /// Pieces of buckets, for each window of a chunk.
    pub(super) fn slots(&self, points: u64) -> u64 {
        points.div_ceil(self.shape.split)
    }

    /// Buckets that one thread weighs at the end: about the square root of their number.
    pub(super) fn segment(&self) -> u64 {
        1 << (self.buckets().ilog2() / 2)
    }

    pub(super) fn segments(&self) -> u64 {
        self.buckets().div_ceil(self.segment())
    }

    pub(super) fn sizes(&self) -> Sizes {
        let (windows, buckets, items) = (self.windows(), self.buckets(), self.items());
        let points = self.shape.chunk_points;
        let counts = [(points, windows), (points, 1), (items, 1)];
        let counts = counts.map(|(n, rows)| super::sort::count_words(n, rows));
        let counts = counts.into_iter().fold(0, u64::max);
        let of_each = self.columns() * SUM_OF_POINT * self.size.bases.point_bytes();
        let widest = match self.size.bases.g2 {
            0 => Group::G1,
            _ => Group::G2,
        };
        Sizes {
            chunk: points * self.element_bytes(),
            buckets: of_each * (items + self.lanes()),
            pairs: WORD_BYTES * windows * points,
            starts: WORD_BYTES * windows * (buckets + 1),
            order: WORD_BYTES * items,
            counts: WORD_BYTES * counts,
            ones: WORD_BYTES * points,
            bounds: WORD_BYTES * BOUNDS,
            lane_starts: WORD_BYTES * (self.lanes() + 1),
            lane_order: WORD_BYTES * self.lanes(),
            partials: sum_bytes(widest)
                * (windows * self.slots(points).max(self.segments())).max(self.lane_rows()),
            totals: of_each * (windows + 1),
        }
    }
}

/// Bytes of a bucket.
pub(crate) const fn sum_bytes(group: Group) -> u64 {
    SUM_OF_POINT * group.point_bytes()
}

/// The points, rounded down to whole frames or pages.
fn even(points: u64) -> u64 {
    let unit = [CHUNK_FRAMES, CHUNK_PAGES]
        .into_iter()
        .find(|&unit| unit <= points);
    points - points % unit.unwrap_or(1)
}

/// Refuses no things, and more than `limit`.
fn check_count(what: &'static str, given: u64, limit: u64) -> Result<()> {
    if given == 0 {
        return Err(Values::Empty { what }.into());
    }
    Ok(Values::unless_at_most(what, given, limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_to_its_budgets_and_larger_ones_cost_no_more() {
        for points in [1, 31, 1000, 1 << 16, 1 << 24, 1 << 28] {
            let mut last = f64::INFINITY;
            for log in 12..38 {
                for (vram, slot) in [(1u64 << log, 1u64 << 40), (1 << log, 40 << 20)] {
                    match MsmPlan::new(points, vram, slot) {
                        Ok(plan) => {
                            assert!(plan.vram_bytes() <= vram && plan.slot_bytes() <= slot, "{plan:?}");
                            assert!(plan.shape.chunk_points <= points);
                            assert!(
                                u64::from(plan.shape.window_bits) * plan.windows() >= u64::from(SIGNED_BITS)
                            );
                            if slot > 1 << 30 {
                                // The search for the length of a chunk is not exact, since larger pieces of
                                // buckets need fewer slots.
                                assert!(plan.cost() <= last * 1.05, "{plan:?}");
                                last = last.min(plan.cost());
                            }
                        }
                        Err(Error::TooSmall { smallest_bytes, .. }) => {
                            assert!(smallest_bytes > vram);
                            MsmPlan::new(points, smallest_bytes, slot).unwrap();
                            assert!(MsmPlan::new(points, smallest_bytes - 1, slot).is_err());
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }

    #[test]
    fn slots_do_not_cut_the_chunks_of_kernels() {
        let slot_bytes = 16 << 20;
        for (vram_bytes, chunk_points, launches) in [(16 << 30, 1 << 22, 400), (1 << 30, 1 << 20, 1500)] {
            let plan = MsmPlan::new(1 << 24, vram_bytes, slot_bytes).unwrap();
            assert!(plan.vram_bytes() <= vram_bytes && plan.slot_bytes() <= slot_bytes);
            assert!(plan.shape.chunk_points >= chunk_points, "{plan:?}");
            assert!(
                plan.launches().unwrap() <= launches,
                "{plan:?}: {:?}",
                plan.launches()
            );
            // Whole frames of a column land in each slot.
            let parts = plan.chunking().unwrap().parts(ELEMENT_BYTES << 24).unwrap();
            assert!(
                parts
                    .into_iter()
                    .all(|part| (part.offset() / ELEMENT_BYTES).is_multiple_of(CHUNK_FRAMES))
            );
        }
    }

    #[test]
    fn a_large_card_gets_large_windows() {
        let plan = MsmPlan::new(1 << 24, 8 << 30, 256 << 20).unwrap();
        assert!((14..=20).contains(&plan.shape.window_bits), "{plan:?}");
        assert_eq!(plan.shape.ring_buffers, 2);
        let refusal = MsmPlan::new(1 << 24, 8 << 30, 95).unwrap_err();
        assert!(refusal.is_memory_short());
        assert!(
            refusal
                .to_string()
                .contains("95 bytes of a pinned slot: it needs 3072"),
            "{refusal}"
        );
        assert!(MsmPlan::new(0, 1 << 30, 1 << 20).is_err());
        let at_a_time = |columns, at_once, vram_bytes| {
            let size = SumsSize {
                columns,
                ..SumsSize::one(1 << 24)
            };
            let (plan, _) = MsmPlan::of_passes(size, at_once, vram_bytes, 16 << 20)?;
            assert!(plan.vram_bytes() <= vram_bytes && plan.slot_bytes() <= 16 << 20);
            Ok::<_, Error>(plan.columns())
        };
        assert_eq!(at_a_time(1, 9, 8 << 30).unwrap(), 1);
        assert_eq!(at_a_time(3, 9, 8 << 30).unwrap(), 3);
        // Even passes: five sums are passes of three and two.
        assert_eq!(at_a_time(5, 4, 8 << 30).unwrap(), 3);
        assert_eq!(at_a_time(5, 0, 8 << 30).unwrap(), 1);
        // Where chunks share a slot, many sums at a time cost more.
        assert!((2..100).contains(&at_a_time(1000, 1000, 64 << 20).unwrap()));
        assert!(at_a_time(5, 5, 4 << 10).unwrap_err().is_memory_short());
        assert!(at_a_time(0, 5, 8 << 30).is_err());
        let shape = MsmShape {
            window_bits: 21,
            ..plan.shape()
        };
        assert!(MsmPlan::with_shape(1, shape).is_err());
    }
}
