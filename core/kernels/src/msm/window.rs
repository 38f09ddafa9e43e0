//! One window of one block of bases into its buckets.
//!
//! Counting sort of base indices by digit, for all of the window's buckets or a range of them, then, strip of
//! buckets after strip, rounds, each two queues of additions. Of every bucket's run of points the last one,
//! if their number is odd, is added to the resident bucket; the others are added in pairs, into half as many
//! points of the work array. The first round takes points from the bases, later ones from the work array,
//! where the upper half of a run is added to the lower half in place. Queues are made without branches on the
//! length of runs as far as it is short. Memory per worker: [`Worker::bytes`] and a block of points.

use std::ops::DerefMut;

use crate::curve::{Curve, Point};
use crate::msm::MsmConfig;
use crate::msm::batch::{Adder, Pair, Places};
use crate::msm::digits::Digits;

/// Buckets whose points are added up together, from the first round to the last: at the two points a bucket
/// that a block brings, the results of a round are still in the second-level cache in the next.
const STRIP_BUCKETS: usize = 1 << 13;
/// Bases that are copied at a time, whether the run has them or not.
const COPIED: usize = 8;

/// A bucket's points that are left, in the work array.
#[derive(Clone, Copy, Default)]
struct Run {
    bucket: u32,
    start: u32,
    len: u32,
}

/// The base indices of a block, sorted by their digit in one window.
struct Sorted {
    /// Ends of the buckets' runs in `order`.
    ends: Vec<u32>,
    /// Base index * 2 + whether its digit is negative, sorted by bucket.
    order: Vec<u32>,
}

impl Sorted {
    fn new(config: &MsmConfig) -> Self {
        Self {
            ends: vec![0; config.buckets_per_window()],
            order: vec![0; config.block_points() + COPIED],
        }
    }

    fn bytes(config: &MsmConfig) -> u64 {
        ((config.buckets_per_window() + config.block_points() + COPIED) * size_of::<u32>()) as u64
    }

    /// Sorts the bases whose digit in `window` has a magnitude in
    /// `first_bucket + 1 ..= first_bucket + buckets`: bucket 0 is then `first_bucket`.
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
}

/// The memory of one thread.
pub(super) struct Worker<P: Curve, B> {
    sorted: Sorted,
    adder: Adder<P>,
    /// Additions into the work array.
    pairs: Vec<Pair>,
    /// Additions into buckets.
    joins: Vec<Pair>,
    runs: Vec<Run>,
    pub(super) work: B,
}

/// Runs of 2 and more in a block.
fn runs_max(config: &MsmConfig) -> usize {
    config.buckets_per_window().min(config.block_points() / 2)
}

/// Pairs of a block, or of half a window in the reduction at the end.
fn pairs_max(config: &MsmConfig) -> usize {
    (config.block_points() / 2).max(config.buckets_per_window() / 2)
}

impl<P: Curve, B: DerefMut<Target = [Point<P>]>> Worker<P, B> {
    /// `work` has [`Self::work_points`] points.
    pub(super) fn new(config: &MsmConfig, work: B) -> Self {
        let buckets = config.buckets_per_window();
        Self {
            sorted: Sorted::new(config),
            adder: Adder::new(config.backend()),
            pairs: vec![[0; 2]; pairs_max(config) + COPIED / 2],
            joins: vec![[0; 2]; buckets + 1],
            runs: vec![Run::default(); runs_max(config) + 1],
            work,
        }
    }

    /// Points of the work array.
    pub(super) fn work_points(config: &MsmConfig) -> usize {
        pairs_max(config)
    }

    /// Bytes without the work array.
    pub(super) fn bytes(config: &MsmConfig) -> u64 {
        let buckets = config.buckets_per_window();
        let queues = (pairs_max(config) + COPIED / 2 + buckets + 1) * size_of::<Pair>();
        let runs = (runs_max(config) + 1) * size_of::<Run>();
        Sorted::bytes(config) + Adder::<P>::bytes() + (queues + runs) as u64
    }

