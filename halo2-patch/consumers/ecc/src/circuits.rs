//! What is proved. Each circuit is built twice, from inputs of two seeds: for its keys, and for a proof.

use halo2_base::gates::circuit::builder::BaseCircuitBuilder;
use halo2_base::gates::{GateInstructions, RangeChip, RangeInstructions};
use halo2_base::halo2_proofs::arithmetic::{CurveAffine, Field};
use halo2_base::halo2_proofs::halo2curves::bn256::{pairing, Fr, G1Affine, G2Affine};
use halo2_base::halo2_proofs::halo2curves::group::Curve;
use halo2_base::halo2_proofs::halo2curves::secp256k1::{Fp, Fq, Secp256k1Affine};
use halo2_base::utils::{biguint_to_fe, fe_to_biguint, modulus};
use halo2_base::Context;
use halo2_ecc::bn254::pairing::PairingChip;
use halo2_ecc::bn254::{Fp12Chip, FpChip};
use halo2_ecc::ecc::ecdsa::ecdsa_verify_no_pubkey_check;
use halo2_ecc::ecc::EccChip;
use halo2_ecc::fields::FieldChip;
use halo2_ecc::secp256k1;

/// The limbs in which halo2-ecc keeps a coordinate.
const LIMB_BITS: usize = 88;
const LIMBS: usize = 3;
/// Bits of a scalar that halo2-ecc multiplies with at a time.
const WINDOW_BITS: usize = 4;
/// Points of a sum.
const POINTS: u64 = 10;

/// Which circuit.
#[derive(Clone, Copy, Debug)]
pub enum Circuit {
    /// A sum of points of BN254.
    Sum,
    /// The optimal Ate pairing of BN254.
    Pairing,
    /// An ECDSA signature over secp256k1 is valid.
    Ecdsa,
}

impl Circuit {
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "sum" => Ok(Self::Sum),
            "pairing" => Ok(Self::Pairing),
            "ecdsa" => Ok(Self::Ecdsa),
            other => Err(format!("there is no circuit `{other}`")),
        }
    }

    /// Puts the circuit's cells into the builder. What it computes is held against the same computation
    /// outside of it.
    pub fn build(self, builder: &mut BaseCircuitBuilder<Fr>, seed: u64) {
        let range = builder.range_chip();
        let context = builder.main(0);
        match self {
            Self::Sum => sum(context, &range, seed),
            Self::Pairing => pair(context, &range, seed),
            Self::Ecdsa => signature(context, &range, seed),
        }
    }
}

fn sum(context: &mut Context<Fr>, range: &RangeChip<Fr>, seed: u64) {
    let points: Vec<G1Affine> = (0..POINTS)
        .map(|i| (G1Affine::generator() * Fr::from(1 + seed + 17 * i)).to_affine())
        .collect();
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
}

fn pair(context: &mut Context<Fr>, range: &RangeChip<Fr>, seed: u64) {
    let p = (G1Affine::generator() * Fr::from(1009 + seed)).to_affine();
    let q = (G2Affine::generator() * Fr::from(2003 + seed)).to_affine();
    let fp = FpChip::<Fr>::new(range, LIMB_BITS, LIMBS);
    let chip = PairingChip::new(&fp);
    let p_assigned = chip.load_private_g1_unchecked(context, p);
    let q_assigned = chip.load_private_g2_unchecked(context, q);
    let paired = chip.pairing(context, &q_assigned, &p_assigned);
    let paired = Fp12Chip::new(&fp).get_assigned_value(&paired.into());
    // `Gt` does not show the field element that it is, but for debugging.
    assert!(format!("{:?}", pairing(&p, &q)).contains(&format!("{paired:?}")));
}

fn signature(context: &mut Context<Fr>, range: &RangeChip<Fr>, seed: u64) {
    let generator = Secp256k1Affine::generator();
    let [secret, nonce, message] = [31, 37, 41].map(|i| Fq::from(i + seed).pow_vartime([11]));
    let public = Secp256k1Affine::from(generator * secret);
    let x = *Secp256k1Affine::from(generator * nonce)
        .coordinates()
        .unwrap()
        .x();
    let r: Fq = biguint_to_fe(&(fe_to_biguint(&x) % modulus::<Fq>()));
    let s = nonce.invert().unwrap() * (message + r * secret);

    let fp = secp256k1::FpChip::<Fr>::new(range, LIMB_BITS, LIMBS);
    let fq = secp256k1::FqChip::<Fr>::new(range, LIMB_BITS, LIMBS);
    let chip = EccChip::new(&fp);
    let [message, r, s] = [message, r, s].map(|value| fq.load_private(context, value));
    let public = chip.load_private_unchecked(context, (public.x, public.y));
    let valid = ecdsa_verify_no_pubkey_check::<Fr, Fp, Fq, Secp256k1Affine>(
        &chip,
        context,
        public,
        r,
        s,
        message,
        WINDOW_BITS,
        WINDOW_BITS,
    );
    assert_eq!(*valid.value(), Fr::one(), "the signature is valid");
    range.gate().assert_is_const(context, &valid, &Fr::one());
}
