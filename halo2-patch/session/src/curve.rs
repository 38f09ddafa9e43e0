//! The curve: everything in this crate is over it. Another one is another set of these names.

use ark_bn254::G1Affine;
pub use ark_bn254::g1::Config;
pub use spillproof::commit::{G1 as Point, Scalar};

/// The point as it is on disk.
pub fn stored(point: &G1Affine) -> Point {
    Point::from_affine::<Config>(point)
}
