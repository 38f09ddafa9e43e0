//! Stages on the curves of this crate: points of 96, 128 and 192 bytes.

use ark_ec::short_weierstrass::Projective;
use ark_ff::UniformRand;
use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::column::Placement;
use spillproof_engine::stream::{NttPlan, Transform, group_ntt_in_tiles};
use spillproof_kernels::curve::normalize;

use crate::common::place;
use crate::openings::openings_are_arkworks;

#[test]
fn openings_are_arkworks_on_every_curve() {
    openings_are_arkworks::<ark_bn254::g2::Config>();
    openings_are_arkworks::<ark_bls12_381::g1::Config>();
    openings_are_arkworks::<ark_bls12_381::g2::Config>();
}

/// Points of 96 bytes, in frames of 12 KiB and more.
#[test]
fn the_group_transform_is_arkworks() {
    type Bls = ark_bls12_381::g1::Config;
    let place = place(64 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    for log_n in [0u32, 5, 10] {
        let n = 1usize << log_n;
        let given: Vec<_> = (0..n).map(|_| Projective::<Bls>::rand(&mut rng)).collect();
        let on_disk = place.column(&normalize::<Bls>(&given));
        let domain = Radix2EvaluationDomain::<ark_bls12_381::Fr>::new(n).expect("a domain");
        let mut wanted = given;
        domain.ifft_in_place(&mut wanted);
        let inverse = Transform::inverse(log_n, domain.group_gen()).expect("a root");
        for log_tile in NttPlan::log_tile_min(log_n, 96)..=log_n {
            let ours = group_ntt_in_tiles::<Bls>(&on_disk, &inverse, Placement::Disk, log_tile);
            let ours = ours.expect("transform").to_vec().expect("readable");
            assert!(
                ours == normalize::<Bls>(&wanted),
                "2^{log_n} in tiles of 2^{log_tile}"
            );
        }
    }
}
