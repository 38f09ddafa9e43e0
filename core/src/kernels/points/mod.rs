//! Multiples of many affine points at once, and their sums and differences.
//!
//! In: points, and a scalar for all or one for each. Out: the multiples, in their places. Every block of points takes the same
//! steps of a double-and-add, affine, with one inversion a step and block ([`ladder`]), in eight lanes where the processor has them
//! ([`packs`]); scalars are halved by the curve's endomorphism where it has one ([`digits`]). Of a scalar of 254 bits that is some
//! 127 doublings of 7 multiplications and 44 to 66 additions of 6. All inputs are taken: infinity, repeated and opposite points, points
//! of small order, any scalar.
//!
//! Blocks are worked on side by side on the rayon pool. Memory: [`Multiplier::bytes`].

mod digits;
mod ladder;
mod packs;

use std::sync::{Mutex, PoisonError};

use ark_ff::{One, Zero};
use rayon::prelude::*;

use self::digits::{Op, Recoding};
use self::ladder::Ladder;
#[cfg(target_arch = "x86_64")]
use self::packs::InLanes;
use self::packs::{Packs, Portable};
use crate::kernels::curve::{Curve, Point};
#[cfg(target_arch = "x86_64")]
use crate::kernels::lanes::{Ifma, Kernel};
use crate::kernels::platform::Platform;

/// Points in a block, where memory allows: more would share an inversion that costs little by then, and leave the cache.
pub const BLOCK_POINTS_MAX: usize = 2048;
/// Points in a block at least: below this, steps are mostly inversions.
pub const BLOCK_POINTS_MIN: usize = 128;

/// Multiplies blocks of points.
pub struct Multiplier<P: Curve> {
    platform: Platform,
    recoding: Recoding<P>,
    block_points: usize,
    /// Those that no thread works with.
    idle: Mutex<Vec<Worker<P>>>,
}

impl<P: Curve> Multiplier<P> {
    /// With blocks of `block_points` points and the instructions of `platform`. One that the machine lacks counts as portable.
    pub fn new(platform: Platform, block_points: usize) -> Self {
        Self {
            platform,
            recoding: Recoding::new(),
            block_points: block_points.clamp(BLOCK_POINTS_MIN, BLOCK_POINTS_MAX),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Bytes that blocks of `block_points` points take on `threads` threads, on any platform: about 1.1 KiB a point.
    pub fn bytes(threads: usize, block_points: usize) -> u64 {
        threads as u64 * Worker::<P>::bytes(block_points)
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
            .par_chunks_mut(self.block_points)
            .for_each(|points| self.with_worker(|worker| worker.walk(points, &program)));
    }

    /// `points[i] <- scalars[i] * points[i]`. Panics unless there are as many scalars as points.
    pub fn multiply_each(&self, points: &mut [Point<P>], scalars: &[P::ScalarField]) {
        assert_eq!(points.len(), scalars.len(), "each point has a scalar");
        points
            .par_chunks_mut(self.block_points)
            .zip(scalars.par_chunks(self.block_points))
            .for_each(|(points, scalars)| {
                self.with_worker(|worker| worker.multiply_each(&self.recoding, points, scalars));
            });
    }

    /// Up to [`Self::block_points`] butterflies on this thread: `(low[i], high[i]) <- (low[i] + scalars[i] * high[i], low[i] -
    /// scalars[i] * high[i])`. `scalars` may be shorter by factors of 1 at its start. Panics if lengths differ.
    pub(in crate::kernels) fn butterflies(
        &self,
        low: &mut [Point<P>],
        high: &mut [Point<P>],
        scalars: &[P::ScalarField],
    ) {
        assert_eq!(low.len(), high.len(), "butterflies have two sides");
        let ones = low.len() - scalars.len();
        self.with_worker(|worker| {
            worker.multiply_each(&self.recoding, &mut high[ones..], scalars);
            worker.engine.run(Job::SumsAndDifferences { low, high });
        });
    }

    fn with_worker(&self, work: impl FnOnce(&mut Worker<P>)) {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let mut worker =
            free.unwrap_or_else(|| Worker::new(self.platform, &self.recoding, self.block_points));
        work(&mut worker);
        idle().push(worker);
    }
}

/// What one thread works with.
struct Worker<P: Curve> {
    engine: Engine<P>,
    digits: Vec<i8>,
    /// Places of points at infinity, which the ladder doesn't take.
    infinite: Vec<usize>,
}

enum Engine<P: Curve> {
    Portable(Ladder<P, Portable<P::BaseField>>),
    #[cfg(target_arch = "x86_64")]
    Lanes(Ifma, Ladder<P, InLanes<P::BaseField>>),
}

/// What an engine does with a block.
enum Job<'a, P: Curve> {
    Walk {
        points: &'a mut [Point<P>],
        program: &'a [Op<'a>],
    },
    SumsAndDifferences {
        low: &'a mut [Point<P>],
        high: &'a mut [Point<P>],
    },
}

