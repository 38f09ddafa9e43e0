//! Streamed multi-scalar multiplication: sum of scalar_i * base_i, the bases seen once, in chunks.
//!
//! Algorithm: Pippenger's buckets with signed digits, buckets in affine form, additions in batches that share
//! one inversion (Bernstein, Doumen, Lange and Oosterwijk, *Faster batch forgery identification*, 2012,
//! section 4). For a block of bases and a window, base indices are sorted by digit (`window`); each bucket's
//! run is then reduced pairwise, all buckets together, and an odd point joins the resident bucket. So no
//! queue adds twice to one place, a skewed digit costs a tree of depth log2(block) and no serial chain, and
//! every base costs one addition per window. Additions run in lanes ([`super::backend`]), with the same
//! results, bit for bit.
//! Scalars above r/2 are negated with their base: -1 is as cheap as 1, and windows above a small scalar cost
//! nothing.
//!
//! Shapes: bases as [`super::curve::Point`], scalars in Montgomery form, one slice of scalars per column;
//! several columns share one pass over the bases. A chunk is added window by window over the rayon pool,
//! beside the making of the next ones (`pipeline`).
//!
//! Memory: [`MsmConfig::workspace_bytes`], of which columns * windows * 2^(window_bits - 1) points are
//! buckets; nothing else is allocated after [`Msm::new`], and nothing depends on n.

mod batch;
mod bucket_adder;
/// For [`crate::compiled`].
pub(crate) mod compiled {
    pub use super::batch::{Add, NewGroups};
}
mod config;
mod digits;
mod pipeline;
mod reduce;
mod window;

use std::convert::Infallible;
use std::ops::DerefMut;
use std::sync::{Mutex, PoisonError};

use ark_ec::short_weierstrass::Projective;
use ark_ff::AdditiveGroup;

use super::curve::{Curve, Point};
use window::Worker;

pub use bucket_adder::BucketAdder;
pub use config::MsmConfig;
pub use digits::Digits;
pub use pipeline::Fillings;

/// The state of a streamed MSM over one or more columns of scalars. `B` holds its blocks of points.
pub struct Msm<P: Curve, B = Vec<Point<P>>> {
    config: MsmConfig,
    /// Column after column, window after window, bucket after bucket (of digits 1, 2, ...).
    buckets: B,
    /// Those of the chunks in memory, column after column.
    digits: Vec<Digits>,
    workers: Vec<Worker<P, B>>,
}

impl<P: Curve> Msm<P> {
    /// All buckets empty. Allocates [`MsmConfig::workspace_bytes`].
    pub fn new(config: MsmConfig) -> Self {
        let heap = |points| Ok::<_, Infallible>(vec![Point::<P>::INFINITY; points]);
        match Self::in_blocks(config, heap) {
            Ok(msm) => msm,
            Err(never) => match never {},
        }
    }
}

impl<P: Curve, B: DerefMut<Target = [Point<P>]> + Send> Msm<P, B> {
    /// As [`Msm::new`], with blocks of so many points at infinity from `block`: they are
    /// [`MsmConfig::block_bytes`] of the whole.
    ///
    /// # Errors
    /// Those of `block`.
    pub fn in_blocks<E>(config: MsmConfig, mut block: impl FnMut(usize) -> Result<B, E>) -> Result<Self, E> {
        let buckets = config.columns() * config.windows::<P>() * config.buckets_per_window();
        let mut worker = || Ok(Worker::new(&config, block(Worker::<P, B>::work_points(&config))?));
        Ok(Self {
            workers: (0..config.threads())
                .map(|_| worker())
                .collect::<Result<_, E>>()?,
            buckets: block(buckets)?,
            digits: (0..config.digit_sets())
                .map(|_| Digits::new(config.windows::<P>(), config.window_bits(), config.block_points()))
                .collect(),
            config,
        })
    }

    /// Adds `scalars[column][i] * bases[i]` to every column's sum. Chunks may have any length, also 0.
    ///
    /// Runs on the rayon pool it is called from. Panics if the number of columns is not the configuration's
    /// or a column's length is not that of `bases`.
    pub fn update(&mut self, bases: &[Point<P>], scalars: &[&[P::ScalarField]]) {
        assert_eq!(
            scalars.len(),
            self.config.columns(),
            "one slice of scalars per column"
        );
        for column in scalars {
            assert_eq!(column.len(), bases.len(), "one scalar per base");
        }
        let block_points = self.config.block_points();
        let mut blocks: Vec<&[Point<P>]> = vec![&[]; self.config.chunks()];
        let count = (bases.len().div_ceil(block_points), Fillings::SideBySide);
        let added = self.run(
            count,
            &mut blocks,
            |index, block, digits| {
                let first = index * block_points;
                let end = (first + block_points).min(bases.len());
                *block = &bases[first..end];
                for (digits, column) in digits.iter_mut().zip(scalars) {
                    digits.fill(&column[first..end]);
                }
                Ok::<_, Infallible>(())
            },
            |block| block,
        );
        match added {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// The sum of each column, and an end to the state.
    pub fn finish(mut self) -> Vec<Projective<P>> {
        self.drain()
    }

    /// The sum of each column; the buckets are empty again, ready for other sums without another allocation.
    pub fn drain(&mut self) -> Vec<Projective<P>> {
        let windows = self.config.windows::<P>();
        let mut sums = vec![Projective::<P>::ZERO; windows * self.config.columns()];
        let tasks = self
            .buckets
            .chunks_mut(self.config.buckets_per_window())
            .zip(&mut sums);
        for_each_task(&mut self.workers, tasks, |worker, (buckets, sum)| {
            // Small scalars leave most windows, and most buckets of the others, empty.
            let filled = buckets.iter().rposition(|bucket| !bucket.is_infinity());
            if let Some(last) = filled {
                let buckets = &mut buckets[..(last + 1).next_power_of_two()];
                *sum = reduce::window_sum(buckets, worker);
                buckets.fill(Point::<P>::INFINITY);
            }
        });
        sums.chunks(windows)
            .map(|sums| reduce::join_windows(sums, self.config.window_bits()))
            .collect()
    }

    /// The configuration.
    pub fn config(&self) -> &MsmConfig {
        &self.config
    }
}

/// Hands the tasks, as they come, to the workers, one thread each.
fn for_each_task<W: Send, T: Send>(
    workers: &mut [W],
    tasks: impl Iterator<Item = T> + Send,
    run: impl Fn(&mut W, T) + Sync,
) {
    let tasks = Mutex::new(tasks);
    let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
    rayon::scope(|scope| {
        for worker in workers {
            scope.spawn(|_| {
                while let Some(task) = next() {
                    run(worker, task);
                }
            });
        }
    });
}
