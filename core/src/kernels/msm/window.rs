//! One window of one block of bases into one range of its buckets.
//!
//! Counting sort of base indices by digit, then rounds: a run of length L >= 2 is added in pairs into ceil(L / 2) points of the work
//! array (round 1 gathers from the bases, later rounds compact in place), a run of length 1 is added to its resident
//! bucket. Memory per worker: [`Worker::bytes`].

use crate::kernels::curve::{Curve, Point};
use crate::kernels::msm::MsmConfig;
use crate::kernels::msm::batch::{Batch, CAPACITY, Places};
use crate::kernels::msm::digits::Digits;

/// Marks a batch's target as a resident bucket, not a place in the work array.
const RESIDENT: u32 = 1 << 31;

/// A bucket's points that are left, in the work array.
#[derive(Clone, Copy)]
struct Run {
    bucket: u32,
    start: u32,
    len: u32,
}

/// What one thread works with.
pub(super) struct Worker<P: Curve> {
    batch: Batch<P>,
    /// Ends of the buckets' runs in `order`.
    ends: Vec<u32>,
    /// Base index * 2 + whether its digit is negative, sorted by bucket.
    order: Vec<u32>,
    runs: Vec<Run>,
    pub(super) work: Vec<Point<P>>,
}

/// Points of the work array: runs of 2 and more shrink to 2/3 at most; the reduction at the end needs half of a window.
fn work_points(config: &MsmConfig) -> usize {
    (config.block_points() * 2 / 3 + 1).max(config.buckets_per_window() / 2)
}

impl<P: Curve> Worker<P> {
    pub(super) fn new(config: &MsmConfig) -> Self {
        let buckets = config.buckets_per_window();
        Self {
            batch: Batch::new(config.platform()),
            ends: vec![0; buckets + 1],
            order: vec![0; config.block_points()],
            runs: Vec::with_capacity(buckets.min(config.block_points() / 2)),
            work: vec![Point::<P>::INFINITY; work_points(config)],
        }
    }

    pub(super) fn bytes(config: &MsmConfig) -> u64 {
        let buckets = config.buckets_per_window();
        let runs = buckets.min(config.block_points() / 2);
        Batch::<P>::bytes()
            + ((buckets + 1) * 4 + config.block_points() * 4 + runs * size_of::<Run>()) as u64
            + (work_points(config) * size_of::<Point<P>>()) as u64
    }

    /// Adds the block's bases whose digit in `window` has a magnitude in `first_bucket + 1 ..= first_bucket + buckets.len()`.
    pub(super) fn add(
        &mut self,
        bases: &[Point<P>],
        digits: &Digits,
        window: usize,
        first_bucket: usize,
        buckets: &mut [Point<P>],
    ) {
        self.sort(digits, window, first_bucket, buckets.len());
        self.first_round(bases, buckets);
        while !self.runs.is_empty() {
            self.next_round(buckets);
        }
    }

    fn sort(&mut self, digits: &Digits, window: usize, first_bucket: usize, buckets: usize) {
        let bucket_of = |digit: i16| usize::from(digit.unsigned_abs()).wrapping_sub(first_bucket + 1);
        let ends = &mut self.ends[..buckets];
        ends.fill(0);
        for (_, piece) in digits.pieces(window) {
            for digit in piece {
                if let Some(count) = ends.get_mut(bucket_of(*digit)) {
                    *count += 1;
                }
            }
        }
        let mut start = 0;
        for end in ends.iter_mut() {
            let count = *end;
            *end = start;
            start += count;
        }
        for (first, piece) in digits.pieces(window) {
            for (i, digit) in piece.iter().enumerate() {
                if let Some(end) = ends.get_mut(bucket_of(*digit)) {
                    self.order[*end as usize] = ((first + i) as u32) << 1 | u32::from(*digit < 0);
                    *end += 1;
                }
            }
        }
    }

    fn first_round(&mut self, bases: &[Point<P>], buckets: &mut [Point<P>]) {
        let Self {
            batch,
            ends,
            order,
            runs,
            work,
        } = self;
        let mut places = FirstRound { bases, work, buckets };
        let mut begin = 0usize;
        let mut free = 0u32;
        for bucket in 0..places.buckets.len() as u32 {
            let end = ends[bucket as usize] as usize;
            let run = &order[begin..end];
            begin = end;
            if let [base] = run {
                batch.push(bucket << 1 | RESIDENT, *base, bucket | RESIDENT);
            } else if run.len() > 1 {
                let start = free;
                let pairs = run.chunks_exact(2);
                let rest = pairs.remainder();
                for pair in pairs {
                    batch.push(pair[0], pair[1], free);
                    free += 1;
                    if batch.is_full() {
                        batch.flush(&mut places);
                    }
                }
                if let [base] = rest {
                    batch.push_move(*base, free);
                    free += 1;
                }
                runs.push(Run {
                    bucket,
                    start,
                    len: free - start,
                });
            }
            if batch.is_full() {
                batch.flush(&mut places);
            }
        }
        batch.flush(&mut places);
    }

