//! Curves with a pairing, by the names that snarkjs has for them.

use clap::ValueEnum;
use spillproof_format::Curve;

/// A curve with a pairing, by the name that snarkjs has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// BN254.
    Bn128,
    /// BLS12-381.
    Bls12381,
}

impl From<Pairing> for Curve {
    fn from(pairing: Pairing) -> Self {
        match pairing {
            Pairing::Bn128 => Self::Bn254,
            Pairing::Bls12381 => Self::Bls12381,
        }
    }
}
