//! Adds points of BN254 in a circuit with halo2-ecc's own chips, proves it, and verifies the proof.
//!
//! Nothing here is written for spillproof, but for the two lines that name it. Run it within a budget:
//!
//! ```text
//! SPILLPROOF_MEMORY=256MiB SPILLPROOF_DIR=/path/on/nvme cargo run --release
//! ```

use halo2_base::halo2_proofs::halo2curves::bn256::{Fr, G1Affine};
use halo2_base::halo2_proofs::halo2curves::group::Curve;
use halo2_base::utils::testing::base_test;
use halo2_ecc::bn254::FpChip;
use halo2_ecc::ecc::EccChip;
use halo2_ecc::fields::FieldChip;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
const _: () = halo2_axiom::spillproof::IS_HERE;

/// The limbs in which halo2-ecc keeps a coordinate.
const LIMB_BITS: usize = 88;
const LIMBS: usize = 3;

fn main() {
    tracing_subscriber::fmt().init();
    let k: u32 = std::env::args()
        .nth(1)
        .map_or(13, |k| k.parse().expect("k is a number"));
    let count: usize = std::env::args()
        .nth(2)
        .map_or(10, |count| count.parse().expect("a number of points"));
    println!("spillproof session: {}", halo2_axiom::spillproof::active());
    let stats = base_test().k(k).lookup_bits(k as usize - 1).bench_builder(
        points(count, 1),
        points(count, 2),
        |pool, range, points| {
            let context = pool.main();
            let fp = FpChip::<Fr>::new(range, LIMB_BITS, LIMBS);
            let chip = EccChip::new(&fp);
            let assigned: Vec<_> = points
                .iter()
                .map(|point| chip.assign_point_unchecked(context, *point))
                .collect();
            let sum = chip.sum::<G1Affine>(context, assigned);
            let expected = points
                .iter()
                .skip(1)
                .fold(points[0], |sum, point| (sum + point).to_affine());
            assert_eq!(fp.get_assigned_value(&sum.x.into()), expected.x);
            assert_eq!(fp.get_assigned_value(&sum.y.into()), expected.y);
        },
    );
    println!(
        "proved and verified: k = {k}, {count} points, a proof of {} bytes",
        stats.proof_size
    );
}

/// Distinct points, the same in every run.
fn points(count: usize, seed: u64) -> Vec<G1Affine> {
    (0..count as u64)
        .map(|i| (G1Affine::generator() * Fr::from(1 + seed + 17 * i)).to_affine())
        .collect()
}
