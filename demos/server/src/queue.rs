//! The order of jobs that wait: that of arrival, in which the largest jobs count as ones that came earlier.
//!
//! A job's place is the planned work that came before it, less its head start; the least place is next. Places do not
//! change, and no clock is read. With `w` the work of a job and `m` that of the largest so far, the head start is
//! `AHEAD m (w / m)^3`: [`AHEAD`] times its own work for the largest, an eighth of that for one half as large, next to
//! nothing for small ones. So:
//!
//! - Only a larger job passes a job, and all jobs that pass it have less than `(AHEAD + 1) m` of work together. For: let
//!   the job have the place `v - h`, and a later one the place `v' - h'`. The later one passes if `v' - v < h' - h`.
//!   `h'` is at most `AHEAD m`, so it came within that much work, and has itself at most `m`.
//! - A job that came before one of the largest stays ahead of it only if work of at least `AHEAD m (1 - (w / m)^3)`
//!   came between the two.
//!
//! So no job waits without end. The order of arrival alone has the largest wait for all others: with clients that each
//! have one job there, the mean over all jobs of wait and run is the number of clients times the mean run, in any order
//! that leaves no pause. What the largest, who are few, do not wait, the others do, who are many.
//!
//! Memory: an entry a job.

use std::collections::BTreeMap;
use std::time::Duration;

/// How many times its own work the largest job counts as having come earlier. At 12, the largest jobs of 16 clients,
/// each of whom has one job there, wait hardly longer than if they were always next.
pub const AHEAD: u32 = 12;

/// Jobs that wait.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// By place, and by arrival where places are equal.
    waiting: BTreeMap<(i128, u64), T>,
    /// Nanoseconds of work that came so far.
    came: i128,
    /// Those of the largest.
    largest: i128,
    arrivals: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            came: 0,
            largest: 0,
            arrivals: 0,
        }
    }
}

impl<T> Queue<T> {
    /// A job of so much work comes.
    pub fn push(&mut self, work: Duration, job: T) {
        // The longest duration is 2^94 nanoseconds: sums of them stay below.
        let work = work.as_nanos() as i128;
        self.largest = self.largest.max(work);
        let place = (self.came - self.head_start(work), self.arrivals);
        self.came += work;
        self.arrivals += 1;
        self.waiting.insert(place, job);
    }

    fn head_start(&self, work: i128) -> i128 {
        if work == 0 {
            return 0;
        }
        let largest = self.largest as f64;
        let part = work as f64 / largest;
        (f64::from(AHEAD) * largest * part * part * part) as i128
    }

    /// Takes the job that is next.
    pub fn pop(&mut self) -> Option<T> {
        self.waiting.pop_first().map(|(_, job)| job)
    }

    /// Removes the jobs that `stays` refuses.
    pub fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        self.waiting.retain(|_, job| stays(job));
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
