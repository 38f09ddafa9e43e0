//! The curves by their fields: which of them a type of arkworks is.

use ark_ec::CurveConfig;
use ark_ff::Field;

use crate::header::Curve;

/// Low limbs first.
const BN254_BASE: [u64; 4] = [
    0x3c208c16d87cfd47,
    0x97816a916871ca8d,
    0xb85045b68181585d,
    0x30644e72e131a029,
];
const BN254_SCALAR: [u64; 4] = [
    0x43e1f593f0000001,
    0x2833e84879b97091,
    0xb85045b68181585d,
    0x30644e72e131a029,
];
const PALLAS_BASE: [u64; 4] = [0x992d30ed00000001, 0x224698fc094cf91b, 0, 0x4000000000000000];
const VESTA_BASE: [u64; 4] = [0x8c46eb2100000001, 0x224698fc0994a8dd, 0, 0x4000000000000000];
const BLS12381_BASE: [u64; 6] = [
    0xb9feffffffffaaab,
    0x1eabfffeb153ffff,
    0x6730d2a0f6b0f624,
    0x64774b84f38512bf,
    0x4b1ba7b6434bacd7,
    0x1a0111ea397fe69a,
];
const BLS12381_SCALAR: [u64; 4] = [
    0xffffffff00000001,
    0x53bda402fffe5bfe,
    0x3339d80809a1d805,
    0x73eda753299d7d48,
];

/// A group of points: what tells it from every other one, whatever types stand for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupId {
    /// The curve.
    pub curve: Curve,
    /// The degree of the field of the coordinates: 1 for G1, 2 for G2.
    pub degree: u8,
}

impl GroupId {
    /// BN254's G1.
    pub const BN254_G1: Self = Self {
        curve: Curve::Bn254,
        degree: 1,
    };

    /// The group whose points `P` has, if this format knows its curve. The fields decide, not the type.
    pub fn of<P: CurveConfig>() -> Option<Self> {
        let curves = [Curve::Bn254, Curve::Pallas, Curve::Vesta, Curve::Bls12381];
        let curve = curves.into_iter().find(|curve| {
            P::BaseField::characteristic() == curve.base_modulus()
                && P::ScalarField::characteristic() == curve.scalar_modulus()
        })?;
        let degree = u8::try_from(P::BaseField::extension_degree()).ok()?;
        Some(Self { curve, degree })
    }
}

impl Curve {
    /// The modulus of the coordinates of G1, low limbs first.
    pub const fn base_modulus(self) -> &'static [u64] {
        match self {
            Self::Bn254 => &BN254_BASE,
            Self::Pallas => &PALLAS_BASE,
            Self::Vesta => &VESTA_BASE,
            Self::Bls12381 => &BLS12381_BASE,
        }
    }

    /// The modulus of the scalars, low limbs first.
    pub const fn scalar_modulus(self) -> &'static [u64] {
        match self {
            Self::Bn254 => &BN254_SCALAR,
            Self::Pallas => &VESTA_BASE,
            Self::Vesta => &PALLAS_BASE,
            Self::Bls12381 => &BLS12381_SCALAR,
        }
    }
}

impl Curve {
    /// log2 of the largest domain that the scalars have: of the order of their roots of unity.
    pub const fn two_adicity(self) -> u32 {
        match self {
            Self::Bn254 => 28,
            Self::Pallas | Self::Vesta | Self::Bls12381 => 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_known_by_their_fields() {
        let group = |curve, degree| Some(GroupId { curve, degree });
        assert_eq!(GroupId::of::<ark_bn254::g1::Config>(), Some(GroupId::BN254_G1));
        assert_eq!(GroupId::of::<ark_bn254::g2::Config>(), group(Curve::Bn254, 2));
        assert_eq!(GroupId::of::<ark_pallas::PallasConfig>(), group(Curve::Pallas, 1));
        assert_eq!(GroupId::of::<ark_vesta::VestaConfig>(), group(Curve::Vesta, 1));
        assert_eq!(
            GroupId::of::<ark_bls12_381::g1::Config>(),
            group(Curve::Bls12381, 1)
        );
        assert_eq!(
            GroupId::of::<ark_bls12_381::g2::Config>(),
            group(Curve::Bls12381, 2)
        );
        for curve in [Curve::Bn254, Curve::Pallas, Curve::Vesta, Curve::Bls12381] {
            let base_bytes = 8 * curve.base_modulus().len();
            assert_eq!(curve.coordinate_bytes() as usize, base_bytes);
            let below = curve.scalar_modulus()[0] - 1;
            assert_eq!(curve.two_adicity(), below.trailing_zeros());
        }
    }
}
