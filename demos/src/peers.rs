//! A multi-scalar multiplication in memory, as other libraries do it: the control of what is streamed.

use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInt, Fp};
use stock_halo2_axiom::arithmetic::best_multiexp;
use stock_halo2_axiom::halo2curves::bn256;
use stock_halo2_axiom::halo2curves::group::Curve;
use stock_halo2_axiom::halo2curves::serde::SerdeObject;

use crate::inputs::{Points, scalar_at};

/// Rows of points that are made at a time.
const ROWS_AT_ONCE: usize = 64;

/// A library with an MSM in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// `ark_ec::VariableBaseMSM` 0.6.
    Ark,
    /// `best_multiexp` of the unmodified halo2-axiom 0.5.3, over halo2curves-axiom 0.7.
    Halo2curves,
}

/// Inputs that are in memory; a call gives their sum.
pub type Sum = Box<dyn Fn() -> G1Affine>;

impl Peer {
    /// The first `n` points and scalars of a seed, in this library's types.
    pub fn load(self, seed: u64, n: usize) -> Sum {
        match self {
            Self::Ark => ARK.load(seed, n),
            Self::Halo2curves => HALO2_AXIOM.load(seed, n),
        }
    }
}

/// A library's types and its MSM.
#[derive(Clone, Copy)]
pub struct Library<P, S> {
    /// A point in its form.
    pub point: fn(&G1Affine) -> P,
    /// A scalar in its form.
    pub scalar: fn(&Fr) -> S,
    /// The sum of each scalar times its point.
    pub msm: fn(&[P], &[S]) -> G1Affine,
}

const ARK: Library<G1Affine, Fr> = Library {
    point: |point| *point,
    scalar: |scalar| *scalar,
    msm: |points, scalars| G1Projective::msm_unchecked(points, scalars).into_affine(),
};

const HALO2_AXIOM: Library<bn256::G1Affine, bn256::Fr> = Library {
    point: |point| bn256::G1Affine::from_raw_bytes_unchecked(&point_bytes(point)),
    scalar: |scalar| bn256::Fr::from_raw_bytes_unchecked(&scalar_bytes(scalar)),
    msm: |points, scalars| from_point_bytes(&best_multiexp(scalars, points).to_affine().to_raw_bytes()),
};

impl<P: 'static, S: 'static> Library<P, S> {
    /// The first `n` points and scalars of a seed.
    pub fn load(self, seed: u64, n: usize) -> Sum {
        let mut points = Vec::with_capacity(n);
        let taken: Result<(), std::convert::Infallible> = Points::new(seed).stream(n, ROWS_AT_ONCE, |row| {
            points.extend(row.iter().map(self.point));
            Ok(())
        });
        match taken {
            Ok(()) => {}
        }
        let scalars: Vec<S> = (0..n).map(|i| (self.scalar)(&scalar_at(seed, i))).collect();
        Box::new(move || (self.msm)(&points, &scalars))
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

/// 32 bytes: four little-endian limbs in Montgomery form.
pub fn scalar_bytes(scalar: &Fr) -> [u8; 32] {
    limb_bytes(&scalar.0.0)
}

fn limb_bytes(limbs: &[u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (limb, bytes) in limbs.iter().zip(bytes.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}

/// The reverse of [`point_bytes`].
pub fn from_point_bytes(bytes: &[u8]) -> G1Affine {
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
            let [ark, halo2curves] = [Peer::Ark, Peer::Halo2curves].map(|peer| peer.load(5, n)());
            assert_eq!(ark, halo2curves, "n = {n}");
            assert!(ark.is_on_curve());
        }
    }
}