impl<P: Curve> Job<'_, P> {
    #[inline(always)]
    fn run<A: Packs<P::BaseField>>(self, ladder: &mut Ladder<P, A>) {
        match self {
            Self::Walk { points, program } => ladder.walk(points, program),
            Self::SumsAndDifferences { low, high } => ladder.sums_and_differences(low, high),
        }
    }
}

#[cfg(target_arch = "x86_64")]
struct JobInLanes<'a, P: Curve> {
    ladder: &'a mut Ladder<P, InLanes<P::BaseField>>,
    job: Job<'a, P>,
}

#[cfg(target_arch = "x86_64")]
impl<P: Curve> Kernel for JobInLanes<'_, P> {
    #[inline(always)]
    fn run(self, _: Ifma) {
        self.job.run(self.ladder);
    }
}

impl<P: Curve> Engine<P> {
    fn new(platform: Platform, recoding: &Recoding<P>, block: usize) -> Self {
        let beta = recoding.beta();
        #[cfg(target_arch = "x86_64")]
        if platform == Platform::Avx512Ifma
            && let Some(ifma) = Ifma::detect()
            && let Some(packs) = InLanes::new(ifma)
        {
            return Self::Lanes(ifma, Ladder::new(packs, block, &beta));
        }
        let _ = platform;
        Self::Portable(Ladder::new(Portable::new(), block, &beta))
    }

    fn run(&mut self, job: Job<'_, P>) {
        match self {
            Self::Portable(ladder) => job.run(ladder),
            #[cfg(target_arch = "x86_64")]
            Self::Lanes(ifma, ladder) => ifma.run(JobInLanes { ladder, job }),
        }
    }

    /// On any platform.
    fn bytes(block: usize) -> u64 {
        let portable = Ladder::<P, Portable<P::BaseField>>::bytes(block);
        #[cfg(target_arch = "x86_64")]
        return portable.max(Ladder::<P, InLanes<P::BaseField>>::bytes(block));
        #[cfg(not(target_arch = "x86_64"))]
        portable
    }
}

impl<P: Curve> Worker<P> {
    fn new(platform: Platform, recoding: &Recoding<P>, block: usize) -> Self {
        Self {
            engine: Engine::new(platform, recoding, block),
            digits: vec![0; recoding.digit_rows() * block],
            infinite: Vec::new(),
        }
    }

    /// The engine, digits, and places.
    fn bytes(block: usize) -> u64 {
        let each = Recoding::<P>::digit_rows_max() + size_of::<usize>();
        Engine::<P>::bytes(block) + (block * each) as u64
    }

    fn multiply_each(&mut self, recoding: &Recoding<P>, points: &mut [Point<P>], scalars: &[P::ScalarField]) {
        if points.is_empty() {
            return;
        }
        let mut digits = std::mem::take(&mut self.digits);
        recoding.fill(scalars, &mut digits);
        self.walk(points, &recoding.each(points.len(), &digits));
        self.digits = digits;
    }

    /// Infinity stays where it is: the ladder gets the generator there.
    fn walk(&mut self, points: &mut [Point<P>], program: &[Op<'_>]) {
        self.infinite.clear();
        let generator = Point::<P>::from_affine::<P>(&P::GENERATOR);
        for (place, point) in points.iter_mut().enumerate() {
            if point.is_infinity() {
                self.infinite.push(place);
                *point = generator;
            }
        }
        self.engine.run(Job::Walk { points, program });
        for place in &self.infinite {
            points[*place] = Point::<P>::INFINITY;
        }
    }
}

#[cfg(test)]
mod tests;
