//! Multiples of many affine points at once, and their sums and differences.
//!
//! In: points, and a scalar for all or one for each; or points and several others to be added to each, times
//! a scalar for each kind. Out: the multiples or sums, in their places. Every block of points takes the same
//! steps of a double-and-add, affine, with one inversion a step and block (`ladder`, `digits`); scalars are
//! halved by the curve's endomorphism where it has one (`endomorphism`). Of a scalar of 254 bits that is some
//! 127 doublings of 7 multiplications and 44 to 66 additions of 6. All inputs are taken: infinity, repeated
//! and opposite points, points of small order, any scalar.
//!
//! [`Multiples`] are those of one point by many scalars, from a table.
//!
//! Blocks are worked on side by side on the rayon pool. Memory: [`Multiplier::bytes`].

/// For [`crate::compiled`].
pub(crate) mod compiled {
    pub use super::ladder::{NewState, SumsAndDifferences, Walk};
    pub use super::multiples::{MultiplyBlock, NewTable};
}
mod digits;
mod endomorphism;
mod ladder;
mod multiples;

use std::any::Any;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use ark_ff::{One, Zero};

pub use self::multiples::{Multiples, MultiplesWorker};

use self::digits::{Op, Recoding};
use self::ladder::{NewState, SumsAndDifferences, Walk};
use crate::backend::Backend;
use crate::curve::{Curve, Point};
use crate::parallel::Parallel;

/// Points in a block, where memory allows: more would share an inversion that costs little by then, and leave
/// the cache.
pub const BLOCK_POINTS_MAX: usize = 2048;
/// Points in a block at least: below this, steps are mostly inversions.
pub const BLOCK_POINTS_MIN: usize = 128;

/// Multiplies blocks of points.
pub struct Multiplier<P: Curve> {
    backend: Backend,
    recoding: Recoding<P>,
    block_points: usize,
    /// Of the tables.
    slots: usize,
    /// Those that no thread works with.
    idle: Mutex<Vec<Worker<P>>>,
}