    /// Halves every run. Targets lie at or below what was read for them, and a batch reads all its operands before it
    /// moves or writes: nothing is overwritten before it was read.
    fn next_round(&mut self, buckets: &mut [Point<P>]) {
        let Self {
            batch, runs, work, ..
        } = self;
        let mut places = NextRound { work, buckets };
        let mut free = 0u32;
        let mut kept = 0usize;
        for i in 0..runs.len() {
            let Run { bucket, start, len } = runs[i];
            if len == 1 {
                batch.push(bucket | RESIDENT, start, bucket | RESIDENT);
            } else {
                let new_start = free;
                for pair in 0..len / 2 {
                    batch.push(start + 2 * pair, start + 2 * pair + 1, free);
                    free += 1;
                    if batch.is_full() {
                        batch.flush(&mut places);
                    }
                }
                if len % 2 == 1 {
                    batch.push_move(start + len - 1, free);
                    free += 1;
                }
                runs[kept] = Run {
                    bucket,
                    start: new_start,
                    len: free - new_start,
                };
                kept += 1;
            }
            if batch.is_full() {
                batch.flush(&mut places);
            }
        }
        runs.truncate(kept);
        batch.flush(&mut places);
    }

    /// Place i of the work array, for i < `count`, becomes the sum of places `first(i)` and `second(i)` of `source`, or of the
    /// work array itself if there is none; these must not lie below i then.
    pub(super) fn add_pairs(
        &mut self,
        source: Option<&[Point<P>]>,
        count: usize,
        pair: impl Fn(usize) -> (usize, usize),
    ) {
        let Self { batch, work, .. } = self;
        let mut places = Pairs { source, work };
        for first in (0..count).step_by(CAPACITY) {
            for i in first..(first + CAPACITY).min(count) {
                let (a, b) = pair(i);
                batch.push(a as u32, b as u32, i as u32);
            }
            batch.flush(&mut places);
        }
    }
}

/// Operands: a base with its sign in bit 0, or a bucket, shifted as a base is. Targets: as in [`NextRound`].
struct FirstRound<'a, P: Curve> {
    bases: &'a [Point<P>],
    work: &'a mut [Point<P>],
    buckets: &'a mut [Point<P>],
}

impl<P: Curve> Places<P> for FirstRound<'_, P> {
    #[inline(always)]
    fn read(&self, place: u32) -> (&Point<P>, bool) {
        let from = if place & RESIDENT == 0 {
            self.bases
        } else {
            &*self.buckets
        };
        (&from[((place & !RESIDENT) >> 1) as usize], place & 1 == 1)
    }

    #[inline(always)]
    fn write(&mut self, target: u32, point: Point<P>) {
        write::<P>(self.work, self.buckets, target, point);
    }
}

/// Operands and targets: a place of the work array, or a bucket.
struct NextRound<'a, P: Curve> {
    work: &'a mut [Point<P>],
    buckets: &'a mut [Point<P>],
}

impl<P: Curve> Places<P> for NextRound<'_, P> {
    #[inline(always)]
    fn read(&self, place: u32) -> (&Point<P>, bool) {
        let from = if place & RESIDENT == 0 {
            &*self.work
        } else {
            &*self.buckets
        };
        (&from[(place & !RESIDENT) as usize], false)
    }

    #[inline(always)]
    fn write(&mut self, target: u32, point: Point<P>) {
        write::<P>(self.work, self.buckets, target, point);
    }
}

/// Operands: places of the source, or else of the work array, where the targets are.
struct Pairs<'a, P: Curve> {
    source: Option<&'a [Point<P>]>,
    work: &'a mut [Point<P>],
}

impl<P: Curve> Places<P> for Pairs<'_, P> {
    #[inline(always)]
    fn read(&self, place: u32) -> (&Point<P>, bool) {
        (&self.source.unwrap_or(self.work)[place as usize], false)
    }

    #[inline(always)]
    fn write(&mut self, target: u32, point: Point<P>) {
        self.work[target as usize] = point;
    }
}

#[inline(always)]
fn write<P: Curve>(work: &mut [Point<P>], buckets: &mut [Point<P>], target: u32, point: Point<P>) {
    let to = if target & RESIDENT == 0 { work } else { buckets };
    to[(target & !RESIDENT) as usize] = point;
}
