//! The additions of an MSM by themselves: points into buckets, many to one inversion.

use super::MsmConfig;
use super::batch::Adder;
use super::window::Joins;
use crate::kernels::curve::{Curve, Point};

/// Adds points to buckets. Memory: about 400 KiB.
pub struct BucketAdder<P: Curve>(Adder<P>);

impl<P: Curve> BucketAdder<P> {
    /// With the instructions that the configuration names.
    pub fn new(config: &MsmConfig) -> Self {
        Self(Adder::new(config.backend()))
    }

    /// `buckets[b] += points[p / 2]` for each pair `[b, p]`, the point negated if p is odd.
    ///
    /// No bucket may be in two pairs: its sum would be one of the two. Panics if there is no such bucket or point.
    pub fn add(&mut self, pairs: &[[u32; 2]], buckets: &mut [Point<P>], points: &[Point<P>]) {
        self.0.add(
            pairs,
            &mut Joins::<P> {
                to: buckets,
                from: points,
                signed: true,
            },
        );
    }
}