    /// Adds the bases whose digit in a window belongs to one of `buckets`, of which the first is the window's
    /// bucket `first_bucket`.
    pub(super) fn add(
        &mut self,
        bases: &[Point<P>],
        (digits, window): (&Digits, usize),
        first_bucket: usize,
        buckets: &mut [Point<P>],
    ) {
        if digits.pieces(window).next().is_none() {
            return;
        }
        self.sorted.sort(digits, window, first_bucket, buckets.len());
        let mut begin = 0;
        for (strip, buckets) in buckets.chunks_mut(STRIP_BUCKETS).enumerate() {
            let start = strip * STRIP_BUCKETS;
            let mut runs = self.first_round(bases, buckets, start, begin);
            while runs > 0 {
                runs = self.next_round(runs, buckets);
            }
            begin = self.sorted.ends[start + buckets.len() - 1] as usize;
        }
    }

    /// Adds the bases in pairs, the odd ones to buckets, of which the first is the `start`th that was sorted
    /// into, and whose runs start at `begin`. Gives the number of runs that are left.
    fn first_round(
        &mut self,
        bases: &[Point<P>],
        buckets: &mut [Point<P>],
        start: usize,
        mut begin: usize,
    ) -> usize {
        let Sorted { ends, order } = &self.sorted;
        let ends = &ends[start..start + buckets.len()];
        let (mut paired, mut joins, mut runs) = (0, 0, 0);
        for (bucket, end) in ends.iter().enumerate() {
            let end = *end as usize;
            let half = (end - begin) / 2;
            for copied in (0..half.max(1)).step_by(COPIED / 2) {
                let from = &order[begin + 2 * copied..][..COPIED];
                let to = &mut self.pairs[paired + copied..][..COPIED / 2];
                to.as_flattened_mut().copy_from_slice(from);
            }
            // An entry that is not counted is written over by the next.
            self.runs[runs] = Run {
                bucket: bucket as u32,
                start: paired as u32,
                len: half as u32,
            };
            self.joins[joins] = [bucket as u32, order[end.max(1) - 1]];
            paired += half;
            runs += usize::from(half > 0);
            joins += (end - begin) % 2;
            begin = end;
        }
        let from_bases = Places::Joins {
            to: buckets,
            from: bases,
            signed: true,
        };
        self.adder.add(&self.joins[..joins], from_bases);
        let to_work = Places::IntoWork {
            from: bases,
            to: &mut self.work,
            signed: true,
        };
        self.adder.add(&self.pairs[..paired], to_work);
        runs
    }

    /// Halves every run in place, the odd ones to buckets. Gives the number of runs that are left.
    fn next_round(&mut self, runs: usize, buckets: &mut [Point<P>]) -> usize {
        let (mut paired, mut joins, mut kept) = (0, 0, 0);
        for i in 0..runs {
            let Run { bucket, start, len } = self.runs[i];
            let half = len / 2;
            self.joins[joins] = [bucket, start + len - 1];
            joins += (len % 2) as usize;
            for place in start..start + half {
                self.pairs[paired] = [place, place + half];
                paired += 1;
            }
            self.runs[kept] = Run {
                bucket,
                start,
                len: half,
            };
            kept += usize::from(half > 0);
        }
        let from_work = Places::Joins {
            to: buckets,
            from: &self.work,
            signed: false,
        };
        self.adder.add(&self.joins[..joins], from_work);
        self.adder
            .add(&self.pairs[..paired], Places::InPlace(&mut self.work));
        kept
    }

    /// The places of `pairs` in `source`, for each number below `count` one, are added into the work array,
    /// in the same order.
    pub(super) fn add_from(&mut self, source: &[Point<P>], count: usize, pair: impl Fn(usize) -> Pair) {
        self.queue(count, pair);
        let places = Places::IntoWork {
            from: source,
            to: &mut self.work,
            signed: false,
        };
        self.adder.add(&self.pairs[..count], places);
    }

    /// The same in the work array, each sum to its first operand's place. No place may be in two pairs.
    pub(super) fn add_in_place(&mut self, count: usize, pair: impl Fn(usize) -> Pair) {
        self.queue(count, pair);
        self.adder
            .add(&self.pairs[..count], Places::InPlace(&mut self.work));
    }

    fn queue(&mut self, count: usize, pair: impl Fn(usize) -> Pair) {
        for (i, to) in self.pairs[..count].iter_mut().enumerate() {
            *to = pair(i);
        }
    }
}