impl<P: Curve> Multiplier<P> {
    /// With blocks of `block_points` points and the instructions of `backend`. One that the machine lacks
    /// counts as portable.
    pub fn new(backend: Backend, block_points: usize) -> Self {
        Self {
            backend,
            recoding: Recoding::new(),
            block_points: block_points.clamp(BLOCK_POINTS_MIN, BLOCK_POINTS_MAX),
            slots: Recoding::<P>::slots(0),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// As [`Self::new`], also for [`combinations`](Self::combine) with up to `inputs` inputs.
    pub fn for_combinations(backend: Backend, block_points: usize, inputs: usize) -> Self {
        Self {
            slots: Recoding::<P>::slots(inputs),
            ..Self::new(backend, block_points)
        }
    }

    /// Bytes that blocks of `block_points` points take on `threads` threads, on any backend: about 1.1 KiB a
    /// point.
    pub fn bytes(threads: usize, block_points: usize) -> u64 {
        Self::bytes_for_combinations(threads, block_points, 0)
    }

    /// As [`Self::bytes`], of [`Self::for_combinations`]: about 0.8 KiB a point more for each input after the
    /// first.
    pub fn bytes_for_combinations(threads: usize, block_points: usize, inputs: usize) -> u64 {
        threads as u64 * Worker::<P>::bytes(block_points, Recoding::<P>::slots(inputs))
    }

    /// Points in a block.
    pub fn block_points(&self) -> usize {
        self.block_points
    }

    /// `points[i] <- scalar * points[i]`.
    pub fn multiply(&self, points: &mut [Point<P>], scalar: &P::ScalarField) {
        if scalar.is_zero() {
            points.fill(Point::<P>::INFINITY);
            return;
        }
        if scalar.is_one() {
            return;
        }
        let program = self.recoding.one(scalar);
        points
            .chunks_mut(self.block_points)
            .parallel()
            .for_each(|points| self.with_worker(|worker| worker.walk(&self.recoding, points, &program)));
    }

    /// `points[i] <- scalars[i] * points[i]`. Panics unless there are as many scalars as points.
    pub fn multiply_each(&self, points: &mut [Point<P>], scalars: &[P::ScalarField]) {
        assert_eq!(points.len(), scalars.len(), "each point has a scalar");
        points
            .chunks_mut(self.block_points)
            .zip(scalars.chunks(self.block_points))
            .parallel()
            .for_each(|(points, scalars)| {
                self.with_worker(|worker| worker.multiply_each(&self.recoding, points, scalars));
            });
    }

    /// `points[i] <- points[i] + sum of scalars[j] * inputs[j][i]`. Panics if lengths differ, or for more
    /// inputs than [`Self::for_combinations`] was made for.
    pub fn combine(&self, points: &mut [Point<P>], inputs: &[&[Point<P>]], scalars: &[P::ScalarField]) {
        assert_eq!(inputs.len(), scalars.len(), "each input has a scalar");
        assert!(
            Recoding::<P>::slots(inputs.len()) <= self.slots,
            "tables for each input"
        );
        for input in inputs {
            assert_eq!(input.len(), points.len(), "as many points in each input");
        }
        let program = self.recoding.combination(scalars);
        if program.is_empty() {
            return;
        }
        let blocks = points.chunks_mut(self.block_points).enumerate().parallel();
        blocks.for_each(|(block, points)| {
            let first = block * self.block_points;
            let end = first + points.len();
            let inputs: Vec<&[Point<P>]> = inputs.iter().map(|input| &input[first..end]).collect();
            self.with_worker(|worker| worker.combine(&self.recoding, points, &inputs, &program));
        });
    }

    /// Up to [`Self::block_points`] butterflies on this thread: `(low[i], high[i]) <- (low[i] + scalars[i] *
    /// high[i], low[i] - scalars[i] * high[i])`. `scalars` may be shorter by factors of 1 at its start.
    /// Panics if lengths differ.
    pub(crate) fn butterflies(
        &self,
        low: &mut [Point<P>],
        high: &mut [Point<P>],
        scalars: &[P::ScalarField],
    ) {
        assert_eq!(low.len(), high.len(), "butterflies have two sides");
        let ones = low.len() - scalars.len();
        self.with_worker(|worker| {
            worker.multiply_each(&self.recoding, &mut high[ones..], scalars);
            worker.sums_and_differences(low, high);
        });
    }

    fn with_worker(&self, work: impl FnOnce(&mut Worker<P>)) {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let new = || Worker::new(self.backend, &self.recoding, self.block_points, self.slots);
        let mut worker = free.unwrap_or_else(new);
        work(&mut worker);
        idle().push(worker);
    }
}

/// What one thread works with.
struct Worker<P: Curve> {
    backend: Backend,
    /// The ladder's.
    state: Box<dyn Any + Send>,
    digits: Vec<i8>,
    /// Places of points at infinity, which the ladder doesn't take.
    infinite: Vec<usize>,
    curve: PhantomData<fn() -> P>,
}

impl<P: Curve> Worker<P> {
    fn new(backend: Backend, recoding: &Recoding<P>, block: usize, slots: usize) -> Self {
        Self {
            backend,
            state: P::run_new_state(
                backend,
                NewState {
                    block,
                    slots,
                    curve: PhantomData,
                },
            ),
            digits: vec![0; recoding.digit_rows() * block],
            infinite: Vec::with_capacity(block),
            curve: PhantomData,
        }
    }

    /// State, digits, and places.
    fn bytes(block: usize, slots: usize) -> u64 {
        let each = Recoding::<P>::digit_rows_max() + size_of::<usize>();
        ladder::bytes::<P>(block, slots) + (block * each) as u64
    }

    fn multiply_each(&mut self, recoding: &Recoding<P>, points: &mut [Point<P>], scalars: &[P::ScalarField]) {
        if points.is_empty() {
            return;
        }
        let mut digits = std::mem::take(&mut self.digits);
        recoding.fill(scalars, &mut digits);
        self.walk(recoding, points, &recoding.each(points.len(), &digits));
        self.digits = digits;
    }

    /// Infinity stays where it is: the ladder gets the generator there.
    fn walk(&mut self, recoding: &Recoding<P>, points: &mut [Point<P>], program: &[Op<'_>]) {
        self.infinite.clear();
        let generator = Point::<P>::from_affine::<P>(&P::GENERATOR);
        for (place, point) in points.iter_mut().enumerate() {
            if point.is_infinity() {
                self.infinite.push(place);
                *point = generator;
            }
        }
        P::run_walk(
            self.backend,
            Walk {
                state: &mut *self.state,
                points,
                inputs: &[],
                has_infinity: false,
                program,
                beta: &recoding.beta(),
            },
        );
        for place in &self.infinite {
            points[*place] = Point::<P>::INFINITY;
        }
    }

    fn combine(
        &mut self,
        recoding: &Recoding<P>,
        points: &mut [Point<P>],
        inputs: &[&[Point<P>]],
        program: &[Op<'_>],
    ) {
        let mut all = points.iter().chain(inputs.iter().copied().flatten());
        P::run_walk(
            self.backend,
            Walk {
                state: &mut *self.state,
                has_infinity: all.any(Point::<P>::is_infinity),
                points,
                inputs,
                program,
                beta: &recoding.beta(),
            },
        );
    }

    fn sums_and_differences(&mut self, low: &mut [Point<P>], high: &mut [Point<P>]) {
        P::run_sums_and_differences(
            self.backend,
            SumsAndDifferences {
                state: &mut *self.state,
                low,
                high,
            },
        );
    }
}

#[cfg(test)]
pub(crate) mod tests;
