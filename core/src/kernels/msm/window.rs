//! One window of one block of bases into one range of its buckets.
//!
//! Counting sort of base indices by digit, then rounds: a run of length L >= 2 is added in pairs into ceil(L / 2) points of the work
//! array (round 1 gathers from the bases, later rounds compact in place), a run of length 1 is added to its resident
//! bucket. Memory per worker: [`Worker::bytes`].

use crate::kernels::curve::{Curve, Point};
use crate::kernels::field::KernelField;
use crate::kernels::msm::MsmConfig;
use crate::kernels::msm::batch::Batch;
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
            batch: Batch::new(),
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
        let base = |entry: u32| {
            let point = &bases[(entry >> 1) as usize];
            Point::<P> {
                x: point.x,
                y: point.y.signed(entry & 1 == 1),
            }
        };
        let Self {
            batch,
            ends,
            order,
            runs,
            work,
        } = self;
        let mut begin = 0usize;
        let mut free = 0usize;
        for bucket in 0..buckets.len() {
            let run = &order[begin..ends[bucket] as usize];
            begin = ends[bucket] as usize;
            if let [entry] = run {
                let sum = batch.push(&buckets[bucket], &base(*entry), bucket as u32 | RESIDENT);
                if let Some(sum) = sum {
                    buckets[bucket] = sum;
                }
                flush_if_full(batch, work, buckets);
            } else if run.len() > 1 {
                let start = free;
                let pairs = run.chunks_exact(2);
                if let [entry] = pairs.remainder() {
                    work[start + run.len() / 2] = base(*entry);
                }
                for pair in pairs {
                    if let Some(sum) = batch.push(&base(pair[0]), &base(pair[1]), free as u32) {
                        work[free] = sum;
                    }
                    free += 1;
                    flush_if_full(batch, work, buckets);
                }
                free += run.len() % 2;
                runs.push(Run {
                    bucket: bucket as u32,
                    start: start as u32,
                    len: (free - start) as u32,
                });
            }
        }
        flush(batch, work, buckets);
    }

    /// Halves every run. Targets lie at or below what was read for them, and a batch has copied its operands: nothing is
    /// overwritten before it was read.
    fn next_round(&mut self, buckets: &mut [Point<P>]) {
        let Self {
            batch, runs, work, ..
        } = self;
        let mut free = 0usize;
        let mut kept = 0usize;
        for i in 0..runs.len() {
            let run = runs[i];
            let (start, len) = (run.start as usize, run.len as usize);
            if len == 1 {
                let bucket = run.bucket as usize;
                let sum = batch.push(&buckets[bucket], &work[start], run.bucket | RESIDENT);
                if let Some(sum) = sum {
                    buckets[bucket] = sum;
                }
                flush_if_full(batch, work, buckets);
                continue;
            }
            let new_start = free;
            for pair in 0..len / 2 {
                let (a, b) = (work[start + 2 * pair], work[start + 2 * pair + 1]);
                if let Some(sum) = batch.push(&a, &b, free as u32) {
                    work[free] = sum;
                }
                free += 1;
                flush_if_full(batch, work, buckets);
            }
            if len % 2 == 1 {
                work[free] = work[start + len - 1];
                free += 1;
            }
            runs[kept] = Run {
                bucket: run.bucket,
                start: new_start as u32,
                len: (free - new_start) as u32,
            };
            kept += 1;
        }
        runs.truncate(kept);
        flush(batch, work, buckets);
    }

    /// `target[i] = source(2 i pair)`: adds `count` pairs into the work array; `pair(work, i)` gives the operands of place i, which
    /// must not lie below i in the work array.
    pub(super) fn add_pairs(
        &mut self,
        count: usize,
        pair: impl Fn(&[Point<P>], usize) -> (Point<P>, Point<P>),
    ) {
        let Self { batch, work, .. } = self;
        for i in 0..count {
            let (a, b) = pair(work, i);
            if let Some(sum) = batch.push(&a, &b, i as u32) {
                work[i] = sum;
            }
            if batch.is_full() {
                batch.flush(|target, point| work[target as usize] = point);
            }
        }
        batch.flush(|target, point| work[target as usize] = point);
    }
}

#[inline(always)]
fn flush_if_full<P: Curve>(batch: &mut Batch<P>, work: &mut [Point<P>], buckets: &mut [Point<P>]) {
    if batch.is_full() {
        flush(batch, work, buckets);
    }
}

#[inline(never)]
fn flush<P: Curve>(batch: &mut Batch<P>, work: &mut [Point<P>], buckets: &mut [Point<P>]) {
    batch.flush(|target, point| {
        if target & RESIDENT != 0 {
            buckets[(target & !RESIDENT) as usize] = point;
        } else {
            work[target as usize] = point;
        }
    });
}
