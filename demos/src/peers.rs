//! The libraries that we compare with: the same MSM and the same transform, in memory, as they do it.

use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInt, Fp};
use halo2curves::bn256;
use halo2curves::serde::SerdeObject;

use crate::inputs::{Points, scalar_at};

/// A library with an MSM in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// `ark_ec::VariableBaseMSM` 0.6.
    Ark,
    /// `halo2curves::msm::msm_best` 0.10, with assembly.
    Halo2curves,
}

/// Points and scalars of one library, all in memory.
pub enum Inputs {
    /// arkworks' types.
    Ark(Vec<G1Affine>, Vec<Fr>),
    /// halo2curves' types.
    Halo2curves(Vec<bn256::G1Affine>, Vec<bn256::Fr>),
}

impl Inputs {
    /// The first `n` points and scalars of a seed.
    pub fn generate(peer: Peer, seed: u64, n: usize) -> Self {
        let points = Points::new(seed);
        let scalars = (0..n).map(|i| scalar_at(seed, i));
        match peer {
            Peer::Ark => {
                let mut bases = Vec::with_capacity(n);
                stream(&points, n, |row| bases.extend_from_slice(row));
                Self::Ark(bases, scalars.collect())
            }
            Peer::Halo2curves => {
                let mut bases = Vec::with_capacity(n);
                stream(&points, n, |row| bases.extend(row.iter().map(to_halo2curves)));
                Self::Halo2curves(
                    bases,
                    scalars.map(|scalar| scalar_to_halo2curves(&scalar)).collect(),
                )
            }
        }
    }

    /// The sum of each scalar times its point.
    pub fn msm(&self) -> G1Affine {
        match self {
            Self::Ark(bases, scalars) => G1Projective::msm_unchecked(bases, scalars).into_affine(),
            Self::Halo2curves(bases, scalars) => {
                let sum = halo2curves::msm::msm_best(scalars, bases);
                from_halo2curves(&halo2curves::group::Curve::to_affine(&sum))
            }
        }
    }
}

fn stream(points: &Points, n: usize, mut take: impl FnMut(&[G1Affine])) {
    let taken: Result<(), std::convert::Infallible> = points.stream(n, 64, |row| {
        take(row);
        Ok(())
    });
    match taken {
        Ok(()) => {}
    }
}

/// 64 bytes: x, y, four little-endian limbs each in Montgomery form; infinity is zero.
pub fn point_bytes(point: &G1Affine) -> [u8; 64] {
    let mut bytes = [0; 64];
    if let Some((x, y)) = point.xy() {
        for (coordinate, bytes) in [x, y].iter().zip(bytes.chunks_exact_mut(32)) {
            bytes.copy_from_slice(&limb_bytes(&coordinate.0.0));
        }
    }
    bytes
}

fn limb_bytes(limbs: &[u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (limb, bytes) in limbs.iter().zip(bytes.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}

/// The same point in halo2curves' form.
pub fn to_halo2curves(point: &G1Affine) -> bn256::G1Affine {
    bn256::G1Affine::from_raw_bytes_unchecked(&point_bytes(point))
}

/// The same scalar in halo2curves' form.
pub fn scalar_to_halo2curves(scalar: &Fr) -> bn256::Fr {
    bn256::Fr::from_raw_bytes_unchecked(&limb_bytes(&scalar.0.0))
}

fn from_halo2curves(point: &bn256::G1Affine) -> G1Affine {
    let bytes = point.to_raw_bytes();
    if bytes.iter().all(|&byte| byte == 0) {
        return G1Affine::identity();
    }
    let limbs = |bytes: &[u8]| -> [u64; 4] {
        std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j])))
    };
    G1Affine::new_unchecked(
        Fp::new_unchecked(BigInt::new(limbs(&bytes[..32]))),
        Fp::new_unchecked(BigInt::new(limbs(&bytes[32..]))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_agree() {
        for n in [0, 1, 3000] {
            let [ark, halo2curves] =
                [Peer::Ark, Peer::Halo2curves].map(|peer| Inputs::generate(peer, 5, n).msm());
            assert_eq!(ark, halo2curves, "n = {n}");
            assert!(ark.is_on_curve());
        }
    }
}
