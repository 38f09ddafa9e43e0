//! Upstream's projective points as the engine's Jacobian ones, and back: the same slice by the other type.
#![allow(unsafe_code)]

use std::slice;

use ark_bls12_381::Fq;
use midnight_curves::G1Projective;
use spillproof_kernels::curve::Jacobian;

const _: () = assert!(
    size_of::<G1Projective>() == size_of::<Jacobian<Fq>>()
        && align_of::<G1Projective>() == align_of::<Jacobian<Fq>>()
);

/// Upstream's points as the engine's.
pub(super) fn jacobian(points: &[G1Projective]) -> &[Jacobian<Fq>] {
    // SAFETY: both types are x, y, z, each six limbs of 64 bits in Montgomery form with the same R. They have the
    // same size and alignment, as asserted above, no padding, and any limbs are a value as far as memory goes.
    unsafe { slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
}

/// The engine's points as upstream's.
pub(super) fn projective(points: &[Jacobian<Fq>]) -> &[G1Projective] {
    // SAFETY: as in `jacobian`, the other way round.
    unsafe { slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
}

#[cfg(test)]
mod tests {
    use ark_ec::{AdditiveGroup as _, PrimeGroup as _};
    use group::Group as _;

    use super::super::convert::P;
    use super::*;

    #[test]
    fn points_of_one_type_are_those_of_the_other() {
        let generator = G1Projective::generator();
        let theirs = [
            generator,
            generator + generator.double(),
            G1Projective::identity(),
        ];
        let generator = ark_bls12_381::G1Projective::generator();
        let ours = [generator, generator + generator.double(), Default::default()];
        let converted = jacobian(&theirs);
        assert!(converted.iter().map(|point| point.to_projective::<P>()).eq(ours));
        assert_eq!(projective(converted), theirs);
    }
}
