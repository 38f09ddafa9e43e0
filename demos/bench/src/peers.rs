//! halo2curves 0.10 with assembly: the fastest peer, which only the benchmark builds.

use ark_bn254::Fr;
use halo2curves::bn256;
use halo2curves::group::Curve;
use halo2curves::msm::msm_best;
use halo2curves::serde::SerdeObject;
use spillproof_cli::peers::{Library, from_point_bytes, point_bytes, scalar_bytes};

/// `halo2curves::msm::msm_best`.
pub const HALO2CURVES: Library<bn256::G1Affine, bn256::Fr> = Library {
    point: |point| bn256::G1Affine::from_raw_bytes_unchecked(&point_bytes(point)),
    scalar: to_halo2curves,
    msm: |points, scalars| from_point_bytes(&msm_best(scalars, points).to_affine().to_raw_bytes()),
};

/// The same scalar in halo2curves' form.
pub fn to_halo2curves(scalar: &Fr) -> bn256::Fr {
    bn256::Fr::from_raw_bytes_unchecked(&scalar_bytes(scalar))
}

#[cfg(test)]
mod tests {
    use spillproof_cli::peers::Peer;

    use super::*;

    #[test]
    fn halo2curves_agrees_with_arkworks() {
        for n in [0, 1, 3000] {
            assert_eq!(HALO2CURVES.load(5, n)(), Peer::Ark.load(5, n)(), "n = {n}");
        }
    }
}
