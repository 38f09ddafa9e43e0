//! The additions of an MSM by themselves: points into buckets, many to one inversion.

use super::MsmConfig;
use super::batch::{Adder, Places};
use crate::backend::Backend;
use crate::curve::{Curve, Point};

/// Adds points to buckets. Memory: about 400 KiB.
pub struct BucketAdder<P: Curve>(Adder<P>);

impl<P: Curve> BucketAdder<P> {
    /// With the instructions that the configuration names.
    pub fn new(config: &MsmConfig) -> Self {
        Self::on(config.backend())
    }

    /// With the instructions of `backend`. One that the machine lacks counts as portable.
    pub fn on(backend: Backend) -> Self {
        Self(Adder::new(backend))
    }

    /// Bytes of an adder on any backend.
    pub fn bytes() -> u64 {
        Adder::<P>::bytes()
    }

    /// `points[a] += points[b]` for each pair `[a, b]`. No place may be in two pairs. Panics if there is no
    /// such point.
    pub fn add_in_place(&mut self, pairs: &[[u32; 2]], points: &mut [Point<P>]) {
        self.0.add(pairs, Places::InPlace(points));
    }

    /// `buckets[b] += points[p / 2]` for each pair `[b, p]`, the point negated if p is odd.
    ///
    /// No bucket may be in two pairs: its sum would be one of the two. Panics if there is no such bucket or
    /// point.
    pub fn add(&mut self, pairs: &[[u32; 2]], buckets: &mut [Point<P>], points: &[Point<P>]) {
        self.0.add(
            pairs,
            Places::Joins {
                to: buckets,
                from: points,
                signed: true,
            },
        );
    }
}
